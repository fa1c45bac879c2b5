#include <cstdint>
#include <string>

#include "ansor/state_reader.h"
#include "ansor/steps.h"
#include "bindings/bindings.h"

namespace py = pybind11;

namespace tlp_tvm {
namespace bindings {
namespace {

const void* PointerOf(std::uintptr_t handle) { return reinterpret_cast<const void*>(handle); }

}  // namespace

void RegisterStates(py::module_& module) {
  using ansor::StateReader;
  py::class_<StateReader, std::unique_ptr<StateReader, py::nodelete>>(
      module, "StateReader", "Reads live states of the TVM that the process has loaded.")
      .def_static("bind", &ansor::BindStateReader, py::arg("library"),
                  py::return_value_policy::reference,
                  "The reader for TVM's library at this path; it must be loaded already.")
      .def(
          "steps",
          [](StateReader& reader, std::uintptr_t handle) {
            const ansor::abi::Array& states = reader.StatesOf(PointerOf(handle));
            ansor::ReadScratch scratch;
            py::list programs;
            for (std::size_t i = 0; i < static_cast<std::size_t>(states.size); ++i) {
              scratch.batch.Clear();
              reader.Read(states, i, &scratch);
              programs.append(StepsOf(scratch.batch[0], ansor::kVocabulary));
            }
            return programs;
          },
          py::arg("handle"), "The record form of every state of an Array, given its handle.")
      .def(
          "count",
          [](StateReader& reader, std::uintptr_t handle) {
            return reader.StatesOf(PointerOf(handle)).size;
          },
          py::arg("handle"), "How many states an Array holds.")
      .def(
          "encode",
          [](StateReader& reader, std::uintptr_t handle, const Encoder& encoder, Embedding out,
             int threads) {
            const ansor::abi::Array& states = reader.StatesOf(PointerOf(handle));
            float* const data =
                EmbeddingOf(out, static_cast<std::size_t>(states.size), encoder.layout());
            EncodingReport report;
            {
              // Safe without the GIL: the caller holds the Array, TVM's objects under it are not
              // written to while it is held, and `out` is ours until we return.
              const py::gil_scoped_release release;
              reader.Encode(states, encoder, threads, data, &report);
            }
            return ReportOf(report, ansor::kVocabulary);
          },
          py::arg("handle"), py::arg("encoder"), py::arg("out").noconvert(), py::arg("threads"),
          "Writes the embedding of every state of an Array; returns the encoding report.");
}

}  // namespace bindings
}  // namespace tlp_tvm
