#include <dlfcn.h>

#include <atomic>

#include "check.h"
#include "loops/library_import.h"
#include "loops/loop_pool.h"
#include "loops/tvm_loops.h"

using tlp_tvm::loops::FunctionOf;
using tlp_tvm::loops::GroupEnv;
using tlp_tvm::loops::Leave;
using tlp_tvm::loops::LoopBody;
using tlp_tvm::loops::LoopPool;
using tlp_tvm::loops::ReplaceImport;
using tlp_tvm::loops::Share;

namespace {

const char* const kLibrary = TLP_TVM_FAKE_LOOPS;

void* Library() {
  static void* const handle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  return handle;
}

/*! \brief Has the library launch a loop of 100 indices; returns the number of tasks that ran. */
int RunLoop(int num_task) {
  return reinterpret_cast<int (*)(int)>(dlsym(Library(), "RunLoop"))(num_task);
}

int Other(int) { return 42; }

}  // namespace

TEST(ALibraryThatIsNotLoaded) {
  EXPECT(FunctionOf("/nowhere/lib.so", "f") == nullptr);
  EXPECT(!ReplaceImport("/nowhere/lib.so", "f", nullptr));
  EXPECT(!Share("/nowhere/lib.so", ""));
}

TEST(AFunctionThatIsNotImported) {
  EXPECT(Library() != nullptr);
  EXPECT(!ReplaceImport(kLibrary, "NoSuchFunction", nullptr));
}

TEST(ItsOwnFunctionIsReplacedAndComesBack) {
  const auto uses = reinterpret_cast<int (*)()>(dlsym(Library(), "UsesOwn"));
  EXPECT_EQ(uses(), 1);
  void* const own = FunctionOf(kLibrary, "Own");
  EXPECT(ReplaceImport(kLibrary, "Own", reinterpret_cast<void*>(&Other)));
  EXPECT_EQ(uses(), 42);
  EXPECT(ReplaceImport(kLibrary, "Own", own));
  EXPECT_EQ(uses(), 1);
}

TEST(LoopsAreSharedOutAndGivenBack) {
  LoopPool::Shared().SetThreads(2);
  EXPECT_EQ(RunLoop(0), 1);  // the library's own launch has one task
  EXPECT(Share(kLibrary, ""));
  EXPECT(Share(kLibrary, ""));
  EXPECT_EQ(RunLoop(0), 32);
  EXPECT_EQ(RunLoop(3), 3);  // so many tasks were asked for
  Leave();
  Leave();
  EXPECT_EQ(RunLoop(0), 1);
}

TEST(LoopsAreSharedOutThroughARegistry) {
  LoopPool::Shared().SetThreads(2);
  const auto found = reinterpret_cast<void* (*)(const char*)>(dlsym(Library(), "Registered"));
  EXPECT(!Share(kLibrary, "/nowhere/lib.so"));
  EXPECT(Share(kLibrary, kLibrary));
  EXPECT_EQ(RunLoop(0), 1);  // what the library itself imports stays
  const auto launch =
      reinterpret_cast<int (*)(LoopBody, void*, int)>(found("__TVMBackendParallelLaunch"));
  std::atomic<int> tasks{0};
  const auto count = [](int, GroupEnv*, void* data) {
    ++*static_cast<std::atomic<int>*>(data);
    return 0;
  };
  EXPECT_EQ(launch(count, &tasks, 0), 0);
  EXPECT_EQ(tasks.load(), 32);
  Leave();
  EXPECT(found("__TVMBackendParallelLaunch") == FunctionOf(kLibrary, "TVMBackendParallelLaunch"));
}

TEST(ARegistryThatRefusesLeavesEverything) {
  const auto refuse = reinterpret_cast<void (*)(const char*)>(dlsym(Library(), "Refuse"));
  const auto found = reinterpret_cast<void* (*)(const char*)>(dlsym(Library(), "Registered"));
  refuse("__TVMBackendParallelLaunch");
  EXPECT(!Share(kLibrary, kLibrary));
  EXPECT(found("__TVMBackendParallelBarrier") == FunctionOf(kLibrary, "TVMBackendParallelBarrier"));
  refuse("");
}

TEST(PartsThatWaitForEachOtherAreRefused) {
  const auto waits = reinterpret_cast<int (*)()>(dlsym(Library(), "RunLoopThatWaits"));
  const auto message = reinterpret_cast<const char* (*)()>(dlsym(Library(), "LastError"));
  EXPECT_EQ(waits(), 0);
  EXPECT(Share(kLibrary, ""));
  LoopPool::Shared().SetThreads(1);
  EXPECT_EQ(waits(), 0);
  LoopPool::Shared().SetThreads(2);
  EXPECT_EQ(waits(), -1);
  EXPECT(std::string(message()).find("wait for each other") != std::string::npos);
  Leave();
}
