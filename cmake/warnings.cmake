# tlp_tvm_warnings(TARGET): the project's warnings; fatal only with TLP_TVM_WERROR (CI), never on a user's machine.
function(tlp_tvm_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
  if(TLP_TVM_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
