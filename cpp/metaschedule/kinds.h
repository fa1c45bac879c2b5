/*!
 * \file metaschedule/kinds.h
 * \brief The instructions of MetaSchedule's traces as primitives: the one home of their names and
 * operands.
 *
 * A trace writes an instruction as four lists, the decisions of a sampling beside them (TVM 0.25 to
 * 0.27, src/s_tir/schedule/trace.cc, AsJSON):
 *
 *   ["Split", ["l2", "v5", "v6"], [1, 0], ["l9", "l10"]]      kind, inputs, attributes, outputs
 *
 * Every output is a random variable: a block (b), a loop (l) or a number (v), numbered in the order
 * of definition over all three. An operand takes the fields that its Slot says.
 */
#ifndef TLP_TVM_METASCHEDULE_KINDS_H_
#define TLP_TVM_METASCHEDULE_KINDS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/primitive.h"

namespace tlp_tvm {
namespace metaschedule {

/*! \brief What an operand may be, and the fields that hold it. */
enum class Slot : std::uint8_t {
  kReference,      ///< a random variable: its number
  kReferences,     ///< all operands that follow, random variables each: a list of their numbers
  kReferenceList,  ///< one operand that is a list of random variables: a list of their numbers
  kAmounts,   ///< all that follow, each a number, a variable or nothing: two lists, NAME of the
              ///< numbers (a variable as its decided value) and NAME_from, see `From`
  kAnything,  ///< NAME_form, NAME, NAME_from, NAME_text and NAME_items, see `Form`
  kInteger,   ///< a number
  kFlag,      ///< 0 or 1; true and false read the same
  kName,      ///< a text
  kIntegers,  ///< one operand that is a list of numbers
  kReals,     ///< one operand that is a list of reals: the bits of each as a double
  kRest,      ///< all that follow: their JSON, in the brackets of a list
};

/*! \brief Entries of NAME_from: the number of the variable that the number stands for, or: */
struct From {
  static constexpr std::int64_t kConstant = -1;
  static constexpr std::int64_t kNothing = -2;
};

/*! \brief Entries of NAME_form: which of the other four fields say something. */
struct Form {
  enum : std::uint8_t {
    kInteger,    ///< NAME
    kReference,  ///< NAME_from, and NAME the decided value
    kText,       ///< NAME_text
    kIntegers,   ///< NAME_items
    kJson,       ///< NAME_text, the JSON of it
  };
};

/*! \brief What is decided at random when a trace is made. */
enum class Decision : std::uint8_t {
  kNone,
  kIndex,   ///< one number: of a candidate, or of a place
  kFactors  ///< a list of numbers, one for each output, which stands for it
};

enum class Outputs : std::uint8_t { kNone, kOne, kMany };

struct SlotSpec {
  const char* name;
  Slot slot;
};

/*!
 * \brief One kind. Its fields are those of its inputs, of its attributes, then `defines` (the
 * number of its first output) where it has any, `outputs` (how many) where that varies, and
 * `decision`.
 */
struct InstructionSpec {
  const char* name;
  std::vector<SlotSpec> inputs;
  std::vector<SlotSpec> attributes;
  char letter;  ///< of its outputs: b, l or v
  Outputs outputs;
  Decision decision;
};

/*! \brief All kinds, in the order of the vocabulary. */
const std::vector<InstructionSpec>& Instructions();
const Vocabulary& TraceVocabulary();

/*! \brief The kind at which postprocessors begin: what follows is derived from what came before. */
inline constexpr std::string_view kEnterPostproc = "EnterPostproc";

/*! \brief Sizes above these come from a damaged record or a wrong pointer, not from TVM. */
constexpr std::size_t kMaxInstructions = 4096;
constexpr std::size_t kMaxOperands = 1024;
constexpr std::size_t kMaxTextSize = 60000;
constexpr int kMaxDepth = 16;

}  // namespace metaschedule
}  // namespace tlp_tvm

#endif  // TLP_TVM_METASCHEDULE_KINDS_H_
