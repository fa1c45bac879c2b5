// Programs taken apart into form and genes, and put together again.
#include <string>

#include "ansor/program_form.h"
#include "breeding/stock.h"
#include "check.h"
#include "core/error.h"
#include "programs.h"

using programs::Another;
using programs::Elsewhere;
using programs::Product;
using programs::Read;
using programs::Text;
using tlp_tvm::RecordError;
using tlp_tvm::breeding::Draft;
using tlp_tvm::breeding::Stock;

namespace {

void AddOne(const std::string& steps) {
  Stock stock(tlp_tvm::ansor::ProgramSpecies());
  stock.Add(Read({steps})[0]);
}

}  // namespace

TEST(AProgramIsWrittenAsItWasRead) {
  const std::vector<std::string> texts = {Product(), Product("[1, 1, 1]", "0, 1, 2", "3", "16"),
                                          Product("[8, 8, 8]", "0", "5"), Elsewhere(), Another()};
  const Read read(texts);
  Stock stock(tlp_tvm::ansor::ProgramSpecies());
  Draft draft;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto [form, row] = stock.Add(read[i]);
    EXPECT_EQ(Text(stock.Write(form, row.data(), &draft)), texts[i]);
  }
  // The first three differ in genes only: tile sizes, unrolling, and how many loops are fused.
  EXPECT_EQ(stock.forms().size(), std::size_t{3});
  EXPECT_EQ(stock.sketches().size(), std::size_t{2});
  EXPECT_EQ(stock.forms()[0].fuses[0].most, 3);
  EXPECT_EQ(stock.forms()[0].programs, 3);
}

TEST(LoopsBehindTheFusedOnesMoveWithThem) {
  Stock stock(tlp_tvm::ansor::ProgramSpecies());
  auto [form, row] = stock.Add(Read({Product()})[0]);
  Draft draft;
  const auto fuse = stock.forms()[form].fuses[0];
  for (const auto& [count, fused, vectorised] :
       {std::tuple{1, "0", "5"}, std::tuple{3, "0, 1, 2", "3"}, std::tuple{4, "0, 1, 2, 3", "2"}}) {
    row[fuse.row] = count;
    EXPECT_EQ(Text(stock.Write(form, row.data(), &draft)), Product("[4, 2, 8]", fused, vectorised));
  }
}

TEST(HashesDifferWhereGenesOrFormsDo) {
  Stock stock(tlp_tvm::ansor::ProgramSpecies());
  const Read read({Product(), Product("[2, 4, 8]"), Product(), Elsewhere()});
  std::vector<std::uint64_t> hashes;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto [form, row] = stock.Add(read[i]);
    hashes.push_back(stock.HashOf(form, row.data()));
  }
  EXPECT(hashes[0] == hashes[2]);
  EXPECT(hashes[0] != hashes[1]);
  EXPECT(hashes[0] != hashes[3]);
}

TEST(WhatNoSearchDrewIsRefused) {
  const std::string cure = "; breed programs that a search of Ansor drew";
  EXPECT_THROWS(AddOne(R"([["SP", 2, 0, 512, [4, 0], 1]])"), RecordError,
                "step 0: expected lengths between 1 and 2147483647, found 0" + cure);
  EXPECT_THROWS(AddOne(R"([["SP", 2, 0, -8, [4], 1]])"), RecordError,
                "step 0: expected extent between 0 and 9223372036854775807, found -8" + cure);
  EXPECT_THROWS(AddOne(R"([["SP", 2, 0, 512, [], 1]])"), RecordError,
                "step 0: expected the number of lengths between 1 and 15, found 0" + cure);
  EXPECT_THROWS(AddOne(R"([["CI", 1], ["FU", 2, [0, 2]]])"), RecordError,
                "step 1: expected fused_ids between 1 and 1, found 2" + cure);
  EXPECT_THROWS(
      AddOne(R"([["FU", 2, []]])"), RecordError,
      "step 0: expected the number of fused_ids between 1 and 2147483647, found 0" + cure);
  EXPECT_THROWS(AddOne(R"([["RE", 2, [0, 0]]])"), RecordError,
                "step 0: expected after_ids to hold every loop once, found another 0" + cure);
  EXPECT_THROWS(AddOne(R"([["CI", 1], ["FSP", 2, 0, 0, 1]])"), RecordError,
                "step 1: expected src_step_id to be a split before it, found 0" + cure);
  EXPECT_THROWS(AddOne(R"([["SP", 2, 0, 8, [2], 1], ["FSP", 3, 0, 0, 3]])"), RecordError,
                "step 1: expected n_split between 1 and 2, found 3" + cure);
  EXPECT_THROWS(AddOne(R"([["FFSP", 2, 0, [5], 1, 1]])"), RecordError,
                "step 0: expected src_step_id to be a split before it, found 5" + cure);
  EXPECT_THROWS(AddOne(R"([["AN", 2, -1, 3]])"), RecordError,
                "step 0: expected iter_id between 0 and 2147483647, found -1" + cure);
  EXPECT_THROWS(AddOne(R"([["CA", 2, 3, -4]])"), RecordError,
                "step 0: expected target_iter_id between 0 and 2147483647, found -4" + cure);
  EXPECT_THROWS(AddOne(R"([["CI", -1]])"), RecordError,
                "step 0: expected stage_id between 0 and 2147483647, found -1" + cure);
}

TEST(ARefusedProgramLeavesTheStockAsItWas) {
  Stock stock(tlp_tvm::ansor::ProgramSpecies());
  stock.Add(Read({Product()})[0]);
  EXPECT_THROWS(stock.Add(Read({R"([["SP", 2, 0, 512, [4, 0], 1]])"})[0]), RecordError,
                "step 0: expected lengths between 1 and 2147483647, found 0; breed programs that a "
                "search of Ansor drew");
  EXPECT_EQ(stock.forms().size(), std::size_t{1});
  EXPECT_EQ(stock.sketches().size(), std::size_t{1});
}
