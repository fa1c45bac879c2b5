#include "loops/loop_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <system_error>
#include <thread>

#include "core/other_cpus.h"

namespace tlp_tvm {
namespace loops {
namespace {

/*! \brief How long a thread looks for the next loop before it sleeps: longer than what a network
 * computes between two loops, and far shorter than TVM's tenth of a second. */
constexpr std::chrono::milliseconds kLooking{5};

/*! \brief Looks between two looks at the clock, or before a waiting thread lets others run. */
constexpr int kLooks = 256;

/*! \brief Of a thread, at most: on two threads, 16 to 128 of both together are as fast, and 1 a
 * thread takes 1.1 times as long. Many threads have fewer, as each chunk is handed out. */
constexpr int kChunks = 16, kFewestChunks = 2, kChunksOfAll = 128;

thread_local bool in_loop = false;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

int ChunksEach(int threads) { return std::clamp(kChunksOfAll / threads, kFewestChunks, kChunks); }

std::uint64_t Packed(std::uint32_t epoch, std::uint32_t begin, std::uint32_t end) {
  return std::uint64_t{epoch} << 32 | begin << 16 | end;
}

/*!
 * \brief Takes one chunk, the first of a thread's own, the last of another's.
 * \return It, or -1 where none is left of this loop.
 */
int Take(std::atomic<std::uint64_t>* word, std::uint32_t epoch, bool own) {
  std::uint64_t seen = word->load(std::memory_order_acquire);
  while (true) {
    const auto begin = static_cast<std::uint32_t>(seen >> 16 & 0xffff);
    const auto end = static_cast<std::uint32_t>(seen & 0xffff);
    if (seen >> 32 != epoch || begin >= end) return -1;
    const std::uint64_t left = own ? Packed(epoch, begin + 1, end) : Packed(epoch, begin, end - 1);
    if (word->compare_exchange_weak(seen, left, std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
      return static_cast<int>(own ? begin : end - 1);
    }
  }
}

void Futex(std::atomic<std::uint32_t>* word, int operation, std::uint32_t value) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word), operation, value, nullptr, nullptr, 0);
}

}  // namespace

LoopPool& LoopPool::Shared() {
  // Never destroyed: its threads use it until the process ends.
  static LoopPool* const pool = [] {
    pthread_atfork(nullptr, nullptr, &LoopPool::AfterFork);
    return new LoopPool;  // NOLINT(cppcoreguidelines-owning-memory)
  }();
  return *pool;
}

void LoopPool::AfterFork() {
  // The threads stayed with the parent.
  LoopPool& pool = Shared();
  pool.started_ = 1;
  pool.apart_from_ = kNoCpu;
  pool.sleeping_ = 0;
  pool.running_ = false;
}

void LoopPool::SetThreads(int threads) { threads_ = std::clamp(threads, 1, kMostThreads); }

int LoopPool::Run(LoopBody body, void* data) {
  const int threads = this->threads();
  if (in_loop || threads == 1 || running_.exchange(true, std::memory_order_acquire)) {
    GroupEnv alone{nullptr, 1};
    return body(0, &alone, data);
  }
  loops_.fetch_add(1, std::memory_order_relaxed);
  Prepare(threads, body, data);
  Work(0, epoch_.load(std::memory_order_relaxed));
  const int chunks = chunks_.load(std::memory_order_relaxed);
  Wait(chunks);
  const int failed = failed_.load(std::memory_order_relaxed);
  running_.store(false, std::memory_order_release);
  if (failed < 0) return 0;
  GroupEnv env{nullptr, chunks};
  body(failed, &env, data);
  return -1;
}

void LoopPool::Prepare(int threads, LoopBody body, void* data) {
  const int taking_part = StartThreads(threads) ? threads : started_;
  KeepApart();
  const int each = ChunksEach(taking_part);
  body_.store(body, std::memory_order_relaxed);
  data_.store(data, std::memory_order_relaxed);
  chunks_.store(each * taking_part, std::memory_order_relaxed);
  taking_part_.store(taking_part, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  failed_.store(-1, std::memory_order_relaxed);
  const std::uint32_t epoch = epoch_.load(std::memory_order_relaxed) + 1;
  for (int i = 0; i < taking_part; ++i) {
    segments_[i].word.store(Packed(epoch, i * each, (i + 1) * each), std::memory_order_release);
  }
  // In one order with the sleeper's own two steps, so that one of both sees the other's.
  epoch_.store(epoch, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst) > 0) {
    Futex(&epoch_, FUTEX_WAKE_PRIVATE, std::numeric_limits<int>::max());
  }
}

bool LoopPool::StartThreads(int threads) {
  try {
    for (; started_ < threads; ++started_) {
      std::thread fresh(&LoopPool::Serve, this, started_);
      handles_[started_] = fresh.native_handle();
      fresh.detach();  // it ends with the process, and so its handle stays valid
      apart_from_ = kNoCpu;
    }
  } catch (const std::system_error&) {
    return false;  // the system grants no more: those that there are do the work
  }
  return true;
}

/*!
 * \brief Lets the other threads run where the caller may, but not where it does; costs a look at the
 * number of the CPU, unless that has changed since the last loop.
 */
void LoopPool::KeepApart() {
  const int here = sched_getcpu();
  if (here == apart_from_) return;
  const OtherCpus others(here);
  apart_from_ = others.some() ? here : kNoCpu;  // a confined caller may be set free on the same CPU
  for (int i = 1; i < started_; ++i) others.Take(handles_[i]);
}

void LoopPool::Work(int thread, std::uint32_t epoch) {
  const LoopBody body = body_.load(std::memory_order_relaxed);
  void* const data = data_.load(std::memory_order_relaxed);
  const int taking_part = taking_part_.load(std::memory_order_relaxed);
  if (thread >= taking_part) return;
  GroupEnv env{nullptr, chunks_.load(std::memory_order_relaxed)};
  int computed = 0;
  in_loop = true;
  for (int i = 0; i < taking_part; ++i) {
    const int whose = (thread + i) % taking_part;
    std::atomic<std::uint64_t>* const word = &segments_[whose].word;
    for (int chunk = Take(word, epoch, i == 0); chunk >= 0; chunk = Take(word, epoch, i == 0)) {
      if (body(chunk, &env, data) != 0) failed_.store(chunk, std::memory_order_relaxed);
      ++computed;
    }
  }
  in_loop = false;
  if (computed > 0) done_.fetch_add(computed, std::memory_order_release);
}

void LoopPool::Wait(int chunks) {
  for (int looks = 0; done_.load(std::memory_order_acquire) != chunks; ++looks) {
    if (looks < kLooks) {
      Pause();
    } else {
      sched_yield();  // the one that computes the last chunk may need this core
    }
  }
}

void LoopPool::Serve(int thread) {
  std::uint32_t seen = 0;
  while (true) {
    seen = NextLoop(seen);
    Work(thread, seen);
  }
}

std::uint32_t LoopPool::NextLoop(std::uint32_t seen) {
  const auto now = [] { return std::chrono::steady_clock::now(); };
  auto began = now();
  for (int looks = 1;; ++looks) {
    const std::uint32_t epoch = epoch_.load(std::memory_order_acquire);
    if (epoch != seen) return epoch;
    Pause();
    if (looks % kLooks != 0 || now() - began < kLooking) continue;
    sleeping_.fetch_add(1, std::memory_order_seq_cst);
    Futex(&epoch_, FUTEX_WAIT_PRIVATE, seen);
    sleeping_.fetch_sub(1, std::memory_order_seq_cst);
    began = now();
  }
}

}  // namespace loops
}  // namespace tlp_tvm
