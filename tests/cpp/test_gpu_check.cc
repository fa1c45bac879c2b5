// Sizes of a program that no 64 bits hold: they are too large, whatever they wrap to.
#include <cstdint>
#include <limits>
#include <vector>

#include "ansor/gpu_check.h"
#include "ansor/stage_list.h"
#include "check.h"
#include "world.h"

using tlp_tvm::ansor::AxisCount;
using tlp_tvm::ansor::CheckGpu;
using tlp_tvm::ansor::GpuFault;
using tlp_tvm::ansor::GpuGraph;
using tlp_tvm::ansor::StageList;
using tlp_tvm::ansor::StateReader;
using tlp_tvm::ansor::Vectors;
using world::FakeIndex2Key;
using world::World;

namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 32;  // its square wraps to nothing
constexpr std::int32_t kPlain = 0, kVectorize = 2, kThreadX = 6, kThreadY = 8;

/*! \return Whether the steps of the program could be followed. */
bool Follow(World* world, const std::vector<const world::abi::Object*>& steps, StageList* list) {
  StateReader reader(FakeIndex2Key);
  tlp_tvm::ansor::ReadScratch scratch;
  reader.Read(*world->Array({world->State(steps)}), 0, &scratch);
  return list->Follow(scratch.batch[0]);
}

std::vector<std::int64_t> TilesAfterSplit(const std::vector<std::int64_t>& lengths) {
  World world;
  const std::vector<AxisCount> operations = {{1, 0}};
  StageList list(operations);
  auto* split = world.Split(0, 64, lengths);
  split->iter_id = 0;
  EXPECT(Follow(&world, {split}, &list));
  const auto& stage = list.stages()[0];
  return stage.axes.empty() ? std::vector<std::int64_t>{-1} : stage.tiles;
}

/*! \brief Of a program with one stage, of 4 bytes an element. */
GpuFault FaultOf(const std::vector<std::int64_t>& extents, const std::vector<std::int32_t>& bound) {
  World world;
  StateReader reader(FakeIndex2Key);
  auto* state = world.State({});
  state->stages = world.Array({world.Stage(extents, bound)});
  const GpuGraph graph{{{4, Vectors::kUnlessCut}}, {{extents.size(), 0}}, {}};
  GpuFault fault = GpuFault::kNone;
  CheckGpu(&reader, *world.Array({state}), {1024, 49152, 8, 16}, graph, 1, &fault);
  return fault;
}

}  // namespace

TEST(ATileIsTheProductOfItsLengths) {
  EXPECT(TilesAfterSplit({4, 8}) == std::vector<std::int64_t>{32});
  EXPECT(TilesAfterSplit({kHuge, kHuge}) ==
         std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::max()});
  EXPECT(TilesAfterSplit({-kHuge, 2}) == std::vector<std::int64_t>{-1});  // of no program
}

TEST(LoopsThatNoProgramHasAreNotFollowed) {
  World world;
  const std::vector<AxisCount> operations = {{2, 0}};
  auto* follow = world.Make<world::abi::FollowSplitStep>("auto_scheduler.FollowSplitStep");
  follow->n_split = 5000;
  StageList many(operations);
  EXPECT(Follow(&world, {follow}, &many));
  EXPECT(many.stages()[0].axes.empty());
  auto* fuse = world.Make<world::abi::FuseStep>("auto_scheduler.FuseStep");
  for (const std::int64_t first : {std::numeric_limits<std::int64_t>::max(), std::int64_t{-1}}) {
    fuse->fused_ids = world.Integers({first, 1});
    StageList list(operations);
    EXPECT(Follow(&world, {fuse}, &list));
    EXPECT(list.stages()[0].axes.empty());
  }
}

TEST(TooManyThreadsAreTooManyHoweverMany) {
  EXPECT(FaultOf({32, 32}, {kThreadX, kThreadY}) == GpuFault::kNone);
  EXPECT(FaultOf({64, 32}, {kThreadX, kThreadY}) == GpuFault::kThreads);
  EXPECT(FaultOf({kHuge, kHuge}, {kThreadX, kThreadY}) == GpuFault::kThreads);
}

TEST(AnExtentBelowZeroIsNotKnown) {
  EXPECT(FaultOf({-5, 32}, {kThreadX, kThreadY}) == GpuFault::kNone);
  EXPECT(FaultOf({-kHuge, 8}, {kPlain, kVectorize}) == GpuFault::kNone);
}

TEST(SharedMemoryThatWrapsIsTooMuch) {
  World world;
  StateReader reader(FakeIndex2Key);
  for (const std::int64_t extent : {std::int64_t{64}, kHuge}) {
    auto* read = world.Make<world::abi::CacheReadStep>("auto_scheduler.CacheReadStep");
    read->stage_id = 0, read->scope_name = world.String("shared");
    read->reader_stage_ids = world.Integers({1});
    auto* state = world.State({read});
    state->stages =
        world.Array({world.Stage({64}, {kPlain}), world.Stage({extent, extent}, {kPlain, kPlain}),
                     world.Stage({64}, {kPlain})});
    const GpuGraph graph{
        {{4, Vectors::kUnlessCut}, {4, Vectors::kUnlessCut}}, {{1, 0}, {1, 0}}, {}};
    GpuFault fault = GpuFault::kNone;
    CheckGpu(&reader, *world.Array({state}), {1024, 49152, 8, 16}, graph, 1, &fault);
    EXPECT(fault == (extent == kHuge ? GpuFault::kSharedMemory : GpuFault::kNone));
  }
}
