/*!
 * \file ansor/type_index.h
 * \brief What the run-time type indices of the loaded TVM mean.
 */
#ifndef TLP_TVM_ANSOR_TYPE_INDEX_H_
#define TLP_TVM_ANSOR_TYPE_INDEX_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "ansor/steps.h"

namespace tlp_tvm {
namespace ansor {

/*! \brief A class that the reader knows; the step kinds follow kFirstStep in StepKind's order. */
enum class TypeTag : std::uint8_t {
  kUnasked,
  kOther,
  kState,
  kArray,
  kString,
  kIntImm,
  kStage,
  kIterator,
  kRange,
  kFirstStep
};

constexpr TypeTag TagOf(StepKind kind) {
  return static_cast<TypeTag>(static_cast<std::uint8_t>(TypeTag::kFirstStep) +
                              static_cast<std::uint8_t>(kind));
}

/*!
 * \brief Resolves a type index by asking TVM for its key, once for each index.
 *
 * Indices are given out when the first object of a class is made, so they differ from process to
 * process. The other direction (key -> index) fails inside TVM for a class without objects, and
 * that failure ends the process in TVM's backtrace printer: never ask it.
 */
class TypeIndex {
 public:
  using Index2Key = int (*)(unsigned index, char** key);

  explicit TypeIndex(Index2Key index2key) : index2key_(index2key) {}

  TypeTag operator[](std::uint32_t index) {
    if (index >= kMaxIndex) return TypeTag::kOther;
    const TypeTag tag = tags_[index].load(std::memory_order_relaxed);
    return tag != TypeTag::kUnasked ? tag : Ask(index);
  }

  /*! \return The key of a type index for a message, or its number. */
  std::string Name(std::uint32_t index) const;

 private:
  /*! \brief TVM has some 600 classes with Ansor loaded; a larger index is no object. */
  static constexpr std::uint32_t kMaxIndex = 4096;

  TypeTag Ask(std::uint32_t index);

  Index2Key index2key_;
  std::array<std::atomic<TypeTag>, kMaxIndex> tags_{};
};

}  // namespace ansor
}  // namespace tlp_tvm

#endif  // TLP_TVM_ANSOR_TYPE_INDEX_H_
