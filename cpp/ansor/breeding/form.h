/*!
 * \file ansor/breeding/form.h
 * \brief A program taken apart into what breeding changes, its genes, and what it leaves, its form.
 *
 * The genes of a form, in the order of their numbers in a row:
 *
 *   split   its extent, then its lengths: 1 + parts numbers for every step SP
 *   unroll  the number of a pragma auto_unroll_max_step$N
 *   fuse    how many of a stage's outermost loops are fused into its parallel one: the steps
 *           ["FU", stage, [0, 1, ...]], ["AN", stage, 0, 3]
 *
 * Everything else is the form: where stages are computed, which loops are vectorised and unrolled,
 * the order of loops. Numbers of loops behind fused ones are kept as they were before the fusion,
 * so that any number of fused loops fits. Steps of a form never depend on tile sizes, so any sizes
 * of the right number replay.
 *
 * A sketch is what all forms share that split, cache, factor and reorder the same loops: genes of a
 * program fit every form of its sketch.
 */
#ifndef TLP_TVM_ANSOR_BREEDING_FORM_H_
#define TLP_TVM_ANSOR_BREEDING_FORM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/primitive.h"

namespace tlp_tvm {
namespace ansor {
namespace breeding {

/*! \brief A row of genes of one program. */
using Row = std::vector<std::int64_t>;

struct SplitGene {
  std::size_t value;  ///< of the extent, among the form's values; the list of lengths follows
  std::size_t row;    ///< of the extent, in a row of genes; the lengths follow
  std::size_t parts;  ///< lengths
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

/*! \brief What programs share that differ in their genes only. */
struct Form {
  std::uint64_t key = 0;  ///< hash of its content
  std::size_t sketch = 0;
  std::vector<Primitive> primitives;
  std::vector<std::int64_t> values;
  std::vector<SplitGene> splits;
  std::vector<UnrollGene> unrolls;
  std::vector<FuseGene> fuses;
  std::vector<LoopNumber> loops;  ///< in the order of `value`
  std::size_t row_size = 0;
  std::int64_t programs = 0;  ///< that had it when they were shown
};

/*! \brief A program taken apart; the names in the form's values are those of the program. */
struct Parsed {
  Form form;
  Row row;
  std::string form_key, sketch_key;  ///< texts that are equal where forms and sketches are
};

/*!
 * \brief Takes a program apart.
 * \throws RecordError that names the step, what was expected and what was found, of a program that
 * no search of Ansor made.
 */
Parsed Parse(const PrimitiveSequence& program);

/*! \brief The pragma that is a gene, before its number. */
inline constexpr char kUnrollPragma[] = "auto_unroll_max_step$";

}  // namespace breeding
}  // namespace ansor
}  // namespace tlp_tvm

#endif  // TLP_TVM_ANSOR_BREEDING_FORM_H_
