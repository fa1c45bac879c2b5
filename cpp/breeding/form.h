/*!
 * \file breeding/form.h
 * \brief A program taken apart into what breeding changes, its genes, and what it leaves, its form.
 *
 * A framework says which numbers of its programs are genes (`Species::parse`); a row has them all,
 * one after the other:
 *
 *   split   its extent, then its lengths, the innermost last: 1 + parts numbers
 *   unroll  the number of a pragma that names it
 *   fuse    how many of a stage's outermost loops are fused into one
 *   pick    one of some numbers, or of some places, by its index
 *
 * Everything else is the form. Genes fit all forms of a sketch.
 */
#ifndef TLP_TVM_BREEDING_FORM_H_
#define TLP_TVM_BREEDING_FORM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/primitive.h"

namespace tlp_tvm {
namespace breeding {

/*! \brief A row of genes of one program. */
using Row = std::vector<std::int64_t>;

/*! \brief A value of a form that is a number of the row. */
struct Copy {
  std::size_t value, row;
};

struct SplitGene {
  std::size_t row;                      ///< of the extent, in a row of genes; the lengths follow
  std::size_t parts;                    ///< lengths
  std::int64_t most = 0;                ///< of the innermost length; 0 for what the rules say
  std::vector<std::size_t> outer = {};  ///< values that are what the lengths leave of the extent
};

struct UnrollGene {
  std::size_t value, row;
  std::int64_t stage;
  std::int64_t shown;  ///< number in the form's own program
};

struct FuseGene {
  std::size_t value;  ///< of the list's size
  std::size_t row;
  std::int64_t stage;
  std::int64_t shown;  ///< loops in the form's own list
  std::int64_t most;   ///< that any program of this form fuses
};

/*! \brief The number of a loop that moves with what was fused before it. */
struct LoopNumber {
  std::size_t value;
  std::size_t fuse;  ///< which of the fuse genes
};

struct PickGene {
  std::size_t row;
  std::vector<std::int64_t> options;  ///< what the row may have, ascending
  bool grows = false;  ///< whether the options are those that programs have shown, as for places
  std::vector<std::int64_t> numbers = {};  ///< that an index stands for
  std::vector<std::size_t> named = {};     ///< values that are this number
};

/*! \brief What programs share that differ in their genes only. */
struct Form {
  std::uint64_t key = 0;  ///< hash of its content
  std::size_t sketch = 0;
  std::vector<Primitive> primitives;
  std::vector<std::int64_t> values;
  std::vector<Copy> copies;
  std::vector<SplitGene> splits;
  std::vector<UnrollGene> unrolls;
  std::vector<FuseGene> fuses;
  std::vector<PickGene> picks;
  std::vector<LoopNumber> loops;  ///< in the order of `value`
  Row shown;                      ///< genes of the form's own program; rows of others are as long
  std::int64_t programs = 0;      ///< that had it when they were shown
};

/*! \brief A program taken apart; the names in the form's values are those of the program. */
struct Parsed {
  Form form;
  Row row;
  std::string form_key, sketch_key;  ///< texts that are equal where forms and sketches are
};

/*! \brief What breeding needs to know of a framework. */
struct Species {
  const Vocabulary* vocabulary;
  /*!
   * \brief Takes a program apart: all but the form's key and its own genes.
   * \throws RecordError of what is no program of the framework.
   */
  Parsed (*parse)(const PrimitiveSequence& program);
  const char* unroll_pragma;  ///< names of unroll genes, before their numbers; null without any
};

}  // namespace breeding
}  // namespace tlp_tvm

#endif  // TLP_TVM_BREEDING_FORM_H_
