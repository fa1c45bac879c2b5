#include <atomic>
#include <stdexcept>

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
