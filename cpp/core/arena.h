/*!
 * \file core/arena.h
 * \brief Memory for arrays that come and go together, by the megabyte.
 */
#ifndef TLP_TVM_CORE_ARENA_H_
#define TLP_TVM_CORE_ARENA_H_

#include <cstddef>
#include <memory>
#include <memory_resource>

namespace tlp_tvm {

/*!
 * \brief Hands out memory in one piece after the other, and gets it back whole.
 *
 * Reading a log in several threads is mostly waiting for the system to make new pages, one fault
 * for 4 KB each. An arena asks for pages of 2 MB instead, and the last few that were given back are
 * kept for those that come next.
 */
class Arena final : public std::pmr::memory_resource {
 public:
  /*! \brief What a piece takes beyond its size, at most: alignment, and a gap in checked builds. */
  static constexpr std::size_t kSlack = 32;

  /*! \return An arena with room for at least so many bytes; it goes when nobody holds it. */
  static std::shared_ptr<Arena> Take(std::size_t bytes);

  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() override;

  std::size_t left() const { return size_ - used_; }

 private:
  explicit Arena(std::size_t size);

  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* /*memory*/, std::size_t /*bytes*/, std::size_t /*alignment*/) override {}
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  static void GiveBack(Arena* arena);

  char* memory_;
  std::size_t size_;
  std::size_t used_ = 0;
};

}  // namespace tlp_tvm

#endif  // TLP_TVM_CORE_ARENA_H_
