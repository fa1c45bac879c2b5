// Traces taken apart into form and genes, and put together again.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "breeding/breed.h"
#include "check.h"
#include "core/error.h"
#include "metaschedule/trace_form.h"
#include "metaschedule/trace_json.h"
#include "metaschedule/tuning_records.h"

using tlp_tvm::PrimitiveSequence;
using tlp_tvm::RecordError;
using tlp_tvm::metaschedule::LineForm;
using tlp_tvm::metaschedule::TraceSpecies;
using tlp_tvm::metaschedule::TuningBatch;
using namespace tlp_tvm::breeding;  // NOLINT(google-build-using-namespace): under test

namespace {

/*! \brief A trace of a product: tiles of a loop of 512, an unrolling, a place, and what follows. */
std::string Trace(const std::string& tile, const std::string& unroll, const std::string& place,
                  const std::string& after = "") {
  return R"([[["GetSBlock", [], ["C", "main"], ["b0"]], ["GetLoops", ["b0"], [], ["l1"]],)"
         R"(["SamplePerfectTile", ["l1"], [3, 64], ["v2", "v3", "v4"]],)"
         R"(["Split", ["l1", "v2", "v3", "v4"], [1, 0], ["l5", "l6", "l7"]],)"
         R"(["SampleCategorical", [], [[0, 16, 64], [0.5, 0.25, 0.25]], ["v8"]],)"
         R"(["Annotate", ["b0", "v8"], ["meta_schedule.unroll_explicit"], []],)"
         R"(["SampleComputeLocation", ["b0"], [], ["l9"]],)"
         R"(["ComputeAt", ["b0", "l9"], [1, -1], []])" +
         after + R"(], [[2, )" + tile + R"(], [4, )" + unroll + R"(], [6, )" + place + "]]]";
}

TuningBatch Read(const std::vector<std::string>& texts) {
  TuningBatch batch;
  std::string text;
  for (const std::string& each : texts) text += each + "\n";
  ReadTuningRecords(text, "traces", 1, LineForm::kTrace, false, &batch);
  return batch;
}

std::string Text(const PrimitiveSequence& trace) {
  std::string text;
  tlp_tvm::metaschedule::WriteTrace(trace, &text);
  return text;
}

std::string TextOf(const std::string& trace) { return Text(Read({trace}).sequences[0]); }

}  // namespace

TEST(ATraceIsWrittenAsItWasReadUpToWhatPostprocessorsDid) {
  const std::string after = R"(, ["EnterPostproc", [], [], []], ["Unroll", ["l7"], [], []])";
  const auto batch = Read({Trace("[8, 4, 16]", "0", "1"), Trace("[2, 8, 32]", "2", "0", after)});
  Stock stock(TraceSpecies());
  Draft draft;
  std::vector<std::string> written;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto [form, row] = stock.Add(batch.sequences[i]);
    EXPECT_EQ(form, std::size_t{0});
    written.push_back(Text(stock.Write(form, row.data(), &draft)));
  }
  EXPECT_EQ(written[0], TextOf(Trace("[8, 4, 16]", "0", "1")));
  EXPECT_EQ(written[1], TextOf(Trace("[2, 8, 32]", "2", "0")));
  EXPECT_EQ(stock.forms().size(), std::size_t{1});
  EXPECT_EQ(stock.sketches().size(), std::size_t{1});
}

TEST(NumbersStandWhereverTheirVariableDoes) {
  Stock stock(TraceSpecies());
  auto [form, row] = stock.Add(Read({Trace("[8, 4, 16]", "0", "1")}).sequences[0]);
  const Form& known = stock.forms()[form];
  const SplitGene& split = known.splits[0];
  EXPECT_EQ(row[split.row], 512);
  EXPECT_EQ(split.most, 64);
  row[split.row + 1] = 2;
  row[split.row + 2] = 64;
  row[known.picks[0].row] = 2;
  row[known.picks[1].row] = -1;
  Draft draft;
  const PrimitiveSequence changed = stock.Write(form, row.data(), &draft);
  // Split: loop, factors, where they are from, and more; Annotate: block, form, value, and more.
  const std::int64_t* const factors = changed.ValuesOf(3) + 1;
  EXPECT(
      (std::vector<std::int64_t>(factors, factors + 4) == std::vector<std::int64_t>{3, 4, 2, 64}));
  EXPECT_EQ(changed.ValuesOf(5)[2], 64);
  EXPECT_EQ(Text(changed), TextOf(Trace("[4, 2, 64]", "2", "-1")));
}

TEST(TracesOfOtherLoopsOrInstructionsAreOfAnotherForm) {
  Stock stock(TraceSpecies());
  const auto batch = Read({Trace("[8, 4, 16]", "0", "1"), Trace("[8, 4, 8]", "0", "1"),
                           Trace("[8, 4, 16]", "0", "1", R"(, ["Parallel", ["l5"], [], []])")});
  for (std::size_t i = 0; i < 3; ++i) stock.Add(batch.sequences[i]);
  EXPECT_EQ(stock.forms().size(), std::size_t{3});
  EXPECT_EQ(stock.sketches().size(), std::size_t{3});
}

TEST(ChildrenHavePlacesThatWereShownAndTilesThatFit) {
  const auto batch = Read({Trace("[8, 4, 16]", "0", "1"), Trace("[4, 4, 32]", "1", "-1")});
  Stock stock(TraceSpecies());
  std::vector<std::pair<std::size_t, Row>> added;
  for (std::size_t i = 0; i < 2; ++i) added.push_back(stock.Add(batch.sequences[i]));
  Population parents(2, stock.stride());
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& [form, row] = added[i];
    parents.Set(i, form, stock.HashOf(form, row.data()), row.data(), row.size());
  }
  Plan plan;
  const double weights[kChangeCount] = {0.6, 0.1, 0.1, 0.2, 0};
  std::copy(weights, weights + kChangeCount, plan.rules.weights);
  plan.rules.another = 0.3;
  plan.fresh = 0.1;
  plan.cross = 0.3;
  plan.alter = 0.7;
  Tally tally;
  const Population bred = Breed(stock, parents, {1, 1}, plan, 2000, 7, {}, {}, 2, &tally);
  EXPECT(bred.size() > 100);
  std::set<std::int64_t> places, unrolls;
  const Form& form = stock.forms()[0];
  for (std::size_t i = 0; i < bred.size(); ++i) {
    const std::int64_t* const row = bred.row(i);
    const std::int64_t* const lengths = row + form.splits[0].row + 1;
    EXPECT_EQ(512 % (lengths[0] * lengths[1]), 0);
    EXPECT(lengths[1] <= 64);
    unrolls.insert(row[form.picks[0].row]);
    places.insert(row[form.picks[1].row]);
  }
  EXPECT((places == std::set<std::int64_t>{-1, 1}));
  EXPECT((unrolls == std::set<std::int64_t>{0, 1, 2}));
}

TEST(WhatNoSearchDrewIsRefused) {
  Stock stock(TraceSpecies());
  EXPECT_THROWS(stock.Add(Read({Trace("[8, 0, 16]", "0", "1")}).sequences[0]), RecordError,
                "instruction 2 (SamplePerfectTile): expected factors of 1 or more, found 0; breed "
                "traces that a search of MetaSchedule drew");
  std::string many = Trace("[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 512]", "0", "1");
  const std::string three = R"([3, 64], ["v2", "v3", "v4"])";
  std::string sixteen = R"([16, 64], ["v2")";
  for (int i = 3; i < 18; ++i) sixteen += ", \"v" + std::to_string(i) + '"';
  many = many.replace(many.find(three), three.size(), sixteen + "]");
  many = many.substr(0, many.find(R"(,["Split")")) + many.substr(many.rfind("], [[2, "));
  many = many.substr(0, many.find(", [4, ")) + "]]";
  EXPECT_THROWS(stock.Add(Read({many}).sequences[0]), RecordError,
                "instruction 2 (SamplePerfectTile): expected 1 to 15 factors, as many as n, found "
                "16; breed traces that a search of MetaSchedule drew");
  EXPECT(stock.forms().empty());
}
