#include "model/network_shape.h"

#include <stdexcept>
#include <string>

namespace tlp_tvm {
namespace model {
namespace {

[[noreturn]] void Refuse(const char* name, const std::string& expected, int found) {
  throw std::invalid_argument(std::string("network: ") + name + ": expected " + expected +
                              ", found " + std::to_string(found) +
                              "; restore the model's file, or train the model again");
}

}  // namespace

void NetworkShape::Check() const {
  for (const SettingRange& range : kSettingRanges) {
    const int found = this->*range.setting;
    if (found < range.first || found > range.last) {
      Refuse(range.name,
             "a number from " + std::to_string(range.first) + " to " + std::to_string(range.last),
             found);
    }
  }
  if (hidden % attention_heads != 0) {
    Refuse("attention_heads", "a divisor of hidden (" + std::to_string(hidden) + ")",
           attention_heads);
  }
}

}  // namespace model
}  // namespace tlp_tvm
