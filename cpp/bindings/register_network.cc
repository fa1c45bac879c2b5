#include <pybind11/stl.h>

#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "model/network.h"
#include "model/network_shape.h"
#include "model/peak_rate.h"
#include "model/runnable_kernels.h"
#include "model/tensor_table.h"

namespace py = pybind11;

namespace tlp_tvm {
namespace bindings {
namespace {

using Array = py::array_t<float, py::array::c_style | py::array::forcecast>;

/*! \brief Those of a name, or the fastest ones for "". */
const model::Kernels& KernelsNamed(const std::string& name) {
  if (name.empty()) return model::BestKernels();
  std::string known;
  for (const model::Kernels* kernels : model::RunnableKernels()) {
    if (name == kernels->name) return *kernels;
    known += (known.empty() ? "" : ", ") + std::string(kernels->name);
  }
  throw std::invalid_argument("instruction_set: expected one of " + known + ", found \"" + name +
                              "\"");
}

model::Network NetworkOf(const std::map<std::string, Array>& arrays,
                         const model::NetworkShape& shape, const std::string& instruction_set) {
  model::Tensors tensors;
  for (const auto& [name, array] : arrays) {
    if (array.ndim() != 1 && array.ndim() != 2) {
      throw std::invalid_argument("network: " + name +
                                  ": expected a vector or a matrix, found a tensor of rank " +
                                  std::to_string(array.ndim()) + "; export the model again");
    }
    const py::ssize_t rows = array.ndim() == 1 ? 1 : array.shape(0);
    tensors[name] = {rows, array.shape(array.ndim() - 1), array.data()};
  }
  return {shape, tensors, KernelsNamed(instruction_set)};
}

py::array_t<float> Score(const model::Network& network, const Embedding& x, int head, int threads) {
  const model::NetworkShape& shape = network.shape();
  if (x.ndim() != 3 || x.shape(1) != shape.length || x.shape(2) != shape.width) {
    std::string found;
    for (py::ssize_t i = 0; i < x.ndim(); ++i) {
      found += (i == 0 ? "" : ", ") + std::to_string(x.shape(i));
    }
    throw std::invalid_argument("X: expected (N, " + std::to_string(shape.length) + ", " +
                                std::to_string(shape.width) + "), found (" + found +
                                "); encode with the layout of the model");
  }
  if (head < -1 || head >= shape.heads) {
    throw std::invalid_argument("head: expected -1 to " + std::to_string(shape.heads - 1) +
                                ", found " + std::to_string(head));
  }
  py::array_t<float> scores({x.shape(0), static_cast<py::ssize_t>(head < 0 ? shape.heads : 1)});
  const float* const from = x.data();
  float* const to = scores.mutable_data();
  const auto count = static_cast<std::size_t>(x.shape(0));
  const py::gil_scoped_release release;
  network.Score(from, count, head, threads, to);
  return scores;
}

}  // namespace

void RegisterNetwork(py::module_& module) {
  py::class_<model::Network>(module, "Network")
      .def(py::init([](const std::map<std::string, Array>& tensors, int length, int width,
                       int hidden, int attention_heads, int layers, int members, int heads,
                       bool positions, const std::string& instruction_set) {
             return NetworkOf(
                 tensors,
                 {length, width, hidden, attention_heads, layers, members, heads, positions},
                 instruction_set);
           }),
           py::arg("tensors"), py::kw_only(), py::arg("length"), py::arg("width"),
           py::arg("hidden"), py::arg("attention_heads"), py::arg("layers"), py::arg("members"),
           py::arg("heads"), py::arg("positions").noconvert(), py::arg("instruction_set") = "")
      .def_property_readonly("instruction_set", &model::Network::instruction_set)
      .def("score", &Score, py::arg("X"), py::arg("head") = -1, py::arg("threads") = 0);
  module.def(
      "setting_ranges",
      [] {
        std::map<std::string, std::pair<int, int>> ranges;
        for (const model::SettingRange& range : model::kSettingRanges) {
          ranges[range.name] = {range.first, range.last};
        }
        return ranges;
      },
      "The first and the last value that each setting of a network may have.");
  module.def(
      "peak_rate",
      [](int threads) {
        const py::gil_scoped_release release;
        return model::PeakRate(threads);
      },
      py::arg("threads") = 0, "Operations a second on float32 that these threads do at most.");
  module.def("instruction_sets", [] {
    std::vector<std::string> names;
    for (const model::Kernels* kernels : model::RunnableKernels())
      names.emplace_back(kernels->name);
    return names;
  });
}

}  // namespace bindings
}  // namespace tlp_tvm
