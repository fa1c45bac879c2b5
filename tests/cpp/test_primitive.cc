#include <vector>

#include "ansor/steps.h"
#include "check.h"
#include "core/primitive.h"

using tlp_tvm::HashOf;
using tlp_tvm::SequenceBatch;
using tlp_tvm::ansor::kVocabulary;
using tlp_tvm::ansor::StepKind;

namespace {

void AddReorder(SequenceBatch* batch, std::initializer_list<std::int64_t> ids) {
  batch->Begin(static_cast<std::uint32_t>(StepKind::RE));
  batch->AddNumber(3);
  std::int64_t* out = batch->AddList(ids.size());
  std::copy(ids.begin(), ids.end(), out);
}

void AddCacheWrite(SequenceBatch* batch, std::string_view scope) {
  batch->Begin(static_cast<std::uint32_t>(StepKind::CHW));
  batch->AddNumber(1);
  batch->AddName(scope);
}

std::uint64_t HashOfReorder(std::initializer_list<std::int64_t> ids) {
  SequenceBatch batch;
  AddReorder(&batch, ids);
  batch.End();
  return HashOf(batch[0], kVocabulary);
}

}  // namespace

TEST(ProgramsKeepTheirValues) {
  SequenceBatch batch;
  AddReorder(&batch, {2, 0, 1});
  AddCacheWrite(&batch, "local");
  batch.End();
  AddCacheWrite(&batch, "shared");
  batch.End();
  EXPECT_EQ(batch.size(), 2u);
  EXPECT_EQ(batch[0].size, 2u);
  EXPECT_EQ(batch[1].size, 1u);
  EXPECT_EQ(batch[0].ValuesOf(0)[1], 3);  // the size of the list
  EXPECT_EQ(batch[0].ValuesOf(0)[2], 2);
  EXPECT_EQ(batch[0].Name(batch[0].ValuesOf(1)[1]), "local");
  EXPECT_EQ(batch[1].Name(batch[1].ValuesOf(0)[1]), "shared");
}

TEST(ValuesAreCountedFromTheirProgramOn) {
  // From the begin of the batch on, 32 bits would not do for a file of 8 GB.
  SequenceBatch batch;
  for (int i = 0; i < 3; ++i) {
    AddReorder(&batch, {2, 0, 1});
    batch.Rollback();
    AddCacheWrite(&batch, "local");
    AddReorder(&batch, {i});
    batch.End();
  }
  const SequenceBatch copy(batch, std::pmr::get_default_resource());
  for (const SequenceBatch* each : std::vector<const SequenceBatch*>{&batch, &copy}) {
    for (std::size_t i = 0; i < 3; ++i) {
      const auto program = (*each)[i];
      EXPECT_EQ(program.primitives[0].first_value, 0u);
      EXPECT_EQ(program.primitives[1].first_value, 2u);
      EXPECT_EQ(program.Name(program.ValuesOf(0)[1]), "local");
      EXPECT_EQ(program.ValuesOf(1)[2], static_cast<std::int64_t>(i));
    }
  }
}

TEST(ListOfUnknownSize) {
  SequenceBatch batch;
  batch.Begin(0);
  const std::size_t list = batch.BeginList();
  batch.AddNumber(7);
  batch.AddNumber(8);
  EXPECT_EQ(batch.ListSize(list), 2u);
  batch.EndList(list);
  batch.End();
  EXPECT_EQ(batch[0].ValuesOf(0)[0], 2);
  EXPECT_EQ(batch[0].ValuesOf(0)[2], 8);
}

TEST(RollbackLeavesWholePrograms) {
  SequenceBatch batch;
  AddCacheWrite(&batch, "local");
  batch.End();
  AddReorder(&batch, {1, 0});
  EXPECT_EQ(batch.PrimitivesOfOpenProgram(), 1u);
  batch.Rollback();
  EXPECT_EQ(batch.PrimitivesOfOpenProgram(), 0u);
  AddCacheWrite(&batch, "shared");
  batch.End();
  EXPECT_EQ(batch.size(), 2u);
  EXPECT_EQ(batch[1].Name(batch[1].ValuesOf(0)[1]), "shared");
}

TEST(WidthCountsSpilledLists) {
  SequenceBatch batch;
  AddCacheWrite(&batch, "local");
  AddReorder(&batch, {2, 0, 1});
  batch.End();
  batch.End();
  EXPECT_EQ(tlp_tvm::WidthOf(batch[0], kVocabulary), 4u);
  EXPECT_EQ(tlp_tvm::WidthOf(batch[1], kVocabulary), 0u);
}

TEST(HashTellsContentsApart) {
  EXPECT_EQ(HashOfReorder({0, 1}), HashOfReorder({0, 1}));
  EXPECT(HashOfReorder({0, 1}) != HashOfReorder({1, 0}));
  EXPECT(HashOfReorder({}) != HashOfReorder({0}));
}

TEST(HashIsTheSameInEveryRelease) {
  // Datasets name programs by this number: a change here makes every stored dataset unreadable.
  EXPECT_EQ(HashOfReorder({0, 2, 1}), 9629794716091925070u);
}

TEST(KindsAreFoundByName) {
  EXPECT_EQ(kVocabulary.Find("FFSP"), static_cast<int>(StepKind::FFSP));
  EXPECT_EQ(kVocabulary.Find("XX"), -1);
}
