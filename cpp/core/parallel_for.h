/*!
 * \file core/parallel_for.h
 * \brief Runs a body over blocks of an index range on several threads.
 */
#ifndef TLP_TVM_CORE_PARALLEL_FOR_H_
#define TLP_TVM_CORE_PARALLEL_FOR_H_

#include <cstddef>
#include <functional>

namespace tlp_tvm {

/*! \return The number of threads to use: as asked, or every core this process may run on for 0. */
int ResolveThreads(int threads);

/*!
 * \brief Calls body(begin, end) for blocks of at most `block` indices that cover [0, count).
 *
 * Which thread runs which block is not fixed, so a body must write by index alone. When bodies
 * throw, the exception of the lowest block is rethrown, whatever the number of threads.
 */
void ParallelFor(std::size_t count, std::size_t block, int threads,
                 const std::function<void(std::size_t begin, std::size_t end)>& body);

}  // namespace tlp_tvm

#endif  // TLP_TVM_CORE_PARALLEL_FOR_H_
