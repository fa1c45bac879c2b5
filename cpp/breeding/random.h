/*!
 * \file breeding/random.h
 * \brief A stream of random numbers for each child, so that threads make no difference.
 */
#ifndef TLP_TVM_BREEDING_RANDOM_H_
#define TLP_TVM_BREEDING_RANDOM_H_

#include <cstddef>
#include <cstdint>

namespace tlp_tvm {
namespace breeding {

/*! \brief One round of the splitmix64 finaliser (Steele et al., OOPSLA 2014). */
inline std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/*! \brief splitmix64. */
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream) : state_(Mix(seed ^ Mix(stream))) {}

  std::uint64_t Next() {
    const std::uint64_t value = Mix(state_);
    state_ += 0x9e3779b97f4a7c15u;
    return value;
  }
  /*! \return A number below `end`, which is at least 1 and fits 32 bits. */
  std::size_t Below(std::size_t end) { return ((Next() >> 32) * end) >> 32; }
  /*! \return A number in [0, 1). */
  double Share() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  bool Coin() { return (Next() >> 63) != 0; }

 private:
  std::uint64_t state_;
};

}  // namespace breeding
}  // namespace tlp_tvm

#endif  // TLP_TVM_BREEDING_RANDOM_H_
