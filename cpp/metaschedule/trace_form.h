/*!
 * \file metaschedule/trace_form.h
 * \brief MetaSchedule's traces as forms and genes.
 *
 *   split  the decision of a SamplePerfectTile, wherever its numbers stand
 *   pick   the decision of a SampleCategorical, with the numbers that it stands for; and that of a
 *          SampleComputeLocation, of which only places that traces have shown are taken
 *
 * The form is everything else up to EnterPostproc: what postprocessors did to a program, they do
 * anew to its children. All traces of a design have one form, which is its sketch too.
 */
#ifndef TLP_TVM_METASCHEDULE_TRACE_FORM_H_
#define TLP_TVM_METASCHEDULE_TRACE_FORM_H_

#include "breeding/form.h"

namespace tlp_tvm {
namespace metaschedule {

/*! \brief Traces of a design space; errors name the instruction and what was expected of it. */
const breeding::Species& TraceSpecies();

}  // namespace metaschedule
}  // namespace tlp_tvm

#endif  // TLP_TVM_METASCHEDULE_TRACE_FORM_H_
