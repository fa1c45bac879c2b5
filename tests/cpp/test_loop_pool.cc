#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "check.h"
#include "loops/loop_pool.h"

using tlp_tvm::loops::GroupEnv;
using tlp_tvm::loops::LoopPool;

#if defined(__SANITIZE_THREAD__)
/*! \brief The sanitizer ends a child that starts threads, unless told not to. */
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
  return "die_after_fork=0";
}
#endif

namespace {

/*! \brief A loop over `extent` indices, cut into chunks as TVM's programs do. */
struct Loop {
  explicit Loop(int extent) : seen(extent) {}
  std::vector<std::atomic<int>> seen;
  int slow_until = 0;  // these indices take a millisecond each
  int fails_at = -1;

  static int Body(int task_id, GroupEnv* env, void* data) {
    auto* const loop = static_cast<Loop*>(data);
    const int extent = static_cast<int>(loop->seen.size());
    const int each = (extent + env->num_task - 1) / env->num_task;
    for (int i = task_id * each; i < (task_id + 1) * each && i < extent; ++i) {
      if (i < loop->slow_until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (i == loop->fails_at) return -1;
      ++loop->seen[i];
    }
    return 0;
  }

  bool EachOnce() const {
    for (const auto& count : seen) {
      if (count != 1) return false;
    }
    return true;
  }
};

/*! \brief A loop whose chunks say where the threads that compute them may run. */
struct Places {
  std::thread::id caller = std::this_thread::get_id();
  int caller_on = -1;  // the CPU of its first chunk
  std::atomic<int> others_seen{0};
  cpu_set_t others{};

  static int Body(int, GroupEnv*, void* data) {
    auto* const places = static_cast<Places*>(data);
    if (std::this_thread::get_id() == places->caller) {
      if (places->caller_on < 0) places->caller_on = sched_getcpu();
      // Until another thread has computed a chunk, so that one does.
      for (int waits = 0; places->others_seen == 0 && waits < 1000; ++waits) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    } else if (places->others_seen++ == 0) {
      sched_getaffinity(0, sizeof(places->others), &places->others);
    }
    return 0;
  }
};

cpu_set_t Allowed() {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof(allowed), &allowed);
  return allowed;
}

/*! \brief Moves this thread to a CPU, and lets it run on all of `allowed` again. */
void MoveTo(int cpu, const cpu_set_t& allowed) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(cpu), &one);
  sched_setaffinity(0, sizeof(one), &one);
  sched_setaffinity(0, sizeof(allowed), &allowed);
}

int Run(Loop* loop) { return LoopPool::Shared().Run(&Loop::Body, loop); }

}  // namespace

TEST(EveryIndexOnce) {
  for (int threads : {1, 2, 3, 8}) {
    LoopPool::Shared().SetThreads(threads);
    for (int extent : {0, 1, 2, 7, 31, 32, 33, 1000}) {
      for (int repeat = 0; repeat < 50; ++repeat) {
        Loop loop(extent);
        EXPECT_EQ(Run(&loop), 0);
        EXPECT(loop.EachOnce());
      }
    }
  }
}

TEST(ThreadsThatSleepWakeUp) {
  LoopPool::Shared().SetThreads(2);
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
    Loop loop(64);
    loop.slow_until = 64;
    EXPECT_EQ(Run(&loop), 0);
    EXPECT(loop.EachOnce());
  }
}

TEST(OtherThreadsStayOffTheCpuOfTheCaller) {
  const cpu_set_t allowed = Allowed();
  if (CPU_COUNT(&allowed) < 2) {
    std::puts("OtherThreadsStayOffTheCpuOfTheCaller: skipped, as there is one CPU");
    return;
  }
  LoopPool::Shared().SetThreads(2);
  int moved = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE && moved < 2; ++cpu) {
    if (!CPU_ISSET(static_cast<unsigned>(cpu), &allowed)) continue;
    MoveTo(cpu, allowed);
    Places places;
    EXPECT_EQ(LoopPool::Shared().Run(&Places::Body, &places), 0);
    EXPECT(places.others_seen > 0);
    cpu_set_t expected = allowed;
    CPU_CLR(static_cast<unsigned>(cpu), &expected);
    if (places.caller_on != cpu) continue;  // Linux has moved the caller
    EXPECT(CPU_EQUAL(&places.others, &expected));
    ++moved;
  }
}

TEST(ACallerThatIsConfinedToOneCpuKeepsItsThreads) {
  const cpu_set_t allowed = Allowed();
  LoopPool::Shared().SetThreads(2);
  Loop first(64);
  EXPECT_EQ(Run(&first), 0);
  int cpu = sched_getcpu();  // another one than until now, if there is one
  for (int i = 0; i < CPU_SETSIZE && cpu == sched_getcpu(); ++i) {
    if (CPU_ISSET(static_cast<unsigned>(i), &allowed)) cpu = i;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(cpu), &one);
  sched_setaffinity(0, sizeof(one), &one);
  Places confined;
  EXPECT_EQ(LoopPool::Shared().Run(&Places::Body, &confined), 0);
  EXPECT(confined.others_seen > 0);
  // Set free where it is: the others stay off that CPU from the next loop on.
  sched_setaffinity(0, sizeof(allowed), &allowed);
  Places freed;
  EXPECT_EQ(LoopPool::Shared().Run(&Places::Body, &freed), 0);
  if (CPU_COUNT(&allowed) < 2 || freed.caller_on != cpu) return;  // Linux has moved the caller
  EXPECT(!CPU_ISSET(static_cast<unsigned>(cpu), &freed.others));
}

TEST(FailuresAreToldToTheCaller) {
  for (int threads : {1, 2, 8}) {
    LoopPool::Shared().SetThreads(threads);
    for (int fails_at : {0, 5, 99}) {
      Loop loop(100);
      loop.fails_at = fails_at;
      EXPECT_EQ(Run(&loop), -1);
      Loop after(100);
      EXPECT_EQ(Run(&after), 0);
      EXPECT(after.EachOnce());
    }
  }
}

TEST(ALoopWithinALoop) {
  LoopPool::Shared().SetThreads(2);
  std::atomic<int> inner_failures{0};
  const auto outer = [](int, GroupEnv*, void* data) {
    Loop inner(100);
    if (Run(&inner) != 0 || !inner.EachOnce()) ++*static_cast<std::atomic<int>*>(data);
    return 0;
  };
  EXPECT_EQ(LoopPool::Shared().Run(outer, &inner_failures), 0);
  EXPECT_EQ(inner_failures.load(), 0);
}

TEST(LoopsOfSeveralThreadsAtOnce) {
  LoopPool::Shared().SetThreads(2);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&wrong] {
      for (int repeat = 0; repeat < 500; ++repeat) {
        Loop loop(100);
        if (Run(&loop) != 0 || !loop.EachOnce()) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(OneThreadIsNoLoopOfOurs) {
  const auto before = LoopPool::Shared().loops();
  LoopPool::Shared().SetThreads(1);
  Loop loop(10);
  EXPECT_EQ(Run(&loop), 0);
  EXPECT_EQ(LoopPool::Shared().loops(), before);
}

TEST(AChildProcessHasThreadsOfItsOwn) {
  LoopPool::Shared().SetThreads(2);
  Loop loop(100);
  EXPECT_EQ(Run(&loop), 0);
  const pid_t child = fork();
  if (child == 0) {
    for (int repeat = 0; repeat < 100; ++repeat) {
      Loop mine(100);
      if (Run(&mine) != 0 || !mine.EachOnce()) _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}
