/*!
 * \file metaschedule/trace_touch.h
 * \brief Brings what a trace points to into the cache, level by level, before it is read.
 *
 * An instruction, its three lists and what they hold lie anywhere in memory. Read one by one, each
 * waits for its own misses. Touched in short loops, a level of all instructions in each, the misses
 * of many overlap. They are loads and not prefetches, which a processor that already waits for many
 * lines may drop: on Zen 4 nothing was slower without those of the instructions.
 */
#ifndef TLP_TVM_METASCHEDULE_TRACE_TOUCH_H_
#define TLP_TVM_METASCHEDULE_TRACE_TOUCH_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "metaschedule/ffi.h"
#include "metaschedule/live_values.h"
#include "metaschedule/map_reader.h"
#include "metaschedule/object_table.h"

namespace tlp_tvm {
namespace metaschedule {

/*! \brief The fields of an instruction. */
struct InstructionFields {
  explicit InstructionFields(const ffi::Library* library)
      : type(library->IndexOf("s_tir.Instruction")),
        kind(library, "s_tir.Instruction", "kind"),
        inputs(library, "s_tir.Instruction", "inputs"),
        attributes(library, "s_tir.Instruction", "attrs"),
        outputs(library, "s_tir.Instruction", "outputs") {}

  std::int32_t type;
  ffi::Field kind, inputs, attributes, outputs;
};

/*!
 * \brief Touches the traces of one thread. What is not as it should be is passed over here, and
 * left to the reader to refuse.
 */
class TraceTouch {
 public:
  /*!
   * \param kinds The kinds met so far, by their objects.
   * \param unread Kinds of which only the outputs are read, or null.
   */
  TraceTouch(const InstructionFields* fields, const ValueReader* values, const ObjectTable* kinds,
             const std::vector<bool>* unread)
      : fields_(fields), values_(values), kinds_(kinds), unread_(unread) {}

  /*!
   * \brief Touches what the instructions of a trace point to.
   * \param last The kind at which reading stops, or null where it does not or is not known yet.
   */
  void operator()(const ffi::Sequence& instructions, const ffi::Object* last) {
    TouchInstructions(instructions);
    CollectLists(instructions, last);
    for (const ffi::Object* const list : lists_) TouchList(list);
    for (const ffi::Object* const list : operands_) TouchItems(list);
  }
  /*! \brief Touches lists that were decided. */
  static void TouchValues(const MapPairs& pairs) {
    for (const MapPair& pair : pairs) {
      if (pair.value.type_index >= ffi::kFirstObject) ffi::Touch(pair.value.object);
    }
    for (const MapPair& pair : pairs) {
      if (pair.value.type_index >= ffi::kFirstObject) TouchList(pair.value.object);
    }
  }

 private:
  /*! \brief Of a list, as many as are looked at here. */
  static constexpr std::int64_t kItems = 8;
  /*! \brief Of an instruction, in the last line that it may reach into. */
  static constexpr std::size_t kLastByte = sizeof(ffi::Object) + 4 * sizeof(void*) - 1;

  void TouchInstructions(const ffi::Sequence& instructions) const {
    for (std::int64_t i = 0; i < std::min(instructions.size, usual_size_); ++i) {
      const ffi::Any& item = instructions.items[i];
      if (item.type_index != fields_->type) return;
      ffi::Touch(item.object);
      ffi::Touch(reinterpret_cast<const char*>(item.object) + kLastByte);
    }
  }
  void CollectLists(const ffi::Sequence& instructions, const ffi::Object* last) {
    lists_.clear();
    operands_.clear();
    std::int64_t i = 0;
    for (; i < instructions.size; ++i) {
      const ffi::Any& item = instructions.items[i];
      if (item.type_index != fields_->type) break;
      const ffi::Object* const kind = fields_->kind.Peek(item.object);
      if (kind == nullptr || kind == last) break;
      Add(fields_->outputs.Peek(item.object), &lists_);
      if (IsUnread(kind)) continue;
      for (const ffi::Field* field : {&fields_->inputs, &fields_->attributes}) {
        const ffi::Object* const list = field->Peek(item.object);
        Add(list, &lists_);
        Add(list, &operands_);
      }
    }
    usual_size_ = i + 1;
  }
  static void Add(const ffi::Object* list, std::vector<const ffi::Object*>* lists) {
    if (list != nullptr) lists->push_back(list);
  }
  bool IsUnread(const ffi::Object* kind) const {
    if (unread_ == nullptr) return false;
    const std::int64_t known = kinds_->Find(kind);
    return known >= 0 && (*unread_)[static_cast<std::size_t>(known)];
  }
  static void TouchList(const ffi::Object* object) {
    if (object->type_index != ffi::kArray) return;
    const ffi::Sequence& list = ffi::SequenceOf(object);
    if (list.size > 0) ffi::Touch(list.items + std::min(list.size, kItems) - 1);
  }
  /*! \brief Of variables only the addresses are of interest. */
  void TouchItems(const ffi::Object* object) const {
    if (object->type_index != ffi::kArray) return;
    const ffi::Sequence& list = ffi::SequenceOf(object);
    for (std::int64_t k = 0; k < std::min(list.size, kItems); ++k) {
      const ffi::Any& item = list.items[k];
      if (item.type_index < ffi::kFirstObject || values_->IsVariable(item.type_index)) continue;
      ffi::Touch(item.object);
    }
  }

  /*! \brief How many instructions of a trace are read, by the one before: they are alike. */
  std::int64_t usual_size_ = 64;
  const InstructionFields* fields_;
  const ValueReader* values_;
  const ObjectTable* kinds_;
  const std::vector<bool>* unread_;
  std::vector<const ffi::Object*> lists_, operands_;
};

}  // namespace metaschedule
}  // namespace tlp_tvm

#endif  // TLP_TVM_METASCHEDULE_TRACE_TOUCH_H_
