/*!
 * \file loops/loop_pool.h
 * \brief Runs the parallel loops of compiled programs so that no core waits for a slower one.
 *
 * TVM gives each thread one part of a loop beforehand. Where cores differ in speed, as those of a
 * virtual machine do from one millisecond to the next, all wait for the slowest. Here a loop is cut
 * into more chunks than there are threads; a thread begins with its own, and then takes those that
 * others have not begun.
 *
 * Other threads stay off the CPU that the caller runs on (`core/other_cpus.h`).
 */
#ifndef TLP_TVM_LOOPS_LOOP_POOL_H_
#define TLP_TVM_LOOPS_LOOP_POOL_H_

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tlp_tvm {
namespace loops {

/*! \brief TVMParallelGroupEnv of TVM's c_backend_api.h. */
struct GroupEnv {
  void* sync_handle;
  std::int32_t num_task;
};

/*! \brief FTVMParallelLambda: computes chunk `task_id` of `num_task`; 0 where it succeeds. */
using LoopBody = int (*)(int task_id, GroupEnv* env, void* data);

/*!
 * \brief Threads that sleep, or look for work for a while. One for the process: `Shared`.
 *
 * What different threads write lies in cache lines of its own.
 */
class LoopPool {  // NOLINT(clang-analyzer-optin.performance.Padding)
 public:
  static constexpr int kMostThreads = 256;
  static constexpr int kNoCpu = -1;

  /*! \return The one of this process. Its threads end with the process. */
  static LoopPool& Shared();

  /*! \brief Has later loops run on `threads` threads, the caller's among them. */
  void SetThreads(int threads);

  int threads() const { return threads_.load(std::memory_order_relaxed); }

  /*! \return How many loops ran on several threads. */
  std::uint64_t loops() const { return loops_.load(std::memory_order_relaxed); }

  /*!
   * \brief Computes every chunk of a loop. A loop within a loop runs on its thread alone, and so
   * does one that begins while another thread's runs.
   * \return 0, or -1 where a chunk failed. That chunk is computed again by the caller, so that it
   * is the caller's thread that has TVM's message.
   */
  int Run(LoopBody body, void* data);

 private:
  /*! \brief Chunks begin to end - 1 of the loop `epoch` that no thread has taken, in one word. */
  struct alignas(64) Segment {
    std::atomic<std::uint64_t> word{0};
  };

  LoopPool() = default;
  static void AfterFork();
  void Prepare(int threads, LoopBody body, void* data);
  bool StartThreads(int threads);
  void KeepApart();
  void Work(int thread, std::uint32_t epoch);
  void Wait(int chunks);
  [[noreturn]] void Serve(int thread);
  std::uint32_t NextLoop(std::uint32_t seen);

  std::array<Segment, kMostThreads> segments_;
  // What a loop is. A thread that reads it late, when the next has begun, can take no chunk by it.
  std::atomic<LoopBody> body_{nullptr};
  std::atomic<void*> data_{nullptr};
  std::atomic<int> chunks_{0};
  std::atomic<int> taking_part_{0};
  alignas(64) std::atomic<std::uint32_t> epoch_{0};
  alignas(64) std::atomic<int> done_{0};
  std::atomic<int> failed_{-1};
  alignas(64) std::atomic<int> sleeping_{0};
  std::atomic<bool> running_{false};
  std::atomic<int> threads_{1};
  int started_ = 1;
  std::array<pthread_t, kMostThreads> handles_{};  // of those that have started, from 1
  int apart_from_ = kNoCpu;                        // where these may not run: the caller does
  std::atomic<std::uint64_t> loops_{0};
};

}  // namespace loops
}  // namespace tlp_tvm

#endif  // TLP_TVM_LOOPS_LOOP_POOL_H_
