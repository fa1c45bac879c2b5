// libnvrtc.so.12: the run-time compiler.
#include <cstddef>

#include "stand_in.h"

STAND_IN(nvrtcCompileProgram)
STAND_IN(nvrtcCreateProgram)
STAND_IN(nvrtcDestroyProgram)
STAND_IN(nvrtcGetProgramLog)
STAND_IN(nvrtcGetPTX)

STAND_IN_EXPORT int nvrtcGetProgramLogSize(const void* /*program*/, std::size_t* size) {
  *size = 0;
  return kNoDevice;
}

STAND_IN_EXPORT int nvrtcGetPTXSize(const void* /*program*/, std::size_t* size) {
  *size = 0;
  return kNoDevice;
}

STAND_IN_EXPORT const char* nvrtcGetErrorString(int /*error*/) { return kNoDeviceText; }
