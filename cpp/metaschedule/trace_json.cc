#include "metaschedule/trace_json.h"

#include <cstring>

namespace tlp_tvm {
namespace metaschedule {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/*! \return The number in a name such as "l12", or -1. */
std::int64_t NumberOf(std::string_view name) {
  constexpr std::size_t kMostDigits = 9;
  if (name.size() < 2 || name.size() > 1 + kMostDigits) return -1;
  std::int64_t number = 0;
  for (const char c : name.substr(1)) {
    if (!IsDigit(c)) return -1;
    number = 10 * number + (c - '0');
  }
  return number;
}

[[noreturn]] void Refuse(const char* reason, const std::string& sentence) {
  throw JsonFault(reason, sentence);
}

}  // namespace

std::string TraceJsonReader::Place() const {
  if (!in_instruction_) return "";
  return "instruction " + std::to_string(at_) +
         (spec_ == nullptr ? "" : " (" + std::string(spec_->name) + ")") + ": ";
}

std::string_view TraceJsonReader::Text(JsonCursor* cursor, const char* what) {
  const std::string_view text = cursor->String(what, &scratch_);
  if (text.data() != scratch_.data()) return text;  // it lies in the input
  return texts_.emplace_back(text);
}

void TraceJsonReader::Read(JsonCursor* cursor) {
  in_instruction_ = false;
  texts_.clear();
  builder_.BeginTrace();
  cursor->OpenList("the trace");
  cursor->SkipSpace();
  // Decisions follow the instructions that need them: those first.
  const char* const instructions = cursor->at();
  if (*instructions != '[') cursor->FailType("the instructions", "a list");
  cursor->SkipValue();
  cursor->NextField("the decisions of the trace");
  ReadDecisions(cursor);
  cursor->CloseList("the trace");
  const char* const end = cursor->at();

  cursor->MoveTo(instructions);
  cursor->OpenList("the instructions");
  bool first = true;
  std::size_t count = 0;
  for (; cursor->NextItem(']', &first); ++count) {
    if (count == kMaxInstructions) {
      Refuse(reason::kRange,
             "expected at most " + std::to_string(kMaxInstructions) + " instructions, found more");
    }
    at_ = count;
    in_instruction_ = true;
    spec_ = nullptr;
    ReadInstruction(cursor, count);
    in_instruction_ = false;
  }
  for (const Decided& decided : decisions_) {
    if (!decided.is_used) {
      Refuse(reason::kExtra, "expected decisions of the " + std::to_string(count) +
                                 " instructions, found one of instruction " +
                                 std::to_string(decided.index));
    }
  }
  cursor->MoveTo(end);
}

void TraceJsonReader::ReadDecisions(JsonCursor* cursor) {
  decisions_.clear();
  cursor->OpenList("the decisions");
  bool first = true;
  while (cursor->NextItem(']', &first)) {
    cursor->OpenList("a decision");
    Decided& decided = decisions_.emplace_back();
    decided.index = cursor->Integer("the instruction of a decision", 0);
    cursor->NextField("the value of a decision");
    ReadValue(cursor, false, 0, &decided.value);
    cursor->CloseList("a decision");
  }
}

void TraceJsonReader::ReadInstruction(JsonCursor* cursor, std::size_t i) {
  cursor->OpenList("an instruction");
  const std::string_view name = Text(cursor, "the kind");
  const int kind = TraceVocabulary().Find(name);
  if (kind < 0) {
    Refuse(reason::kUnknownKind,
           "expected an instruction of TVM 0.25 to 0.27, found \"" + std::string(name) + "\"");
  }
  spec_ = &Instructions()[static_cast<std::size_t>(kind)];
  instruction_.Clear();
  instruction_.kind = static_cast<std::size_t>(kind);
  cursor->NextField("the inputs");
  cursor->OpenList("the inputs");
  ReadValues(cursor, true, 0, &instruction_.inputs);
  cursor->NextField("the attributes");
  cursor->OpenList("the attributes");
  ReadValues(cursor, false, 0, &instruction_.attributes);
  cursor->NextField("the outputs");
  ReadOutputs(cursor);
  cursor->CloseList("an instruction");
  for (Decided& decided : decisions_) {
    if (decided.index != static_cast<std::int64_t>(i) || decided.is_used) continue;
    decided.is_used = true;
    instruction_.is_decided = true;
    instruction_.decision.swap(decided.value);
    break;
  }
  try {
    const std::size_t defined = builder_.variables();
    builder_.Add(instruction_.View());
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      const std::string expected = spec_->letter + std::to_string(defined + k);
      if (outputs_[k] != expected) {
        Refuse(reason::kRange, "expected output " + std::to_string(k) + " to be " + expected +
                                   ", found \"" + std::string(outputs_[k]) + "\"");
      }
    }
  } catch (const TraceFault& fault) {
    Refuse(reason::kType, fault.what());
  }
}

void TraceJsonReader::ReadOutputs(JsonCursor* cursor) {
  outputs_.clear();
  cursor->OpenList("the outputs");
  bool first = true;
  while (cursor->NextItem(']', &first)) outputs_.push_back(Text(cursor, "an output"));
  instruction_.outputs = outputs_.size();
}

Value TraceJsonReader::TextValue(std::string_view text, bool is_input) {
  if (!text.empty() && text.front() == '{' &&
      text.find("\"root_index\"") != std::string_view::npos) {
    return {ValueForm::kGraph, 0, 0, 0, texts_.emplace_back(PlainGraph(text))};
  }
  if (!is_input) return {ValueForm::kText, 0, 0, 0, text};
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    return {ValueForm::kText, 0, 0, 0, text.substr(1, text.size() - 2)};
  }
  if (text == "None") return {};
  const std::int64_t number = NumberOf(text);
  if (number < 0 || number >= static_cast<std::int64_t>(builder_.variables()) ||
      builder_.letters()[static_cast<std::size_t>(number)] != text.front()) {
    throw TraceFault("expected a random variable of an instruction before, found \"" +
                     std::string(text.substr(0, 40)) + "\"");
  }
  return {ValueForm::kReference, 0, number, 0, {}};
}

void TraceJsonReader::ReadValues(JsonCursor* cursor, bool are_inputs, int depth,
                                 std::vector<Value>* values) {
  bool first = true;
  for (std::size_t count = 0; cursor->NextItem(']', &first); ++count) {
    if (count == kMaxOperands) {
      Refuse(reason::kRange,
             "expected at most " + std::to_string(kMaxOperands) + " items in a list, found more");
    }
    ReadValue(cursor, are_inputs, depth, values);
  }
}

void TraceJsonReader::ReadValue(JsonCursor* cursor, bool is_input, int depth,
                                std::vector<Value>* values) {
  if (depth > kMaxDepth) {
    Refuse(reason::kRange, "expected lists in lists to end, found them too deep");
  }
  cursor->SkipSpace();
  const char* const begin = cursor->at();
  const std::size_t at = values->size();
  if (*begin == '"') {
    try {
      values->push_back(TextValue(Text(cursor, "an operand"), is_input));
    } catch (const TraceFault& fault) {
      Refuse(reason::kType, fault.what());
    }
  } else if (*begin == '[') {
    cursor->OpenList("an operand");
    values->push_back({ValueForm::kList, 0, 0, 0, {}});
    ReadValues(cursor, is_input, depth + 1, values);
    (*values)[at].inside = static_cast<std::uint32_t>(values->size() - at - 1);
    const Value* const list = values->data() + at;
    (*values)[at].number =
        static_cast<std::int64_t>(Values(list, list + 1 + list->inside).Inside().Count());
  } else if (*begin == '{') {
    cursor->MoveTo(begin + 1);
    values->push_back({ValueForm::kMapping, 0, 0, 0, {}});
    std::int64_t count = 0;
    bool first = true;
    for (; cursor->NextItem('}', &first); ++count) {
      values->push_back({ValueForm::kText, 0, 0, 0, Text(cursor, "a key")});
      if (!cursor->Accept(':')) cursor->FailSyntax("':'");
      ReadValue(cursor, false, depth + 1, values);
    }
    (*values)[at].number = count;
    (*values)[at].inside = static_cast<std::uint32_t>(values->size() - at - 1);
    SortMapping(at, values);
  } else if (*begin == 't' || *begin == 'f' || *begin == 'n') {
    cursor->SkipValue();
    values->push_back(*begin == 'n' ? Value{} : Integer(*begin == 't'));
  } else {
    const char* end = begin + (*begin == '-');
    while (IsDigit(*end)) ++end;
    const bool is_real = *end == '.' || *end == 'e' || *end == 'E';
    values->push_back(is_real ? Real(cursor->Number("an operand"))
                              : Integer(cursor->Integer("an operand")));
  }
}

namespace {

/*! \brief Writes the traces of sequences back. */
class Writer {
 public:
  explicit Writer(std::string* out) : out_(out) {}

  void Write(const PrimitiveSequence& sequence) {
    *out_ += "[[";
    for (std::size_t i = 0; i < sequence.size; ++i) {
      if (i != 0) *out_ += ',';
      WriteInstruction(sequence, i);
    }
    *out_ += "],[" + decisions_ + "]]";
  }

 private:
  void WriteInstruction(const PrimitiveSequence& sequence, std::size_t i) {
    const InstructionSpec& spec = Instructions()[sequence.primitives[i].kind];
    value_ = sequence.ValuesOf(i);
    sequence_ = &sequence;
    *out_ += "[\"" + std::string(spec.name) + "\",[";
    WriteSlots(spec.inputs);
    *out_ += "],[";
    WriteSlots(spec.attributes);
    *out_ += "],[";
    std::int64_t outputs = 0;
    if (spec.outputs != Outputs::kNone) {
      ++value_;  // the number of the first one
      outputs = spec.outputs == Outputs::kOne ? 1 : *value_++;
    }
    for (std::int64_t k = 0; k < outputs; ++k) {
      letters_.push_back(spec.letter);
      Item(k == 0);
      WriteReference(static_cast<std::int64_t>(letters_.size()) - 1);
    }
    *out_ += "]]";
    if (spec.decision == Decision::kNone) return;
    if (!decisions_.empty()) decisions_ += ',';
    decisions_ += '[' + std::to_string(i) + ',';
    std::string* const out = out_;
    out_ = &decisions_;
    if (spec.decision == Decision::kFactors) {
      WriteList(&Writer::WriteNumber);
    } else {
      WriteInteger(*value_++, out_);
    }
    out_ = out;
    decisions_ += ']';
  }

  void WriteSlots(const std::vector<SlotSpec>& slots) {
    bool first = true;
    for (const SlotSpec& slot : slots) WriteSlot(slot.slot, &first);
  }

  void WriteSlot(Slot slot, bool* first) {
    if (slot == Slot::kReferences) {
      const std::int64_t* const end = value_ + 1 + *value_;
      for (++value_; value_ != end; *first = false) {
        Item(*first);
        WriteReference(*value_++);
      }
      return;
    }
    if (slot == Slot::kAmounts) return WriteAmounts(first);
    if (slot == Slot::kRest) {
      const std::string_view list = sequence_->Name(*value_++);
      if (list.size() <= 2) return;
      Item(*first);
      *out_ += list.substr(1, list.size() - 2);
      *first = false;
      return;
    }
    Item(*first);
    *first = false;
    switch (slot) {
      case Slot::kReference:
        WriteReference(*value_++);
        break;
      case Slot::kReferenceList:
        WriteList(&Writer::WriteReference);
        break;
      case Slot::kIntegers:
        WriteList(&Writer::WriteNumber);
        break;
      case Slot::kReals:
        WriteList(&Writer::WriteBits);
        break;
      case Slot::kName:
        WriteText(sequence_->Name(*value_++), out_);
        break;
      case Slot::kAnything:
        WriteAnything();
        break;
      default:
        WriteInteger(*value_++, out_);
    }
  }

  void WriteAmounts(bool* first) {
    const std::int64_t count = *value_;
    const std::int64_t* const amounts = value_ + 1;
    const std::int64_t* const from = amounts + count + 1;
    for (std::int64_t k = 0; k < count; ++k, *first = false) {
      Item(*first);
      if (from[k] >= 0) {
        WriteReference(from[k]);
      } else if (from[k] == From::kNothing) {
        *out_ += "\"None\"";
      } else {
        WriteInteger(amounts[k], out_);
      }
    }
    value_ = from + count;
  }

  void WriteAnything() {
    const std::int64_t form = value_[0];
    const std::int64_t number = value_[1];
    const std::int64_t from = value_[2];
    const std::string_view text = sequence_->Name(value_[3]);
    value_ += 4;
    if (form == Form::kIntegers) return WriteList(&Writer::WriteNumber);
    value_ += 1 + *value_;
    if (form == Form::kReference) return WriteReference(from);
    if (form == Form::kText) return WriteText("\"" + std::string(text) + "\"", out_);
    if (form == Form::kJson) {
      *out_ += text;
      return;
    }
    WriteInteger(number, out_);
  }

  void WriteList(void (Writer::*write)(std::int64_t)) {
    const std::int64_t* const end = value_ + 1 + *value_;
    *out_ += '[';
    bool first = true;
    for (++value_; value_ != end; first = false) {
      Item(first);
      (this->*write)(*value_++);
    }
    *out_ += ']';
  }

  void Item(bool first) {
    if (!first) *out_ += ',';
  }
  void WriteNumber(std::int64_t number) { WriteInteger(number, out_); }
  void WriteBits(std::int64_t bits) {
    double real = 0;
    std::memcpy(&real, &bits, sizeof(real));
    WriteReal(real, out_);
  }
  void WriteReference(std::int64_t number) {
    *out_ += '"';
    *out_ += letters_.at(static_cast<std::size_t>(number));
    WriteInteger(number, out_);
    *out_ += '"';
  }

  std::string* out_;
  std::string decisions_;
  std::vector<char> letters_;
  const PrimitiveSequence* sequence_ = nullptr;
  const std::int64_t* value_ = nullptr;
};

}  // namespace

void WriteTrace(const PrimitiveSequence& sequence, std::string* out) {
  Writer(out).Write(sequence);
}

}  // namespace metaschedule
}  // namespace tlp_tvm
