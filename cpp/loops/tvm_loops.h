/*!
 * \file loops/tvm_loops.h
 * \brief TVM's parallel loops, run by `LoopPool`.
 */
#ifndef TLP_TVM_LOOPS_TVM_LOOPS_H_
#define TLP_TVM_LOOPS_TVM_LOOPS_H_

#include <string>

namespace tlp_tvm {
namespace loops {

/*!
 * \brief Has programs that TVM compiles or loads from now on run their parallel loops on `LoopPool`.
 * \param library Path of TVM's library with the functions of loops, which this process has loaded.
 * \param registry Path of tvm-ffi's library, where TVM has one that programs look functions up in;
 *     empty where they look them up in TVM's.
 * \return Whether they will; false leaves everything as it is.
 */
bool Share(const std::string& library, const std::string& registry);

/*! \brief Has programs that TVM compiles or loads from now on run as TVM runs them. */
void Leave();

}  // namespace loops
}  // namespace tlp_tvm

#endif  // TLP_TVM_LOOPS_TVM_LOOPS_H_
