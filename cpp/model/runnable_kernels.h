/*!
 * \file model/runnable_kernels.h
 * \brief Which kernels this processor can run.
 */
#ifndef TLP_TVM_MODEL_RUNNABLE_KERNELS_H_
#define TLP_TVM_MODEL_RUNNABLE_KERNELS_H_

#include <vector>

#include "model/kernels.h"

namespace tlp_tvm {
namespace model {

/*! \return Those that this processor can run, the fastest first. */
const std::vector<const Kernels*>& RunnableKernels();

/*! \return The fastest of them. */
inline const Kernels& BestKernels() { return *RunnableKernels().front(); }

}  // namespace model
}  // namespace tlp_tvm

#endif  // TLP_TVM_MODEL_RUNNABLE_KERNELS_H_
