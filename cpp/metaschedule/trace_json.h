/*!
 * \file metaschedule/trace_json.h
 * \brief The JSON of traces (TVM's Trace.as_json and its databases) <-> PrimitiveSequence.
 *
 *   TRACE        [[INSTRUCTION, ...], [[index, decision], ...]]
 *   INSTRUCTION  [kind, [inputs], [attributes], [outputs]]
 *   inputs       "b0" "l2" "v5"  a random variable: a block, a loop or a number, by its number
 *                "\"text\""      a text, in quotes of its own
 *                "None"          nothing
 *                "{...}"         the JSON graph of another object, such as an index map
 *                1  0.5  [...]  {...}
 *   attributes   the same, texts without quotes of their own, and null for nothing
 *   outputs      names of new random variables, numbered in the order of definition
 *
 * Tolerated: any space and escape that JSON allows, true and false for 1 and 0. Written back, a
 * trace is what TVM writes but for spaces, the order of keys, and the metadata of JSON graphs.
 */
#ifndef TLP_TVM_METASCHEDULE_TRACE_JSON_H_
#define TLP_TVM_METASCHEDULE_TRACE_JSON_H_

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_cursor.h"
#include "core/primitive.h"
#include "metaschedule/instruction_builder.h"

namespace tlp_tvm {
namespace metaschedule {

/*! \brief Reads the traces of one text, one after the other, into one batch. */
class TraceJsonReader {
 public:
  explicit TraceJsonReader(SequenceBatch* batch) : builder_(batch) {}

  /*!
   * \brief Reads the trace that the cursor stands at, up to its end. The caller ends the program.
   * \throws JsonFault that says what was expected and found; `Place` says where.
   */
  void Read(JsonCursor* cursor);

  /*! \return Where in the trace the reader stood: "instruction 7 (Split): ", or nothing. */
  std::string Place() const;

 private:
  struct Decided {
    std::int64_t index = 0;
    std::vector<Value> value;
    bool is_used = false;
  };
  /*! \brief An instruction with its values; the vectors are reused. */
  struct OwnedInstruction {
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
    Instruction<Values> View() const {
      const auto all = [](const std::vector<Value>& values) {
        return Values(values.data(), values.data() + values.size());
      };
      return {kind, all(inputs), all(attributes), outputs, is_decided, all(decision)};
    }
  };
  void ReadDecisions(JsonCursor* cursor);
  void ReadInstruction(JsonCursor* cursor, std::size_t i);
  void ReadValues(JsonCursor* cursor, bool are_inputs, int depth, std::vector<Value>* values);
  void ReadValue(JsonCursor* cursor, bool is_input, int depth, std::vector<Value>* values);
  void ReadOutputs(JsonCursor* cursor);
  Value TextValue(std::string_view text, bool is_input);
  std::string_view Text(JsonCursor* cursor, const char* what);

  InstructionBuilder builder_;
  OwnedInstruction instruction_;
  std::vector<Decided> decisions_;
  std::vector<std::string_view> outputs_;
  std::deque<std::string> texts_;
  std::string scratch_;
  bool in_instruction_ = false;
  std::size_t at_ = 0;
  const InstructionSpec* spec_ = nullptr;
};

/*! \brief Appends the JSON of a trace, without a newline. */
void WriteTrace(const PrimitiveSequence& sequence, std::string* out);

}  // namespace metaschedule
}  // namespace tlp_tvm

#endif  // TLP_TVM_METASCHEDULE_TRACE_JSON_H_
