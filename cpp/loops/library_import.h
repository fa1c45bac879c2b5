/*!
 * \file loops/library_import.h
 * \brief What a loaded library has imported under a name, read and replaced.
 */
#ifndef TLP_TVM_LOOPS_LIBRARY_IMPORT_H_
#define TLP_TVM_LOOPS_LIBRARY_IMPORT_H_

#include <string>

namespace tlp_tvm {
namespace loops {

/*! \return A loaded library's own function or another's that it uses; nullptr where there is none. */
void* FunctionOf(const std::string& library, const std::string& name);

/*!
 * \brief Replaces the address that a library uses for a function, its own or another's.
 * \param library Path of a library that this process has loaded.
 * \param name Of the function.
 * \param address What the library shall use.
 * \return Whether it will; false where the library is not loaded, or does not look the function up
 *     when it is loaded, as one linked with -Bsymbolic.
 */
bool ReplaceImport(const std::string& library, const std::string& name, void* address);

}  // namespace loops
}  // namespace tlp_tvm

#endif  // TLP_TVM_LOOPS_LIBRARY_IMPORT_H_
