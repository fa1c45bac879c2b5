# -DTLP_TVM_SANITIZE=address,undefined (or thread) instruments every target of the build.
if(TLP_TVM_SANITIZE)
  add_compile_options(-fsanitize=${TLP_TVM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${TLP_TVM_SANITIZE})
endif()
