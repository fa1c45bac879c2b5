/*!
 * \file bindings/herd.h
 * \brief Bred programs as Python holds them: their genes, and the stock that knows their forms.
 */
#ifndef TLP_TVM_BINDINGS_HERD_H_
#define TLP_TVM_BINDINGS_HERD_H_

#include <cstddef>
#include <memory>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "bindings/bindings.h"
#include "breeding/population.h"
#include "breeding/stock.h"

namespace tlp_tvm {
namespace bindings {

/*!
 * \brief A stock that one thread adds to while others read.
 * \note Let go of the GIL before taking the mutex: who holds it may wait for the GIL.
 */
struct SharedStock {
  explicit SharedStock(const breeding::Species& species) : stock(species) {}

  breeding::Stock stock;
  mutable std::shared_mutex mutex;
};

/*! \brief Some programs of a stock. */
struct Herd {
  std::shared_ptr<SharedStock> owner;
  breeding::Population programs;

  const breeding::Stock& stock() const { return owner->stock; }
  const Vocabulary& vocabulary() const { return *stock().species().vocabulary; }
  PrimitiveSequence Write(std::size_t i, breeding::Draft* draft) const {
    return stock().Write(programs.form(i), programs.row(i), draft);
  }
  std::size_t Checked(std::size_t i) const {
    if (i < programs.size()) return i;
    throw pybind11::index_error("program " + std::to_string(i) + " is out of range");
  }
};

/*! \brief Makes Python know what a herd can be asked for. */
void RegisterHerd(pybind11::module_& module);

}  // namespace bindings
}  // namespace tlp_tvm

#endif  // TLP_TVM_BINDINGS_HERD_H_
