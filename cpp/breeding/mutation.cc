#include "breeding/mutation.h"

#include <algorithm>
#include <array>

namespace tlp_tvm {
namespace breeding {
namespace {

constexpr int kTries = 8;

/*! \return The longest innermost loop of a split. */
std::int64_t MostOf(const SplitGene& split, std::int64_t most_innermost) {
  return split.most > 0 ? split.most : most_innermost;
}

/*! \brief TVM leaves splits alone of unknown extent, of one turn, or of a long innermost loop. */
bool IsMutable(const SplitGene& split, const Row& row, std::int64_t most_innermost) {
  return split.parts > 0 && row[split.row] > 1 &&
         row[split.row + split.parts] <= MostOf(split, most_innermost);
}

/*! \return A split to change, or null. */
const SplitGene* PickSplit(const Form& form, const Row& row, std::int64_t most_innermost,
                           Random* random) {
  std::size_t fitting = 0;
  for (const SplitGene& split : form.splits) fitting += IsMutable(split, row, most_innermost);
  if (fitting == 0) return nullptr;
  std::size_t chosen = random->Below(fitting);
  for (const SplitGene& split : form.splits) {
    if (IsMutable(split, row, most_innermost) && chosen-- == 0) return &split;
  }
  return nullptr;
}

/*! \return Whether another number than before was drawn. */
bool Redraw(std::int64_t number, std::int64_t* gene) {
  const bool is_new = *gene != number;
  *gene = number;
  return is_new;
}

/*! \brief Another option of one of the picks, or of the places where `grows`. */
bool PickAnother(const std::vector<PickGene>& picks, bool grows, Random* random, Row* row) {
  const auto is_open = [&](const PickGene& pick) {
    return pick.grows == grows && pick.options.size() > 1;
  };
  std::size_t open = 0;
  for (const PickGene& pick : picks) open += is_open(pick);
  if (open == 0) return false;
  std::size_t chosen = random->Below(open);
  for (const PickGene& pick : picks) {
    if (is_open(pick) && chosen-- == 0) {
      return Redraw(pick.options[random->Below(pick.options.size())], &(*row)[pick.row]);
    }
  }
  return false;
}

template <typename Gene>
const std::int64_t* GeneOf(const std::vector<Gene>& genes, std::int64_t stage,
                           const std::int64_t* row) {
  for (const Gene& gene : genes) {
    if (gene.stage == stage) return row + gene.row;
  }
  return nullptr;
}

/*! \return Which to take of some with weights. */
std::size_t Choose(const double* weights, std::size_t count, Random* random) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += weights[i];
  double at = random->Share() * sum;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    if (at < weights[i]) return i;
    at -= weights[i];
  }
  return count - 1;
}

bool ChangeForm(const Stock& stock, Random* random, Child* child) {
  const std::vector<std::size_t>& forms = stock.sketches()[stock.forms()[child->form].sketch].forms;
  if (forms.size() < 2) return false;
  const std::size_t form = forms[random->Below(forms.size())];
  if (form == child->form) return false;
  TakeForm(stock, form, random, child);
  return true;
}

}  // namespace

bool Apply(Change change, const Stock& stock, const Rules& rules, Random* random, Child* child) {
  const Form& form = stock.forms()[child->form];
  switch (change) {
    case Change::kMove:
    case Change::kDraw: {
      const SplitGene* split = PickSplit(form, child->row, rules.most_innermost, random);
      if (split == nullptr) return false;
      std::int64_t* const gene = child->row.data() + split->row;
      const Divisors* divisors = stock.DivisorsOf(gene[0]);
      const std::int64_t most = MostOf(*split, rules.most_innermost);
      if (divisors == nullptr) return false;
      if (change == Change::kMove) return MoveFactor(gene[0], split->parts, most, random, gene + 1);
      std::array<std::int64_t, kMaxParts> before{};
      std::copy_n(gene + 1, split->parts, before.begin());
      DrawLengths(*divisors, split->parts, most, random, gene + 1);
      return !std::equal(gene + 1, gene + 1 + split->parts, before.begin());
    }
    case Change::kUnroll: {
      if (form.unrolls.empty() || rules.unrolls.empty()) {
        return PickAnother(form.picks, false, random, &child->row);
      }
      const UnrollGene& gene = form.unrolls[random->Below(form.unrolls.size())];
      return Redraw(rules.unrolls[random->Below(rules.unrolls.size())], &child->row[gene.row]);
    }
    case Change::kForm:
      return ChangeForm(stock, random, child) ||
             PickAnother(stock.forms()[child->form].picks, true, random, &child->row);
    case Change::kFuse: {
      if (form.fuses.empty()) return false;
      const FuseGene& gene = form.fuses[random->Below(form.fuses.size())];
      const auto count = random->Below(static_cast<std::size_t>(gene.most)) + 1;
      return Redraw(static_cast<std::int64_t>(count), &child->row[gene.row]);
    }
  }
  return false;
}

bool Mutate(const Stock& stock, const Rules& rules, Random* random, Child* child) {
  bool is_changed = false;
  do {
    for (int i = 0; i < kTries; ++i) {
      const auto change = static_cast<Change>(Choose(rules.weights, kChangeCount, random));
      if (Apply(change, stock, rules, random, child)) {
        is_changed = true;
        break;
      }
    }
  } while (is_changed && random->Share() < rules.another);
  return is_changed;
}

void TakeForm(const Stock& stock, std::size_t form, Random* random, Child* child) {
  const Form& from = stock.forms()[child->form];
  const Form& to = stock.forms()[form];
  Row row(child->row.size());
  for (std::size_t i = 0; i < to.splits.size(); ++i) {  // a sketch's forms have the same ones
    std::copy_n(child->row.data() + from.splits[i].row, 1 + to.splits[i].parts,
                row.data() + to.splits[i].row);
  }
  for (const UnrollGene& gene : to.unrolls) {
    const std::int64_t* had = GeneOf(from.unrolls, gene.stage, child->row.data());
    row[gene.row] = had != nullptr ? *had : gene.shown;
  }
  for (const FuseGene& gene : to.fuses) {
    const std::int64_t* had = GeneOf(from.fuses, gene.stage, child->row.data());
    const auto drawn = random->Below(static_cast<std::size_t>(gene.most)) + 1;
    row[gene.row] = had != nullptr ? std::min(*had, gene.most) : static_cast<std::int64_t>(drawn);
  }
  for (std::size_t i = 0; i < to.picks.size(); ++i) {
    row[to.picks[i].row] = child->row[from.picks[i].row];
  }
  child->form = form;
  child->row = std::move(row);
}

void Cross(const Stock& stock, std::size_t other_form, const std::int64_t* other, Random* random,
           Child* child) {
  const Form& form = stock.forms()[child->form];
  const Form& from = stock.forms()[other_form];
  for (std::size_t i = 0; i < form.splits.size(); ++i) {
    if (random->Coin()) continue;
    std::copy_n(other + from.splits[i].row, 1 + form.splits[i].parts,
                child->row.data() + form.splits[i].row);
  }
  for (std::size_t i = 0; i < form.picks.size(); ++i) {
    if (random->Coin()) child->row[form.picks[i].row] = other[from.picks[i].row];
  }
  for (const UnrollGene& gene : form.unrolls) {
    const std::int64_t* had = GeneOf(from.unrolls, gene.stage, other);
    if (had != nullptr && random->Coin()) child->row[gene.row] = *had;
  }
  for (const FuseGene& gene : form.fuses) {
    const std::int64_t* had = GeneOf(from.fuses, gene.stage, other);
    if (had != nullptr && random->Coin()) child->row[gene.row] = std::min(*had, gene.most);
  }
}

void Draw(const Stock& stock, const Rules& rules, std::size_t form, Random* random, Child* child) {
  const Form& of = stock.forms()[form];
  const Sketch& sketch = stock.sketches()[of.sketch];
  child->form = form;
  child->row.assign(stock.stride(), 0);
  for (std::size_t i = 0; i < of.splits.size(); ++i) {
    const SplitGene& split = of.splits[i];
    std::int64_t* const gene = child->row.data() + split.row;
    std::copy_n(of.shown.data() + split.row, 1 + split.parts, gene);
    const Divisors* divisors = stock.DivisorsOf(gene[0]);
    if (!sketch.varies[i] || divisors == nullptr) continue;
    DrawLengths(*divisors, split.parts, MostOf(split, rules.most_innermost), random, gene + 1);
  }
  for (const PickGene& gene : of.picks) {
    child->row[gene.row] = gene.options[random->Below(gene.options.size())];
  }
  for (const UnrollGene& gene : of.unrolls) {
    child->row[gene.row] =
        rules.unrolls.empty() ? gene.shown : rules.unrolls[random->Below(rules.unrolls.size())];
  }
  for (const FuseGene& gene : of.fuses) {
    child->row[gene.row] =
        static_cast<std::int64_t>(random->Below(static_cast<std::size_t>(gene.most))) + 1;
  }
}

}  // namespace breeding
}  // namespace tlp_tvm
