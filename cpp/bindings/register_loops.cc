#include <pybind11/pybind11.h>

#include "bindings/bindings.h"
#include "core/round_trip.h"
#include "loops/loop_pool.h"
#include "loops/tvm_loops.h"

namespace py = pybind11;

namespace tlp_tvm {
namespace bindings {

void RegisterLoops(py::module_& module) {
  using loops::LoopPool;
  module.def(
      "share_loops", &loops::Share, py::arg("library"), py::arg("registry") = "",
      "Have what this TVM compiles or loads from now on share out its parallel loops. Returns "
      "whether it will.");
  module.def("leave_loops", &loops::Leave, "Leave them to TVM again.");
  module.def(
      "set_loop_threads", [](int threads) { LoopPool::Shared().SetThreads(threads); },
      py::arg("threads"), "Threads of each shared loop that begins from now on.");
  module.def(
      "loop_threads", [] { return LoopPool::Shared().threads(); }, "Threads of each shared loop.");
  module.def(
      "shared_loops", [] { return LoopPool::Shared().loops(); },
      "How many loops have been shared out.");
  module.def(
      "round_trip",
      [](int threads) {
        const py::gil_scoped_release release;
        return RoundTrip(threads);
      },
      py::arg("threads") = 0,
      "Seconds that a cache line takes between the farthest of these CPUs.");
}

}  // namespace bindings
}  // namespace tlp_tvm
