#include "metaschedule/instruction_builder.h"

#include <cstring>
#include <limits>

namespace tlp_tvm {
namespace metaschedule {
namespace {

/*! \brief Of blocks and loops, which stand for no number. */
constexpr std::int64_t kUndecided = std::numeric_limits<std::int64_t>::min();

[[noreturn]] void Refuse(const std::string& what, const char* expected, const Values& found) {
  throw TraceFault("expected " + what + " to be " + expected + ", found " + Found(found));
}

const Value& Take(const SlotSpec& slot, Values values, ValueForm form, const char* expected) {
  if (values.empty() || values.front().form != form) Refuse(slot.name, expected, values);
  return values.front();
}

bool IsOnly(Values values, ValueForm form) {
  for (; !values.empty(); values = values.Rest()) {
    if (values.front().form != form) return false;
  }
  return true;
}

}  // namespace

std::int64_t InstructionBuilder::DecidedValue(std::int64_t variable) const {
  const std::int64_t value = decided_[static_cast<std::size_t>(variable)];
  return value == kUndecided ? 0 : value;
}

void InstructionBuilder::AddText(std::string_view text, const char* name) {
  if (text.size() > kMaxTextSize) {
    throw TraceFault(std::string("expected ") + name + " to be at most " +
                     std::to_string(kMaxTextSize) + " bytes long, found " +
                     std::to_string(text.size()));
  }
  batch_->AddName(text);
}

void InstructionBuilder::AddNumbers(const SlotSpec& slot, Values values, ValueForm form) {
  const std::size_t list = batch_->BeginList();
  for (; !values.empty(); values = values.Rest()) {
    if (values.front().form != form) {
      Refuse(slot.name, form == ValueForm::kInteger ? "numbers" : "random variables", values);
    }
    batch_->AddNumber(values.front().number);
  }
  batch_->EndList(list);
}

void InstructionBuilder::AddReals(const SlotSpec& slot, Values values) {
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

void InstructionBuilder::AddAmounts(const SlotSpec& slot, Values values) {
  std::size_t list = batch_->BeginList();
  for (Values rest = values; !rest.empty(); rest = rest.Rest()) {
    const Value& value = rest.front();
    if (value.form == ValueForm::kReference) {
      batch_->AddNumber(DecidedValue(value.number));
    } else if (value.form == ValueForm::kInteger || value.form == ValueForm::kNothing) {
      batch_->AddNumber(value.number);
    } else {
      Refuse(slot.name, "numbers or random variables", rest);
    }
  }
  batch_->EndList(list);
  list = batch_->BeginList();
  for (; !values.empty(); values = values.Rest()) {
    const Value& value = values.front();
    std::int64_t from = From::kConstant;
    if (value.form == ValueForm::kReference) from = value.number;
    if (value.form == ValueForm::kNothing) from = From::kNothing;
    batch_->AddNumber(from);
  }
  batch_->EndList(list);
}

void InstructionBuilder::AddAnything(const Value& value, Values values) {
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
    WriteValues({&value, &value + 1 + value.inside}, true, letters_, &json_);
    text = json_;
  }
  batch_->AddNumber(form);
  batch_->AddNumber(number);
  batch_->AddNumber(from);
  AddText(text, "value");
  const std::size_t list = batch_->BeginList();
  if (form == Form::kIntegers) {
    for (Values item = values.Inside(); !item.empty(); item = item.Rest()) {
      batch_->AddNumber(item.front().number);
    }
  }
  batch_->EndList(list);
}

Values InstructionBuilder::AddSlot(const SlotSpec& slot, Values values, bool are_inputs) {
  const Values nothing_left{nullptr, nullptr};
  switch (slot.slot) {
    case Slot::kReference:
      batch_->AddNumber(Take(slot, values, ValueForm::kReference, "a random variable").number);
      return values.Rest();
    case Slot::kReferences:
      AddNumbers(slot, values, ValueForm::kReference);
      return nothing_left;
    case Slot::kReferenceList:
      Take(slot, values, ValueForm::kList, "a list");
      AddNumbers(slot, values.Inside(), ValueForm::kReference);
      return values.Rest();
    case Slot::kAmounts:
      AddAmounts(slot, values);
      return nothing_left;
    case Slot::kAnything:
      if (values.empty()) Refuse(slot.name, "there", values);
      AddAnything(values.front(), values);
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
      AddNumbers(slot, values.Inside(), ValueForm::kInteger);
      return values.Rest();
    case Slot::kReals:
      Take(slot, values, ValueForm::kList, "a list");
      AddReals(slot, values.Inside());
      return values.Rest();
    case Slot::kRest:
      json_ = "[";
      WriteValues(values, are_inputs, letters_, &json_);
      json_ += ']';
      AddText(json_, slot.name);
      return nothing_left;
  }
  return nothing_left;
}

void InstructionBuilder::AddSlots(const std::vector<SlotSpec>& slots, Values values,
                                  bool are_inputs) {
  for (const SlotSpec& slot : slots) values = AddSlot(slot, values, are_inputs);
  if (!values.empty()) {
    throw TraceFault(std::string("expected no further ") + (are_inputs ? "input" : "attribute") +
                     ", found " + Found(values));
  }
}

void InstructionBuilder::Define(const InstructionSpec& spec, const Instruction& instruction) {
  const std::size_t defines = letters_.size();
  if (spec.outputs == Outputs::kMany ? instruction.outputs > kMaxOperands
                                     : instruction.outputs != (spec.outputs == Outputs::kOne)) {
    const char* const expected = spec.outputs == Outputs::kOne ? "one output" : "no output";
    throw TraceFault(std::string("expected ") +
                     (spec.outputs == Outputs::kMany
                          ? "at most " + std::to_string(kMaxOperands) + " outputs"
                          : expected) +
                     ", found " + std::to_string(instruction.outputs));
  }
  letters_.insert(letters_.end(), instruction.outputs, spec.letter);
  decided_.insert(decided_.end(), instruction.outputs, kUndecided);
  if (spec.outputs != Outputs::kNone) batch_->AddNumber(static_cast<std::int64_t>(defines));
  if (spec.outputs == Outputs::kMany) {
    batch_->AddNumber(static_cast<std::int64_t>(instruction.outputs));
  }
  if (spec.decision == Decision::kNone) {
    if (instruction.is_decided) throw TraceFault("expected no decision, found one");
    return;
  }
  if (!instruction.is_decided) {
    throw TraceFault(
        "expected a decision, found none: a trace without decisions is no program yet, apply it to "
        "a "
        "schedule");
  }
  const Values decision(instruction.decision.data(),
                        instruction.decision.data() + instruction.decision.size());
  if (spec.decision == Decision::kFactors) {
    if (decision.empty() || decision.front().form != ValueForm::kList) {
      Refuse("the decision", "a list", decision);
    }
    AddNumbers({"the decision", Slot::kIntegers}, decision.Inside(), ValueForm::kInteger);
    if (decision.Inside().Count() != instruction.outputs) {
      throw TraceFault("expected a decision for each of " + std::to_string(instruction.outputs) +
                       " outputs, found " + std::to_string(decision.Inside().Count()));
    }
    std::size_t variable = defines;
    for (Values item = decision.Inside(); !item.empty(); item = item.Rest()) {
      decided_[variable++] = item.front().number;
    }
    return;
  }
  if (decision.empty() || decision.front().form != ValueForm::kInteger) {
    Refuse("the decision", "a number", decision);
  }
  const std::int64_t index = decision.front().number;
  batch_->AddNumber(index);
  if (spec.letter != 'v') return;  // a place among loops
  const Values candidates = Values(instruction.attributes.data(),
                                   instruction.attributes.data() + instruction.attributes.size())
                                .Inside();
  Values candidate = candidates;
  for (std::int64_t i = 0; i < index && !candidate.empty(); ++i) candidate = candidate.Rest();
  if (index < 0 || candidate.empty()) {
    throw TraceFault("expected the decision to be one of " + std::to_string(candidates.Count()) +
                     " candidates, found " + std::to_string(index));
  }
  decided_[defines] = candidate.front().number;
}

void InstructionBuilder::Add(const Instruction& instruction) {
  const InstructionSpec& spec = Instructions()[instruction.kind];
  batch_->Begin(static_cast<std::uint32_t>(instruction.kind));
  const auto all = [](const std::vector<Value>& values) {
    return Values(values.data(), values.data() + values.size());
  };
  AddSlots(spec.inputs, all(instruction.inputs), true);
  AddSlots(spec.attributes, all(instruction.attributes), false);
  Define(spec, instruction);
}

}  // namespace metaschedule
}  // namespace tlp_tvm
