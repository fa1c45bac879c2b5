#include "core/layout.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "core/error.h"

namespace tlp_tvm {
namespace {

using As = FieldRule::As;

bool Fits(FieldType type, As as) {
  switch (as) {
    case As::kSkip:
      return true;
    case As::kNumber:
    case As::kCategory:
      return type != FieldType::kName && type != FieldType::kList;
    case As::kList:
      return type == FieldType::kList;
    case As::kToken:
    case As::kOneHot:
      return type == FieldType::kName;
  }
  return false;
}

void CheckColumns(int column, int columns, const std::string& expected, const Layout& layout) {
  // 64 bits: a number of columns near the end of int must not wrap around.
  const std::int64_t end = std::int64_t{column} + columns;
  if (column < layout.one_hot_width || columns < 1 || end > layout.width) {
    throw LayoutError(expected + " between the one-hot (" + std::to_string(layout.one_hot_width) +
                      ") and the width (" + std::to_string(layout.width) + "), found " +
                      std::to_string(column) + " to " + std::to_string(end));
  }
}

void CheckRule(const FieldRule& rule, const FieldSpec& field, const std::string& where,
               const Layout& layout) {
  if (rule.as == As::kSkip) return;
  if (!Fits(field.type, rule.as)) {
    throw LayoutError(where + ": expected an encoding that fits the field's type, found another");
  }
  CheckColumns(rule.column, rule.columns, where + ": expected columns", layout);
  for (const auto& [name, column] : {std::pair{"twos", rule.twos}, std::pair{"sums", rule.sums}}) {
    if (!column) continue;
    CheckColumns(*column, rule.columns, where + ": expected columns of \"" + name + "\"", layout);
  }
  if (rule.sums && rule.columns > kMostSums) {
    throw LayoutError(where + ": expected \"sums\" of at most " + std::to_string(kMostSums) +
                      " columns, found " + std::to_string(rule.columns));
  }
}

}  // namespace

void Layout::Check(const Vocabulary& vocabulary) const {
  if (length < 1 || length > 4096 || width < 1 || width > 4096) {
    throw LayoutError("layout: expected length and width between 1 and 4096, found " +
                      std::to_string(length) + " x " + std::to_string(width));
  }
  if (one_hot_width > width) {
    throw LayoutError("layout: expected room for the one-hot of " + std::to_string(one_hot_width) +
                      " kinds, found a width of " + std::to_string(width));
  }
  if (flat) return;
  for (std::size_t kind = 0; kind < vocabulary.kind_count; ++kind) {
    const KindSpec& spec = vocabulary.kinds[kind];
    const auto& of_kind = rules.at(kind);
    if (std::count_if(of_kind.begin(), of_kind.end(), [](const auto& r) { return r.sums; }) > 1) {
      throw LayoutError("layout: " + std::string(spec.name) +
                        ": expected \"sums\" of one field of a kind, found more");
    }
    for (std::size_t f = 0; f < spec.field_count; ++f) {
      const std::string where =
          "layout: " + std::string(spec.name) + "." + std::string(spec.fields[f].name);
      const FieldRule& rule = rules.at(kind).at(f);
      CheckRule(rule, spec.fields[f], where, *this);
      if (rule.as != As::kOneHot) continue;
      for (const auto& [name, position] : tokens.at(kind).at(f)) {
        const bool inside = position >= 0 && position < static_cast<float>(rule.columns) &&
                            position == std::floor(position);
        if (!inside) {  // NaN neither
          throw LayoutError(where + ": expected the token of \"" + name +
                            "\" to be a place below " + std::to_string(rule.columns) + ", found " +
                            std::to_string(position));
        }
      }
    }
  }
}

}  // namespace tlp_tvm
