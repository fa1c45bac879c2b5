#ifndef TLP_TVM_CORE_MEDIAN_H_
#define TLP_TVM_CORE_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tlp_tvm {

/*!
 * \brief The median of a program's repeats, which one disturbed repeat leaves alone.
 * \param costs Seconds; not empty; sorted in place.
 */
inline double Median(std::vector<double>* costs) {
  std::sort(costs->begin(), costs->end());
  const std::size_t half = costs->size() / 2;
  if (costs->size() % 2 == 1) return (*costs)[half];
  return ((*costs)[half - 1] + (*costs)[half]) / 2;
}

}  // namespace tlp_tvm

#endif  // TLP_TVM_CORE_MEDIAN_H_
