#include <sched.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "check.h"
#include "core/parallel_for.h"

using tlp_tvm::ParallelFor;

TEST(EveryIndexOnce) {
  for (int threads : {1, 4, 7}) {
    std::vector<std::atomic<int>> seen(1001);
    ParallelFor(seen.size(), 10, threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) ++seen[i];
    });
    for (const auto& count : seen) EXPECT_EQ(count.load(), 1);
  }
}

TEST(HelpersStayOffTheCpuOfTheCaller) {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof(allowed), &allowed);
  if (CPU_COUNT(&allowed) < 2) {
    std::puts("HelpersStayOffTheCpuOfTheCaller: skipped, as there is one CPU");
    return;
  }
  const auto caller = std::this_thread::get_id();
  for (int tries = 0; tries < 5; ++tries) {
    std::atomic<bool> helped{false};
    cpu_set_t helpers;
    const int before = sched_getcpu();
    ParallelFor(2, 1, 2, [&](std::size_t, std::size_t) {
      if (std::this_thread::get_id() != caller) {
        sched_getaffinity(0, sizeof(helpers), &helpers);
        helped = true;
      }
      for (int waits = 0; !helped && waits < 1000; ++waits) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    EXPECT(helped);
    if (sched_getcpu() != before) continue;  // Linux has moved the caller since
    EXPECT(!CPU_ISSET(static_cast<unsigned>(before), &helpers));
    EXPECT_EQ(CPU_COUNT(&helpers), CPU_COUNT(&allowed) - 1);
  }
}

TEST(NothingToDo) {
  ParallelFor(0, 10, 4, [](std::size_t, std::size_t) { throw std::runtime_error("called"); });
}

TEST(TheLowestFailureIsReported) {
  for (int threads : {1, 4, 7}) {
    const auto fail_from_300 = [](std::size_t begin, std::size_t) {
      if (begin >= 300) throw std::runtime_error("block " + std::to_string(begin));
    };
    EXPECT_THROWS(ParallelFor(1000, 10, threads, fail_from_300), std::runtime_error, "block 300");
  }
}

TEST(ZeroThreadsMeansEveryCore) {
  EXPECT(tlp_tvm::ResolveThreads(0) >= 1);
  EXPECT_EQ(tlp_tvm::ResolveThreads(3), 3);
}
