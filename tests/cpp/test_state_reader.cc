// The reader over objects made here, so that sanitizers can watch it.
#include <algorithm>

#include "ansor/record_writer.h"
#include "ansor/state_reader.h"
#include "check.h"
#include "core/error.h"
#include "layouts.h"
#include "world.h"

namespace abi = tlp_tvm::ansor::abi;
using tlp_tvm::Encoder;
using tlp_tvm::EncodingReport;
using tlp_tvm::StateError;
using tlp_tvm::ansor::ReadScratch;
using tlp_tvm::ansor::StateReader;
using world::FakeIndex2Key;
using world::World;

namespace {

constexpr char kAllSteps[] =
    R"([["AN", 2, 9, 2], ["FU", 2, [0, 1]], ["PR", 2, 0, "auto_unroll_max_step$64"], )"
    R"(["RE", 2, [0, 2, 1]], ["SP", 2, 0, 512, [4, 2, 8], 1], ["FSP", 4, 0, 0, 2], )"
    R"(["FFSP", 6, 0, [4, 3, 2, 1], 1, 1], ["SA", 2, 1, 32, 4], ["CA", 2, 3, 4], ["CI", 7], )"
    R"(["CR", 3], ["CHR", 4, "shared", [5]], ["CHW", 2, "local"], ["RF", 1, 2, 2]])";

std::string StepsOf(StateReader* reader, const abi::Array& states, std::size_t i) {
  ReadScratch scratch;
  reader->Read(states, i, &scratch);
  std::string steps;
  tlp_tvm::ansor::WriteSteps(scratch.batch[0], &steps);
  return steps;
}

}  // namespace

TEST(EveryKindIsRead) {
  World world;
  StateReader reader(FakeIndex2Key);
  const abi::Array* states = world.Array({world.State({}), world.State(world.AllSteps())});
  EXPECT_EQ(StepsOf(&reader, *states, 0), "[]");
  EXPECT_EQ(StepsOf(&reader, *states, 1), kAllSteps);
}

TEST(AnAbsentExtentIsZero) {
  World world;
  StateReader reader(FakeIndex2Key);
  const abi::Array* states = world.Array({world.State({world.Split(0, 0, {1})})});
  EXPECT_EQ(StepsOf(&reader, *states, 0), R"([["SP", 0, 1, 0, [1], 1]])");
}

TEST(WhatIsNoStateIsRefused) {
  World world;
  StateReader reader(FakeIndex2Key);
  ReadScratch scratch;
  EXPECT_THROWS(reader.StatesOf(nullptr), StateError,
                "states: expected an Array of auto_scheduler.State, found a null handle");
  EXPECT_THROWS(reader.StatesOf(world.Integer(3)), StateError,
                "states: expected an Array of auto_scheduler.State, found IntImm");
  const abi::Array* states =
      world.Array({world.Integer(3), nullptr, world.Make<abi::State>("Map")});
  EXPECT_THROWS(reader.Read(*states, 0, &scratch), StateError,
                "state 0: expected the item to be an auto_scheduler.State, found IntImm");
  EXPECT_THROWS(reader.Read(*states, 1, &scratch), StateError,
                "state 1: expected the item to be an auto_scheduler.State, found null");
  EXPECT_THROWS(reader.Read(*states, 2, &scratch), StateError,
                "state 2: expected the item to be an auto_scheduler.State, found Map");
}

TEST(WrongPointersAreRefusedByTypeAndSize) {
  World world;
  StateReader reader(FakeIndex2Key);
  ReadScratch scratch;
  abi::SplitStep* split = world.Split(0, 8, {2});
  abi::State* state = world.State({split});
  const abi::Array* states = world.Array({state});

  const abi::Array* lengths = split->lengths;
  split->lengths = reinterpret_cast<const abi::Array*>(world.Integer(1));
  EXPECT_THROWS(reader.Read(*states, 0, &scratch), StateError,
                "state 0: step 0: expected lengths to be an Array, found IntImm");
  split->lengths = world.Array({nullptr});
  EXPECT_THROWS(
      reader.Read(*states, 0, &scratch), StateError,
      "state 0: step 0: expected lengths to be filled in, found an empty one: a sketch is "
      "no program yet, sample programs from it");
  split->lengths = lengths;
  split->extent = world.String("n");
  EXPECT_THROWS(reader.Read(*states, 0, &scratch), StateError,
                "state 0: step 0: expected extent to be a constant integer, found runtime.String");
  split->extent = nullptr;
  abi::Array* huge = world.Integers({1});
  huge->size = 1025;
  split->lengths = huge;
  EXPECT_THROWS(reader.Read(*states, 0, &scratch), StateError,
                "state 0: step 0: expected lengths to have at most 1024 items, found 1025");
  split->type_index = 12345;
  EXPECT_THROWS(reader.Read(*states, 0, &scratch), StateError,
                "state 0: step 0: expected a transform step of Ansor, found type index 12345");
  abi::Array* steps = world.Array({});
  steps->size = 5000;
  state->transform_steps = steps;
  EXPECT_THROWS(reader.Read(*states, 0, &scratch), StateError,
                "state 0: expected at most 4096 transform_steps, found 5000");
  EXPECT_EQ(scratch.batch.size(), 0u);
  EXPECT_EQ(scratch.batch.PrimitivesOfOpenProgram(), 0u);
}

TEST(NamesAreBounded) {
  World world;
  StateReader reader(FakeIndex2Key);
  ReadScratch scratch;
  auto* step = world.Make<abi::CacheWriteStep>("auto_scheduler.CacheWriteStep");
  auto* name = world.String("local");
  name->size = 100000;
  step->scope_name = name;
  EXPECT_THROWS(reader.Read(*world.Array({world.State({step})}), 0, &scratch), StateError,
                "state 0: step 0: expected scope_name to be at most 256 bytes long, found 100000");
}

TEST(ThreadsDoNotShow) {
  World world;
  StateReader reader(FakeIndex2Key);
  std::vector<const abi::Object*> items;
  const std::vector<const abi::Object*> shared = world.AllSteps();
  for (int i = 0; i < 1000; ++i) {
    std::vector<const abi::Object*> steps = shared;  // states share steps, as TVM's do
    steps.resize(static_cast<std::size_t>(i) % (shared.size() + 1));
    steps.push_back(world.Split(i, 2 * i + 1, {i, 1}));
    items.push_back(world.State(steps));
  }
  const abi::Array* states = world.Array(items);
  const Encoder encoder(layouts::Flat(16, 12), tlp_tvm::ansor::kVocabulary);
  std::vector<std::vector<float>> results;
  for (int threads : {1, 4, 7}) {
    EncodingReport report;
    results.emplace_back(items.size() * encoder.layout().size(), -7.0f);
    reader.Encode(*states, encoder, threads, results.back().data(), &report);
    EXPECT_EQ(report.sequences, 1000);
  }
  EXPECT(results[0] == results[1]);
  EXPECT(results[0] == results[2]);
  // State by state is the same as all at once.
  ReadScratch scratch;
  std::vector<float> one(encoder.layout().size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    EncodingReport report;
    scratch.batch.Clear();
    reader.Read(*states, i, &scratch);
    encoder.Encode(scratch.batch[0], one.data(), &report);
    EXPECT(std::equal(one.begin(), one.end(),
                      results[0].begin() + static_cast<std::ptrdiff_t>(i * one.size())));
  }
}

TEST(TheFirstBadStateIsReportedWhateverTheThreads) {
  World world;
  StateReader reader(FakeIndex2Key);
  std::vector<const abi::Object*> items;
  for (int i = 0; i < 500; ++i) items.push_back(world.State({world.Split(i, 4, {2})}));
  items[321] = items[450] = world.Integer(1);
  const abi::Array* states = world.Array(items);
  const Encoder encoder(layouts::Flat(2, 12), tlp_tvm::ansor::kVocabulary);
  std::vector<float> out(items.size() * encoder.layout().size());
  for (int threads : {1, 4, 7}) {
    EncodingReport report;
    EXPECT_THROWS(reader.Encode(*states, encoder, threads, out.data(), &report), StateError,
                  "state 321: expected the item to be an auto_scheduler.State, found IntImm");
  }
}

TEST(ALibraryMustBeLoaded) {
  EXPECT_THROWS(tlp_tvm::ansor::BindStateReader("/nowhere/libtvm.so"), StateError,
                "/nowhere/libtvm.so: expected TVM's library to be loaded already, found it is not; "
                "import tvm first");
}
