#include "loops/tvm_loops.h"

#include <atomic>
#include <mutex>

#include "loops/library_import.h"
#include "loops/loop_pool.h"

namespace tlp_tvm {
namespace loops {
namespace {

/*! \brief Of TVM's c_backend_api.h; programs look them up through TVM's library. */
constexpr const char* kLaunch = "TVMBackendParallelLaunch";
constexpr const char* kBarrier = "TVMBackendParallelBarrier";

constexpr const char* kSetError = "TVMAPISetLastError";

/*! \brief Of tvm-ffi's c_env_api.h; programs name what they look up there with two underscores. */
constexpr const char* kRegister = "TVMFFIEnvModRegisterContextSymbol";

using LaunchFunction = int (*)(LoopBody, void*, int);
using BarrierFunction = int (*)(int, GroupEnv*);
using SetErrorFunction = void (*)(const char*);
using RegisterFunction = int (*)(const char*, void*);

/*! \brief What TVM has. */
struct Replaced {
  std::string library, registry;  // empty for none
  std::atomic<LaunchFunction> launch{nullptr};
  std::atomic<BarrierFunction> barrier{nullptr};
  std::atomic<SetErrorFunction> set_error{nullptr};
};

std::mutex mutex;

Replaced& Theirs() {
  static Replaced* const theirs = new Replaced;  // threads may be in a loop when the process ends
  return *theirs;
}

/*! \brief In the place of TVM's. A loop that asks for a number of tasks has them by TVM. */
int Launch(LoopBody body, void* data, int num_task) {
  if (num_task != 0) return Theirs().launch.load()(body, data, num_task);
  return LoopPool::Shared().Run(body, data);
}

/*! \brief In the place of TVM's. Chunks of a loop of ours do not run all at once, so none can wait
 * for the others. */
int Barrier(int task_id, GroupEnv* env) {
  if (env->sync_handle != nullptr) return Theirs().barrier.load()(task_id, env);
  if (env->num_task == 1) return 0;
  if (const SetErrorFunction set_error = Theirs().set_error.load()) {
    set_error(
        "a parallel loop: expected none whose parts wait for each other, found one, as in TVM's "
        "bitserial convolutions; set TLP_TVM_LOOPS=tvm");
  }
  return -1;
}

template <typename Function>
Function Named(const std::string& library, const char* name) {
  return reinterpret_cast<Function>(FunctionOf(library, name));
}

/*! \return Whether programs will find `function` under TVM's name. */
template <typename Function>
bool Put(const std::string& library, const std::string& registry, const char* name,
         Function function) {
  void* const address = reinterpret_cast<void*>(function);
  if (registry.empty()) return ReplaceImport(library, name, address);
  const auto put = Named<RegisterFunction>(registry, kRegister);
  return put != nullptr && put((std::string("__") + name).c_str(), address) == 0;
}

}  // namespace

bool Share(const std::string& library, const std::string& registry) {
  const std::lock_guard<std::mutex> lock(mutex);
  Replaced& theirs = Theirs();
  if (library == theirs.library) return true;
  const auto launch = Named<LaunchFunction>(library, kLaunch);
  const auto barrier = Named<BarrierFunction>(library, kBarrier);
  if (!theirs.library.empty() || launch == nullptr || barrier == nullptr) return false;
  theirs.launch = launch;
  theirs.barrier = barrier;
  theirs.set_error = Named<SetErrorFunction>(library, kSetError);
  if (!Put(library, registry, kBarrier, &Barrier)) return false;
  if (!Put(library, registry, kLaunch, &Launch)) {
    Put(library, registry, kBarrier, barrier);
    return false;
  }
  theirs.library = library;
  theirs.registry = registry;
  return true;
}

void Leave() {
  const std::lock_guard<std::mutex> lock(mutex);
  Replaced& theirs = Theirs();
  if (theirs.library.empty()) return;
  Put(theirs.library, theirs.registry, kLaunch, theirs.launch.load());
  Put(theirs.library, theirs.registry, kBarrier, theirs.barrier.load());
  theirs.library.clear();
}

}  // namespace loops
}  // namespace tlp_tvm
