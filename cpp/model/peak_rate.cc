#include "model/peak_rate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "core/parallel_for.h"
#include "model/runnable_kernels.h"

namespace tlp_tvm {
namespace model {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 1 << 14;
constexpr int kTurns = 12;
constexpr double kSeconds = 4e-3;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/*! \return Operations a second of one thread, once all have come. */
double Turn(std::atomic<int>& missing) {
  --missing;
  while (missing.load() > 0) std::this_thread::yield();
  const Clock::time_point begin = Clock::now();
  double operations = 0;
  double seconds = 0;
  float sum = 0;
  while (seconds < kSeconds) {
    operations += BestKernels().multiply(kRounds, &sum);
    seconds = SecondsSince(begin);
  }
  return operations / seconds;
}

}  // namespace

double PeakRate(int threads) {
  const int count = ResolveThreads(threads);
  double best = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    std::atomic<int> missing{count};
    std::vector<double> rates(static_cast<std::size_t>(count));
    std::vector<std::thread> others;
    for (int t = 1; t < count; ++t) {
      others.emplace_back(
          [&missing, &rate = rates[static_cast<std::size_t>(t)]] { rate = Turn(missing); });
    }
    rates[0] = Turn(missing);
    for (std::thread& other : others) other.join();
    double sum = 0;
    for (const double rate : rates) sum += rate;
    best = std::max(best, sum);
  }
  return best;
}

}  // namespace model
}  // namespace tlp_tvm
