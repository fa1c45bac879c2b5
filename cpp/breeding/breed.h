/*!
 * \file breeding/breed.h
 * \brief Parents -> children, by the thousand, on all cores.
 */
#ifndef TLP_TVM_BREEDING_BREED_H_
#define TLP_TVM_BREEDING_BREED_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "breeding/mutation.h"
#include "breeding/population.h"
#include "breeding/stock.h"

namespace tlp_tvm {
namespace breeding {

/*! \brief How children come about. */
struct Plan {
  Rules rules;
  double fresh = 0;  ///< share of children that are drawn at random, without parents
  double cross = 0;  ///< share of the others that have two parents
  double alter = 1;  ///< share of those with two parents that are changed too
};

/*! \brief Whether a program can run; asked from one thread. */
using Accepts = std::function<bool(const PrimitiveSequence&)>;
/*! \brief Makes one for a thread. */
using AcceptsOfThread = std::function<Accepts()>;

/*! \brief What became of the children that were made. */
struct Tally {
  std::size_t made = 0;     ///< that were asked for
  std::size_t barren = 0;   ///< places for which no child was found
  std::size_t refused = 0;  ///< that cannot run; others were made in their place
  std::size_t equal = 0;    ///< that were known, or equal to another one
};

/*!
 * \brief Makes children.
 * \param stock Which took all parents in.
 * \param weights Of the parents: the chance of each is in proportion; none is negative.
 * \param count Children to make.
 * \param known Hashes of programs that are not wanted again; sorted.
 * \param accepts May be empty.
 * \param threads 0 for every core; the children do not depend on it.
 * \return Children that differ from each other and from what is known: fewer than asked for where
 * some are equal.
 */
Population Breed(const Stock& stock, const Population& parents, const std::vector<double>& weights,
                 const Plan& plan, std::size_t count, std::uint64_t seed,
                 const std::vector<std::uint64_t>& known, const AcceptsOfThread& accepts,
                 int threads, Tally* tally);

/*!
 * \brief Crosses two programs.
 * \throws RecordError unless they are of one sketch.
 */
Child CrossOf(const Stock& stock, const Population& programs, std::size_t first, std::size_t second,
              std::uint64_t seed);

}  // namespace breeding
}  // namespace tlp_tvm

#endif  // TLP_TVM_BREEDING_BREED_H_
