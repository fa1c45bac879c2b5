/*!
 * \file ansor/stage_list.h
 * \brief The stages and loops of a program, and what its steps say of each.
 */
#ifndef TLP_TVM_ANSOR_STAGE_LIST_H_
#define TLP_TVM_ANSOR_STAGE_LIST_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ansor/abi.h"
#include "ansor/state_reader.h"
#include "core/primitive.h"

namespace tlp_tvm {
namespace ansor {

/*! \brief A number that is not known, or a stage that is not there. */
constexpr std::int64_t kUnknown = -1;

/*! \brief A loop of a stage: its extent (kUnknown where TVM has not inferred it) and TVM's
 * IteratorAnnotation. */
using Loop = std::pair<std::int64_t, std::int32_t>;

/*! \return The loops of every stage of a state, as they are nested; empty for what is no state. */
std::vector<std::vector<Loop>> LoopsOf(StateReader* reader, const abi::Object* object);

/*! \return Whether each stage of a state is inlined; empty for what is no state. */
std::vector<bool> InlinedOf(StateReader* reader, const abi::Object* object);

/*! \brief An axis of no operation: the loop is of several. */
constexpr std::size_t kFused = static_cast<std::size_t>(-1);

/*! \brief What the steps say of a stage; it is known by its number, wherever it is in the list. */
struct StageNote {
  std::size_t number = 0;
  /*! \brief Operation of the task's graph that it computes or copies. */
  std::size_t operation = 0;
  /*! \brief Number of the first stage that reads it from shared memory; none of a stage elsewhere.
   */
  std::int64_t shared_for = kUnknown;
  /*! \brief Number of the stage that it is computed in, and the loop there. */
  std::int64_t computed_in = kUnknown, loop = kUnknown;
  bool inlined = false;
  /*! \brief Axis of each loop; empty where they are not followed. */
  std::vector<std::size_t> axes;
  /*! \brief How much of each axis its first split leaves inside; 0 if it was not split. */
  std::vector<std::int64_t> tiles;
  /*! \brief Its loops, if they are followed. Of a stage that is computed in another, those that no
   * split made have extents which only TVM infers: not known here. */
  std::vector<Loop> loops;
  bool has_loops = false;
};

/*! \brief The axes of an operation. */
struct AxisCount {
  std::size_t spatial, reduce;
  /*! \brief Of each axis, or empty where they are not known. */
  std::vector<std::int64_t> extents = {};
};

/*! \brief Follows the steps that add stages, divide loops or say where a stage is computed. */
class StageList {
 public:
  /*! \param operations Of the task's graph, in TVM's order: the stages before the first step. */
  explicit StageList(const std::vector<AxisCount>& operations);

  /*! \return Whether the steps could be followed. */
  bool Follow(const PrimitiveSequence& program);

  const std::vector<StageNote>& stages() const { return stages_; }

 private:
  void Insert(std::size_t position, std::size_t operation, bool follow_axes);
  /*! \brief The loops of a stage that no step has divided. */
  void Restart(StageNote* stage, bool with_reduce);
  bool Apply(const PrimitiveSequence& program, std::size_t step);
  bool CacheRead(const PrimitiveSequence& program, std::int64_t stage, const std::int64_t* value);
  bool Has(std::int64_t stage) const {
    return stage >= 0 && stage < static_cast<std::int64_t>(stages_.size());
  }
  StageNote& At(std::int64_t stage) { return stages_[static_cast<std::size_t>(stage)]; }

  const std::vector<AxisCount>* operations_;
  std::vector<StageNote> stages_;
};

}  // namespace ansor
}  // namespace tlp_tvm

#endif  // TLP_TVM_ANSOR_STAGE_LIST_H_
