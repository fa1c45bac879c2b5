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
constexpr int kRows = 12;
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

/*! \brief The larger one; `b` where it is no number, so that what overflowed is seen in the score.
 */
Vector Larger(Vector a, Vector b) { return a > b ? a : b; }

float Sum(Vector value) {
  float parts[4] = {};  // four short sums do not wait for each other
  for (int i = 0; i < kLanes; ++i) parts[i % 4] += value[i];
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

float Largest(Vector value) {
  float parts[4] = {value[0], value[1], value[2], value[3]};
  for (int i = 4; i < kLanes; ++i) parts[i % 4] = value[i] > parts[i % 4] ? value[i] : parts[i % 4];
  const float first = parts[0] > parts[1] ? parts[0] : parts[1];
  const float second = parts[2] > parts[3] ? parts[2] : parts[3];
  return first > second ? first : second;
}

/*! \brief The numbers of columns below `width`, and `other` in the place of those after. */
Vector Within(Vector value, int column, int width, float other) {
  Integers columns{};
  for (int i = 0; i < kLanes; ++i) columns[i] = column + i;
  return columns < width ? value : Vector{} + other;
}

/*! \brief e^x, relative error below 2e-7 where e^x is a normal number; Cephes' polynomial. */
Vector Exp(Vector x) {
  const Vector lowest = Vector{} - 87.0F;
  const Vector highest = Vector{} + 88.0F;
  x = Larger(lowest, x);
  x = highest < x ? highest : x;
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
  if (call.relu) value = Larger(Vector{}, value);
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
  const float* const weight = call.weight + Row(panel, call.panel_step);
  for (int k = 0; k < call.inputs; ++k) {
    Vector w[kVectors];
    for (int p = 0; p < kP; ++p) {
      for (int v = 0; v < kParts; ++v) {
        w[p * kParts + v] =
            Load(weight + Row(p, call.panel_step) + Row(k, call.input_step) + Row(v, kLanes));
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

template <int kR, int kP>
void Rows(const DenseCall& call, int row, int panel, int count) {
  if (count == kR) {
    Block<kR, kP>(call, row, panel);
  } else if constexpr (kR > 1) {
    Rows<kR - 1, kP>(call, row, panel, count);
  }
}

/*! \brief All rows in blocks of about the same size: a small one would wait for its own sums. */
template <int kP>
void Panels(const DenseCall& call, int panel) {
  int row = 0;
  for (int left = (call.rows + kRows - 1) / kRows; left > 0; --left) {
    const int count = (call.rows - row + left - 1) / left;
    Rows<kRows, kP>(call, row, panel, count);
    row += count;
  }
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
    const float inverse = 1.0F / __builtin_sqrtf(square / width + kEpsilon);
    for (int c = 0; c < call.stride; c += kLanes) {
      const Vector normal = (Load(x + c) - mean) * inverse;
      Store(y + c, normal * Load(call.scale + c) + Load(call.shift + c));
    }
  }
}

void Softmax(float* x, int rows, int width, int stride, float scale) {
  const int last = (width - 1) / kLanes * kLanes;  // where the vector begins that may not be whole
  for (int row = 0; row < rows; ++row, x += stride) {
    Vector most = Within(Load(x + last), last, width, -3e38F);
    for (int c = 0; c < last; c += kLanes) most = Larger(most, Load(x + c));
    const float highest = Largest(most);
    Vector sum = Within(Exp((Load(x + last) - highest) * scale), last, width, 0.0F);
    Store(x + last, sum);
    for (int c = 0; c < last; c += kLanes) {
      const Vector share = Exp((Load(x + c) - highest) * scale);
      Store(x + c, share);
      sum += share;
    }
    const float whole = 1.0F / Sum(sum);
    for (int c = 0; c <= last; c += kLanes) Store(x + c, Load(x + c) * whole);
  }
}

double Multiply(int rounds, float* sum) {
  constexpr int kSums = 12;  // so many that none waits for itself, and no more than registers
  Vector sums[kSums];
  for (int s = 0; s < kSums; ++s) sums[s] = Vector{} + static_cast<float>(s);
  const Vector half = Vector{} + 0.5F;
  for (int round = 0; round < rounds; ++round) {
    for (Vector& each : sums) each = each * half + half;
  }
  *sum = 0;
  for (const Vector& each : sums) *sum += Sum(each);
  return 2.0 * kSums * kLanes * rounds;
}

constexpr Kernels kKernels = {kName, Dense, LayerNorm, Softmax, Multiply};

}  // namespace

const Kernels& TLP_TVM_KERNELS();

const Kernels& TLP_TVM_KERNELS() { return kKernels; }

}  // namespace model
}  // namespace tlp_tvm
