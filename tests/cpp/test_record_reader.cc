#include <cmath>
#include <sstream>

#include "ansor/record_reader.h"
#include "ansor/record_writer.h"
#include "ansor/steps.h"
#include "check.h"
#include "core/error.h"
#include "records.h"

using records::Record;
using tlp_tvm::RecordError;
using tlp_tvm::ansor::OnError;
using tlp_tvm::ansor::ReadRecords;
using tlp_tvm::ansor::RecordBatch;

namespace {

std::vector<RecordBatch> Read(const std::string& text, OnError on_error = OnError::kRaise,
                              int threads = 1) {
  return ReadRecords(text, "log.json", 1, on_error, threads);
}

RecordBatch ReadOne(const std::string& line) { return std::move(Read(line + "\n").at(0)); }

std::string ErrorOf(const std::string& line) {
  try {
    Read(line + "\n");
  } catch (const RecordError& error) {
    return error.what();
  }
  return "";
}

std::string Replace(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("no " + from + " in " + text);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST(ARecordIsReadWhole) {
  const RecordBatch batch = ReadOne(Record());
  EXPECT_EQ(batch.rows.size(), 1u);
  EXPECT_EQ(batch.sequences[0].size, tlp_tvm::ansor::kStepKindCount);
  EXPECT_EQ(batch.rows[0].latency, 0.5);
  EXPECT_EQ(batch.rows[0].error_no, 0);
  EXPECT_EQ(batch.rows[0].elapsed, 1.5);
  EXPECT_EQ(batch.rows[0].timestamp, 1795174880);
  EXPECT_EQ(batch.rows[0].line, 1);
  EXPECT_EQ(batch.tasks.size(), 1u);
  EXPECT_EQ(batch.tasks[0].workload_key, "[\"4e44\", [16, 64]]");
  EXPECT_EQ(batch.tasks[0].target, "llvm -keys=cpu");
  EXPECT_EQ(batch.tasks[0].hardware.size(), 8u);
  EXPECT_EQ(batch.tasks[0].members, 6);
}

TEST(WhatJsonAllowsIsTolerated) {
  const std::string spaced = Replace(Replace(Record(), ": [[", " :\t[ [ "), "512", "\t512 ");
  EXPECT_EQ(ReadOne(spaced).rows.size(), 1u);
  EXPECT_EQ(ReadOne(Replace(Record(), "\"SP\"", "\"S\\u0050\"")).rows.size(), 1u);
  EXPECT_EQ(
      ReadOne(Replace(Record(), "{\"i\"", "{\"x\": {\"y\": [null]}, \"\\u0069\"")).rows.size(), 1u);
  EXPECT_EQ(ReadOne(Replace(Record(), ", \"v\": \"v0.6\"", "")).rows.size(), 1u);
  EXPECT_EQ(ReadOne(Record() + "\r").rows.size(), 1u);
  EXPECT_EQ(
      ReadOne(Record(records::AllSteps(), records::kTask, "[[1], 0, 1, 1.5e9]")).rows[0].latency,
      1.0);
  const std::string result_first =
      "{\"r\": " + records::kResult + ", \"i\": [" + records::kTask + ", [[], [[\"CI\", 7]]]]}";
  EXPECT_EQ(ReadOne(result_first).rows[0].latency, 0.5);
}

TEST(TaskEntriesOfEveryVersion) {
  const std::string members[] = {"\"key\"", "\"llvm\"", "[1, 2]", "\"host\"", "1", "[\"a\"]"};
  std::string task = members[0];
  for (int count = 2; count <= 6; ++count) {
    task += ", " + members[count - 1];
    const RecordBatch batch = ReadOne(Record("[]", "[" + task + "]"));
    EXPECT_EQ(batch.tasks[0].members, count);
    EXPECT_EQ(batch.tasks[0].hardware.size(), count >= 3 ? 2u : 0u);
    EXPECT_EQ(batch.tasks[0].target_host, count >= 4 ? "host" : "");
    EXPECT_EQ(batch.tasks[0].input_names.size(), count >= 6 ? 1u : 0u);
  }
  EXPECT_EQ(ErrorOf(Record("[]", "[" + task + ", 7]")),
            "log.json:1: expected the task to end, found one more field");
  EXPECT_EQ(ErrorOf(Record("[]", "[\"key\"]")),
            "log.json:1: expected the target, found the list ends before it");
}

TEST(BlankLinesCountAndAreNoRecords) {
  const auto batches = Read("\n  \r\n" + Record() + "\n\n");
  EXPECT_EQ(batches[0].rows.size(), 1u);
  EXPECT_EQ(batches[0].rows[0].line, 3);
  EXPECT_EQ(batches[0].lines, 4);
  EXPECT_EQ(Read("").size(), 0u);
}

TEST(FailedMeasurementsAreInfinite) {
  const auto latency = [](const std::string& result) {
    return ReadOne(Record("[]", records::kTask, result)).rows[0].latency;
  };
  EXPECT(std::isinf(latency("[[1e+10], 4, 0.2, 1]")));
  EXPECT(std::isinf(latency("[[1e+10], 0, 0.2, 1]")));
  EXPECT(std::isinf(latency("[[], 2, 0.2, 1]")));
  EXPECT_EQ(ErrorOf(Record("[]", records::kTask, "[[], 0, 0.2, 1]")),
            "log.json:1: expected at least one cost, found none and no error");
  EXPECT_EQ(ErrorOf(Record("[]", records::kTask, "[[-1], 0, 0.2, 1]")),
            "log.json:1: expected a cost in seconds, found a negative number");
}

TEST(EveryPrefixIsRefused) {
  const std::string record = Record();
  for (std::size_t size = 1; size < record.size(); ++size) {
    const std::string error = ErrorOf(record.substr(0, size));
    if (error.rfind("log.json:1: ", 0) != 0)
      check::Report(__FILE__, __LINE__, "prefix " + record.substr(0, size));
  }
}

TEST(EveryFieldOfEveryStepIsChecked) {
  // Each field in turn: of another type, missing, and one field too many.
  const auto& kinds = tlp_tvm::ansor::kStepKinds;
  for (std::size_t kind = 0; kind < tlp_tvm::ansor::kStepKindCount; ++kind) {
    const std::string name(kinds[kind].name);
    for (std::size_t bad = 0; bad <= kinds[kind].field_count; ++bad) {
      std::string good = "\"" + name + "\"";
      for (std::size_t f = 0; f < bad; ++f) {
        const auto type = kinds[kind].fields[f].type;
        good += type == tlp_tvm::FieldType::kList   ? ", [1]"
                : type == tlp_tvm::FieldType::kName ? ", \"local\""
                                                    : ", 1";
      }
      if (bad == kinds[kind].field_count) {
        EXPECT_EQ(ErrorOf(Record("[[\"CI\", 7], [" + good + ", 1]]")),
                  "log.json:1: step 1: expected the step to end, found one more field");
        continue;
      }
      const std::string field = name + " " + std::string(kinds[kind].fields[bad].name);
      EXPECT_EQ(ErrorOf(Record("[[\"CI\", 7], [" + good + "]]")),
                "log.json:1: step 1: expected " + field + ", found the list ends before it");
      const std::string error = ErrorOf(Record("[[\"CI\", 7], [" + good + ", {}]]"));
      EXPECT_EQ(error.find("log.json:1: step 1: expected " + field + " to be "), 0u);
      EXPECT(error.find(", found an object") != std::string::npos);
    }
  }
}

TEST(WrongStepsAreNamed) {
  EXPECT_EQ(ErrorOf(Record(R"([["SP", 2, 0, 512, "16", 1]])")),
            "log.json:1: step 0: expected SP lengths to be a list, found \"16\"");
  EXPECT_EQ(
      ErrorOf(Record(R"([["CI", 7], ["XX", 2]])")),
      "log.json:1: step 1: expected one of the 14 step kinds of Ansor (AN to RF), found \"XX\"");
  EXPECT_EQ(ErrorOf(Record(R"([["SP", 2, 0, 512, [4], 2]])")),
            "log.json:1: step 0: expected SP inner_to_outer to be between 0 and 1, found 2");
  EXPECT_EQ(ErrorOf(Record(R"([["CI", 2147483648]])")),
            "log.json:1: step 0: expected CI stage_id to be between -2147483648 and 2147483647, "
            "found 2147483648");
  EXPECT_EQ(ErrorOf(Record(R"([["SP", 2, 0, 512, [true], 1]])")),
            "log.json:1: step 0: expected SP lengths to be an integer, found true");
}

TEST(AKindIsComparedWhole) {
  EXPECT_EQ(ErrorOf(Record(R"([["\u0000CI", 7]])")),
            "log.json:1: step 0: expected one of the 14 step kinds of Ansor (AN to RF), found "
            "\"\\u0000CI\"");
}

TEST(WrongRecordsAreNamed) {
  EXPECT_EQ(ErrorOf("[]"), "log.json:1: expected the record to be an object, found a list");
  EXPECT_EQ(ErrorOf("\xef\xbb\xbf" + Record()),
            "log.json:1: expected the record to be an object, found \\xef\\xbb\\xbf");
  EXPECT_EQ(ErrorOf("{}"),
            "log.json:1: expected \"i\" (the measured input), found a record without it");
  EXPECT_EQ(ErrorOf(Replace(Record(), "\"r\"", "\"R\"")),
            "log.json:1: expected \"r\" (the measured result), found a record without it");
  EXPECT_EQ(ErrorOf(Replace(Record(), "\"v\": \"v0.6\"", "\"r\": " + records::kResult)),
            "log.json:1: expected one \"r\" (result), found a second one");
  EXPECT_EQ(ErrorOf(Record() + " x"), "log.json:1: expected the end of the line, found x");
  EXPECT_EQ(ErrorOf(Replace(Record(), "[[], [", "[{}, [")),
            "log.json:1: expected the state's stages to be a list, found an object");
}

TEST(TooLongIsRefused) {
  std::string list = "1";
  for (int i = 0; i < 1024; ++i) list += ", 1";
  EXPECT_EQ(ErrorOf(Record("[[\"FU\", 1, [" + list + "]]]")),
            "log.json:1: step 0: expected FU fused_ids to be shorter, found more items than any "
            "program has");
}

TEST(SkippedLinesAreCountedAndLeaveNothing) {
  const std::string other_task = Replace(records::kTask, "4e44", "5f55");
  const std::string text = Record() + "\n" +
                           Replace(Record(records::AllSteps(), other_task), "512", "x") + "\n{\n" +
                           Record() + "\n";
  const auto batches = Read(text, OnError::kSkip);
  const RecordBatch& batch = batches.at(0);
  EXPECT_EQ(batch.rows.size(), 2u);
  EXPECT_EQ(batch.sequences.size(), 2u);
  EXPECT_EQ(batch.costs.size(), 4u);
  EXPECT_EQ(batch.tasks.size(), 1u);
  EXPECT_EQ(batch.rows[1].line, 4);
  EXPECT_EQ(batch.skipped.size(), 2u);
  EXPECT_EQ(batch.skipped[0].line, 2);
  EXPECT_EQ(std::string(batch.skipped[0].reason), "wrong type");
  EXPECT_EQ(batch.skipped[0].sentence,
            "log.json:2: step 4: expected SP extent to be an integer, found x");
  EXPECT_EQ(std::string(batch.skipped[1].reason), "truncated line");
}

TEST(ABlockMustEndWithItsLine) {
  EXPECT_THROWS(Read("{}"), RecordError,
                "expected a block of whole lines, found one that ends within a line");
}

TEST(LinesAreNumberedWhenTheirPlaceIsKnown) {
  const std::string text = Record() + "\n{}\n" + Record() + "\n";
  auto batches = tlp_tvm::ansor::ParseRecords(text, OnError::kSkip, 1);
  EXPECT_EQ(batches.at(0).rows[1].line, 3);
  tlp_tvm::ansor::Place("log.json", 101, &batches);
  EXPECT_EQ(batches[0].rows[1].line, 103);
  EXPECT_EQ(batches[0].skipped[0].line, 102);
  EXPECT_EQ(batches[0].skipped[0].sentence,
            "log.json:102: expected \"i\" (the measured input), found a record without it");
  auto bad = tlp_tvm::ansor::ParseRecords(text, OnError::kRaise, 1);
  EXPECT_THROWS(tlp_tvm::ansor::Place("log.json", 101, &bad), RecordError,
                "log.json:102: expected \"i\" (the measured input), found a record without it");
}

TEST(BatchesOutliveWhatIsReadAfterThem) {
  auto first = Read(Record("[[\"CI\", 1]]") + "\n");
  for (int i = 0; i < 100; ++i) {
    const auto later = Read(Record("[[\"CI\", 2]]") + "\n");
    EXPECT_EQ(later.at(0).sequences[0].ValuesOf(0)[0], 2);
  }
  EXPECT_EQ(first.at(0).sequences[0].ValuesOf(0)[0], 1);
  const RecordBatch moved(std::move(first[0]));
  EXPECT_EQ(moved.sequences[0].ValuesOf(0)[0], 1);
  EXPECT_EQ(moved.rows[0].latency, 0.5);
}

TEST(ThreadsAndChunksDoNotShow) {
  // Enough lines for several chunks, with a bad one near the end.
  std::string text;
  for (int i = 0; i < 10000; ++i) {
    const std::string task = Replace(records::kTask, "4e44", std::to_string(i / 100));
    text += Record("[[\"CI\", " + std::to_string(i) + "]]", task,
                   "[[" + std::to_string(i) + "], 0, 1, 1]") +
            "\n";
  }
  const auto as_text = [](const std::vector<RecordBatch>& batches) {
    std::string all;
    for (const RecordBatch& batch : batches) {
      for (std::size_t i = 0; i < batch.rows.size(); ++i) {
        all += std::to_string(batch.rows[i].line) + " ";
        tlp_tvm::ansor::WriteRecord(batch, i, &all);
      }
    }
    return all;
  };
  const std::string one = as_text(Read(text, OnError::kRaise, 1));
  EXPECT(Read(text).size() > 1);
  for (int threads : {4, 7}) EXPECT(as_text(Read(text, OnError::kRaise, threads)) == one);
  for (int threads : {1, 4, 7}) {
    EXPECT_THROWS(Read(text + "x\n" + text + "y\n", OnError::kRaise, threads), RecordError,
                  "log.json:10001: expected the record to be an object, found x");
  }
}
