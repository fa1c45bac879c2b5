#include "metaschedule/trace_form.h"

#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "breeding/tiles.h"
#include "core/error.h"
#include "core/saturating.h"
#include "metaschedule/kinds.h"

namespace tlp_tvm {
namespace metaschedule {
namespace {

using breeding::Form;
using breeding::kMaxParts;
using breeding::Parsed;
using breeding::PickGene;
using breeding::SplitGene;

/*! \brief No loop of TVM has more turns. */
constexpr std::int64_t kMostFactor = std::numeric_limits<std::int32_t>::max();

/*! \brief Which gene a random variable is a number of. */
struct Decided {
  bool is_split;
  std::size_t gene;  ///< among the form's splits, or its picks
  std::size_t part;  ///< of a split: 0 the outermost
};

[[noreturn]] void Refuse(std::size_t i, std::string_view kind, const std::string& expected,
                         const std::string& found) {
  throw RecordError("instruction " + std::to_string(i) + " (" + std::string(kind) + "): expected " +
                    expected + ", found " + found +
                    "; breed traces that a search of MetaSchedule drew");
}

/*! \brief Goes over the fields of a program's instructions, and copies them into a form. */
class Parser {
 public:
  explicit Parser(const PrimitiveSequence& program) : program_(program) {}

  Parsed Run() {
    for (at_ = 0; at_ < program_.size; ++at_) {
      const Primitive& primitive = program_.primitives[at_];
      spec_ = &Instructions()[primitive.kind];
      if (spec_->name == kEnterPostproc) break;
      value_ = program_.ValuesOf(primitive);
      form().primitives.push_back(
          {primitive.kind, static_cast<std::uint32_t>(form().values.size())});
      key() += '\n' + std::to_string(primitive.kind) + ' ';
      const bool is_tile = spec_->name == std::string_view("SamplePerfectTile");
      if (is_tile) {
        Tile();
      } else if (spec_->decision == Decision::kIndex) {
        Pick();
      } else {
        Instruction();
      }
    }
    out_.sketch_key = out_.form_key;
    return std::move(out_);
  }

 private:
  Form& form() { return out_.form; }
  std::string& key() { return out_.form_key; }

  std::int64_t Take() { return *value_++; }
  /*! \brief Copies a number that is part of the form. */
  std::int64_t Keep() {
    const std::int64_t value = Take();
    form().values.push_back(value);
    key() += std::to_string(value) + ',';
    return value;
  }
  void KeepList() {
    for (std::int64_t left = Keep(); left > 0; --left) Keep();
  }
  void KeepName() {
    const std::int64_t name = Take();
    form().values.push_back(name);
    key() += std::string(program_.Name(name)) + '\n';
  }
  /*! \brief Copies a number that a variable stands for, where that is a gene's. */
  void KeepDecided(std::int64_t variable) {
    const auto known = decided_.find(variable);
    if (known == decided_.end()) {
      Keep();
      return;
    }
    const std::size_t place = form().values.size();
    form().values.push_back(Take());
    key() += 'v';
    const Decided& decided = known->second;
    if (!decided.is_split) {
      form().picks[decided.gene].named.push_back(place);
    } else if (decided.part == 0) {
      form().splits[decided.gene].outer.push_back(place);
    } else {
      form().copies.push_back({place, form().splits[decided.gene].row + decided.part});
    }
  }

  /*! \brief loop, n, max_innermost_factor, defines, outputs, decision. */
  void Tile() {
    Keep();
    const std::int64_t parts = Keep();
    const std::int64_t most = Keep();
    const std::int64_t defines = Keep();
    Keep();
    const std::int64_t factors = Take();
    if (factors != parts || factors < 1 || factors > static_cast<std::int64_t>(kMaxParts)) {
      Refuse(at_, spec_->name, "1 to " + std::to_string(kMaxParts) + " factors, as many as n",
             std::to_string(factors));
    }
    const std::size_t place = form().values.size(), row = out_.row.size();
    const std::size_t gene = form().splits.size();
    SplitGene split{row, static_cast<std::size_t>(factors) - 1, most > 0 ? most : kMostFactor};
    split.outer.push_back(place + 1);
    form().values.push_back(factors);
    key() += 't';
    std::int64_t extent = 1;
    out_.row.push_back(0);
    for (std::int64_t i = 0; i < factors; ++i) {
      const std::int64_t factor = Take();
      if (factor < 1 || factor > kMostFactor) {
        Refuse(at_, spec_->name, "factors of 1 or more", std::to_string(factor));
      }
      extent = Product(extent, factor);
      decided_[defines + i] = {true, gene, static_cast<std::size_t>(i)};
      form().values.push_back(factor);
      if (i == 0) continue;
      form().copies.push_back({place + 1 + static_cast<std::size_t>(i), out_.row.size()});
      out_.row.push_back(factor);
    }
    out_.row[row] = extent;
    key() += std::to_string(extent);  // a loop of another extent is another one
    form().splits.push_back(std::move(split));
  }

  /*! \brief candidates, probs, defines, decision, which readers check; or block, defines, decision. */
  void Pick() {
    PickGene pick{out_.row.size(), {}, true};
    if (!spec_->attributes.empty()) {
      pick.grows = false;
      const std::int64_t* const candidates = value_;
      pick.numbers.assign(candidates + 1, candidates + 1 + candidates[0]);
      for (std::int64_t i = 0; i < candidates[0]; ++i) pick.options.push_back(i);
      KeepList();
      KeepList();
    } else {
      Keep();
    }
    const std::int64_t defines = Keep(), decision = Take();
    if (!pick.grows) decided_[defines] = {false, form().picks.size(), 0};
    form().copies.push_back({form().values.size(), out_.row.size()});
    form().values.push_back(decision);
    out_.row.push_back(decision);
    form().picks.push_back(std::move(pick));
    key() += 'p';
  }

  void Instruction() {
    for (const SlotSpec& slot : spec_->inputs) Operand(slot);
    for (const SlotSpec& slot : spec_->attributes) Operand(slot);
    if (spec_->outputs != Outputs::kNone) Keep();
    if (spec_->outputs == Outputs::kMany) Keep();
    if (spec_->decision == Decision::kIndex) Keep();
    if (spec_->decision == Decision::kFactors) KeepList();
  }

  void Operand(const SlotSpec& slot) {
    switch (slot.slot) {
      case Slot::kReferences:
      case Slot::kReferenceList:
      case Slot::kIntegers:
      case Slot::kReals:
        return KeepList();
      case Slot::kAmounts:
        return Amounts();
      case Slot::kAnything: {
        const std::int64_t kind = Keep();
        const std::int64_t from = value_[1];
        if (kind == metaschedule::Form::kReference) {
          KeepDecided(from);
        } else {
          Keep();
        }
        Keep();
        KeepName();
        return KeepList();
      }
      case Slot::kName:
      case Slot::kRest:
        return KeepName();
      case Slot::kReference:
      case Slot::kInteger:
      case Slot::kFlag:
        Keep();
        return;
    }
  }

  /*! \brief A list of numbers, then a list of the variables that they stand for. */
  void Amounts() {
    const std::int64_t count = Keep();
    const std::int64_t* const from = value_ + count + 1;
    for (std::int64_t i = 0; i < count; ++i) KeepDecided(from[i]);
    KeepList();
  }

  const PrimitiveSequence& program_;
  const InstructionSpec* spec_ = nullptr;
  const std::int64_t* value_ = nullptr;
  std::size_t at_ = 0;
  std::unordered_map<std::int64_t, Decided> decided_;
  Parsed out_;
};

Parsed Parse(const PrimitiveSequence& program) { return Parser(program).Run(); }

}  // namespace

const breeding::Species& TraceSpecies() {
  static const breeding::Species species = {&TraceVocabulary(), &Parse, nullptr};
  return species;
}

}  // namespace metaschedule
}  // namespace tlp_tvm
