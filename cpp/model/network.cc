#include "model/network.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "core/parallel_for.h"

namespace tlp_tvm {
namespace model {
namespace {

constexpr std::size_t kBlock = 32;  // programs of a thread's turn

int PanelsOf(int columns) { return (columns + kPanel - 1) / kPanel; }

int PaddedTo(int columns) { return PanelsOf(columns) * kPanel; }

std::vector<float> Padded(const Tensor& tensor) {
  const auto stride = static_cast<std::size_t>(PaddedTo(static_cast<int>(tensor.columns)));
  std::vector<float> out(stride * static_cast<std::size_t>(tensor.rows));
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    std::copy_n(tensor.values + row * tensor.columns, tensor.columns,
                out.data() + static_cast<std::size_t>(row) * stride);
  }
  return out;
}

/*! \brief Reads a network's parts by the names that torch gives them. */
class Reader {
 public:
  Reader(const NetworkShape& shape, TensorTable* tensors) : shape_(shape), tensors_(*tensors) {}

  Member MemberOf(const std::string& prefix) const {
    const int hidden = shape_.hidden;
    Member member;
    member.widen.push_back(LinearOf(prefix + "widen.0", shape_.width, hidden));
    member.widen.push_back(LinearOf(prefix + "widen.2", hidden, hidden));
    // There without positions too, as a tensor without rows.
    member.positions =
        Padded(tensors_.Take(prefix + "positions", shape_.positions ? shape_.length : 0, hidden));
    for (int i = 0; i < shape_.layers; ++i) {
      const std::string layer = prefix + "layers." + std::to_string(i) + ".";
      member.layers.push_back({NormOf(layer + "norm"),
                               LinearOf(layer + "query_key_value", hidden, 3 * hidden),
                               LinearOf(layer + "out", hidden, hidden)});
    }
    for (const char* which : {"0", "1"}) {
      member.residuals.push_back(
          LinearOf(prefix + "residuals." + which + ".linear", hidden, hidden));
    }
    member.norm = NormOf(prefix + "norm");
    for (int i = 0; i < shape_.heads; ++i) {
      const std::string head = prefix + "heads." + std::to_string(i) + ".";
      member.heads.push_back({LinearOf(head + "0", hidden, hidden / 2),
                              LinearOf(head + "2", hidden / 2, hidden / 4),
                              LinearOf(head + "4", hidden / 4, 1)});
    }
    return member;
  }

 private:
  Linear LinearOf(const std::string& name, int inputs, int outputs) const {
    const Tensor& weight = tensors_.Take(name + ".weight", outputs, inputs);
    return {weight, tensors_.Take(name + ".bias", 1, outputs)};
  }

  Norm NormOf(const std::string& name) const {
    const Tensor& scale = tensors_.Take(name + ".weight", 1, shape_.hidden);
    return {Padded(scale), Padded(tensors_.Take(name + ".bias", 1, shape_.hidden))};
  }

  const NetworkShape& shape_;
  TensorTable& tensors_;
};

/*! \brief One thread's buffers, and what is computed in them, a program after the other. */
class Scorer {
 public:
  Scorer(const NetworkShape& shape, const Kernels& kernels)
      : shape_(shape),
        kernels_(kernels),
        stride_(PaddedTo(shape.hidden)),
        depth_(shape.hidden / shape.attention_heads),
        nothing_(Unsigned(shape.width)),
        x_(Size(shape.width)),
        h_(Size(stride_)),
        other_(Size(stride_)),
        mixed_(Size(stride_)),
        wide_(Size(PaddedTo(3 * shape.hidden)) + kPanel),  // a panel may end after the last value
        weights_(Size(PaddedTo(shape.length))),
        keys_(static_cast<std::size_t>(PaddedTo(shape.length)) * static_cast<std::size_t>(depth_)),
        of_head_(Size(PaddedTo(depth_))),
        zeros_(static_cast<std::size_t>(std::max(PaddedTo(shape.length), PaddedTo(depth_)))) {}

  /*! \brief Takes the rows of a program that are not padding. */
  void Take(const float* program) {
    places_.clear();
    for (int row = 0; row < shape_.length; ++row, program += shape_.width) {
      if (std::memcmp(program, nothing_.data(), nothing_.size() * sizeof(float)) == 0) continue;
      if (std::any_of(program, program + shape_.width, [](float v) { return v != 0.0F; })) {
        std::copy_n(program, shape_.width, x_.data() + places_.size() * Unsigned(shape_.width));
        places_.push_back(row);
      }
    }
    rows_ = static_cast<int>(places_.size());
  }

  /*! \brief Adds a member's score by each head from `head` on to `scores`. */
  void Add(const Member& member, int head, int heads, float* scores) {
    if (rows_ == 0) return;
    Trunk(member);
    for (int i = 0; i < heads; ++i) {
      scores[i] += ByHead(member.heads[Unsigned(head + i)]);
    }
  }

 private:
  static std::size_t Unsigned(int value) { return static_cast<std::size_t>(value); }

  std::size_t Size(int columns) const { return Unsigned(shape_.length) * Unsigned(columns); }

  void Trunk(const Member& member) {
    member.widen[0].Run(kernels_, x_.data(), shape_.width, rows_, true, nullptr, other_.data());
    member.widen[1].Run(kernels_, other_.data(), stride_, rows_, true, nullptr, h_.data());
    if (!member.positions.empty()) {
      for (int row = 0; row < rows_; ++row) {
        const float* const position =
            member.positions.data() + Unsigned(places_[Unsigned(row)]) * Unsigned(stride_);
        float* const h = h_.data() + Unsigned(row) * Unsigned(stride_);
        for (int c = 0; c < stride_; ++c) h[c] += position[c];
      }
    }
    for (const AttentionLayer& layer : member.layers) {
      Normalise(layer.norm, h_, &other_);
      layer.query_key_value.Run(kernels_, other_.data(), stride_, rows_, false, nullptr,
                                wide_.data());
      const int wide_stride = layer.query_key_value.stride();
      for (int head = 0; head < shape_.attention_heads; ++head) Mix(head * depth_, wide_stride);
      layer.out.Run(kernels_, mixed_.data(), stride_, rows_, false, h_.data(), other_.data());
      std::swap(h_, other_);
    }
    for (const Linear& residual : member.residuals) {
      residual.Run(kernels_, h_.data(), stride_, rows_, true, h_.data(), other_.data());
      std::swap(h_, other_);
    }
    Normalise(member.norm, h_, &h_);
  }

  void Normalise(const Norm& norm, const std::vector<float>& x, std::vector<float>* y) const {
    kernels_.layer_norm(
        {x.data(), rows_, shape_.hidden, stride_, norm.scale.data(), norm.shift.data(), y->data()});
  }

  /*! \brief One head of attention: columns of `wide_` from `first` on, into those of `mixed_`. */
  void Mix(int first, int wide_stride) {
    const float* const query = wide_.data() + first;
    const float* const key = query + shape_.hidden;
    const float* const value = key + shape_.hidden;
    const int panels = PanelsOf(rows_);
    for (int panel = 0; panel < panels; ++panel) {
      float* const out = keys_.data() + Unsigned(panel) * Unsigned(depth_) * kPanel;
      const int there = std::min(kPanel, rows_ - panel * kPanel);
      for (int j = 0; j < kPanel; ++j) {
        const float* const from =
            key + Unsigned(panel * kPanel + std::min(j, there - 1)) * Unsigned(wide_stride);
        for (int d = 0; d < depth_; ++d) out[d * kPanel + j] = from[d];
      }
    }
    const int stride = panels * kPanel;
    kernels_.dense({query, wide_stride, rows_, depth_, keys_.data(), depth_ * kPanel, kPanel,
                    zeros_.data(), panels, false, nullptr, weights_.data(), stride});
    kernels_.softmax(weights_.data(), rows_, rows_, stride,
                     1.0F / std::sqrt(static_cast<float>(depth_)));
    const int value_panels = PanelsOf(depth_);
    const bool fits = depth_ % kPanel == 0;
    const int out_stride = fits ? stride_ : value_panels * kPanel;
    float* const out = fits ? mixed_.data() + first : of_head_.data();
    kernels_.dense({weights_.data(), stride, rows_, rows_, value, kPanel, wide_stride,
                    zeros_.data(), value_panels, false, nullptr, out, out_stride});
    for (int row = 0; !fits && row < rows_; ++row) {
      std::copy_n(out + Unsigned(row) * Unsigned(out_stride), depth_,
                  mixed_.data() + Unsigned(row) * Unsigned(stride_) + first);
    }
  }

  /*! \brief The sum over the rows of what a head makes of them. */
  float ByHead(const Head& head) {
    head.first.Run(kernels_, h_.data(), stride_, rows_, true, nullptr, wide_.data());
    head.second.Run(kernels_, wide_.data(), head.first.stride(), rows_, true, nullptr,
                    other_.data());
    head.last.Run(kernels_, other_.data(), head.second.stride(), rows_, false, nullptr,
                  mixed_.data());
    float sum = 0.0F;
    for (int row = 0; row < rows_; ++row) {
      sum += mixed_[Unsigned(row) * Unsigned(head.last.stride())];
    }
    return sum;
  }

  const NetworkShape& shape_;
  const Kernels& kernels_;
  int stride_;
  int depth_;
  int rows_ = 0;
  std::vector<int> places_;
  std::vector<float> nothing_;
  std::vector<float> x_;
  std::vector<float> h_;
  std::vector<float> other_;
  std::vector<float> mixed_;
  std::vector<float> wide_;
  std::vector<float> weights_;
  std::vector<float> keys_;
  std::vector<float> of_head_;
  std::vector<float> zeros_;
};

}  // namespace

Linear::Linear(const Tensor& weight, const Tensor& bias)
    : inputs_(static_cast<int>(weight.columns)),
      outputs_(static_cast<int>(weight.rows)),
      panels_(PanelsOf(outputs_)),
      weight_(static_cast<std::size_t>(stride()) * static_cast<std::size_t>(inputs_)),
      bias_(Padded(bias)) {
  for (int out = 0; out < outputs_; ++out) {
    for (int in = 0; in < inputs_; ++in) {
      const std::ptrdiff_t panel = out / kPanel;
      weight_[static_cast<std::size_t>((panel * inputs_ + in) * kPanel + out % kPanel)] =
          weight.values[static_cast<std::ptrdiff_t>(out) * inputs_ + in];
    }
  }
}

void Linear::Run(const Kernels& kernels, const float* x, int x_stride, int rows, bool relu,
                 const float* residual, float* y) const {
  kernels.dense({x, x_stride, rows, inputs_, weight_.data(), inputs_ * kPanel, kPanel, bias_.data(),
                 panels_, relu, residual, y, stride()});
}

Network::Network(const NetworkShape& shape, const Tensors& tensors, const Kernels& kernels)
    : shape_(shape), kernels_(kernels) {
  shape_.Check();
  TensorTable table(tensors);
  const Reader reader(shape_, &table);
  for (int i = 0; i < shape_.members; ++i) {
    members_.push_back(reader.MemberOf("members." + std::to_string(i) + "."));
  }
  table.ExpectAllTaken();
}

void Network::Score(const float* x, std::size_t count, int head, int threads, float* scores) const {
  const int first = std::max(head, 0);
  const int heads = head < 0 ? shape_.heads : 1;
  const auto columns = static_cast<std::size_t>(heads);
  const auto size =
      static_cast<std::size_t>(shape_.length) * static_cast<std::size_t>(shape_.width);
  ParallelFor(count, kBlock, threads, [&](std::size_t begin, std::size_t end) {
    Scorer scorer(shape_, kernels_);
    for (std::size_t i = begin; i < end; ++i) {
      float* const out = scores + i * columns;
      std::fill_n(out, columns, 0.0F);
      scorer.Take(x + i * size);
      for (const Member& member : members_) scorer.Add(member, first, heads, out);
      for (std::size_t c = 0; c < columns; ++c) out[c] /= static_cast<float>(shape_.members);
    }
  });
}

}  // namespace model
}  // namespace tlp_tvm
