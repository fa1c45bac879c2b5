#include "model/tensor_table.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace tlp_tvm {
namespace model {
namespace {

[[noreturn]] void Refuse(const std::string& name, const std::string& expected,
                         const std::string& found) {
  throw std::invalid_argument("network: " + name + ": expected " + expected + ", found " + found +
                              "; restore the model's file, or export the model again");
}

std::string ShapeText(std::int64_t rows, std::int64_t columns) {
  return std::to_string(rows) + " x " + std::to_string(columns);
}

}  // namespace

const Tensor& TensorTable::Take(const std::string& name, int rows, int columns) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) Refuse(name, "a tensor", "none");
  const Tensor& tensor = found->second;
  if (tensor.rows != rows || tensor.columns != columns) {
    Refuse(name, ShapeText(rows, columns) + " numbers, as the settings say",
           ShapeText(tensor.rows, tensor.columns));
  }
  const float* const end = tensor.values + tensor.size();
  const float* const odd =
      std::find_if(tensor.values, end, [](float value) { return !std::isfinite(value); });
  if (odd != end) Refuse(name, "finite numbers", std::to_string(*odd));
  taken_[name] = &tensor;
  return tensor;
}

void TensorTable::ExpectAllTaken() const {
  for (const auto& [name, tensor] : tensors_) {
    if (taken_.count(name) == 0) {
      Refuse(name, "no such tensor, as the settings say",
             ShapeText(tensor.rows, tensor.columns) + " numbers");
    }
  }
}

}  // namespace model
}  // namespace tlp_tvm
