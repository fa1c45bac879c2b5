/*!
 * \file model/kernels.h
 * \brief The arithmetic that a network is made of, compiled once for each instruction set.
 *
 * Matrices are row-major; weights are read in panels of `kPanel` columns.
 */
#ifndef TLP_TVM_MODEL_KERNELS_H_
#define TLP_TVM_MODEL_KERNELS_H_

namespace tlp_tvm {
namespace model {

/*! \brief Columns of a panel; rows of every buffer are as long as a number of panels. */
constexpr int kPanel = 16;

/*! \brief y = x W + b, each number above zero or else zero if asked for, then the residual added.
 */
struct DenseCall {
  const float* x;
  int x_stride;
  int rows;
  int inputs;
  const float* weight;
  /*! \brief Numbers from a panel of the weights to the next, and from an input to the next. */
  int panel_step;
  int input_step;
  /*! \brief As long as the panels are wide. */
  const float* bias;
  int panels;
  bool relu;
  /*! \brief With the stride of y, or null. */
  const float* residual;
  float* y;
  int y_stride;
};

/*! \brief Each row to mean 0 and variance 1, then scaled and shifted; columns past `width` get 0.
 */
struct NormCall {
  const float* x;
  int rows;
  int width;
  /*! \brief Of x and y; a number of panels. */
  int stride;
  const float* scale;
  const float* shift;
  float* y;
};

/*! \brief One instruction set's. */
struct Kernels {
  const char* name;
  void (*dense)(const DenseCall& call);
  void (*layer_norm)(const NormCall& call);
  /*! \brief Each row's first `width` numbers to exp(scale x) over their sum, in place; the rest is
   * lost. */
  void (*softmax)(float* x, int rows, int width, int stride, float scale);
  /*! \brief Halves sums in registers and adds a half, as fast as that can be, so that all become 1.
   * \return How many products and sums that was. */
  double (*multiply)(int rounds, float* sum);
};

}  // namespace model
}  // namespace tlp_tvm

#endif  // TLP_TVM_MODEL_KERNELS_H_
