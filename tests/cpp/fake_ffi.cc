// What of tvm-ffi's C interface is looked up at once, in a library of any version.
#include <cstdint>
#include <cstring>

#include "metaschedule/ffi.h"

namespace ffi = tlp_tvm::metaschedule::ffi;

extern "C" {
#define TLP_TVM_EXPORT __attribute__((visibility("default")))

TLP_TVM_EXPORT ffi::Version g_version = {0, 1, 15};
TLP_TVM_EXPORT ffi::TypeInfo g_array = {ffi::kArray, 1, {"ffi.Array", 9}, nullptr, 0,
                                        0,           0, nullptr,          nullptr, nullptr};

TLP_TVM_EXPORT void TVMFFIGetVersion(ffi::Version* version) { *version = g_version; }
TLP_TVM_EXPORT const ffi::TypeInfo* TVMFFIGetTypeInfo(std::int32_t) { return &g_array; }
TLP_TVM_EXPORT int TVMFFITypeKeyToIndex(const ffi::Bytes*, std::int32_t*) { return -1; }
TLP_TVM_EXPORT int TVMFFIFunctionGetGlobal(const ffi::Bytes*, void**) { return -1; }
TLP_TVM_EXPORT int TVMFFIFunctionCall(void*, const ffi::Any*, std::int32_t, ffi::Any*) {
  return -1;
}
TLP_TVM_EXPORT int TVMFFIObjectDecRef(void*) { return 0; }
TLP_TVM_EXPORT void TVMFFIErrorMoveFromRaised(void** error) { *error = nullptr; }
}
