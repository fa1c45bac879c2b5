#include "check.h"
#include "core/error.h"
#include "layouts.h"

using tlp_tvm::FieldRule;
using tlp_tvm::Layout;
using tlp_tvm::LayoutError;
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
  EXPECT_THROWS(layout.Check(kVocabulary), LayoutError,
                "layout: CHW.scope_name: expected the token of \"far\" below 2, found 2.000000");
}
