#include "breeding/stock.h"

#include <algorithm>
#include <limits>

#include "breeding/random.h"
#include "core/saturating.h"

namespace tlp_tvm {
namespace breeding {
namespace {

/*! \brief Loops of more turns keep their tile sizes: no int of TVM counts them. */
constexpr std::int64_t kMostExtent = std::numeric_limits<std::int32_t>::max();

}  // namespace

std::int64_t Stock::NameOf(std::string_view name) {
  const auto [known, is_new] = names_.try_emplace(std::string(name), 0);
  if (is_new) {
    known->second = NameRef::Pack(text_.size(), name.size());
    text_ += name;
  }
  return known->second;
}

void Stock::KnowUnroll(std::int64_t number) {
  if (species_->unroll_pragma == nullptr) return;
  for (const auto& [known, name] : unrolls_) {
    if (known == number) return;
  }
  const std::int64_t name = NameOf(species_->unroll_pragma + std::to_string(number));
  unrolls_.emplace_back(number, name);
}

std::int64_t Stock::UnrollName(std::int64_t number) const {
  for (const auto& [known, name] : unrolls_) {
    if (known == number) return name;
  }
  return unrolls_.front().second;  // never: genes are numbers that were made known
}

const Divisors* Stock::DivisorsOf(std::int64_t extent) const {
  const auto found = divisors_.find(extent);
  return found == divisors_.end() ? nullptr : &found->second;
}

void Stock::TakeNames(const PrimitiveSequence& program, Form* form) {
  for (const Primitive& primitive : form->primitives) {
    const KindSpec& spec = species_->vocabulary->kinds[primitive.kind];
    std::int64_t* value = form->values.data() + primitive.first_value;
    for (std::size_t f = 0; f < spec.field_count; ++f) {
      const FieldType type = spec.fields[f].type;
      if (type == FieldType::kName) *value = NameOf(program.Name(*value));
      value += type == FieldType::kList ? 1 + *value : 1;
    }
  }
}

std::pair<std::size_t, Row> Stock::Add(const PrimitiveSequence& program) {
  Parsed parsed = species_->parse(program);
  const auto sketch = sketch_of_.try_emplace(parsed.sketch_key, sketches_.size()).first->second;
  if (sketch == sketches_.size()) sketches_.emplace_back();
  const auto form = form_of_.try_emplace(parsed.form_key, forms_.size()).first->second;
  if (form == forms_.size()) {
    Form& added = parsed.form;
    added.sketch = sketch;
    added.key = parsed.form_key.size();
    for (const char c : parsed.form_key) added.key = Mix(added.key ^ static_cast<unsigned char>(c));
    added.shown = parsed.row;
    TakeNames(program, &added);
    sketches_[sketch].forms.push_back(form);
    forms_.push_back(std::move(added));
    stride_ = std::max(stride_, parsed.row.size());
  }
  Form& known = forms_[form];
  ++known.programs;
  for (FuseGene& fuse : known.fuses) fuse.most = std::max(fuse.most, parsed.row[fuse.row]);
  for (PickGene& pick : known.picks) {
    const std::int64_t shown = parsed.row[pick.row];
    const auto place = std::lower_bound(pick.options.begin(), pick.options.end(), shown);
    if (place == pick.options.end() || *place != shown) pick.options.insert(place, shown);
  }
  Note(known, parsed.row);
  return {form, std::move(parsed.row)};
}

void Stock::Note(const Form& form, const Row& row) {
  for (const UnrollGene& unroll : form.unrolls) KnowUnroll(row[unroll.row]);
  Sketch& sketch = sketches_[form.sketch];
  const bool is_first = sketch.lengths.empty();
  sketch.varies.resize(form.splits.size());
  for (std::size_t i = 0; i < form.splits.size(); ++i) {
    const SplitGene& split = form.splits[i];
    const std::int64_t extent = row[split.row];
    if (extent > 1 && extent <= kMostExtent) divisors_.try_emplace(extent, extent);
    const auto begin = row.begin() + static_cast<std::ptrdiff_t>(split.row) + 1;
    std::vector<std::int64_t> lengths(begin, begin + static_cast<std::ptrdiff_t>(split.parts));
    if (is_first) {
      sketch.lengths.push_back(std::move(lengths));
    } else if (lengths != sketch.lengths[i]) {
      sketch.varies[i] = true;
    }
  }
}

std::uint64_t Stock::HashOf(std::size_t form, const std::int64_t* row) const {
  std::uint64_t hash = forms_[form].key;
  for (std::size_t i = 0; i < forms_[form].shown.size(); ++i) {
    hash = Mix(hash ^ Mix(static_cast<std::uint64_t>(row[i])));
  }
  return hash;
}

PrimitiveSequence Stock::Write(std::size_t index, const std::int64_t* row, Draft* draft) const {
  const Form& form = forms_[index];
  std::vector<std::int64_t>& values = draft->values;
  values.assign(form.values.begin(), form.values.end());
  draft->primitives.assign(form.primitives.begin(), form.primitives.end());
  for (const Copy& copy : form.copies) values[copy.value] = row[copy.row];
  for (const SplitGene& split : form.splits) {
    if (split.outer.empty()) continue;
    std::int64_t inside = 1;
    for (std::size_t k = 1; k <= split.parts; ++k) inside = Product(inside, row[split.row + k]);
    for (const std::size_t value : split.outer) values[value] = row[split.row] / inside;
  }
  for (const PickGene& pick : form.picks) {
    for (const std::size_t value : pick.named) {
      values[value] = pick.numbers[static_cast<std::size_t>(row[pick.row])];
    }
  }
  for (const UnrollGene& unroll : form.unrolls) {
    values[unroll.value] = UnrollName(row[unroll.row]);
  }
  for (const LoopNumber& loop : form.loops) {
    values[loop.value] -= row[form.fuses[loop.fuse].row] - 1;
  }
  // From the last to the first, so that places before stay where they are.
  for (std::size_t i = form.fuses.size(); i-- > 0;) {
    const FuseGene& fuse = form.fuses[i];
    const std::int64_t count = row[fuse.row], more = count - fuse.shown;
    if (more == 0) continue;
    const auto list = values.begin() + static_cast<std::ptrdiff_t>(fuse.value) + 1;
    values[fuse.value] = count;
    if (more < 0) {
      values.erase(list + count, list + fuse.shown);
    } else {
      values.insert(list + fuse.shown, static_cast<std::size_t>(more), 0);
      for (std::int64_t k = fuse.shown; k < count; ++k) {
        values[fuse.value + 1 + static_cast<std::size_t>(k)] = k;
      }
    }
    for (std::size_t p = draft->primitives.size(); p-- > 0;) {
      Primitive& primitive = draft->primitives[p];
      if (primitive.first_value < fuse.value) break;
      primitive.first_value = static_cast<std::uint32_t>(primitive.first_value + more);
    }
  }
  return {draft->primitives.data(), draft->primitives.size(), values.data(), text_.data()};
}

}  // namespace breeding
}  // namespace tlp_tvm
