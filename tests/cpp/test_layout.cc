#include <cstdint>
#include <string>
#include <utility>

#include "check.h"
#include "core/error.h"
#include "core/layout_spec.h"
#include "layouts.h"

using tlp_tvm::FieldRule;
using tlp_tvm::Layout;
using tlp_tvm::LayoutError;
using tlp_tvm::LayoutOf;
using tlp_tvm::SpecText;
using tlp_tvm::SpecValue;
using tlp_tvm::ansor::kVocabulary;

TEST(SoundLayoutsPass) {
  layouts::Flat(25, 22).Check(kVocabulary);
  layouts::Aligned(4).Check(kVocabulary);
}

TEST(SizesAreBounded) {
  EXPECT_THROWS(layouts::Flat(0, 22).Check(kVocabulary), LayoutError,
                "layout: expected length and width between 1 and 4096, found 0 x 22");
  EXPECT_THROWS(layouts::Flat(25, 5000).Check(kVocabulary), LayoutError,
                "layout: expected length and width between 1 and 4096, found 25 x 5000");
  EXPECT_THROWS(layouts::Flat(25, 1).Check(kVocabulary), LayoutError,
                "layout: expected room for the one-hot of 2 kinds, found a width of 1");
}

TEST(ColumnsStayInTheRow) {
  Layout layout = layouts::Aligned(4);
  layout.rules[layouts::KindOf("SP")][3].columns = 6;
  EXPECT_THROWS(layout.Check(kVocabulary), LayoutError,
                "layout: SP.lengths: expected columns between the one-hot (2) and the width (8), "
                "found 3 to 9");
  layout = layouts::Aligned(4);
  layout.rules[layouts::KindOf("SP")][2].column = 1;
  EXPECT_THROWS(layout.Check(kVocabulary), LayoutError,
                "layout: SP.extent: expected columns between the one-hot (2) and the width (8), "
                "found 1 to 2");
}

TEST(EncodingsFitTheirFields) {
  Layout layout = layouts::Aligned(4);
  layout.rules[layouts::KindOf("SP")][2].as = FieldRule::As::kToken;
  EXPECT_THROWS(
      layout.Check(kVocabulary), LayoutError,
      "layout: SP.extent: expected an encoding that fits the field's type, found another");
}

TEST(TokensStayInTheirOneHot) {
  Layout layout = layouts::Aligned(4);
  layout.rules[layouts::KindOf("CHW")][1] = {FieldRule::As::kOneHot, 2, 2, {}};
  layout.Check(kVocabulary);
  layout.tokens[layouts::KindOf("CHW")][1]["far"] = 2.0f;
  EXPECT_THROWS(
      layout.Check(kVocabulary), LayoutError,
      "layout: CHW.scope_name: expected the token of \"far\" to be a place below 2, found "
      "2.000000");
}

namespace {

SpecValue Text(const std::string& text) { return {text, "'" + text + "'"}; }
SpecValue Number(std::int64_t number) { return {number, std::to_string(number)}; }
SpecValue List(SpecValue::List items) { return {std::move(items), "[...]"}; }
SpecValue Object(SpecValue::Object members) { return {std::move(members), "{...}"}; }

/*! \brief A flat layout of two kinds, with one entry changed. */
SpecValue Spec(const std::string& key = "", SpecValue value = {}) {
  SpecValue::Object members = {
      {Text("framework"), Text("ansor")},
      {Text("length"), Number(4)},
      {Text("width"), Number(8)},
      {Text("drop"), Text("tail")},
      {Text("kinds"), List({Text("SP"), Text("CHW")})},
      {Text("tokens"), Object({{Text("CHW.scope_name"), Object({{Text("local"), Number(1)}})}})},
  };
  for (auto& [name, old] : members) {
    if (std::get<std::string>(name.value) == key) old = std::move(value);
  }
  return Object(std::move(members));
}

}  // namespace

TEST(ADescriptionBecomesALayout) {
  const Layout layout = LayoutOf(Spec(), kVocabulary);
  EXPECT_EQ(SpecText(Spec(), "framework"), std::string("ansor"));
  EXPECT_EQ(layout.length, 4);
  EXPECT_EQ(layout.one_hot_width, 2);
  EXPECT_EQ(layout.one_hot[layouts::KindOf("CHW")], 1);
  EXPECT_EQ(layout.tokens[layouts::KindOf("CHW")][1].at("local"), 1.0f);
  EXPECT(layout.flat);
}

TEST(ADescriptionIsRefusedByItsEntry) {
  EXPECT_THROWS(LayoutOf(Spec("length", Text("x")), kVocabulary), LayoutError,
                "layout: expected \"length\" to be an integer, found 'x'");
  EXPECT_THROWS(LayoutOf(Spec("length", Number(std::int64_t{1} << 40)), kVocabulary), LayoutError,
                "layout: expected \"length\" to be an integer, found 1099511627776");
  EXPECT_THROWS(LayoutOf(Spec("drop", Text("none")), kVocabulary), LayoutError,
                "layout: expected \"drop\" to be tail, head or middle, found \"none\"");
  EXPECT_THROWS(LayoutOf(Spec("kinds", List({Text("SP"), Text("SP")})), kVocabulary), LayoutError,
                "layout: expected each kind once, found SP twice");
  EXPECT_THROWS(LayoutOf(Spec("kinds", Number(3)), kVocabulary), LayoutError,
                "layout: expected \"kinds\" to be a list, found 3");
  EXPECT_THROWS(LayoutOf(Object({}), kVocabulary), LayoutError,
                "layout: expected \"length\", found no such entry");
}
