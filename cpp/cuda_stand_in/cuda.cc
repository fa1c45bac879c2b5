// libcuda.so.1: the CUDA driver.
#include "stand_in.h"

STAND_IN(cuDeviceGetName)
STAND_IN(cuFuncSetAttribute)
STAND_IN(cuLaunchKernel)
STAND_IN(cuMemsetD32_v2)
STAND_IN(cuModuleGetFunction)
STAND_IN(cuModuleGetGlobal_v2)
STAND_IN(cuModuleLoadData)
STAND_IN(cuModuleUnload)

STAND_IN_EXPORT int cuGetErrorName(int /*error*/, const char** name) {
  *name = kNoDeviceText;
  return kNoDevice;
}
