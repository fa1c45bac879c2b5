/*!
 * \file breeding/tiles.h
 * \brief Tile sizes of one split: what TVM's search may draw, and how it moves them.
 *
 * A split of a loop of `extent` turns has `parts` lengths, the innermost last; what they leave of
 * the extent is the outermost loop.
 */
#ifndef TLP_TVM_BREEDING_TILES_H_
#define TLP_TVM_BREEDING_TILES_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "breeding/random.h"

namespace tlp_tvm {
namespace breeding {

/*! \brief The most lengths of a split that is changed; TVM's have up to four. */
constexpr std::size_t kMaxParts = 15;

/*! \brief What divides an extent. */
struct Divisors {
  explicit Divisors(std::int64_t extent);

  /*! \brief Prime factors and how often each divides. */
  std::vector<std::pair<std::int64_t, int>> primes;
  /*! \brief All divisors, ascending, 1 and the extent among them. */
  std::vector<std::int64_t> all;
};

/*!
 * \brief Draws lengths from all that divide the extent, with equal chances, as TVM fills a sketch.
 * \param most Of the innermost length.
 */
void DrawLengths(const Divisors& divisors, std::size_t parts, std::int64_t most, Random* random,
                 std::int64_t* lengths);

/*!
 * \brief Takes a factor from one length, the outermost loop included, and gives it to another, as
 * TVM's MutateTileSize does.
 * \return Whether there was one; otherwise the lengths are as before.
 */
bool MoveFactor(std::int64_t extent, std::size_t parts, std::int64_t most, Random* random,
                std::int64_t* lengths);

}  // namespace breeding
}  // namespace tlp_tvm

#endif  // TLP_TVM_BREEDING_TILES_H_
