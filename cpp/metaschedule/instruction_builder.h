/*!
 * \file metaschedule/instruction_builder.h
 * \brief Operands of instructions -> primitives: what both readers share, checks included.
 */
#ifndef TLP_TVM_METASCHEDULE_INSTRUCTION_BUILDER_H_
#define TLP_TVM_METASCHEDULE_INSTRUCTION_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/primitive.h"
#include "metaschedule/kinds.h"
#include "metaschedule/value.h"

namespace tlp_tvm {
namespace metaschedule {

/*! \brief One instruction on its way into the batch; the vectors are reused. */
struct Instruction {
  std::size_t kind = 0;
  std::vector<Value> inputs;
  std::vector<Value> attributes;
  std::size_t outputs = 0;
  bool is_decided = false;
  std::vector<Value> decision;

  void Clear() {
    inputs.clear();
    attributes.clear();
    outputs = 0;
    is_decided = false;
    decision.clear();
  }
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
  void Add(const Instruction& instruction);

  /*! \brief How many random variables there are so far, and the letter of each: b, l or v. */
  std::size_t variables() const { return letters_.size(); }
  const std::vector<char>& letters() const { return letters_; }

 private:
  void AddSlots(const std::vector<SlotSpec>& slots, Values values, bool are_inputs);
  Values AddSlot(const SlotSpec& slot, Values values, bool are_inputs);
  void AddNumbers(const SlotSpec& slot, Values values, ValueForm form);
  void AddReals(const SlotSpec& slot, Values values);
  void AddAmounts(const SlotSpec& slot, Values values);
  void AddAnything(const Value& value, Values values);
  void AddText(std::string_view text, const char* name);
  void Define(const InstructionSpec& spec, const Instruction& instruction);
  std::int64_t DecidedValue(std::int64_t variable) const;

  SequenceBatch* batch_;
  std::vector<char> letters_;
  std::vector<std::int64_t>
      decided_;  ///< the number that a variable stands for, kUndecided for others
  std::string json_;
};

}  // namespace metaschedule
}  // namespace tlp_tvm

#endif  // TLP_TVM_METASCHEDULE_INSTRUCTION_BUILDER_H_
