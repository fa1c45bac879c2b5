/*!
 * \file breeding/mutation.h
 * \brief What one child differs in from its parents.
 */
#ifndef TLP_TVM_BREEDING_MUTATION_H_
#define TLP_TVM_BREEDING_MUTATION_H_

#include <cstddef>
#include <cstdint>

#include "breeding/random.h"
#include "breeding/stock.h"

namespace tlp_tvm {
namespace breeding {

/*! \brief The kinds of change. */
enum class Change {
  kMove,    ///< a factor moves between two tile sizes of a split (TVM: MutateTileSize)
  kDraw,    ///< all tile sizes of a split are drawn anew
  kUnroll,  ///< another number for an unroll pragma (TVM: MutateAutoUnroll), or another pick
  kForm,    ///< another form that the sketch has shown: where stages are computed and vectorised;
            ///< or else another of the places that programs of the form have shown
  kFuse,    ///< another number of fused, parallel loops (TVM: MutateParallel)
};
constexpr std::size_t kChangeCount = 5;

/*! \brief What children may be, as a target and its search's settings say. */
struct Rules {
  std::int64_t most_innermost = 64;                ///< of a split (TVM: max_innermost_split_factor)
  std::vector<std::int64_t> unrolls;               ///< to choose from
  double weights[kChangeCount] = {1, 0, 0, 0, 0};  ///< how often each change is tried
  double another = 0;                              ///< the chance of a further change, after each
};

/*! \brief A child while it is made: form and genes. */
struct Child {
  std::size_t form = 0;
  Row row;  ///< as long as the stock's stride
};

/*! \return Whether the change found something to change; otherwise the child is as before. */
bool Apply(Change change, const Stock& stock, const Rules& rules, Random* random, Child* child);

/*! \brief One change or more, by their weights. \return Whether there was any. */
bool Mutate(const Stock& stock, const Rules& rules, Random* random, Child* child);

/*! \brief Each gene from one of two programs of a sketch; the form is the child's. */
void Cross(const Stock& stock, std::size_t other_form, const std::int64_t* other, Random* random,
           Child* child);

/*! \brief Gives the child another form of its sketch; its genes go along where it has them. */
void TakeForm(const Stock& stock, std::size_t form, Random* random, Child* child);

/*! \brief A random program of a form: every tile size that programs have shown to vary is drawn. */
void Draw(const Stock& stock, const Rules& rules, std::size_t form, Random* random, Child* child);

}  // namespace breeding
}  // namespace tlp_tvm

#endif  // TLP_TVM_BREEDING_MUTATION_H_
