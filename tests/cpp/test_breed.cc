// Children: which there are, that threads make no difference, and that none is there twice.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "ansor/program_form.h"
#include "breeding/breed.h"
#include "breeding/tiles.h"
#include "check.h"
#include "core/error.h"
#include "programs.h"

using namespace tlp_tvm::breeding;  // NOLINT(google-build-using-namespace): under test
using programs::Another;
using programs::Elsewhere;
using programs::Product;
using programs::Read;
using programs::Text;

namespace {

using Lengths = std::vector<std::int64_t>;

/*! \brief All that TVM's rule makes of the lengths: a factor from one place to another. */
std::set<Lengths> Moves(std::int64_t extent, const Lengths& lengths, std::int64_t most) {
  std::set<Lengths> found;
  Lengths all(1, extent);
  for (const std::int64_t length : lengths) all[0] /= length;
  all.insert(all.end(), lengths.begin(), lengths.end());
  for (std::size_t from = 0; from < all.size(); ++from) {
    for (std::size_t to = 0; to < all.size(); ++to) {
      for (std::int64_t factor = 2; factor <= all[from]; ++factor) {
        if (to == from || all[from] % factor != 0) continue;
        if (to + 1 == all.size() && all[to] * factor > most) continue;
        Lengths moved = all;
        moved[from] /= factor;
        moved[to] *= factor;
        found.insert({moved.begin() + 1, moved.end()});
      }
    }
  }
  return found;
}

/*! \brief A stock, and a population of what it took in. */
struct Bred {
  Stock stock{tlp_tvm::ansor::ProgramSpecies()};
  Population parents{0, 1};
  Tally tally;

  explicit Bred(const std::vector<std::string>& texts) {
    const Read read(texts);
    std::vector<std::pair<std::size_t, Row>> added;
    for (std::size_t i = 0; i < texts.size(); ++i) added.push_back(stock.Add(read[i]));
    stock.KnowUnroll(0);
    stock.KnowUnroll(512);
    parents = Population(texts.size(), stock.stride());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto& [form, row] = added[i];
      parents.Set(i, form, stock.HashOf(form, row.data()), row.data(), row.size());
    }
  }
  std::vector<std::string> Children(const Plan& plan, std::size_t count, int threads = 1,
                                    const std::vector<std::uint64_t>& known = {},
                                    const AcceptsOfThread& accepts = {}) {
    const std::vector<double> weights(parents.size(), 1.0);
    const Population made =
        Breed(stock, parents, weights, plan, count, 7, known, accepts, threads, &tally);
    std::vector<std::string> texts;
    Draft draft;
    for (std::size_t i = 0; i < made.size(); ++i) {
      texts.push_back(Text(stock.Write(made.form(i), made.row(i), &draft)));
    }
    return texts;
  }
};

Plan Only(Change change) {
  Plan plan;
  std::fill(std::begin(plan.rules.weights), std::end(plan.rules.weights), 0.0);
  plan.rules.weights[static_cast<std::size_t>(change)] = 1;
  plan.rules.unrolls = {0, 512};
  return plan;
}

}  // namespace

TEST(EveryMoveOfTvmsRuleIsMadeAndNoOther) {
  for (const auto& [extent, lengths] :
       {std::pair{std::int64_t{512}, Lengths{4, 2, 8}}, std::pair{std::int64_t{12}, Lengths{3}},
        std::pair{std::int64_t{7}, Lengths{7}},
        std::pair{std::int64_t{360}, Lengths{1, 6, 1, 5}}}) {
    std::set<Lengths> found;
    Random random(1, 2);
    for (int i = 0; i < 40000; ++i) {
      Lengths moved = lengths;
      if (MoveFactor(extent, moved.size(), 16, &random, moved.data())) found.insert(moved);
    }
    EXPECT(found == Moves(extent, lengths, 16));
  }
}

TEST(EveryChoiceOfLengthsIsDrawnAsOftenAsTheOthers) {
  const Divisors divisors(12);
  EXPECT((divisors.all == Lengths{1, 2, 3, 4, 6, 12}));
  std::map<Lengths, int> found;
  Random random(3, 4);
  for (int i = 0; i < 24000; ++i) {
    Lengths lengths(2);
    DrawLengths(divisors, 2, 6, &random, lengths.data());
    ++found[lengths];
  }
  std::size_t expected = 0;
  for (const std::int64_t outer : divisors.all) {
    for (const std::int64_t inner : divisors.all)
      expected += inner <= 6 && 12 % (outer * inner) == 0;
  }
  EXPECT_EQ(found.size(), expected);  // 17: each about 1,412 times
  for (const auto& [lengths, times] : found) EXPECT(times > 1200 && times < 1650);
}

TEST(AMutationChangesWhatItIsCalledAfterAndNothingElse) {
  Bred bred({Product("[4, 2, 8]", "0, 1, 2", "3"), Elsewhere()});
  const auto unrolled = bred.Children(Only(Change::kUnroll), 400);
  const std::set<std::string> unrolls(unrolled.begin(), unrolled.end());
  EXPECT(unrolls.count(Product("[4, 2, 8]", "0, 1, 2", "3", "0")) == 1);
  EXPECT(unrolls.count(Product("[4, 2, 8]", "0, 1, 2", "3", "512")) == 1);
  EXPECT_EQ(unrolls.size(), std::size_t{3});
  const auto fused = bred.Children(Only(Change::kFuse), 400);
  EXPECT(
      (std::set<std::string>(fused.begin(), fused.end()) ==
       std::set<std::string>{Product("[4, 2, 8]", "0", "5"), Product("[4, 2, 8]", "0, 1", "4")}));
  const auto moved = bred.Children(Only(Change::kForm), 400);
  const std::set<std::string> forms(moved.begin(), moved.end());
  EXPECT_EQ(forms.size(), std::size_t{2});
  EXPECT(std::all_of(forms.begin(), forms.end(), [](const std::string& text) {
    return (text.find("[2, 2, 2]") == std::string::npos) == (text.find("CR") != std::string::npos);
  }));
}

TEST(ChildrenDoNotDependOnThreads) {
  Bred bred({Product(), Elsewhere(), Another()});
  Plan plan;
  plan.rules.unrolls = {0, 512};
  std::fill(std::begin(plan.rules.weights), std::end(plan.rules.weights), 1.0);
  plan.rules.another = 0.3;
  plan.fresh = 0.2, plan.cross = 0.4, plan.alter = 0.5;
  const auto one = bred.Children(plan, 3000, 1);
  EXPECT(one.size() > 500);
  EXPECT(one == bred.Children(plan, 3000, 4));
  EXPECT(one == bred.Children(plan, 3000, 7));
  const std::set<std::string> different(one.begin(), one.end());
  EXPECT_EQ(different.size(), one.size());
}

TEST(WhatIsKnownOrRefusedIsNoChild) {
  Bred bred({Product(), Elsewhere()});
  Plan plan = Only(Change::kMove);
  const auto all = bred.Children(plan, 500);
  Bred again({Product(), Elsewhere()});
  const Population some =
      Breed(again.stock, again.parents, {1.0, 1.0}, plan, 500, 7, {}, {}, 1, &again.tally);
  std::vector<std::uint64_t> known = {some.hash(0), some.hash(2)};
  std::sort(known.begin(), known.end());
  const auto fewer = bred.Children(plan, 500, 1, known);
  EXPECT_EQ(fewer.size(), all.size() - 2);
  EXPECT(std::find(fewer.begin(), fewer.end(), all[0]) == fewer.end());
  bred.tally = {};
  const auto accepted = bred.Children(plan, 500, 1, {}, [] {
    return [](const auto& program) {
      return program.ValuesOf(std::size_t{0})[4] != 4;  // the outermost length of the first split
    };
  });
  EXPECT(bred.tally.refused > 0);
  for (const auto& text : accepted) EXPECT(text.find("512, [4,") == std::string::npos);
}

TEST(ParentsOfTwoSketchesAreRefused) {
  Bred bred({Product(), Elsewhere(), Another()});
  EXPECT_THROWS(
      CrossOf(bred.stock, bred.parents, 0, 2, 1), tlp_tvm::RecordError,
      "program 2: expected sketch 0 as of the other parent, found sketch 1; cross programs "
      "of one sketch");
  std::set<std::int64_t> first_lengths;
  for (std::uint64_t seed = 0; seed < 32; ++seed) {
    const Child child = CrossOf(bred.stock, bred.parents, 0, 1, seed);
    EXPECT_EQ(child.form, std::size_t{0});
    first_lengths.insert(child.row[bred.stock.forms()[0].splits[0].row + 1]);
  }
  EXPECT((first_lengths == std::set<std::int64_t>{4, 2}));
}
