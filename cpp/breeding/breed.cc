#include "breeding/breed.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/parallel_for.h"

namespace tlp_tvm {
namespace breeding {
namespace {

constexpr std::size_t kChildrenPerBlock = 256;

/*! \brief Attempts at one child. */
constexpr int kAttempts = 16;

/*! \brief Picks numbers by weights. */
class Wheel {
 public:
  void Add(std::size_t number, double weight) {
    if (!(weight > 0)) return;
    numbers_.push_back(number);
    ends_.push_back((ends_.empty() ? 0 : ends_.back()) + weight);
  }
  bool empty() const { return numbers_.empty(); }
  std::size_t Pick(Random* random) const {
    const double at = random->Share() * ends_.back();
    const auto found = std::upper_bound(ends_.begin(), ends_.end(), at);
    const auto place = std::min<std::ptrdiff_t>(found - ends_.begin(),
                                                static_cast<std::ptrdiff_t>(ends_.size()) - 1);
    return numbers_[static_cast<std::size_t>(place)];
  }

 private:
  std::vector<std::size_t> numbers_;
  std::vector<double> ends_;
};

/*! \brief All that threads read. */
struct Farm {
  const Stock& stock;
  const Population& parents;
  const Plan& plan;
  Wheel all;
  std::vector<Wheel> of_sketch;

  Farm(const Stock& the_stock, const Population& the_parents, const std::vector<double>& weights,
       const Plan& the_plan)
      : stock(the_stock), parents(the_parents), plan(the_plan), of_sketch(stock.sketches().size()) {
    for (std::size_t i = 0; i < parents.size(); ++i) {
      all.Add(i, weights[i]);
      of_sketch[stock.forms()[parents.form(i)].sketch].Add(i, weights[i]);
    }
  }

  void Take(std::size_t parent, Child* child) const {
    child->form = parents.form(parent);
    child->row.assign(stock.stride(), 0);
    std::copy_n(parents.row(parent), stock.forms()[child->form].shown.size(), child->row.begin());
  }

  /*! \return Whether there is a child. */
  bool Make(Random* random, Child* child) const {
    if (all.empty() || random->Share() < plan.fresh) {
      const auto& forms = stock.sketches()[random->Below(stock.sketches().size())].forms;
      Draw(stock, plan.rules, forms[random->Below(forms.size())], random, child);
      return true;
    }
    Take(all.Pick(random), child);
    if (random->Share() < plan.cross) {
      const Wheel& mates = of_sketch[stock.forms()[child->form].sketch];
      const std::size_t mate = mates.Pick(random);
      Cross(stock, parents.form(mate), parents.row(mate), random, child);
      if (random->Share() >= plan.alter) return true;
    }
    return Mutate(stock, plan.rules, random, child);
  }
};

}  // namespace

Population Breed(const Stock& stock, const Population& parents, const std::vector<double>& weights,
                 const Plan& plan, std::size_t count, std::uint64_t seed,
                 const std::vector<std::uint64_t>& known, const AcceptsOfThread& accepts,
                 int threads, Tally* tally) {
  Population made(count, stock.stride());
  std::vector<char> is_made(count);
  std::atomic<std::size_t> refused{0};
  if (stock.forms().empty()) return Population(0, stock.stride());
  const Farm farm(stock, parents, weights, plan);
  ParallelFor(count, kChildrenPerBlock, threads, [&](std::size_t begin, std::size_t end) {
    Child child;
    Draft draft;
    const Accepts accept = accepts ? accepts() : Accepts();
    for (std::size_t i = begin; i < end; ++i) {
      Random random(seed, i);
      for (int attempt = 0; attempt < kAttempts && is_made[i] == 0; ++attempt) {
        if (!farm.Make(&random, &child)) continue;
        if (accept && !accept(stock.Write(child.form, child.row.data(), &draft))) {
          ++refused;
          continue;
        }
        const std::uint64_t hash = stock.HashOf(child.form, child.row.data());
        made.Set(i, child.form, hash, child.row.data(), stock.stride());
        is_made[i] = 1;
      }
    }
  });
  std::unordered_set<std::uint64_t> seen;
  seen.reserve(count);
  std::vector<std::size_t> places;
  places.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (is_made[i] == 0) {
      ++tally->barren;
    } else if (std::binary_search(known.begin(), known.end(), made.hash(i)) ||
               !seen.insert(made.hash(i)).second) {
      ++tally->equal;
    } else {
      places.push_back(i);
    }
  }
  tally->made += count;
  tally->refused += refused;
  return Population::Of(made, places);
}

Child CrossOf(const Stock& stock, const Population& programs, std::size_t first, std::size_t second,
              std::uint64_t seed) {
  const std::size_t a = stock.forms()[programs.form(first)].sketch;
  const std::size_t b = stock.forms()[programs.form(second)].sketch;
  if (a != b) {
    throw RecordError("program " + std::to_string(second) + ": expected sketch " +
                      std::to_string(a) + " as of the other parent, found sketch " +
                      std::to_string(b) + "; cross programs of one sketch");
  }
  Child child;
  child.form = programs.form(first);
  child.row.assign(stock.stride(), 0);
  std::copy_n(programs.row(first), stock.forms()[child.form].shown.size(), child.row.begin());
  Random random(seed, 0);
  Cross(stock, programs.form(second), programs.row(second), &random, &child);
  return child;
}

}  // namespace breeding
}  // namespace tlp_tvm
