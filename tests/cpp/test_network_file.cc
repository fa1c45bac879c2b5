// What a model's file says of a network is checked before anything is built of it.
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.h"
#include "model/network.h"

using tlp_tvm::model::Network;
using tlp_tvm::model::NetworkShape;
using tlp_tvm::model::Tensor;
using tlp_tvm::model::Tensors;

namespace {

const NetworkShape kShape{4, 6, 8, 2, 1, 1, 2, true};
const std::vector<float> kNumbers(1000, 0.25F);

void AddLinear(const std::string& name, int inputs, int outputs, Tensors* tensors) {
  (*tensors)[name + ".weight"] = {outputs, inputs, kNumbers.data()};
  (*tensors)[name + ".bias"] = {1, outputs, kNumbers.data()};
}

Tensors AllTensors() {
  Tensors tensors;
  tensors["members.0.positions"] = {4, 8, kNumbers.data()};
  AddLinear("members.0.widen.0", 6, 8, &tensors);
  AddLinear("members.0.widen.2", 8, 8, &tensors);
  AddLinear("members.0.layers.0.query_key_value", 8, 24, &tensors);
  AddLinear("members.0.layers.0.out", 8, 8, &tensors);
  AddLinear("members.0.residuals.0.linear", 8, 8, &tensors);
  AddLinear("members.0.residuals.1.linear", 8, 8, &tensors);
  for (const char* norm : {"members.0.norm", "members.0.layers.0.norm"}) {
    tensors[std::string(norm) + ".weight"] = {1, 8, kNumbers.data()};
    tensors[std::string(norm) + ".bias"] = {1, 8, kNumbers.data()};
  }
  for (const char* head : {"members.0.heads.0.", "members.0.heads.1."}) {
    AddLinear(std::string(head) + "0", 8, 4, &tensors);
    AddLinear(std::string(head) + "2", 4, 2, &tensors);
    AddLinear(std::string(head) + "4", 2, 1, &tensors);
  }
  return tensors;
}

std::string Refusal(const NetworkShape& shape, const Tensors& tensors) {
  try {
    const Network network(shape, tensors);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST(ANetworkThatFitsScores) {
  const Network network(kShape, AllTensors());
  const std::vector<float> x(2 * 4 * 6, 1.0F);
  std::vector<float> scores(2 * 2);
  network.Score(x.data(), 2, -1, 1, scores.data());
  for (const float score : scores) EXPECT(std::isfinite(score) && score == scores[0]);
}

TEST(EverySettingHasItsRange) {
  for (const auto& range : tlp_tvm::model::kSettingRanges) {
    for (const int value : {range.first - 1, range.last + 1, std::numeric_limits<int>::min(),
                            std::numeric_limits<int>::max()}) {
      NetworkShape shape = kShape;
      shape.*range.setting = value;
      EXPECT_EQ(Refusal(shape, AllTensors()),
                std::string("network: ") + range.name + ": expected a number from " +
                    std::to_string(range.first) + " to " + std::to_string(range.last) + ", found " +
                    std::to_string(value) + "; restore the model's file, or train the model again");
    }
  }
}

TEST(HeadsShareTheWidthEvenly) {
  NetworkShape shape = kShape;
  shape.attention_heads = 3;
  EXPECT_EQ(Refusal(shape, AllTensors()),
            "network: attention_heads: expected a divisor of hidden (8), found 3; restore the "
            "model's file, or train the model again");
}

TEST(EveryTensorIsAskedForItsShape) {
  const std::string cure = "; restore the model's file, or export the model again";
  const Tensors all = AllTensors();
  for (const auto& [name, tensor] : all) {
    const std::string where = "network: " + name + ": expected ";
    const std::string expected =
        std::to_string(tensor.rows) + " x " + std::to_string(tensor.columns);
    Tensors other = all;
    other.erase(name);
    EXPECT_EQ(Refusal(kShape, other), where + "a tensor, found none" + cure);
    for (const Tensor& wrong : {Tensor{tensor.rows + 1, tensor.columns, tensor.values},
                                Tensor{tensor.rows, tensor.columns - 1, tensor.values},
                                Tensor{tensor.rows + (1LL << 32), tensor.columns, tensor.values}}) {
      other[name] = wrong;
      EXPECT_EQ(Refusal(kShape, other), where + expected + " numbers, as the settings say, found " +
                                            std::to_string(wrong.rows) + " x " +
                                            std::to_string(wrong.columns) + cure);
    }
    std::vector<float> odd(tensor.size(), 0.5F);
    odd.back() = std::numeric_limits<float>::infinity();
    other[name] = {tensor.rows, tensor.columns, odd.data()};
    EXPECT_EQ(Refusal(kShape, other), where + "finite numbers, found inf" + cure);
  }
  Tensors more = all;
  more["members.0.extra"] = {1, 2, kNumbers.data()};
  EXPECT_EQ(Refusal(kShape, more),
            "network: members.0.extra: expected no such tensor, as the settings say, found 1 x 2 "
            "numbers" +
                cure);
}
