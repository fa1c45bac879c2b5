#include "ansor/program_form.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include "ansor/steps.h"
#include "breeding/tiles.h"
#include "core/error.h"

namespace tlp_tvm {
namespace ansor {
namespace {

using breeding::Form;
using breeding::FuseGene;
using breeding::kMaxParts;
using breeding::Parsed;

/*! \brief The pragma that is a gene, before its number. */
constexpr char kUnrollPragma[] = "auto_unroll_max_step$";

/*! \brief TVM's IteratorAnnotation::kParallel. */
constexpr std::int64_t kParallel = 3;

constexpr std::int64_t kMostNumber = std::numeric_limits<std::int32_t>::max();

StepKind KindOf(const Primitive& primitive) { return static_cast<StepKind>(primitive.kind); }

[[noreturn]] void Refuse(std::size_t step, const std::string& expected, const std::string& found) {
  throw RecordError("step " + std::to_string(step) + ": expected " + expected + ", found " + found +
                    "; breed programs that a search of Ansor drew");
}

void ExpectNumber(std::size_t step, const char* what, std::int64_t value, std::int64_t least,
                  std::int64_t most = kMostNumber) {
  if (value >= least && value <= most) return;
  Refuse(step,
         std::string(what) + " between " + std::to_string(least) + " and " + std::to_string(most),
         std::to_string(value));
}

void ExpectList(std::size_t step, const char* what, const std::int64_t* list, std::int64_t least) {
  for (std::int64_t i = 1; i <= *list; ++i) ExpectNumber(step, what, list[i], least);
}

/*! \brief The step that another follows is a split before it. */
void ExpectSource(const PrimitiveSequence& program, std::size_t step, std::int64_t source) {
  if (source < 0 || source >= static_cast<std::int64_t>(step) ||
      KindOf(program.primitives[source]) != StepKind::SP) {
    Refuse(step, "src_step_id to be a split before it", std::to_string(source));
  }
}

/*! \brief What no encoder minds, but no program has. */
void Check(const PrimitiveSequence& program, std::size_t step) {
  const std::int64_t* const value = program.ValuesOf(step);
  ExpectNumber(step, "stage_id", value[0], 0);
  switch (KindOf(program.primitives[step])) {
    case StepKind::SP:
      ExpectNumber(step, "iter_id", value[1], 0);
      ExpectNumber(step, "extent", value[2], 0, std::numeric_limits<std::int64_t>::max());
      ExpectNumber(step, "the number of lengths", value[3], 1, kMaxParts);
      ExpectList(step, "lengths", value + 3, 1);
      break;
    case StepKind::FU:
      ExpectNumber(step, "the number of fused_ids", value[1], 1);
      for (std::int64_t i = 0; i < value[1]; ++i) {
        const std::int64_t first = value[2];
        ExpectNumber(step, "fused_ids", value[2 + i], i == 0 ? 0 : first + i,
                     i == 0 ? kMostNumber : first + i);
      }
      break;
    case StepKind::RE: {
      std::vector<std::int64_t> order(value + 2, value + 2 + value[1]);
      std::sort(order.begin(), order.end());
      for (std::size_t i = 0; i < order.size(); ++i) {
        if (order[i] != static_cast<std::int64_t>(i)) {
          Refuse(step, "after_ids to hold every loop once", "another " + std::to_string(order[i]));
        }
      }
      break;
    }
    case StepKind::FSP:
      ExpectNumber(step, "iter_id", value[1], 0);
      ExpectSource(program, step, value[2]);
      ExpectNumber(step, "n_split", value[3], 1,
                   program.ValuesOf(static_cast<std::size_t>(value[2]))[3] + 1);
      break;
    case StepKind::FFSP:
      ExpectNumber(step, "iter_id", value[1], 0);
      for (std::int64_t i = 0; i < value[2]; ++i) ExpectSource(program, step, value[3 + i]);
      break;
    case StepKind::AN:
    case StepKind::PR:
      ExpectNumber(step, "iter_id", value[1], 0);
      break;
    case StepKind::CA:
      ExpectNumber(step, "target_stage_id", value[1], 0);
      ExpectNumber(step, "target_iter_id", value[2], 0);
      break;
    default:
      break;
  }
}

/*! \brief Steps that may follow a fusion whose size changes: they name single loops or none. */
bool LeavesLoopsOf(const PrimitiveSequence& program, std::size_t step, std::int64_t stage) {
  const std::int64_t* const value = program.ValuesOf(step);
  switch (KindOf(program.primitives[step])) {
    case StepKind::AN:
    case StepKind::PR:
    case StepKind::FU:
      return true;
    case StepKind::CA:
      return value[0] != stage && value[1] != stage;
    case StepKind::CHR:
    case StepKind::CHW:
    case StepKind::RF:
      return false;  // stages get other numbers
    default:
      return value[0] != stage;
  }
}

bool IsFuseGene(const PrimitiveSequence& program, std::size_t step) {
  const std::int64_t* const value = program.ValuesOf(step);
  if (KindOf(program.primitives[step]) != StepKind::FU || value[2] != 0) return false;
  if (step + 1 >= program.size || KindOf(program.primitives[step + 1]) != StepKind::AN)
    return false;
  const std::int64_t* const next = program.ValuesOf(step + 1);
  if (next[0] != value[0] || next[1] != 0 || next[2] != kParallel) return false;
  for (std::size_t later = step + 2; later < program.size; ++later) {
    if (!LeavesLoopsOf(program, later, value[0])) return false;
  }
  return true;
}

/*! \return The number of an unroll pragma, or -1. */
std::int64_t UnrollOf(std::string_view name) {
  constexpr std::string_view kBefore = kUnrollPragma;
  if (name.substr(0, kBefore.size()) != kBefore) return -1;
  name.remove_prefix(kBefore.size());
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = error == std::errc() && end == name.data() + name.size();
  return whole && number >= 0 && number <= kMostNumber ? number : -1;
}

bool IsOfSketch(StepKind kind) {
  switch (kind) {
    case StepKind::SP:
    case StepKind::FSP:
    case StepKind::FFSP:
    case StepKind::RE:
    case StepKind::CHR:
    case StepKind::CHW:
    case StepKind::RF:
    case StepKind::SA:
      return true;
    default:
      return false;
  }
}

class Parser {
 public:
  explicit Parser(const PrimitiveSequence& program) : program_(program) {}

  Parsed Run() {
    for (std::size_t i = 0; i < program_.size; ++i) {
      Check(program_, i);
      Step(i);
    }
    return std::move(out_);
  }

 private:
  void Step(std::size_t i) {
    const Primitive& primitive = program_.primitives[i];
    const KindSpec& spec = kStepKinds[primitive.kind];
    const StepKind kind = KindOf(primitive);
    Form& form = out_.form;
    const bool is_fuse = IsFuseGene(program_, i);
    const std::int64_t* value = program_.ValuesOf(i);
    const std::int64_t stage = value[0];
    const std::size_t first = form.values.size();
    form.primitives.push_back({primitive.kind, static_cast<std::uint32_t>(first)});
    std::string key(1, static_cast<char>('A' + primitive.kind));
    const auto keep = [&](std::int64_t number) {
      form.values.push_back(number);
      key += std::to_string(number) + ",";
    };
    for (std::size_t f = 0; f < spec.field_count; ++f) {
      if (kind == StepKind::SP && f == 2) {
        const auto parts = static_cast<std::size_t>(value[1]);
        const std::size_t place = form.values.size(), row = out_.row.size();
        form.splits.push_back({row, parts});
        form.copies.push_back({place, row});
        for (std::size_t k = 0; k < parts; ++k) form.copies.push_back({place + 2 + k, row + 1 + k});
        form.values.insert(form.values.end(), value, value + 2 + value[1]);
        out_.row.push_back(value[0]);
        out_.row.insert(out_.row.end(), value + 2, value + 2 + value[1]);
        key += "x" + std::to_string(value[1]) + ",";
        value += 2 + value[1];
        ++f;  // the lengths too
      } else if (spec.fields[f].type == FieldType::kName) {
        const std::string_view name = program_.Name(*value);
        const std::int64_t number = kind == StepKind::PR ? UnrollOf(name) : -1;
        if (number >= 0) {
          form.unrolls.push_back({form.values.size(), out_.row.size(), stage, number});
          out_.row.push_back(number);
        }
        form.values.push_back(*value++);
        key += number >= 0 ? kUnrollPragma : std::string(name) + "\n";
      } else if (spec.fields[f].type == FieldType::kList) {
        const std::int64_t size = *value++;
        if (is_fuse) {
          form.fuses.push_back({form.values.size(), out_.row.size(), stage, size, size});
          out_.row.push_back(size);
          form.values.push_back(size);
          form.values.insert(form.values.end(), value, value + size);
        } else {
          keep(size);
          for (std::int64_t k = 0; k < size; ++k) {
            keep(kind == StepKind::FU ? LoopBefore(stage, value[k]) : value[k]);
          }
        }
        value += size;
      } else {
        const bool is_loop = f == 1 && (kind == StepKind::AN || kind == StepKind::PR);
        keep(is_loop ? LoopBefore(stage, *value) : *value);
        ++value;
      }
    }
    out_.form_key += key;
    if (IsOfSketch(kind)) out_.sketch_key += key;
  }

  /*! \return The number that a loop had before the stage's outermost ones were fused. */
  std::int64_t LoopBefore(std::int64_t stage, std::int64_t loop) {
    for (std::size_t i = 0; i < out_.form.fuses.size(); ++i) {
      const FuseGene& fuse = out_.form.fuses[i];
      if (fuse.stage != stage || loop == 0) continue;
      out_.form.loops.push_back({out_.form.values.size(), i});
      return loop + fuse.shown - 1;
    }
    return loop;
  }

  const PrimitiveSequence& program_;
  Parsed out_;
};

Parsed Parse(const PrimitiveSequence& program) { return Parser(program).Run(); }

}  // namespace

const breeding::Species& ProgramSpecies() {
  static const breeding::Species species = {&kVocabulary, &Parse, kUnrollPragma};
  return species;
}

}  // namespace ansor
}  // namespace tlp_tvm
