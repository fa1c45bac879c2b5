// The kernels of every instruction set that this processor has, against plain loops in double.
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include "check.h"
#include "model/peak_rate.h"
#include "model/runnable_kernels.h"

using tlp_tvm::model::Kernels;
using tlp_tvm::model::kPanel;
using tlp_tvm::model::RunnableKernels;

namespace {

std::mt19937& Random() {
  static std::mt19937 random(1);
  return random;
}

std::vector<float> Numbers(int count) {
  std::normal_distribution<float> normal;
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (float& number : numbers) number = normal(Random());
  return numbers;
}

std::size_t At(int row, int column, int stride) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(stride) +
         static_cast<std::size_t>(column);
}

bool Near(double found, double expected) {
  return std::fabs(found - expected) <= 1e-5 * (1.0 + std::fabs(expected));
}

void TestDense(const Kernels& kernels, int rows, int inputs, int panels, bool relu, bool adds) {
  const int stride = panels * kPanel;
  const std::vector<float> x = Numbers(rows * inputs);
  const std::vector<float> weight = Numbers(inputs * stride);
  const std::vector<float> bias = Numbers(stride);
  const std::vector<float> residual = Numbers(rows * stride);
  std::vector<float> y(static_cast<std::size_t>(rows * stride));
  kernels.dense({x.data(), inputs, rows, inputs, weight.data(), inputs * kPanel, kPanel,
                 bias.data(), panels, relu, adds ? residual.data() : nullptr, y.data(), stride});
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < stride; ++column) {
      double sum = bias[At(0, column, 0)];
      for (int k = 0; k < inputs; ++k) {
        const int panel_row = column / kPanel * inputs + k;
        sum += static_cast<double>(x[At(row, k, inputs)]) *
               weight[At(panel_row, column % kPanel, kPanel)];
      }
      if (relu && sum < 0) sum = 0;
      if (adds) sum += residual[At(row, column, stride)];
      EXPECT(Near(y[At(row, column, stride)], sum));
    }
  }
}

void TestSoftmax(const Kernels& kernels, int width) {
  const int rows = 3;
  const int stride = (width + kPanel - 1) / kPanel * kPanel;
  std::vector<float> x = Numbers(rows * stride);
  x[0] = 200.0F;  // the others' share is next to nothing
  const std::vector<float> before = x;
  kernels.softmax(x.data(), rows, width, stride, 0.5F);
  for (int row = 0; row < rows; ++row) {
    double sum = 0;
    for (int c = 0; c < width; ++c) sum += std::exp(0.5 * before[At(row, c, stride)]);
    for (int c = 0; c < width; ++c) {
      EXPECT(Near(x[At(row, c, stride)], std::exp(0.5 * before[At(row, c, stride)]) / sum));
    }
  }
}

void TestLayerNorm(const Kernels& kernels, int width) {
  const int rows = 2;
  const int stride = (width + kPanel - 1) / kPanel * kPanel;
  std::vector<float> x = Numbers(rows * stride);
  std::vector<float> scale = Numbers(stride);
  std::vector<float> shift = Numbers(stride);
  for (int c = width; c < stride; ++c) {
    for (int row = 0; row < rows; ++row) x[At(row, c, stride)] = 0.0F;
    scale[At(0, c, 0)] = shift[At(0, c, 0)] = 0.0F;
  }
  std::vector<float> y(x.size());
  kernels.layer_norm({x.data(), rows, width, stride, scale.data(), shift.data(), y.data()});
  for (int row = 0; row < rows; ++row) {
    double mean = 0;
    double variance = 0;
    for (int c = 0; c < width; ++c) mean += x[At(row, c, stride)] / static_cast<double>(width);
    for (int c = 0; c < width; ++c) {
      const double apart = x[At(row, c, stride)] - mean;
      variance += apart * apart / width;
    }
    for (int c = 0; c < stride; ++c) {
      const double normal = (x[At(row, c, stride)] - mean) / std::sqrt(variance + 1e-5);
      EXPECT(Near(y[At(row, c, stride)], normal * scale[At(0, c, 0)] + shift[At(0, c, 0)]));
    }
  }
}

}  // namespace

TEST(AProductIsThatOfPlainLoops) {
  for (const Kernels* kernels : RunnableKernels()) {
    for (const int rows : {1, 2, 3, 5, 7, 8, 13, 56}) {
      for (const int panels : {1, 2, 3, 12}) {
        TestDense(*kernels, rows, 17, panels, rows % 2 == 0, panels % 2 == 0);
      }
    }
  }
}

TEST(SharesAreThoseOfTheExponentials) {
  for (const Kernels* kernels : RunnableKernels()) {
    for (const int width : {1, 4, 15, 16, 17, 56}) TestSoftmax(*kernels, width);
  }
}

TEST(RowsAreNormalisedAndPaddingStaysZero) {
  for (const Kernels* kernels : RunnableKernels()) {
    for (const int width : {1, 8, 16, 40, 64}) TestLayerNorm(*kernels, width);
  }
}

TEST(SumsThatAreHalvedBecomeOneAndAreCounted) {
  for (const Kernels* kernels : RunnableKernels()) {
    const int rounds = 40;
    float sum = 0;
    const double operations = kernels->multiply(rounds, &sum);
    EXPECT(Near(sum, operations / (2.0 * rounds)));
  }
}

TEST(ARateIsThatOfAllThreads) {
  for (const int threads : {1, 2, 3}) {
    const double rate = tlp_tvm::model::PeakRate(threads);
    EXPECT(rate > 0);
    EXPECT(std::isfinite(rate));
  }
}
