#include "model/runnable_kernels.h"

namespace tlp_tvm {
namespace model {

const Kernels& BaselineKernels();
#ifdef TLP_TVM_X86
const Kernels& Avx2Kernels();
const Kernels& Avx512Kernels();
#endif

const std::vector<const Kernels*>& RunnableKernels() {
  static const std::vector<const Kernels*> runnable = [] {
    std::vector<const Kernels*> found;
#ifdef TLP_TVM_X86
    __builtin_cpu_init();
    const bool fma = __builtin_cpu_supports("fma") != 0;
    if (__builtin_cpu_supports("avx512f") != 0 && fma) found.push_back(&Avx512Kernels());
    if (__builtin_cpu_supports("avx2") != 0 && fma) found.push_back(&Avx2Kernels());
#endif
    found.push_back(&BaselineKernels());
    return found;
  }();
  return runnable;
}

}  // namespace model
}  // namespace tlp_tvm
