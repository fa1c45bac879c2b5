#include "ansor/record_reader.h"
#include "ansor/record_writer.h"
#include "ansor/step_scan.h"
#include "ansor/steps.h"
#include "check.h"
#include "records.h"

using tlp_tvm::SequenceBatch;
using tlp_tvm::ansor::ScanStep;

namespace {

/*! \brief The step as it was read quickly and written again; "" if it was left alone. */
std::string Scanned(const std::string& step) {
  const std::string text = step + "\n";
  SequenceBatch batch;
  const char* const end = ScanStep(text.data(), &batch);
  if (end == nullptr) {
    EXPECT_EQ(batch.PrimitivesOfOpenProgram(), 0u);
    return "";
  }
  EXPECT_EQ(end - text.data(), static_cast<std::ptrdiff_t>(step.size()));
  batch.End();
  std::string written;
  tlp_tvm::ansor::WriteSteps(batch[0], &written);
  return written.substr(1, written.size() - 2);
}

/*! \brief The step as the reader of all JSON sees it: a space more, and the quick one passes. */
std::string Read(const std::string& step) {
  const auto batches =
      tlp_tvm::ansor::ReadRecords(records::Record("[[ " + step.substr(1) + "]") + "\n", "log", 1,
                                  tlp_tvm::ansor::OnError::kRaise, 1);
  std::string written;
  tlp_tvm::ansor::WriteSteps(batches.at(0).sequences[0], &written);
  return written.substr(1, written.size() - 2);
}

std::string ListStep(int items) {
  std::string list;
  for (int i = 0; i < items; ++i) list += (i == 0 ? "" : ", ") + std::to_string(i);
  return "[\"RE\", 1, [" + list + "]]";
}

}  // namespace

TEST(EveryStepIsReadBothWaysAlike) {
  for (const std::string& step : records::kSteps) {
    EXPECT_EQ(Scanned(step), step);
    EXPECT_EQ(Read(step), step);
  }
}

TEST(TheLimitsOfTheQuickWay) {
  for (const std::string& step :
       {ListStep(0), ListStep(1), ListStep(48), std::string(R"(["CI", 999999999])"),
        std::string(R"(["SP", 0, 0, 0, [], 0])"), std::string(R"(["CHW", 1, ""])"),
        "[\"CHW\", 1, \"" + std::string(256, 'x') + "\"]"}) {
    EXPECT_EQ(Scanned(step), step);
    EXPECT_EQ(Read(step), step);
  }
  for (const std::string& step :
       {ListStep(49), ListStep(1024), std::string(R"(["CI", 1000000000])"),
        std::string(R"(["CI", -1])"), std::string(R"(["CHW", 1, "\u007f"])")}) {
    EXPECT_EQ(Scanned(step), "");
    EXPECT(!Read(step).empty());
  }
}

TEST(WhatIsSpelledOtherwiseIsLeftAlone) {
  for (const char* step : {"",
                           "[",
                           "[\"",
                           "[\"C",
                           "[\"CI",
                           "[\"CI\"",
                           "[\"CI\",",
                           "[\"CI\", ",
                           "[\"CI\", 7",
                           "[\"CI\",7]",
                           "[\"CI\",  7]",
                           "[ \"CI\", 7]",
                           "[\"CI\", 7 ]",
                           "[\"CI\", 7, 8]",
                           "[\"CI\", 07]",
                           "[\"CI\", 7.5]",
                           "[\"CI\", 7e1]",
                           "[\"CI\", +7]",
                           "[\"CI\", \"7\"]",
                           "[\"CI\", [7]]",
                           "[\"CI\", true]",
                           "[\"ci\", 7]",
                           "[\"XX\", 7]",
                           "[\"\", 7]",
                           "[\"CIII\", 7]",
                           "[\"CIIII\", 7]",
                           "[\"\\u0043I\", 7]",
                           "[\"\\u0000CI\", 7]",
                           "[\"FU\", 1, [1,2]]",
                           "[\"FU\", 1, [1, 2,]]",
                           "[\"FU\", 1, [1, ]]",
                           "[\"FU\", 1, [, 1]]",
                           "[\"FU\", 1, [1 ]]",
                           "[\"FU\", 1, [ ]]",
                           "[\"FU\", 1, [1, x]]",
                           "[\"FU\", 1, [1, 2]",
                           "[\"FU\", 1, [1, 2",
                           "[\"FU\", 1, 2]",
                           "[\"CHW\", 1, \"a\\n\"]",
                           "[\"CHW\", 1, \"a",
                           "[\"CHW\", 1, \"\xc3\xa9\"]",
                           "[\"CHW\", 1, \"\t\"]",
                           "[\"CHW\", 1, 2]",
                           "[\"SP\", 2, 0, 512, [4], 2]",
                           "[\"SP\", 2, 0, 512, [4]]"}) {
    EXPECT_EQ(Scanned(step), "");
  }
  EXPECT_EQ(Scanned("[\"CHW\", 1, \"" + std::string(257, 'x') + "\"]"), "");
}
