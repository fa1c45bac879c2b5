/*!
 * \file ansor/step_scan.h
 * \brief The quick reading of a step that is spelled as TVM spells it.
 */
#ifndef TLP_TVM_ANSOR_STEP_SCAN_H_
#define TLP_TVM_ANSOR_STEP_SCAN_H_

#include "core/primitive.h"

namespace tlp_tvm {
namespace ansor {

/*!
 * \brief Reads `["SP", 2, 0, 512, [4, 2, 8], 1]`: one space after each comma and nowhere else,
 * short numbers without a sign, plain names, short lists. Nearly every step of every log looks so.
 *
 * Anything else, right or wrong, is left to the reader that knows all of JSON and says what is
 * wrong: nothing is added then.
 *
 * \param at Where the step begins; a '\n' further on stops the scan.
 * \return Where it ends, or nullptr if it is spelled otherwise.
 */
const char* ScanStep(const char* at, SequenceBatch* out);

}  // namespace ansor
}  // namespace tlp_tvm

#endif  // TLP_TVM_ANSOR_STEP_SCAN_H_
