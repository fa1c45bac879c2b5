/*!
 * \file metaschedule/instruction_builder.h
 * \brief Operands of instructions -> primitives: what both readers share, checks included.
 */
#ifndef TLP_TVM_METASCHEDULE_INSTRUCTION_BUILDER_H_
#define TLP_TVM_METASCHEDULE_INSTRUCTION_BUILDER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/primitive.h"
#include "metaschedule/kinds.h"
#include "metaschedule/value.h"

namespace tlp_tvm {
namespace metaschedule {

/*!
 * \brief One instruction on its way into the batch.
 * \tparam Operands `Values` where it was read from JSON, `LiveValues` where it lives in TVM.
 */
template <typename Operands>
struct Instruction {
  std::size_t kind;
  Operands inputs;
  Operands attributes;
  std::size_t outputs;
  bool is_decided;
  Operands decision;
};

/*! \brief Adds the instructions of a trace, in order, to a batch. */
class InstructionBuilder {
 public:
  explicit InstructionBuilder(SequenceBatch* batch) : batch_(batch) {}

  /*! \brief Forgets the random variables of the trace before. */
  void BeginTrace() {
    letters_.clear();
    decided_.clear();
  }
  /*!
   * \brief Appends the primitive and defines its outputs.
   * \throws TraceFault where an operand is not what its kind has; the batch is to be rolled back.
   */
  template <typename Operands>
  void Add(const Instruction<Operands>& instruction) {
    const InstructionSpec& spec = specs_[instruction.kind];
    batch_->Begin(static_cast<std::uint32_t>(instruction.kind));
    AddSlots(spec.inputs, instruction.inputs, true);
    AddSlots(spec.attributes, instruction.attributes, false);
    Define(spec, instruction.outputs);
    if (spec.outputs != Outputs::kNone) {
      batch_->AddNumber(static_cast<std::int64_t>(letters_.size() - instruction.outputs));
    }
    if (spec.outputs == Outputs::kMany) {
      batch_->AddNumber(static_cast<std::int64_t>(instruction.outputs));
    }
    Decide(spec, instruction, true);
  }
  /*!
   * \brief Defines the outputs alone, for who does not look at the primitive.
   *
   * Of the operands only the attributes of a decided number are looked at.
   * \throws TraceFault where the outputs or the decision are not what the kind has.
   */
  template <typename Operands>
  void Skip(const Instruction<Operands>& instruction) {
    const InstructionSpec& spec = specs_[instruction.kind];
    Define(spec, instruction.outputs);
    Decide(spec, instruction, false);
  }

  /*! \brief How many random variables there are so far, and the letter of each: b, l or v. */
  std::size_t variables() const { return letters_.size(); }
  const std::vector<char>& letters() const { return letters_; }

 private:
  /*! \brief Of blocks and loops, which stand for no number. */
  static constexpr std::int64_t kUndecided = std::numeric_limits<std::int64_t>::min();

  [[noreturn]] static void RefuseFound(const char* what, const char* expected,
                                       const std::string& found);
  [[noreturn]] static void RefuseMore(bool are_inputs, const std::string& found);
  [[noreturn]] static void RefuseOutputs(Outputs expected, std::size_t found);
  [[noreturn]] static void RefuseFactors(std::size_t expected, std::size_t found);
  [[noreturn]] static void RefuseIndex(std::size_t candidates, std::int64_t found);
  [[noreturn]] static void RefuseUndecided();
  template <typename Operands>
  [[noreturn]] static void Refuse(const char* what, const char* expected, const Operands& found) {
    RefuseFound(what, expected, FoundFirst(found));
  }
  template <typename Operands>
  static Value Take(const SlotSpec& slot, const Operands& values, ValueForm form,
                    const char* expected) {
    if (values.empty()) Refuse(slot.name, expected, values);
    const Value& value = values.front();
    if (value.form != form) Refuse(slot.name, expected, values);
    return value;
  }
  template <typename Operands>
  static bool IsOnly(Operands values, ValueForm form) {
    for (; !values.empty(); values = values.Rest()) {
      if (values.front().form != form) return false;
    }
    return true;
  }

  template <typename Operands>
  void AddSlots(const std::vector<SlotSpec>& slots, Operands values, bool are_inputs);
  template <typename Operands>
  Operands AddSlot(const SlotSpec& slot, const Operands& values, bool are_inputs);
  template <typename Operands>
  void AddNumbers(const char* name, Operands values, ValueForm form);
  template <typename Operands>
  void AddReals(const SlotSpec& slot, Operands values);
  template <typename Operands>
  void AddAmounts(const SlotSpec& slot, const Operands& values);
  template <typename Operands>
  void AddAnything(const Operands& values);
  void Define(const InstructionSpec& spec, std::size_t outputs);
  template <typename Operands>
  void Decide(const InstructionSpec& spec, const Instruction<Operands>& instruction, bool is_added);
  template <typename Operands>
  void DecideFactors(const SlotSpec& slot, const Operands& factors, std::size_t outputs,
                     bool is_added);
  void AddText(std::string_view text, const char* name);
  std::int64_t DecidedValue(std::int64_t variable) const {
    const std::int64_t value = decided_[static_cast<std::size_t>(variable)];
    return value == kUndecided ? 0 : value;
  }

  const InstructionSpec* const specs_ = Instructions().data();
  SequenceBatch* batch_;
  std::vector<char> letters_;
  std::vector<std::int64_t>
      decided_;  ///< the number that a variable stands for, kUndecided for others
  std::string json_;
};

template <typename Operands>
void InstructionBuilder::AddNumbers(const char* name, Operands values, ValueForm form) {
  std::int64_t* to = batch_->AddList(values.Count());
  for (; !values.empty(); values = values.Rest()) {
    const Value& value = values.front();
    if (value.form != form) {
      Refuse(name, form == ValueForm::kInteger ? "numbers" : "random variables", values);
    }
    *to++ = value.number;
  }
}

template <typename Operands>
void InstructionBuilder::AddReals(const SlotSpec& slot, Operands values) {
  const std::size_t list = batch_->BeginList();
  for (; !values.empty(); values = values.Rest()) {
    const Value& value = values.front();
    double real = value.real;
    if (value.form == ValueForm::kInteger) {
      real = static_cast<double>(value.number);
    } else if (value.form != ValueForm::kReal) {
      Refuse(slot.name, "numbers", values);
    }
    std::int64_t bits = 0;
    std::memcpy(&bits, &real, sizeof(bits));
    batch_->AddNumber(bits);
  }
  batch_->EndList(list);
}

template <typename Operands>
void InstructionBuilder::AddAmounts(const SlotSpec& slot, const Operands& values) {
  // Two lists in the room of one, so that each value is looked at once.
  const std::size_t count = values.Count();
  std::int64_t* to = batch_->AddList(2 * count + 1);
  std::int64_t* from = to + count;
  to[-1] = *from++ = static_cast<std::int64_t>(count);
  for (Operands rest = values; !rest.empty(); rest = rest.Rest()) {
    const Value& value = rest.front();
    if (value.form == ValueForm::kReference) {
      *to++ = DecidedValue(value.number);
      *from++ = value.number;
    } else if (value.form == ValueForm::kInteger || value.form == ValueForm::kNothing) {
      *to++ = value.number;
      *from++ = value.form == ValueForm::kInteger ? From::kConstant : From::kNothing;
    } else {
      Refuse(slot.name, "numbers or random variables", rest);
    }
  }
}

template <typename Operands>
void InstructionBuilder::AddAnything(const Operands& values) {
  const Value& value = values.front();
  int form = Form::kJson;
  std::int64_t number = 0;
  std::int64_t from = From::kNothing;
  std::string_view text;
  if (value.form == ValueForm::kInteger) {
    form = Form::kInteger;
    number = value.number;
    from = From::kConstant;
  } else if (value.form == ValueForm::kReference) {
    form = Form::kReference;
    number = DecidedValue(value.number);
    from = value.number;
  } else if (value.form == ValueForm::kText) {
    form = Form::kText;
    text = value.text;
  } else if (value.form == ValueForm::kList && IsOnly(values.Inside(), ValueForm::kInteger)) {
    form = Form::kIntegers;
  } else {
    json_.clear();
    WriteValues(values.First().Flat(), true, letters_, &json_);
    text = json_;
  }
  batch_->AddNumber(form);
  batch_->AddNumber(number);
  batch_->AddNumber(from);
  AddText(text, "value");
  const std::size_t list = batch_->BeginList();
  if (form == Form::kIntegers) {
    for (Operands item = values.Inside(); !item.empty(); item = item.Rest()) {
      batch_->AddNumber(item.front().number);
    }
  }
  batch_->EndList(list);
}

template <typename Operands>
Operands InstructionBuilder::AddSlot(const SlotSpec& slot, const Operands& values,
                                     bool are_inputs) {
  switch (slot.slot) {
    case Slot::kReference:
      batch_->AddNumber(Take(slot, values, ValueForm::kReference, "a random variable").number);
      return values.Rest();
    case Slot::kReferences:
      AddNumbers(slot.name, values, ValueForm::kReference);
      break;
    case Slot::kReferenceList:
      Take(slot, values, ValueForm::kList, "a list");
      AddNumbers(slot.name, values.Inside(), ValueForm::kReference);
      return values.Rest();
    case Slot::kAmounts:
      AddAmounts(slot, values);
      break;
    case Slot::kAnything:
      if (values.empty()) Refuse(slot.name, "there", values);
      AddAnything(values);
      return values.Rest();
    case Slot::kInteger:
      batch_->AddNumber(Take(slot, values, ValueForm::kInteger, "a number").number);
      return values.Rest();
    case Slot::kFlag: {
      const std::int64_t flag = Take(slot, values, ValueForm::kInteger, "0 or 1").number;
      if (flag != 0 && flag != 1) Refuse(slot.name, "0 or 1", values);
      batch_->AddNumber(flag);
      return values.Rest();
    }
    case Slot::kName:
      AddText(Take(slot, values, ValueForm::kText, "a text").text, slot.name);
      return values.Rest();
    case Slot::kIntegers:
      Take(slot, values, ValueForm::kList, "a list");
      AddNumbers(slot.name, values.Inside(), ValueForm::kInteger);
      return values.Rest();
    case Slot::kReals:
      Take(slot, values, ValueForm::kList, "a list");
      AddReals(slot, values.Inside());
      return values.Rest();
    case Slot::kRest:
      json_ = "[";
      WriteValues(values.Flat(), are_inputs, letters_, &json_);
      json_ += ']';
      AddText(json_, slot.name);
      break;
  }
  return values.End();
}

template <typename Operands>
void InstructionBuilder::AddSlots(const std::vector<SlotSpec>& slots, Operands values,
                                  bool are_inputs) {
  for (const SlotSpec& slot : slots) values = AddSlot(slot, values, are_inputs);
  if (!values.empty()) RefuseMore(are_inputs, FoundFirst(values));
}

inline void InstructionBuilder::Define(const InstructionSpec& spec, std::size_t outputs) {
  if (spec.outputs == Outputs::kMany ? outputs > kMaxOperands
                                     : outputs != (spec.outputs == Outputs::kOne)) {
    RefuseOutputs(spec.outputs, outputs);
  }
  letters_.insert(letters_.end(), outputs, spec.letter);
  decided_.insert(decided_.end(), outputs, kUndecided);
}

template <typename Operands>
void InstructionBuilder::Decide(const InstructionSpec& spec,
                                const Instruction<Operands>& instruction, bool is_added) {
  if (spec.decision == Decision::kNone) {
    if (instruction.is_decided) throw TraceFault("expected no decision, found one");
    return;
  }
  if (!instruction.is_decided) RefuseUndecided();
  const Operands& decision = instruction.decision;
  const bool are_factors = spec.decision == Decision::kFactors;
  const SlotSpec slot{"the decision", are_factors ? Slot::kIntegers : Slot::kInteger};
  const std::int64_t index =
      Take(slot, decision, are_factors ? ValueForm::kList : ValueForm::kInteger,
           are_factors ? "a list" : "a number")
          .number;
  if (are_factors) {
    DecideFactors(slot, decision.Inside(), instruction.outputs, is_added);
    return;
  }
  if (is_added) batch_->AddNumber(index);
  if (spec.letter != 'v') return;  // a place among loops
  // Who skips the primitive has not looked at its attributes.
  const SlotSpec& listed = spec.attributes.front();
  Take(listed, instruction.attributes, ValueForm::kList, "a list");
  const Operands candidates = instruction.attributes.Inside();
  Operands candidate = candidates;
  for (std::int64_t i = 0; i < index && !candidate.empty(); ++i) candidate = candidate.Rest();
  if (index < 0 || candidate.empty()) RefuseIndex(candidates.Count(), index);
  decided_.back() = Take(listed, candidate, ValueForm::kInteger, "numbers").number;
}

template <typename Operands>
void InstructionBuilder::DecideFactors(const SlotSpec& slot, const Operands& factors,
                                       std::size_t outputs, bool is_added) {
  const std::size_t count = factors.Count();
  if (count != outputs) RefuseFactors(outputs, count);
  std::int64_t* to = decided_.data() + (decided_.size() - outputs);
  for (Operands rest = factors; !rest.empty(); rest = rest.Rest()) {
    const Value& value = rest.front();
    if (value.form != ValueForm::kInteger) Refuse(slot.name, "numbers", rest);
    *to++ = value.number;
  }
  if (is_added) std::copy(to - outputs, to, batch_->AddList(count));
}

}  // namespace metaschedule
}  // namespace tlp_tvm

#endif  // TLP_TVM_METASCHEDULE_INSTRUCTION_BUILDER_H_
