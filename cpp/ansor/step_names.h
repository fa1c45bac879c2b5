/*!
 * \file ansor/step_names.h
 * \brief Step kinds by name, and the names of their fields for messages.
 */
#ifndef TLP_TVM_ANSOR_STEP_NAMES_H_
#define TLP_TVM_ANSOR_STEP_NAMES_H_

#include <cstddef>
#include <string_view>

namespace tlp_tvm {
namespace ansor {

/*! \return The index of the step kind of that name, or -1. Quick: records name every step. */
int FindStepKind(std::string_view name);

/*! \return What messages call a field: "SP lengths". */
const char* StepFieldName(std::size_t kind, std::size_t field);

}  // namespace ansor
}  // namespace tlp_tvm

#endif  // TLP_TVM_ANSOR_STEP_NAMES_H_
