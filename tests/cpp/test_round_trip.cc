#include <sched.h>

#include <cstdio>

#include "check.h"
#include "core/round_trip.h"

using tlp_tvm::RoundTrip;

namespace {

cpu_set_t Allowed() {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof(allowed), &allowed);
  return allowed;
}

}  // namespace

TEST(ACacheLineComesBack) {
  const cpu_set_t before = Allowed();
  if (CPU_COUNT(&before) < 2) {
    std::puts("ACacheLineComesBack: skipped, as there is one CPU");
    return;
  }
  const double seconds = RoundTrip(2);
  EXPECT(seconds > 1e-9);
  EXPECT(seconds < 1);
  const cpu_set_t after = Allowed();
  EXPECT(CPU_EQUAL(&before, &after));
}

TEST(OneCpuHasNoOther) {
  const cpu_set_t before = Allowed();
  EXPECT_EQ(RoundTrip(1), 0.0);
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(static_cast<unsigned>(sched_getcpu()), &here);
  sched_setaffinity(0, sizeof(here), &here);
  EXPECT_EQ(RoundTrip(2), 0.0);
  sched_setaffinity(0, sizeof(before), &before);
}
