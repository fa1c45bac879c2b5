/*!
 * \file model/kernels.cc
 * \brief The kernels of one instruction set: the compiler's flags say which, TLP_TVM_KERNELS its
 * name.
 *
 * No inline function of another file is called: the linker could take this code of it for
 * processors that cannot run it.
 */
#include "model/kernels.h"

#include <cstddef>

namespace tlp_tvm {
namespace model {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
constexpr int kRows = 8;
constexpr int kPanels = 2;
constexpr const char* kName = "avx512";
#elif defined(__AVX2__)
constexpr int kLanes = 8;
constexpr int kRows = 6;
constexpr int kPanels = 1;
constexpr const char* kName = "avx2";
#else
constexpr int kLanes = 4;
constexpr int kRows = 3;
constexpr int kPanels = 1;
constexpr const char* kName = "baseline";
#endif

constexpr int kParts = kPanel / kLanes;

using Vector = float __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));
using Integers = int __attribute__((vector_size(kLanes * sizeof(int))));

/*! \brief Where a row begins. */
std::ptrdiff_t Row(int row, int stride) {
  return static_cast<std::ptrdiff_t>(row) * static_cast<std::ptrdiff_t>(stride);
}

Vector Load(const float* from) { return *reinterpret_cast<const Vector*>(from); }

void Store(float* to, Vector value) { *reinterpret_cast<Vector*>(to) = value; }

Vector Larger(Vector a, Vector b) { return a > b ? a : b; }

float Sum(Vector value) {
  float sum = 0.0F;
  for (int i = 0; i < kLanes; ++i) sum += value[i];
  return sum;
}

/*! \brief e^x, relative error below 2e-7 where e^x is a normal number; Cephes' polynomial. */
Vector Exp(Vector x) {
  const Vector lowest = Vector{} - 87.0F;
  const Vector highest = Vector{} + 88.0F;
  x = Larger(x, lowest);
  x = x < highest ? x : highest;
  const Vector shift = Vector{} + 12582912.0F;  // adding and taking it off rounds
  const Vector n = (x * 1.44269504F + shift) - shift;
  const Vector r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
  Vector p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const Integers power = (__builtin_convertvector(n, Integers) + 127) << 23;
  return p * reinterpret_cast<const Vector&>(power);
}

void Finish(const DenseCall& call, int row, int column, Vector value) {
  if (call.relu) value = Larger(value, Vector{});
  const std::ptrdiff_t at = Row(row, call.y_stride) + column;
  if (call.residual != nullptr) value += Load(call.residual + at);
  Store(call.y + at, value);
}

template <int kR, int kP>
void Block(const DenseCall& call, int row, int panel) {
  constexpr int kVectors = kP * kParts;
  Vector sums[kR][kVectors];
  const float* const x = call.x + Row(row, call.x_stride);
  for (int v = 0; v < kVectors; ++v) {
    const Vector bias = Load(call.bias + Row(panel, kPanel) + Row(v, kLanes));
    for (int r = 0; r < kR; ++r) sums[r][v] = bias;
  }
  const float* const weight = call.weight + Row(panel, kPanel) * call.inputs;
  for (int k = 0; k < call.inputs; ++k) {
    Vector w[kVectors];
    for (int p = 0; p < kP; ++p) {
      for (int v = 0; v < kParts; ++v) {
        w[p * kParts + v] = Load(weight + Row(p * call.inputs + k, kPanel) + Row(v, kLanes));
      }
    }
    for (int r = 0; r < kR; ++r) {
      const float value = x[Row(r, call.x_stride) + k];
      for (int v = 0; v < kVectors; ++v) sums[r][v] += value * w[v];
    }
  }
  for (int r = 0; r < kR; ++r) {
    for (int v = 0; v < kVectors; ++v)
      Finish(call, row + r, panel * kPanel + v * kLanes, sums[r][v]);
  }
}

template <int kP>
void Panels(const DenseCall& call, int panel) {
  int row = 0;
  for (; row + kRows <= call.rows; row += kRows) Block<kRows, kP>(call, row, panel);
  if (kRows > 4 && row + 4 <= call.rows) {
    Block<4, kP>(call, row, panel);
    row += 4;
  }
  for (; row + 2 <= call.rows; row += 2) Block<2, kP>(call, row, panel);
  if (row < call.rows) Block<1, kP>(call, row, panel);
}

void Dense(const DenseCall& call) {
  int panel = 0;
  for (; panel + kPanels <= call.panels; panel += kPanels) Panels<kPanels>(call, panel);
  for (; panel < call.panels; ++panel) Panels<1>(call, panel);
}

void LayerNorm(const NormCall& call) {
  constexpr float kEpsilon = 1e-5F;  // torch's
  const auto width = static_cast<float>(call.width);
  for (int row = 0; row < call.rows; ++row) {
    const float* const x = call.x + Row(row, call.stride);
    float* const y = call.y + Row(row, call.stride);
    Vector sum{};
    for (int c = 0; c < call.stride; c += kLanes) sum += Load(x + c);
    const float mean = Sum(sum) / width;
    Vector squares{};
    const int whole = call.width - call.width % kLanes;
    for (int c = 0; c < whole; c += kLanes) {
      const Vector apart = Load(x + c) - mean;
      squares += apart * apart;
    }
    float square = Sum(squares);
    for (int c = whole; c < call.width; ++c) square += (x[c] - mean) * (x[c] - mean);
    const float deviation = __builtin_sqrtf(square / width + kEpsilon);
    for (int c = 0; c < call.stride; c += kLanes) {
      const Vector normal = (Load(x + c) - mean) / deviation;
      Store(y + c, normal * Load(call.scale + c) + Load(call.shift + c));
    }
  }
}

void Softmax(float* x, int rows, int width, int stride, float scale) {
  for (int row = 0; row < rows; ++row, x += stride) {
    for (int c = width; c % kLanes != 0; ++c) x[c] = x[width - 1];
    Vector most = Load(x);
    for (int c = kLanes; c < width; c += kLanes) most = Larger(most, Load(x + c));
    float highest = most[0];
    for (int i = 1; i < kLanes; ++i) highest = most[i] > highest ? most[i] : highest;
    for (int c = 0; c < width; c += kLanes) Store(x + c, Exp((Load(x + c) - highest) * scale));
    for (int c = width; c % kLanes != 0; ++c) x[c] = 0.0F;
    Vector sum{};
    for (int c = 0; c < width; c += kLanes) sum += Load(x + c);
    const float all = Sum(sum);
    for (int c = 0; c < width; c += kLanes) Store(x + c, Load(x + c) / all);
  }
}

constexpr Kernels kKernels = {kName, Dense, LayerNorm, Softmax};

}  // namespace

const Kernels& TLP_TVM_KERNELS();

const Kernels& TLP_TVM_KERNELS() { return kKernels; }

}  // namespace model
}  // namespace tlp_tvm
