// What the three stand-in libraries share. TVM built with CUDA is linked against the driver, the
// runtime and NVRTC, and does not load without them; a stand-in has the functions that TVM needs,
// and each answers "no device".
#pragma once

#define STAND_IN_EXPORT extern "C" __attribute__((visibility("default")))

// CUDA_ERROR_NO_DEVICE and cudaErrorNoDevice; NVRTC has no such code, and any but 0 is an error.
constexpr int kNoDevice = 100;

constexpr const char* kNoDeviceText =
    "no CUDA on this machine: this is tlp_tvm's stand-in, which only lets TVM load";

// A function that fails whatever it is called with. It takes no parameters because it reads none:
// by the C calling conventions of Linux the caller owns the arguments.
#define STAND_IN(name) \
  STAND_IN_EXPORT int name() { return kNoDevice; }
