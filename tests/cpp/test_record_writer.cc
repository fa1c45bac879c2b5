#include <limits>

#include "ansor/record_reader.h"
#include "ansor/record_writer.h"
#include "check.h"
#include "records.h"

using tlp_tvm::ansor::OnError;
using tlp_tvm::ansor::ReadRecords;
using tlp_tvm::ansor::RecordBatch;

namespace {

RecordBatch ReadOne(const std::string& line) {
  return std::move(ReadRecords(line + "\n", "log.json", 1, OnError::kRaise, 1).at(0));
}

std::string WriteOne(const RecordBatch& batch) {
  std::string line;
  tlp_tvm::ansor::WriteRecord(batch, 0, &line);
  return line;
}

}  // namespace

TEST(StepsComeBackAsTheyWere) {
  const RecordBatch batch = ReadOne(records::Record());
  std::string steps;
  tlp_tvm::ansor::WriteSteps(batch.sequences[0], &steps);
  EXPECT_EQ(steps, records::AllSteps());
}

TEST(RecordsComeBackAsTheyWere) {
  EXPECT_EQ(WriteOne(ReadOne(records::Record())), records::Record() + "\n");
}

TEST(TextsAndNumbersSurvive) {
  const std::string task = R"(["\u0001\"\\\u00e9\n", "llvm", [-1]])";
  const std::string result = "[[0.1, 1e-9, 12345678.9], 3, 0.30000000000000004, -5]";
  const std::string once = WriteOne(ReadOne(records::Record("[]", task, result)));
  const RecordBatch again = ReadOne(once.substr(0, once.size() - 1));
  EXPECT_EQ(again.tasks[0].workload_key, "\x01\"\\\u00e9\n");
  EXPECT_EQ(again.costs[0], 0.1);
  EXPECT_EQ(again.costs[1], 1e-9);
  EXPECT_EQ(again.rows[0].elapsed, 0.30000000000000004);
  EXPECT_EQ(again.rows[0].error_no, 3);
  EXPECT_EQ(WriteOne(again), once);
}
