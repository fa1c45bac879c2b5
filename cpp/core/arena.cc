#include "core/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

// Under the address sanitizer, what is not handed out is out of bounds.
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, size) static_cast<void>(0)
#define ASAN_UNPOISON_MEMORY_REGION(memory, size) static_cast<void>(0)
#endif

namespace tlp_tvm {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kGap = 16;
#else
constexpr std::size_t kGap = 0;
#endif

constexpr std::size_t kHugePage = std::size_t{2} << 20;

/*! \brief What an arena has unless it is asked for more: pages of 2 MB, well filled by several
 * users. */
constexpr std::size_t kSize = 4 * kHugePage;

/*! \brief Arenas kept for those that come next. */
constexpr std::size_t kKept = 8;

struct Kept {
  std::mutex mutex;
  std::vector<Arena*> arenas;
};

/*! \brief Never destroyed: what holds an arena may go after everything static. */
Kept& KeptArenas() {
  static Kept* const kept = new Kept;
  return *kept;
}

}  // namespace

Arena::Arena(std::size_t size) : size_(size) {
  // More than is used, so that it can begin where a large page does.
  void* const memory = mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  char* const begin = static_cast<char*>(memory);
  const std::size_t before =
      (kHugePage - reinterpret_cast<std::size_t>(begin) % kHugePage) % kHugePage;
  memory_ = begin + before;
  if (before != 0) munmap(begin, before);
  munmap(memory_ + size, kHugePage - before);
  madvise(memory_, size, MADV_HUGEPAGE);  // where it is refused, small pages do
  ASAN_POISON_MEMORY_REGION(memory_, size_);
}

Arena::~Arena() {
  ASAN_UNPOISON_MEMORY_REGION(memory_, size_);
  munmap(memory_, size_);
}

std::shared_ptr<Arena> Arena::Take(std::size_t bytes) {
  Arena* arena = nullptr;
  if (bytes <= kSize) {
    Kept& kept = KeptArenas();
    const std::lock_guard<std::mutex> lock(kept.mutex);
    if (!kept.arenas.empty()) {
      arena = kept.arenas.back();
      kept.arenas.pop_back();
    }
  }
  if (arena == nullptr) {
    arena = new Arena((std::max(bytes, kSize) + kHugePage - 1) / kHugePage * kHugePage);
  }
  return {arena, &Arena::GiveBack};
}

void Arena::GiveBack(Arena* arena) {
  if (arena->size_ == kSize) {
    arena->used_ = 0;
    ASAN_POISON_MEMORY_REGION(arena->memory_, arena->size_);
    Kept& kept = KeptArenas();
    const std::lock_guard<std::mutex> lock(kept.mutex);
    if (kept.arenas.size() < kKept) {
      kept.arenas.push_back(arena);
      return;
    }
  }
  delete arena;
}

void* Arena::do_allocate(std::size_t bytes, std::size_t alignment) {
  const std::size_t begin = (used_ + alignment - 1) / alignment * alignment;
  if (begin > size_ || bytes > size_ - begin) throw std::bad_alloc();
  used_ = std::min(size_, begin + bytes + kGap);
  ASAN_UNPOISON_MEMORY_REGION(memory_ + begin, bytes);
  return memory_ + begin;
}

}  // namespace tlp_tvm
