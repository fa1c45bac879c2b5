// A library that launches parallel loops as TVM's does, through what it imports.
#include <atomic>
#include <map>
#include <string>

#include "loops/loop_pool.h"

using tlp_tvm::loops::GroupEnv;
using tlp_tvm::loops::LoopBody;

#define EXPORTED extern "C" __attribute__((visibility("default"), noinline))

namespace {

thread_local std::string last_error;

int CountTask(int, GroupEnv*, void* data) {
  ++*static_cast<std::atomic<int>*>(data);
  return 0;
}

}  // namespace

std::map<std::string, void*>& Registry() {
  static std::map<std::string, void*> registry;
  return registry;
}

std::string refused;

EXPORTED void Refuse(const char* name) { refused = name; }

EXPORTED int TVMFFIEnvModRegisterContextSymbol(const char* name, void* address) {
  if (name == refused) return -1;
  Registry()[name] = address;
  return 0;
}

EXPORTED void* Registered(const char* name) { return Registry()[name]; }

EXPORTED int Own(int value) { return value; }

EXPORTED void TVMAPISetLastError(const char* message) { last_error = message; }

EXPORTED const char* LastError() { return last_error.c_str(); }

EXPORTED int TVMBackendParallelLaunch(LoopBody body, void* data, int num_task) {
  const int tasks = num_task == 0 ? 1 : num_task;
  GroupEnv env{&last_error, tasks};
  for (int i = 0; i < tasks; ++i) {
    if (body(i, &env, data) != 0) return -1;
  }
  return 0;
}

EXPORTED int TVMBackendParallelBarrier(int, GroupEnv*) { return 0; }

namespace {

int WaitForOthers(int task_id, GroupEnv* env, void*) {
  int (*volatile const barrier)(int, GroupEnv*) = &TVMBackendParallelBarrier;
  return barrier(task_id, env);
}

}  // namespace

EXPORTED int UsesOwn() { return Own(1); }

EXPORTED int RunLoop(int num_task) {
  std::atomic<int> tasks{0};
  int (*volatile const launch)(LoopBody, void*, int) = &TVMBackendParallelLaunch;
  return launch(&CountTask, &tasks, num_task) == 0 ? tasks.load() : -1;
}

EXPORTED int RunLoopThatWaits() {
  int (*volatile const launch)(LoopBody, void*, int) = &TVMBackendParallelLaunch;
  return launch(&WaitForOthers, nullptr, 0);
}
