#include <pybind11/stl.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ansor/gpu_check.h"
#include "ansor/state_reader.h"
#include "ansor/steps.h"
#include "bindings/bindings.h"

namespace py = pybind11;

namespace tlp_tvm {
namespace bindings {
namespace {

const void* PointerOf(std::uintptr_t handle) { return reinterpret_cast<const void*>(handle); }

using Extents = std::vector<std::int64_t>;
using Operation = std::tuple<std::int64_t, int, Extents, Extents>;
using Dimensions = std::vector<std::vector<std::pair<std::size_t, std::int64_t>>>;
using Read = std::tuple<std::size_t, std::size_t, Dimensions>;

ansor::GpuGraph GraphOf(const std::vector<Operation>& operations, const std::vector<Read>& reads) {
  ansor::GpuGraph graph;
  for (const auto& [bytes, vectors, spatial, reduce] : operations) {
    if (vectors < 0 || vectors > static_cast<int>(ansor::Vectors::kUnlessCut)) {
      throw py::value_error("operations: expected vectors of 0, 1 or 2, found another number");
    }
    graph.operations.push_back({bytes, static_cast<ansor::Vectors>(vectors)});
    Extents extents = spatial;
    extents.insert(extents.end(), reduce.begin(), reduce.end());
    graph.axes.push_back({spatial.size(), reduce.size(), std::move(extents)});
  }
  for (const auto& [reader, read, dimensions] : reads) {
    if (reader >= operations.size() || read >= operations.size()) {
      throw py::value_error("reads: expected places of operations, found one behind the last");
    }
    const auto axes =
        std::get<2>(operations[reader]).size() + std::get<3>(operations[reader]).size();
    for (const auto& dimension : dimensions) {
      for (const auto& [axis, factor] : dimension) {
        if (axis >= axes)
          throw py::value_error("reads: expected axes of the reader, found another");
      }
    }
    graph.reads.push_back({reader, read, dimensions});
  }
  return graph;
}

void RegisterGpuGraph(py::module_& module) {
  py::class_<ansor::GpuGraph>(module, "GpuGraph", "A task's graph for `gpu_faults`.")
      .def(
          py::init(&GraphOf), py::arg("operations"), py::arg("reads"),
          "Operations: bytes of an element, ansor::Vectors, extents of spatial and of reduce axes, "
          "-1 where unknown. Reads: "
          "places of the reader and of what it reads, and of each dimension axes with factors.");
}

}  // namespace

void RegisterStates(py::module_& module) {
  using ansor::StateReader;
  RegisterGpuGraph(module);
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
            float* const data = EmbeddingOf(out, static_cast<std::size_t>(states.size), encoder,
                                            ansor::kVocabulary);
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
          "Writes the embedding of every state of an Array; returns the encoding report.")
      .def(
          "loops",
          [](StateReader& reader, std::uintptr_t handle) {
            const ansor::abi::Array& states = reader.StatesOf(PointerOf(handle));
            const auto count = static_cast<std::size_t>(states.size);
            std::vector<std::vector<std::vector<ansor::Loop>>> loops;
            loops.reserve(count);
            for (std::size_t i = 0; i < count; ++i) {
              loops.push_back(ansor::LoopsOf(&reader, states.items()[i]));
            }
            return loops;
          },
          py::arg("handle"),
          "The loops of every stage of every state: extent, -1 if unknown, and TVM's annotation.")
      .def(
          "gpu_faults",
          [](StateReader& reader, std::uintptr_t handle, std::int64_t threads_per_block,
             std::int64_t shared_bytes_per_block, std::int64_t vthreads, std::int64_t vector_bytes,
             const ansor::GpuGraph& graph, int threads) {
            const ansor::abi::Array& states = reader.StatesOf(PointerOf(handle));
            const ansor::GpuLimits limits{threads_per_block, shared_bytes_per_block, vthreads,
                                          vector_bytes};
            py::array_t<std::uint8_t> faults(states.size);
            auto* const data = reinterpret_cast<ansor::GpuFault*>(faults.mutable_data());
            {
              // Safe without the GIL, as `encode` is; nobody else knows `faults` yet, nor changes a
              // graph.
              const py::gil_scoped_release release;
              ansor::CheckGpu(&reader, states, limits, graph, threads, data);
            }
            return faults;
          },
          py::arg("handle"), py::kw_only(), py::arg("threads_per_block"),
          py::arg("shared_bytes_per_block"), py::arg("vthreads"), py::arg("vector_bytes"),
          py::arg("graph"), py::arg("threads") = 0,
          "Why a GPU cannot run each state (ansor::GpuFault), 0 where nothing speaks against it.");
}

}  // namespace bindings
}  // namespace tlp_tvm
