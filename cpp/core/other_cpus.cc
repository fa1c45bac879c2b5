#include "core/other_cpus.h"

namespace tlp_tvm {

OtherCpus::OtherCpus(int here) {
  if (here < 0 || sched_getaffinity(0, sizeof(cpus_), &cpus_) != 0) return;
  CPU_CLR(static_cast<unsigned>(here), &cpus_);
  some_ = CPU_COUNT(&cpus_) > 0;
}

void OtherCpus::Take(pthread_t thread) const {
  if (some_) pthread_setaffinity_np(thread, sizeof(cpus_), &cpus_);
}

bool OtherCpus::Start(pthread_t* thread, void* (*body)(void*), void* data) const {
  if (some_) {
    pthread_attr_t there;
    pthread_attr_init(&there);
    const bool started = pthread_attr_setaffinity_np(&there, sizeof(cpus_), &cpus_) == 0 &&
                         pthread_create(thread, &there, body, data) == 0;
    pthread_attr_destroy(&there);
    if (started) return true;
  }
  return pthread_create(thread, nullptr, body, data) == 0;
}

}  // namespace tlp_tvm
