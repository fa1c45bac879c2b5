/*!
 * \file ansor/program_form.h
 * \brief Ansor's programs as forms and genes.
 *
 *   split   the extent and lengths of a step SP
 *   unroll  the number of a pragma auto_unroll_max_step$N
 *   fuse    how many of a stage's outermost loops are fused into its parallel one: the steps
 *           ["FU", stage, [0, 1, ...]], ["AN", stage, 0, 3]
 *
 * The form has where stages are computed, which loops are vectorised and unrolled, the order of
 * loops. Numbers of loops behind fused ones are kept as they were before the fusion, so that any
 * number of fused loops fits. Steps of a form never depend on tile sizes, so any sizes of the right
 * number replay. A sketch is what all forms share that split, cache, factor and reorder the same
 * loops.
 */
#ifndef TLP_TVM_ANSOR_PROGRAM_FORM_H_
#define TLP_TVM_ANSOR_PROGRAM_FORM_H_

#include "breeding/form.h"

namespace tlp_tvm {
namespace ansor {

/*! \brief Programs that a search of Ansor drew; errors name the step and what was expected of it. */
const breeding::Species& ProgramSpecies();

}  // namespace ansor
}  // namespace tlp_tvm

#endif  // TLP_TVM_ANSOR_PROGRAM_FORM_H_
