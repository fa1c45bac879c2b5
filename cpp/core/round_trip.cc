#include "core/round_trip.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

#include "core/parallel_for.h"

namespace tlp_tvm {
namespace {

constexpr int kTimings = 32, kTrips = 64;
constexpr int kEnd = -1;

/*! \brief After so long no further timing begins: another process may have the other CPU. */
constexpr std::chrono::milliseconds kPatience{20};

/*! \brief What goes to and fro: a word each way, in lines that no prefetcher takes together. */
struct Line {
  alignas(128) std::atomic<int> asked{0};
  alignas(128) std::atomic<int> answered{0};
};

void* Answer(void* data) {
  auto* const line = static_cast<Line*>(data);
  for (int last = 0; last != kEnd;) {
    const int asked = line->asked.load(std::memory_order_acquire);
    if (asked == last) continue;
    line->answered.store(asked, std::memory_order_release);
    last = asked;
  }
  return nullptr;
}

/*! \brief Sends the numbers that follow `number`, and waits for each to come back. */
void Send(Line* line, int number, int trips) {
  for (int i = 1; i <= trips; ++i) {
    line->asked.store(number + i, std::memory_order_release);
    while (line->answered.load(std::memory_order_acquire) != number + i) {
    }
  }
}

double LowestTiming(Line* line) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + kPatience;
  double lowest = 0;
  Send(line, 0, 1);  // the other thread has begun
  for (int i = 0; i < kTimings && (i == 0 || Clock::now() < end); ++i) {
    const Clock::time_point began = Clock::now();
    Send(line, 1 + i * kTrips, kTrips);
    const double each = std::chrono::duration<double>(Clock::now() - began).count() / kTrips;
    lowest = i == 0 ? each : std::min(lowest, each);
  }
  return lowest;
}

/*! \return Seconds there and back, or 0 where no thread can be started on that CPU. */
double RoundTripTo(const cpu_set_t& there) {
  Line line;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_t other{};
  const bool started = pthread_attr_setaffinity_np(&attributes, sizeof(there), &there) == 0 &&
                       pthread_create(&other, &attributes, &Answer, &line) == 0;
  pthread_attr_destroy(&attributes);
  if (!started) return 0;
  const double seconds = LowestTiming(&line);
  line.asked.store(kEnd, std::memory_order_release);
  pthread_join(other, nullptr);
  return seconds;
}

/*! \return The first `most` of them, a set each. */
std::vector<cpu_set_t> Apart(const cpu_set_t& cpus, int most) {
  std::vector<cpu_set_t> found;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE && static_cast<int>(found.size()) < most; ++cpu) {
    if (!CPU_ISSET(cpu, &cpus)) continue;
    cpu_set_t alone;
    CPU_ZERO(&alone);
    CPU_SET(cpu, &alone);
    found.push_back(alone);
  }
  return found;
}

}  // namespace

double RoundTrip(int threads) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 0;
  const std::vector<cpu_set_t> cpus = Apart(allowed, ResolveThreads(threads));
  if (cpus.size() < 2 || sched_setaffinity(0, sizeof(cpus[0]), &cpus[0]) != 0) return 0;
  double farthest = 0;
  for (std::size_t i = 1; i < cpus.size(); ++i) farthest = std::max(farthest, RoundTripTo(cpus[i]));
  sched_setaffinity(0, sizeof(allowed), &allowed);
  return farthest;
}

}  // namespace tlp_tvm
