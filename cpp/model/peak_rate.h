/*!
 * \file model/peak_rate.h
 * \brief How many float32 operations a second the processor does at most.
 */
#ifndef TLP_TVM_MODEL_PEAK_RATE_H_
#define TLP_TVM_MODEL_PEAK_RATE_H_

namespace tlp_tvm {
namespace model {

/*!
 * \brief Multiplies in registers on all threads at once, in several turns of a few milliseconds.
 * \param threads how many; 0 for every core that this process may run on.
 * \return Operations a second of the fastest turn; a product that is added counts as two.
 */
double PeakRate(int threads);

}  // namespace model
}  // namespace tlp_tvm

#endif  // TLP_TVM_MODEL_PEAK_RATE_H_
