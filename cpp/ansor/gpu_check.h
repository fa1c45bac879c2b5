/*!
 * \file ansor/gpu_check.h
 * \brief Which programs a GPU cannot run, as their loops show before anything is lowered.
 *
 * TVM lowers a program and then counts (tir.VerifyGPUCode): threads of a block, shared memory of a
 * block, bytes of a vector access. The same numbers stand in the loops of a state whose bounds are
 * inferred, as all are that the search scores. Where the loops leave a doubt the program passes:
 * what is refused here, TVM refuses too.
 */
#ifndef TLP_TVM_ANSOR_GPU_CHECK_H_
#define TLP_TVM_ANSOR_GPU_CHECK_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "ansor/abi.h"
#include "ansor/stage_list.h"
#include "ansor/state_reader.h"

namespace tlp_tvm {
namespace ansor {

/*! \brief Of the hardware, as auto_scheduler.HardwareParams has them. */
struct GpuLimits {
  std::int64_t threads_per_block;
  std::int64_t shared_bytes_per_block;
  std::int64_t vthreads;
  std::int64_t vector_bytes;
};

/*! \brief Whether a vector access of an operation's copy stays one. */
enum class Vectors : std::uint8_t {
  kTakenApart,   /*!< \brief TVM takes one apart that depends on a condition, as padding does */
  kUnlessMasked, /*!< \brief computed: a mask behind the end may take it apart */
  kUnlessCut,    /*!< \brief an input: only a mask that may cut through a vector does */
};

/*! \brief What is known of an operation of the task's graph. */
struct GpuOperation {
  std::int64_t element_bytes;
  Vectors vectors;
};

/*!
 * \brief How one operation reads another: for each dimension of what is read, the axes of the
 * reader (spatial ones first) with the factors that they are multiplied by, which are added up.
 */
struct GpuRead {
  std::size_t reader, read;
  std::vector<std::vector<std::pair<std::size_t, std::int64_t>>> dimensions;
};

/*! \brief A task's graph, in the order of TVM's stages. */
struct GpuGraph {
  std::vector<GpuOperation> operations;
  /*! \brief Of each operation. */
  std::vector<AxisCount> axes;
  /*! \brief Without what is read twice, or at places that are no such sums. */
  std::vector<GpuRead> reads;
};

/*! \brief Why a program cannot run. */
enum class GpuFault : std::uint8_t {
  kNone,
  kThreads,      /*!< \brief too many threads in a block */
  kThreadsApart, /*!< \brief two loops of a kernel are bound to as many threads, but not the same */
  kSharedMemory, /*!< \brief too much shared memory in a block */
  kVthreads,     /*!< \brief too many virtual threads */
  kVector,       /*!< \brief a vector access of too many bytes */
};

/*!
 * \brief Checks programs that TVM has not seen, by their steps: says no more than `CheckGpu` says of
 * their states. For one thread: it keeps its memory from one program to the next.
 */
class ProgramCheck {
 public:
  /*! \brief Limits and graph stay the caller's. */
  ProgramCheck(const GpuLimits& limits, const GpuGraph& graph)
      : limits_(limits), graph_(graph), start_(graph.axes), list_(start_) {}

  GpuFault FaultOf(const PrimitiveSequence& program);

 private:
  void FindLoops();

  const GpuLimits& limits_;
  const GpuGraph& graph_;
  StageList start_;  ///< before the first step
  StageList list_;
  std::vector<std::vector<Loop>> loops_;
  std::vector<bool> inlined_;
};

/*!
 * \brief Checks every state.
 * \param threads 0 for every core.
 * \param faults Gets one number a state.
 */
void CheckGpu(StateReader* reader, const abi::Array& states, const GpuLimits& limits,
              const GpuGraph& graph, int threads, GpuFault* faults);

}  // namespace ansor
}  // namespace tlp_tvm

#endif  // TLP_TVM_ANSOR_GPU_CHECK_H_
