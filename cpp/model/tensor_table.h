/*!
 * \file model/tensor_table.h
 * \brief The tensors of a checkpoint by their names, each checked before it is read.
 */
#ifndef TLP_TVM_MODEL_TENSOR_TABLE_H_
#define TLP_TVM_MODEL_TENSOR_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace tlp_tvm {
namespace model {

/*! \brief A tensor of a checkpoint, rows times columns; a vector is one row. */
struct Tensor {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  const float* values = nullptr;

  std::size_t size() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  }
};

using Tensors = std::map<std::string, Tensor>;

/*! \brief Hands out tensors of the shape that is expected, and tells which were not asked for. */
class TensorTable {
 public:
  explicit TensorTable(const Tensors& tensors) : tensors_(tensors) {}

  /*!
   * \brief The tensor of a name.
   * \throws std::invalid_argument if there is none, if it is of another shape, or if a number of
   * it is not finite.
   */
  const Tensor& Take(const std::string& name, int rows, int columns);
  /*! \throws std::invalid_argument that names a tensor which was never taken. */
  void ExpectAllTaken() const;

 private:
  const Tensors& tensors_;
  std::map<std::string, const Tensor*> taken_;
};

}  // namespace model
}  // namespace tlp_tvm

#endif  // TLP_TVM_MODEL_TENSOR_TABLE_H_
