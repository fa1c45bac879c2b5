/*!
 * \file core/error.h
 * \brief The exceptions of the core; each carries one sentence: where, expected, found, cure.
 */
#ifndef TLP_TVM_CORE_ERROR_H_
#define TLP_TVM_CORE_ERROR_H_

#include <stdexcept>

namespace tlp_tvm {

/*! \brief A layout that contradicts itself or its vocabulary. */
class LayoutError : public std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/*! \brief A record, or a file of records, that is not what its format says. */
class RecordError : public std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/*! \brief A live object of the framework that cannot be read. */
class StateError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace tlp_tvm

#endif  // TLP_TVM_CORE_ERROR_H_
