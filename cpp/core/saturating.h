/*!
 * \file core/saturating.h
 * \brief Arithmetic of sizes that come from a program: what is too large stays too large.
 *
 * Each takes numbers that are not negative, and gives the largest one where the result is larger.
 */
#ifndef TLP_TVM_CORE_SATURATING_H_
#define TLP_TVM_CORE_SATURATING_H_

#include <cstdint>
#include <limits>

namespace tlp_tvm {

constexpr std::int64_t kMostOfAll = std::numeric_limits<std::int64_t>::max();

inline std::int64_t Product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? kMostOfAll : result;
}

inline std::int64_t Sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? kMostOfAll : result;
}

/*! \brief A number of any sign without it. */
inline std::int64_t Magnitude(std::int64_t a) {
  if (a == std::numeric_limits<std::int64_t>::min()) return kMostOfAll;
  return a < 0 ? -a : a;
}

}  // namespace tlp_tvm

#endif  // TLP_TVM_CORE_SATURATING_H_
