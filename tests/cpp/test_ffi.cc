// Only a tvm-ffi whose structs are known is read.
#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "check.h"
#include "core/error.h"
#include "metaschedule/ffi.h"

namespace ffi = tlp_tvm::metaschedule::ffi;
using tlp_tvm::StateError;

namespace {

const std::string kPath = TLP_TVM_FAKE_FFI;
const std::string kCure = "; install apache-tvm-ffi 0.1.14.post1, or a tlp_tvm that knows this one";

template <typename T>
T* Global(const char* name) {
  static void* const library = dlopen(kPath.c_str(), RTLD_NOW);
  void* const symbol = library == nullptr ? nullptr : dlsym(library, name);
  if (symbol == nullptr) throw std::logic_error(kPath + " without " + name);
  return static_cast<T*>(symbol);
}

}  // namespace

TEST(ALibraryMustBeLoaded) {
  EXPECT_THROWS(ffi::Library("/nowhere/libtvm_ffi.so"), StateError,
                "/nowhere/libtvm_ffi.so: expected tvm-ffi's library to be loaded already, found it "
                "is not; import tvm first");
}

TEST(KnownVersionsAreAccepted) {
  auto* const version = Global<ffi::Version>("g_version");
  for (const std::uint32_t patch : {0U, 15U, 16U}) {
    *version = {0, 1, patch};
    EXPECT_THROWS(ffi::Library(kPath).IndexOf("ir.Var"), StateError,
                  kPath +
                      ": expected a TVM with the class ir.Var, found none; import "
                      "tvm.s_tir.meta_schedule of a TVM 0.25 to 0.27 first");
  }
}

TEST(OtherVersionsAreRefused) {
  auto* const version = Global<ffi::Version>("g_version");
  for (const ffi::Version other : {ffi::Version{0, 1, 17}, {0, 2, 0}, {1, 1, 0}}) {
    *version = other;
    EXPECT_THROWS(ffi::Library{kPath}, StateError,
                  kPath + ": expected tvm-ffi 0.1.0 to 0.1.16, found " +
                      std::to_string(other.major) + "." + std::to_string(other.minor) + "." +
                      std::to_string(other.patch) + kCure);
  }
  *version = {0, 1, 15};
}

TEST(AnotherTableOfTypesIsRefused) {
  auto* const array = Global<ffi::TypeInfo>("g_array");
  const ffi::TypeInfo before = *array;
  array->key = {"ffi.List", 8};
  EXPECT_THROWS(ffi::Library{kPath}, StateError,
                kPath + ": expected tvm-ffi's table of types, found another layout" + kCure);
  *array = before;
}
