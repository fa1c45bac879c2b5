#include <pybind11/pybind11.h>

#include "bindings/bindings.h"
#include "core/error.h"

namespace py = pybind11;

PYBIND11_MODULE(_core, module) {
  module.doc() = "The native core of tlp_tvm. Private: use tlp_tvm.features.";
  module.attr("__version__") = TLP_TVM_VERSION;

  py::register_exception<tlp_tvm::LayoutError>(module, "LayoutError", PyExc_ValueError);
  py::register_exception<tlp_tvm::RecordError>(module, "RecordError", PyExc_ValueError);
  py::register_exception<tlp_tvm::StateError>(module, "StateError", PyExc_RuntimeError);

  tlp_tvm::bindings::RegisterLayout(module);
  tlp_tvm::bindings::RegisterLoops(module);
  tlp_tvm::bindings::RegisterNetwork(module);
  tlp_tvm::bindings::RegisterRecords(module);
  tlp_tvm::bindings::RegisterStates(module);
  tlp_tvm::bindings::RegisterTraces(module);
  tlp_tvm::bindings::RegisterBreeding(module);
}
