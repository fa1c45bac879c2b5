#include "check.h"
#include "core/error.h"
#include "metaschedule/kinds.h"
#include "metaschedule/trace_json.h"
#include "metaschedule/tuning_records.h"
#include "metaschedule/value.h"

using tlp_tvm::PrimitiveSequence;
using tlp_tvm::RecordError;
using tlp_tvm::metaschedule::Instructions;
using tlp_tvm::metaschedule::LineForm;
using tlp_tvm::metaschedule::PlainGraph;
using tlp_tvm::metaschedule::ReadTuningRecords;
using tlp_tvm::metaschedule::TraceVocabulary;
using tlp_tvm::metaschedule::TuningBatch;
using tlp_tvm::metaschedule::WriteTrace;

namespace {

/*! \brief A trace with operands of every form, as TVM writes it. */
const char kTrace[] =
    R"([[["GetSBlock",[],["C","main"],["b0"]],)"
    R"(["GetLoops",["b0"],[],["l1","l2"]],)"
    R"(["SamplePerfectTile",["l1"],[2,64],["v3","v4"]],)"
    R"(["Split",["l1","None",8,"v3","v4"],[1,0],["l5","l6"]],)"
    R"(["SampleCategorical",[],[[0,16],[0.25,0.75]],["v7"]],)"
    R"(["Annotate",["b0","v7"],["unroll"],[]],)"
    R"(["Annotate",["b0","\"SSRSRS\""],["tiling"],[]],)"
    R"(["Annotate",["b0",[0,1]],["stages"],[]],)"
    R"(["Annotate",["b0",{"a":[1,"x"],"b":null}],["more"],[]],)"
    R"(["CacheRead",["b0",["b0"]],[0,"shared"],["b8"]],)"
    R"(["TransformLayout",["b0","{\"root_index\":0,\"nodes\":[]}"],[0,1,null,0],[]],)"
    R"(["EnterPostproc",[],[],[]]],[[2,[4,2]],[4,1]]])";

void Read(const std::string& line, TuningBatch* batch, LineForm form = LineForm::kTrace,
          bool skip = false) {
  ReadTuningRecords(line, "t.json", 1, form, skip, batch);
}

std::string Replace(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("no " + from + " in " + text);
  return text.replace(at, from.size(), to);
}

std::string ErrorOf(const std::string& from, const std::string& to) {
  TuningBatch batch;
  try {
    Read(Replace(kTrace, from, to), &batch);
  } catch (const RecordError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST(ATraceGoesInAndOut) {
  TuningBatch batch;
  Read(kTrace, &batch);
  EXPECT_EQ(batch.sequences.size(), 1u);
  std::string written;
  WriteTrace(batch.sequences[0], &written);
  EXPECT_EQ(written, kTrace);
}

TEST(WhatTvmsTwoWritersWriteDifferentlyReadsTheSame) {
  TuningBatch one;
  TuningBatch other;
  Read(kTrace, &one);
  std::string text = Replace(kTrace, "[1,0],[\"l5\"", "[true, false] , [\"l5\"");
  text = Replace(text, "\\\"nodes\\\":[]}",
                 "\\n \\\"nodes\\\": [],\\\"metadata\\\":{\\\"v\\\":\\\"1\\\"}}");
  text = Replace(text, R"({"a":[1,"x"],"b":null})", R"({"b":null,"a":[1,"x"]})");
  Read(text + "\r\n", &other);
  EXPECT_EQ(HashOf(one.sequences[0], TraceVocabulary()),
            HashOf(other.sequences[0], TraceVocabulary()));
}

TEST(AVariableStandsForItsDecision) {
  TuningBatch batch;
  Read(kTrace, &batch);
  const PrimitiveSequence program = batch.sequences[0];
  const std::int64_t* split = program.ValuesOf(3);
  const std::int64_t expected[] = {1, 4, 0, 8, 4, 2, 4, -2, -1, 3, 4, 1, 0, 5, 2};
  for (std::size_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(split[i], expected[i]);
  EXPECT_EQ(program.ValuesOf(5)[1], 1);   // a reference
  EXPECT_EQ(program.ValuesOf(5)[2], 16);  // the candidate that was decided for
  EXPECT_EQ(program.ValuesOf(5)[3], 7);
}

TEST(RefusalsSayWhere) {
  EXPECT_EQ(
      ErrorOf("GetLoops", "GetLops"),
      "t.json:1: instruction 1: expected an instruction of TVM 0.25 to 0.27, found \"GetLops\"");
  EXPECT_EQ(ErrorOf("[\"l1\"],[2,64]", "[\"l9\"],[2,64]"),
            "t.json:1: instruction 2 (SamplePerfectTile): expected a random variable of an "
            "instruction before, found \"l9\"");
  EXPECT_EQ(ErrorOf("[\"l1\",\"l2\"]", "[\"l1\",\"l3\"]"),
            "t.json:1: instruction 1 (GetLoops): expected output 1 to be l2, found \"l3\"");
  EXPECT_EQ(
      ErrorOf("[2,[4,2]]", "[2,[4]]"),
      "t.json:1: instruction 2 (SamplePerfectTile): expected a decision for each of 2 outputs, "
      "found 1");
  EXPECT_EQ(ErrorOf("[4,1]]", "[4,2]]"),
            "t.json:1: instruction 4 (SampleCategorical): expected the decision to be one of 2 "
            "candidates, found 2");
  EXPECT_EQ(ErrorOf(",[4,1]]", "]"),
            "t.json:1: instruction 4 (SampleCategorical): expected a decision, found none: a trace "
            "without decisions is no program yet, apply it to a schedule");
  EXPECT_EQ(ErrorOf("[4,1]]", "[4,1],[40,1]]"),
            "t.json:1: expected decisions of the 12 instructions, found one of instruction 40");
  EXPECT_EQ(ErrorOf("[1,0],[\"l5\"", "[1,7],[\"l5\""),
            "t.json:1: instruction 3 (Split): expected disable_predication to be 0 or 1, found 7");
}

TEST(ABadLineLeavesTheBatchAsItWas) {
  TuningBatch batch;
  const std::string bad = Replace(kTrace, "[4,1]]", "[4,9]]");
  Read(std::string(kTrace) + "\n" + bad + "\n\n" + kTrace, &batch, LineForm::kTrace, true);
  EXPECT_EQ(batch.sequences.size(), 2u);
  EXPECT_EQ(batch.rows[1].line, 4);
  EXPECT_EQ(batch.skipped.size(), 1u);
  EXPECT_EQ(batch.skipped[0].line, 2);
  std::string written;
  WriteTrace(batch.sequences[1], &written);
  EXPECT_EQ(written, kTrace);
}

TEST(ARecordSaysHowFast) {
  const std::string trace = kTrace;
  TuningBatch batch;
  Read("[3,[" + trace + R"(,[0.5,1.5],{"kind":"llvm"},[["TENSOR"]]]])" + "\n[0,[" + trace +
           ",[1e10],null,null]]\n[0,[" + trace + ",null,null,null]]",
       &batch, LineForm::kRecord);
  EXPECT_EQ(batch.rows.size(), 3u);
  EXPECT_EQ(batch.rows[0].workload, 3);
  EXPECT_EQ(batch.rows[0].latency, 1.0);
  EXPECT_EQ(std::string(batch.rows[0].target), R"({"kind":"llvm"})");
  EXPECT_EQ(std::string(batch.rows[0].arguments), R"([["TENSOR"]])");
  EXPECT(batch.rows[1].latency > 1e300);
  EXPECT(batch.rows[2].latency > 1e300);
  EXPECT(batch.rows[2].target.empty());
}

TEST(EveryKindIsInTheVocabularyUnderItsPlace) {
  EXPECT_EQ(TraceVocabulary().kind_count, Instructions().size());
  for (std::size_t kind = 0; kind < Instructions().size(); ++kind) {
    EXPECT_EQ(TraceVocabulary().Find(Instructions()[kind].name), static_cast<int>(kind));
  }
}

TEST(GraphsLoseSpacesAndMetadataAlone) {
  EXPECT_EQ(PlainGraph("{ \"a\": \"x y\",\n\"metadata\":{\"v\":\"1\"}}"), "{\"a\":\"x y\"}");
  EXPECT_EQ(PlainGraph("{\"metadata\":{\"v\":1},\"a\":2}"), "{\"metadata\":{\"v\":1},\"a\":2}");
}
