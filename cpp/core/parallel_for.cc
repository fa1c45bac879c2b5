#include "core/parallel_for.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "core/other_cpus.h"

namespace tlp_tvm {

int ResolveThreads(int threads) {
  if (threads > 0) return threads;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return CPU_COUNT(&allowed);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void ParallelFor(std::size_t count, std::size_t block, int threads,
                 const std::function<void(std::size_t, std::size_t)>& body) {
  const std::size_t blocks = (count + block - 1) / block;
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> failed_block{std::numeric_limits<std::size_t>::max()};
  std::exception_ptr failure;
  std::mutex failure_mutex;

  auto work = [&] {
    // Blocks are handed out in order, so every block below a failed one has been started.
    for (std::size_t b = next++; b < blocks && b < failed_block; b = next++) {
      try {
        body(b * block, std::min(count, (b + 1) * block));
      } catch (...) {
        const std::lock_guard<std::mutex> lock(failure_mutex);
        if (b < failed_block) {
          failed_block = b;
          failure = std::current_exception();
        }
      }
    }
  };

  const auto wanted = std::min(static_cast<std::size_t>(ResolveThreads(threads)), blocks);
  const OtherCpus others(wanted > 1 ? sched_getcpu() : -1);
  const auto help = [](void* data) -> void* {
    (*static_cast<decltype(&work)>(data))();
    return nullptr;
  };
  std::vector<pthread_t> helpers;
  helpers.reserve(wanted);
  for (std::size_t t = 1; t < wanted; ++t) {
    pthread_t helper{};
    // Where the system grants no more threads, those that there are do the work.
    if (!others.Start(&helper, help, &work)) break;
    helpers.push_back(helper);
  }
  work();
  for (const pthread_t helper : helpers) pthread_join(helper, nullptr);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tlp_tvm
