/*!
 * \file metaschedule/instruction_ahead.h
 * \brief Fetches what instructions point to before they are read, across the ends of traces.
 *
 * An instruction, its three lists and what they hold lie anywhere in memory. They are asked for in
 * three steps, each of which touches what the step before has asked for some instructions ago: the
 * misses of many instructions overlap with each other and with the reading.
 */
#ifndef TLP_TVM_METASCHEDULE_INSTRUCTION_AHEAD_H_
#define TLP_TVM_METASCHEDULE_INSTRUCTION_AHEAD_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "metaschedule/ffi.h"
#include "metaschedule/live_values.h"
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
 * \brief The instructions ahead of one thread. What is not as it should be is passed over here,
 * and left to the reader to refuse.
 */
class InstructionAhead {
 public:
  /*!
   * \param kinds The kinds met so far, by their objects.
   * \param unread Kinds of which only the outputs are read, or null.
   */
  InstructionAhead(const InstructionFields* fields, const ValueReader* values,
                   const ObjectTable* kinds, const std::vector<bool>* unread)
      : fields_(fields), values_(values), kinds_(kinds), unread_(unread) {}

  /*!
   * \brief Begins a trace.
   * \param next Of the trace that is read after it, or null.
   * \param last The kind at which reading stops, or null where it does not or is not known yet.
   */
  void Begin(const ffi::Sequence* list, const ffi::Sequence* next, const ffi::Object* last) {
    const bool is_ahead = list == next_;
    list_ = list;
    next_ = next;
    last_ = last;
    size_ = list->size;
    if (is_ahead) return;
    for (std::int64_t i = 0; i < kFar; ++i) FetchInstruction(i);
    for (std::int64_t i = 0; i < kMiddle; ++i) FetchLists(i);
    for (std::int64_t i = 0; i < kNear; ++i) FetchItems(i);
  }

  /*! \brief To be called before instruction i is read, for each i in turn. */
  void Step(std::int64_t i) {
    FetchInstruction(i + kFar);
    FetchLists(i + kMiddle);
    FetchItems(i + kNear);
  }

 private:
  static constexpr std::int64_t kNear = 6;
  static constexpr std::int64_t kMiddle = 12;
  static constexpr std::int64_t kFar = 20;
  static constexpr std::int64_t kItems = 8;
  /*! \brief Of an instruction; of a list with no items; of a number or short text, at least. */
  static constexpr std::int64_t kSize = 55;

  const ffi::Object* At(std::int64_t i) const {
    const ffi::Sequence* list = list_;
    if (i >= size_) {
      i -= size_;
      list = next_;
      if (list == nullptr || i >= list->size) return nullptr;
    }
    const ffi::Any& item = list->items[i];
    return item.type_index == fields_->type ? item.object : nullptr;
  }

  /*! \brief Asks for the lines of up to 64 bytes: two, wherever they begin. */
  static void Fetch(const void* at) {
    __builtin_prefetch(at);
    __builtin_prefetch(static_cast<const char*>(at) + kSize);
  }

  void FetchInstruction(std::int64_t i) const {
    if (const ffi::Object* const instruction = At(i)) Fetch(instruction);
  }

  void FetchLists(std::int64_t i) {
    const ffi::Object* const instruction = At(i);
    if (instruction == nullptr) return;
    if (last_ != nullptr && i < size_ && fields_->kind.Peek(instruction) == last_) {
      size_ = i;  // the next trace begins here
      for (std::int64_t k = i; k < i + kFar - kMiddle; ++k) FetchInstruction(k);
      return;
    }
    if (const ffi::Object* const list = fields_->outputs.Peek(instruction)) Fetch(list);
    if (IsUnread(instruction)) return;
    for (const ffi::Field* field : {&fields_->inputs, &fields_->attributes}) {
      if (const ffi::Object* const list = field->Peek(instruction)) Fetch(list);
    }
  }

  bool IsUnread(const ffi::Object* instruction) const {
    if (unread_ == nullptr) return false;
    const ffi::Object* const kind = fields_->kind.Peek(instruction);
    const std::int64_t known = kind == nullptr ? -1 : kinds_->Find(kind);
    return known >= 0 && (*unread_)[static_cast<std::size_t>(known)];
  }

  void FetchItems(std::int64_t i) const {
    const ffi::Object* const instruction = At(i);
    if (instruction == nullptr) return;
    const bool is_unread = IsUnread(instruction);
    for (const ffi::Field* field : {&fields_->outputs, &fields_->inputs, &fields_->attributes}) {
      if (is_unread && field != &fields_->outputs) return;
      const ffi::Object* const object = field->Peek(instruction);
      if (object == nullptr || object->type_index != ffi::kArray) continue;
      const ffi::Sequence& list = ffi::SequenceOf(object);
      if (list.size > 0) __builtin_prefetch(list.items + std::min(list.size, kItems) - 1);
      // Of outputs, and of variables, only the addresses are of interest.
      if (field == &fields_->outputs) continue;
      for (std::int64_t k = 0; k < std::min(list.size, kItems); ++k) {
        const std::int32_t type = list.items[k].type_index;
        if (type >= ffi::kFirstObject && !values_->IsVariable(type)) Fetch(list.items[k].object);
      }
    }
  }

  const InstructionFields* fields_;
  const ValueReader* values_;
  const ObjectTable* kinds_;
  const std::vector<bool>* unread_;
  const ffi::Sequence* list_ = nullptr;
  const ffi::Sequence* next_ = nullptr;
  const ffi::Object* last_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace metaschedule
}  // namespace tlp_tvm

#endif  // TLP_TVM_METASCHEDULE_INSTRUCTION_AHEAD_H_
