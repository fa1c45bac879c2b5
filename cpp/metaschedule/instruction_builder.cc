#include "metaschedule/instruction_builder.h"

namespace tlp_tvm {
namespace metaschedule {

void InstructionBuilder::RefuseFound(const char* what, const char* expected,
                                     const std::string& found) {
  throw TraceFault(std::string("expected ") + what + " to be " + expected + ", found " + found);
}

void InstructionBuilder::RefuseMore(bool are_inputs, const std::string& found) {
  throw TraceFault(std::string("expected no further ") + (are_inputs ? "input" : "attribute") +
                   ", found " + found);
}

void InstructionBuilder::RefuseOutputs(Outputs expected, std::size_t found) {
  std::string how_many = expected == Outputs::kOne ? "one output" : "no output";
  if (expected == Outputs::kMany) how_many = "at most " + std::to_string(kMaxOperands) + " outputs";
  throw TraceFault("expected " + how_many + ", found " + std::to_string(found));
}

void InstructionBuilder::RefuseFactors(std::size_t expected, std::size_t found) {
  throw TraceFault("expected a decision for each of " + std::to_string(expected) +
                   " outputs, found " + std::to_string(found));
}

void InstructionBuilder::RefuseIndex(std::size_t candidates, std::int64_t found) {
  throw TraceFault("expected the decision to be one of " + std::to_string(candidates) +
                   " candidates, found " + std::to_string(found));
}

void InstructionBuilder::RefuseUndecided() {
  throw TraceFault(
      "expected a decision, found none: a trace without decisions is no program yet, apply it to a "
      "schedule");
}

void InstructionBuilder::AddText(std::string_view text, const char* name) {
  if (text.size() > kMaxTextSize) {
    throw TraceFault(std::string("expected ") + name + " to be at most " +
                     std::to_string(kMaxTextSize) + " bytes long, found " +
                     std::to_string(text.size()));
  }
  batch_->AddName(text);
}

}  // namespace metaschedule
}  // namespace tlp_tvm
