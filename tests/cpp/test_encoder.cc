#include <algorithm>
#include <cmath>

#include "ansor/record_reader.h"
#include "check.h"
#include "core/encoder.h"
#include "core/error.h"
#include "layouts.h"
#include "records.h"

using tlp_tvm::Drop;
using tlp_tvm::Encoder;
using tlp_tvm::EncodingReport;
using tlp_tvm::Layout;

namespace {

struct Result {
  std::vector<float> rows;
  EncodingReport report;
};

Result Encode(const Layout& layout, const std::string& steps) {
  const auto batches = tlp_tvm::ansor::ReadRecords(records::Record(steps) + "\n", "log", 1,
                                                   tlp_tvm::ansor::OnError::kRaise, 1);
  Result result;
  result.rows.assign(layout.size(), -7.0f);  // every number must be written
  Encoder(layout, tlp_tvm::ansor::kVocabulary)
      .Encode(batches.at(0).sequences[0], result.rows.data(), &result.report);
  return result;
}

void ExpectRow(const Result& result, std::size_t row, const std::vector<float>& expected) {
  for (std::size_t c = 0; c < expected.size(); ++c) {
    EXPECT_EQ(result.rows[row * expected.size() + c], expected[c]);
  }
}

}  // namespace

TEST(FlatRowsSpillListsInPlace) {
  const Result result =
      Encode(layouts::Flat(3, 10), R"([["SP", 2, 0, 512, [4, 2, 8], 1], ["CHW", 3, "local"]])");
  ExpectRow(result, 0, {1, 0, 2, 0, 512, 4, 2, 8, 1, 0});
  ExpectRow(result, 1, {0, 1, 3, 1, 0, 0, 0, 0, 0, 0});
  ExpectRow(result, 2, std::vector<float>(10, 0.0f));
  EXPECT_EQ(result.report.sequences, 1);
  EXPECT_EQ(result.report.cut_columns, 0);
}

TEST(FlatRowsAreCutAtTheWidth) {
  const Result result = Encode(layouts::Flat(1, 6), R"([["SP", 2, 0, 512, [4, 2, 8], 1]])");
  ExpectRow(result, 0, {1, 0, 2, 0, 512, 4});
  EXPECT_EQ(result.report.cut_columns, 3);
}

TEST(UnknownKindsAndTokensAreCounted) {
  for (const Layout& layout : {layouts::Flat(3, 8), layouts::Aligned(3)}) {
    const Result result = Encode(layout, R"([["CI", 4], ["CHW", 3, "warp"], ["CHW", 3, "warp"]])");
    EXPECT_EQ(result.report.unknown_kinds.at(static_cast<std::uint32_t>(layouts::KindOf("CI"))), 1);
    EXPECT_EQ(result.report.unknown_tokens.at({"CHW.scope_name", "warp"}), 2);
    EXPECT_EQ(result.rows[0], 0.0f);
    EXPECT_EQ(result.rows[1], 0.0f);
  }
}

TEST(AlignedRowsGiveEachFieldItsColumn) {
  const Result result =
      Encode(layouts::Aligned(3),
             R"([["SP", 2, 0, 7, [4, 2, 8], 1], ["AN", 1, 2, 1], ["CHW", 3, "local"]])");
  ExpectRow(result, 0, {1, 0, 1.5f, 4, 2, 0, 0, 0});  // log2(1 + 7) / 2
  ExpectRow(result, 1, {0, 0, 0, 0, 0, 0, 1, 0});
  ExpectRow(result, 2, {0, 1, 0.25f, 0, 0, 0, 0, 0});
  EXPECT_EQ(result.report.cut_columns, 1);
}

TEST(HowOftenTwoDividesANumberHasColumnsOfItsOwn) {
  Layout layout = layouts::Aligned(2);
  layout.width = 11;
  layout.rules[layouts::KindOf("SP")][2].twos = 8;
  layout.rules[layouts::KindOf("SP")][3].twos = 9;
  const Result result =
      Encode(layout, R"([["SP", 2, 0, 24, [13, 16, 8], 1], ["SP", 2, 0, 0, [-4], 1]])");
  EXPECT_EQ(result.rows[8], 1.5f);  // 3 times, halved as the number is
  EXPECT_EQ(result.rows[9], 0.0f);
  EXPECT_EQ(result.rows[10], 4.0f);
  EXPECT_EQ(result.rows[11 + 8], 0.0f);
  EXPECT_EQ(result.rows[11 + 9], 2.0f);
  EXPECT_EQ(result.rows[11 + 10], 0.0f);
}

TEST(LogarithmsAreSummedOverRunsOfListsAsLong) {
  Layout layout = layouts::Aligned(6);
  layout.width = 10;
  layout.rules[layouts::KindOf("SP")][3].sums = 8;
  const Result result =
      Encode(layout, R"([["SP", 2, 0, 24, [4, 2], 1], ["SP", 2, 0, 24, [8, 3], 1], )"
                     R"(["SP", 2, 0, 24, [2], 1], ["CHW", 3, "local"], )"
                     R"(["SP", 2, 0, 24, [16], 1], ["SP", 2, 0, 24, [0], 1]])");
  const float three = std::log2(3.0f);
  const std::vector<std::vector<float>> expected = {{2, 1}, {5, 1 + three}, {1, 0},
                                                    {0, 0}, {4, 0},         {4, 0}};
  for (std::size_t row = 0; row < expected.size(); ++row) {
    EXPECT_EQ(result.rows[10 * row + 8], expected[row][0]);
    EXPECT_EQ(result.rows[10 * row + 9], expected[row][1]);
  }
}

TEST(SumsOfTwoFieldsOfAKindAreRefused) {
  Layout layout = layouts::Aligned(1);
  layout.rules[layouts::KindOf("SP")][2].sums = 6;
  layout.rules[layouts::KindOf("SP")][3].sums = 6;
  EXPECT_THROWS(layout.Check(tlp_tvm::ansor::kVocabulary), tlp_tvm::LayoutError,
                "layout: SP: expected \"sums\" of one field of a kind, found more");
}

TEST(LargeAndNegativeNumbersScale) {
  const Result large = Encode(layouts::Aligned(1), R"([["SP", 2, 0, 1048575, [], 1]])");
  EXPECT_EQ(large.rows[2], 10.0f);
  const Result negative = Encode(layouts::Aligned(1), R"([["SP", 2, 0, -7, [], 1]])");
  EXPECT_EQ(negative.rows[2], -1.5f);
  const Result extreme =
      Encode(layouts::Aligned(1), R"([["SP", 2, 0, -9223372036854775808, [], 1]])");
  EXPECT_EQ(extreme.rows[2], -31.5f);
}

TEST(CategoriesOutOfRangeAreCounted) {
  const Result result = Encode(layouts::Aligned(1), R"([["AN", 1, 2, 3]])");
  EXPECT_EQ(result.report.unknown_tokens.at({"AN.annotation", "3"}), 1);
  EXPECT_EQ(result.rows[5] + result.rows[6] + result.rows[7], 0.0f);
}

TEST(LongProgramsLoseTheRowsTheLayoutSays) {
  const std::string steps =
      R"([["CHW", 0, "local"], ["CHW", 1, "local"], ["CHW", 2, "local"], ["CHW", 3, "local"], ["CHW", 4, "local"]])";
  const auto stages = [&](Drop drop) {
    Layout layout = layouts::Flat(3, 4);
    layout.drop = drop;
    const Result result = Encode(layout, steps);
    EXPECT_EQ(result.report.cut_rows, 2);
    EXPECT_EQ(result.report.cut_sequences, 1);
    std::string text;
    for (int row = 0; row < 3; ++row)
      text += std::to_string(static_cast<int>(result.rows[4 * row + 2]));
    return text;
  };
  EXPECT_EQ(stages(Drop::kTail), "012");
  EXPECT_EQ(stages(Drop::kHead), "234");
  EXPECT_EQ(stages(Drop::kMiddle), "034");
}

TEST(RowsAloneAreThoseOfTheWhole) {
  const std::string steps = R"([["SP", 2, 0, 512, [4, 2], 1], ["CHW", 3, "local"]])";
  const auto batches = tlp_tvm::ansor::ReadRecords(records::Record(steps) + "\n", "log", 1,
                                                   tlp_tvm::ansor::OnError::kRaise, 1);
  for (const Layout& layout :
       {layouts::Flat(3, 10), layouts::Flat(1, 10), layouts::Aligned(3), layouts::Aligned(2)}) {
    const Encoder encoder(layout, tlp_tvm::ansor::kVocabulary);
    std::vector<float> whole(layout.size());
    std::vector<float> rows(layout.size(), -7.0f);
    EncodingReport report;
    encoder.Encode(batches.at(0).sequences[0], whole.data(), &report);
    const std::size_t count = encoder.EncodeRows(batches.at(0).sequences[0], rows.data(), &report);
    EXPECT_EQ(count, std::min<std::size_t>(2, static_cast<std::size_t>(layout.length)));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool is_real = i < count * static_cast<std::size_t>(layout.width);
      EXPECT_EQ(rows[i], is_real ? whole[i] : -7.0f);
    }
  }
}

TEST(OmittedKindsHaveNoRowAndEncodingEndsWhereTheLayoutSays) {
  const char* const steps =
      R"([["SP", 2, 0, 512, [4], 1], ["CI", 7], ["SP", 3, 0, 64, [2], 1], ["CHW", 3, "local"], ["SP", 4, 0, 8, [8], 1]])";
  Layout layout = layouts::Flat(3, 4);
  layout.omitted.assign(tlp_tvm::ansor::kVocabulary.kind_count, false);
  layout.omitted[layouts::KindOf("CI")] = true;
  layout.until = static_cast<int>(layouts::KindOf("CHW"));
  const Result result = Encode(layout, steps);
  ExpectRow(result, 0, {1, 0, 2, 0});
  ExpectRow(result, 1, {1, 0, 3, 0});
  ExpectRow(result, 2, {0, 0, 0, 0});
  EXPECT_EQ(result.report.cut_sequences, 0);
  EXPECT(result.report.unknown_kinds.empty());

  layout.until = -1;
  layout.length = 2;
  layout.drop = Drop::kMiddle;
  const Result cut = Encode(layout, steps);
  ExpectRow(cut, 0, {1, 0, 2, 0});
  ExpectRow(cut, 1, {1, 0, 4, 0});
  EXPECT_EQ(cut.report.cut_rows, 2);
  layout.drop = Drop::kHead;
  ExpectRow(Encode(layout, steps), 0, {0, 1, 3, 1});
}
