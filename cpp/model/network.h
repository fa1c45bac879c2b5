/*!
 * \file model/network.h
 * \brief TLP's network without torch: the same scores, a program at a time, in a core's first
 * caches.
 *
 * torch passes a batch through one operation after the other, and what lies between them does not
 * fit in those caches. Which programs it is fed makes no difference to a program's score here.
 */
#ifndef TLP_TVM_MODEL_NETWORK_H_
#define TLP_TVM_MODEL_NETWORK_H_

#include <cstddef>
#include <vector>

#include "model/kernels.h"
#include "model/network_shape.h"
#include "model/runnable_kernels.h"
#include "model/tensor_table.h"

namespace tlp_tvm {
namespace model {

/*! \brief A linear layer, in panels. */
class Linear {
 public:
  /*! \param weight outputs times inputs; the bias is a row of outputs. */
  Linear(const Tensor& weight, const Tensor& bias);

  int inputs() const { return inputs_; }
  int outputs() const { return outputs_; }
  /*! \return Columns of what it writes: the outputs, and zeros. */
  int stride() const { return panels_ * kPanel; }

  /*! \brief y = x W + b, each number cut at zero if asked for, then the residual added. */
  void Run(const Kernels& kernels, const float* x, int x_stride, int rows, bool relu,
           const float* residual, float* y) const;

 private:
  int inputs_;
  int outputs_;
  int panels_;
  std::vector<float> weight_;
  std::vector<float> bias_;
};

/*! \brief Scale and shift of a normalised layer, as long as a number of panels. */
struct Norm {
  std::vector<float> scale;
  std::vector<float> shift;
};

struct AttentionLayer {
  Norm norm;
  Linear query_key_value;
  Linear out;
};

struct Head {
  Linear first;
  Linear second;
  Linear last;
};

/*! \brief One network; a model is the mean of one or more. */
struct Member {
  std::vector<Linear> widen;
  /*! \brief Of each row, or empty. */
  std::vector<float> positions;
  std::vector<AttentionLayer> layers;
  std::vector<Linear> residuals;
  Norm norm;
  std::vector<Head> heads;
};

/*! \brief Immutable, so that threads share it. */
class Network {
 public:
  /*!
   * \brief Copies the tensors: the caller may let go of them.
   * \throws std::invalid_argument that names the setting which is out of its range, or the tensor
   * which is missing, one too many, of another shape or not finite.
   */
  Network(const NetworkShape& shape, const Tensors& tensors,
          const Kernels& kernels = BestKernels());

  const NetworkShape& shape() const { return shape_; }
  const char* instruction_set() const { return kernels_.name; }

  /*!
   * \brief Scores programs.
   * \param x count * length * width numbers; rows of zeros are padding.
   * \param head which one scores, or -1 for all.
   * \param threads how many, or 0 for all cores.
   * \param scores count * (heads or 1) numbers.
   */
  void Score(const float* x, std::size_t count, int head, int threads, float* scores) const;

 private:
  NetworkShape shape_;
  const Kernels& kernels_;
  std::vector<Member> members_;
};

}  // namespace model
}  // namespace tlp_tvm

#endif  // TLP_TVM_MODEL_NETWORK_H_
