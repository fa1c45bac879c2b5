// libcudart.so.12: the CUDA runtime.
#include "stand_in.h"

STAND_IN(cudaDeviceGetAttribute)
STAND_IN(cudaEventCreate)
STAND_IN(cudaEventDestroy)
STAND_IN(cudaEventElapsedTime)
STAND_IN(cudaEventRecord)
STAND_IN(cudaEventSynchronize)
STAND_IN(cudaFree)
STAND_IN(cudaFreeHost)
STAND_IN(cudaGetDevice)
STAND_IN(cudaGetDeviceProperties_v2)
STAND_IN(cudaGraphDestroy)
STAND_IN(cudaGraphExecDestroy)
STAND_IN(cudaGraphInstantiate)
STAND_IN(cudaGraphLaunch)
STAND_IN(cudaMalloc)
STAND_IN(cudaMallocHost)
STAND_IN(cudaMemGetInfo)
STAND_IN(cudaMemcpyAsync)
STAND_IN(cudaMemcpyPeerAsync)
STAND_IN(cudaMemsetAsync)
STAND_IN(cudaSetDevice)
STAND_IN(cudaStreamBeginCapture)
STAND_IN(cudaStreamCreate)
STAND_IN(cudaStreamCreateWithFlags)
STAND_IN(cudaStreamDestroy)
STAND_IN(cudaStreamEndCapture)
STAND_IN(cudaStreamSynchronize)
STAND_IN(cudaStreamWaitEvent)

STAND_IN_EXPORT int cudaGetDeviceCount(int* count) {
  *count = 0;
  return kNoDevice;
}

STAND_IN_EXPORT const char* cudaGetErrorString(int /*error*/) { return kNoDeviceText; }
