#include "ansor/stage_list.h"

#include <algorithm>
#include <string_view>

#include "ansor/steps.h"
#include "core/saturating.h"

namespace tlp_tvm {
namespace ansor {
namespace {

constexpr std::int64_t kMaxListed = 4096;

/*! \brief TVM's ComputeAtKind. */
enum ComputeAt : std::int32_t { kInlined = 1 };

/*! \return The object as what it is, or null if it is something else. */
template <typename T>
const T* As(StateReader* reader, const abi::Object* object, TypeTag tag) {
  if (object == nullptr || reader->Tag(*object) != tag) return nullptr;
  return static_cast<const T*>(object);
}

/*! \return The Array, or null if it is none of plausible size. */
const abi::Array* ListOf(StateReader* reader, const abi::Object* object) {
  const auto* list = As<abi::Array>(reader, object, TypeTag::kArray);
  if (list == nullptr || list->size < 0 || list->size > kMaxListed) return nullptr;
  return list;
}

const abi::Array* StagesOf(StateReader* reader, const abi::Object* object) {
  const auto* state = As<abi::State>(reader, object, TypeTag::kState);
  return state == nullptr ? nullptr : ListOf(reader, state->stages);
}

Loop LoopOf(StateReader* reader, const abi::Object* object) {
  const auto* iterator = As<abi::Iterator>(reader, object, TypeTag::kIterator);
  if (iterator == nullptr) return {kUnknown, 0};
  const auto* range = As<abi::Range>(reader, iterator->range, TypeTag::kRange);
  if (range == nullptr) return {kUnknown, iterator->annotation};
  const auto* extent = As<abi::IntImm>(reader, range->extent, TypeTag::kIntImm);
  const bool is_known = extent != nullptr && extent->value >= 0;
  return {is_known ? extent->value : kUnknown, iterator->annotation};
}

StepKind KindOf(const PrimitiveSequence& program, std::size_t step) {
  return static_cast<StepKind>(program.primitives[step].kind);
}

/*! \return Whether a step is a split; then `lengths` is the list of its lengths, its size first. */
bool FindLengths(const PrimitiveSequence& program, std::int64_t step,
                 const std::int64_t** lengths) {
  const auto i = static_cast<std::size_t>(step);
  if (step < 0 || i >= program.size || KindOf(program, i) != StepKind::SP) return false;
  *lengths = program.ValuesOf(i) + 3;
  return true;
}

/*! \brief What a step makes of one loop. */
struct Split {
  std::int64_t loop = 0;
  std::vector<std::int64_t> lengths;  ///< kUnknown where they are not known
  bool inner_to_outer = true;
};

/*! \return Whether the step is a split of any kind. */
bool SplitOf(const PrimitiveSequence& program, std::size_t step, Split* split) {
  const std::int64_t* const value = program.ValuesOf(step);
  split->loop = value[1];
  switch (KindOf(program, step)) {
    case StepKind::SP:
      split->lengths.assign(value + 4, value + 4 + value[3]);
      split->inner_to_outer = value[4 + value[3]] != 0;
      return true;
    case StepKind::FSP: {
      // The first lengths of the split that it follows; the last one takes all that are left.
      const std::int64_t* source = nullptr;
      const bool known = FindLengths(program, value[2], &source);
      const std::int64_t count = value[3];
      if (count < 1 || count > kMaxListed) return false;
      split->lengths.assign(static_cast<std::size_t>(count), known ? 1 : kUnknown);
      for (std::int64_t i = 0; known && i < *source; ++i) {
        std::int64_t& length = split->lengths[static_cast<std::size_t>(std::min(i, count - 1))];
        length = Product(length, source[1 + i]);
      }
      return true;
    }
    case StepKind::FFSP: {
      const std::int64_t* const rest = value + 3 + value[2];  // level, factor_or_nparts
      std::int64_t length = 1;
      for (std::int64_t i = 0; i < value[2]; ++i) {
        const std::int64_t* source = nullptr;
        const bool found = FindLengths(program, value[3 + i], &source);
        const bool has_level = found && rest[0] >= 0 && rest[0] < *source;
        length = has_level && length != kUnknown ? Product(length, source[1 + rest[0]]) : kUnknown;
      }
      split->lengths = {length};
      split->inner_to_outer = rest[1] != 0;
      return true;
    }
    default:
      return false;
  }
}

/*! \return The loops that a loop of this extent is split into. */
std::vector<Loop> PiecesOf(std::int64_t extent, const Split& split) {
  std::vector<Loop> pieces;
  std::int64_t rest = extent;
  for (const std::int64_t length : split.lengths) {
    pieces.emplace_back(length, 0);
    const bool is_known = rest != kUnknown && length > 0;
    rest = is_known ? rest / length + (rest % length != 0) : kUnknown;
  }
  pieces.insert(split.inner_to_outer ? pieces.begin() : pieces.end(), Loop{rest, 0});
  return pieces;
}

template <typename T>
bool HasLoop(const std::vector<T>& loops, std::int64_t loop) {
  return loop >= 0 && loop < static_cast<std::int64_t>(loops.size());
}

/*! \brief Replaces loops [first, first + count) by others. */
template <typename T>
void Replace(std::int64_t first, std::size_t count, const std::vector<T>& by,
             std::vector<T>* loops) {
  const auto begin = loops->begin() + first;
  const auto at = loops->erase(begin, begin + static_cast<std::ptrdiff_t>(count));
  loops->insert(at, by.begin(), by.end());
}

template <typename T>
bool Reorder(const std::int64_t* order, std::vector<T>* loops) {
  if (*order != static_cast<std::int64_t>(loops->size())) return false;
  std::vector<T> after;
  for (std::int64_t i = 1; i <= *order; ++i) {
    if (!HasLoop(*loops, order[i])) return false;
    after.push_back((*loops)[static_cast<std::size_t>(order[i])]);
  }
  *loops = std::move(after);
  return true;
}

/*! \return Whether the list of fused_ids names loops that are there. */
template <typename T>
bool CanFuse(const std::int64_t* ids, const std::vector<T>& loops) {
  return *ids > 0 && ids[1] >= 0 && Sum(ids[1], *ids) <= static_cast<std::int64_t>(loops.size());
}

/*! \return Whether it is known what the step makes of the axes of the stage's loops. */
bool DivideAxes(const PrimitiveSequence& program, std::size_t step, StageNote* stage) {
  std::vector<std::size_t>& axes = stage->axes;
  const std::int64_t* const value = program.ValuesOf(step);
  Split split;
  if (SplitOf(program, step, &split)) {
    if (!HasLoop(axes, split.loop)) return false;
    if (axes.size() + split.lengths.size() > static_cast<std::size_t>(kMaxListed)) return false;
    const std::size_t axis = axes[static_cast<std::size_t>(split.loop)];
    if (KindOf(program, step) == StepKind::SP) {
      std::int64_t inside = 1;
      for (const std::int64_t length : split.lengths) {
        if (length < 0) return false;
        inside = Product(inside, length);
      }
      if (axis != kFused && stage->tiles[axis] == 0) stage->tiles[axis] = inside;
    }
    axes.insert(axes.begin() + split.loop, split.lengths.size(), axis);
    return true;
  }
  switch (KindOf(program, step)) {
    case StepKind::FSP:
    case StepKind::FFSP:
      return false;
    case StepKind::RE:
      return Reorder(value + 1, &axes);
    case StepKind::FU:
      if (!CanFuse(value + 1, axes)) return false;
      Replace(value[2], static_cast<std::size_t>(value[1]), {kFused}, &axes);
      return true;
    default:
      return true;  // the other kinds leave loops as they are
  }
}

/*! \return Whether it is known which loops the step leaves the stage. */
bool DivideLoops(const PrimitiveSequence& program, std::size_t step, StageNote* stage) {
  std::vector<Loop>& loops = stage->loops;
  const std::int64_t* const value = program.ValuesOf(step);
  Split split;
  if (SplitOf(program, step, &split)) {
    if (!HasLoop(loops, split.loop)) return false;
    if (loops.size() + split.lengths.size() > static_cast<std::size_t>(kMaxListed)) return false;
    const std::int64_t extent = loops[static_cast<std::size_t>(split.loop)].first;
    Replace(split.loop, 1, PiecesOf(extent, split), &loops);
    return true;
  }
  switch (KindOf(program, step)) {
    case StepKind::FSP:
    case StepKind::FFSP:
      return false;
    case StepKind::RE:
      return Reorder(value + 1, &loops);
    case StepKind::AN:
      if (!HasLoop(loops, value[1])) return false;
      loops[static_cast<std::size_t>(value[1])].second = static_cast<std::int32_t>(value[2]);
      return true;
    case StepKind::FU: {
      if (stage->shared_for != kUnknown && loops.empty() && value[1] > 0 && value[2] == 0) {
        loops.emplace_back(kUnknown, 0);  // all loops of a copy, whose number the tensor has
        return true;
      }
      if (!CanFuse(value + 1, loops)) return false;
      std::int64_t extent = 1;
      for (std::int64_t i = 0; i < value[1]; ++i) {
        const std::int64_t each = loops[static_cast<std::size_t>(value[2] + i)].first;
        extent = each == kUnknown || extent == kUnknown ? kUnknown : Product(extent, each);
      }
      Replace(value[2], static_cast<std::size_t>(value[1]), {Loop{extent, 0}}, &loops);
      return true;
    }
    default:
      return true;
  }
}

}  // namespace

std::vector<std::vector<Loop>> LoopsOf(StateReader* reader, const abi::Object* object) {
  std::vector<std::vector<Loop>> loops;
  const abi::Array* stages = StagesOf(reader, object);
  if (stages == nullptr) return loops;
  loops.resize(static_cast<std::size_t>(stages->size));
  for (std::size_t i = 0; i < loops.size(); ++i) {
    const auto* stage = As<abi::Stage>(reader, stages->items()[i], TypeTag::kStage);
    const abi::Array* iters = stage == nullptr ? nullptr : ListOf(reader, stage->iters);
    for (std::int64_t k = 0; iters != nullptr && k < iters->size; ++k) {
      loops[i].push_back(LoopOf(reader, iters->items()[k]));
    }
  }
  return loops;
}

std::vector<bool> InlinedOf(StateReader* reader, const abi::Object* object) {
  std::vector<bool> inlined;
  const abi::Array* stages = StagesOf(reader, object);
  for (std::int64_t i = 0; stages != nullptr && i < stages->size; ++i) {
    const auto* stage = As<abi::Stage>(reader, stages->items()[i], TypeTag::kStage);
    if (stage == nullptr) return {};
    inlined.push_back(stage->compute_at == kInlined);
  }
  return inlined;
}

StageList::StageList(const std::vector<AxisCount>& operations) : operations_(&operations) {
  for (std::size_t i = 0; i < operations.size(); ++i) Insert(i, i, true);
}

bool StageList::Follow(const PrimitiveSequence& program) {
  for (std::size_t i = 0; i < program.size; ++i) {
    if (!Apply(program, i)) return false;
  }
  return true;
}

void StageList::Insert(std::size_t position, std::size_t operation, bool follow_axes) {
  StageNote stage;
  stage.number = stages_.size();
  stage.operation = operation;
  if (follow_axes) {
    const AxisCount& known = (*operations_)[operation];
    for (std::size_t i = 0; i < known.spatial + known.reduce; ++i) {
      stage.axes.push_back(i);
    }
    stage.tiles.resize(stage.axes.size());
    Restart(&stage, true);
  }
  stages_.insert(stages_.begin() + static_cast<std::ptrdiff_t>(position), std::move(stage));
}

void StageList::Restart(StageNote* stage, bool with_reduce) {
  const AxisCount& known = (*operations_)[stage->operation];
  const std::size_t count = known.spatial + (with_reduce ? known.reduce : 0);
  stage->has_loops = true;
  stage->loops.clear();
  for (std::size_t i = 0; i < count; ++i) {
    stage->loops.emplace_back(i < known.extents.size() ? known.extents[i] : kUnknown, 0);
  }
}

bool StageList::Apply(const PrimitiveSequence& program, std::size_t step) {
  const std::int64_t* const value = program.ValuesOf(step);
  const std::int64_t stage = value[0];
  if (!Has(stage)) return false;
  const StepKind kind = KindOf(program, step);
  if (kind == StepKind::CA) {
    if (!Has(value[1])) return false;
    At(stage).computed_in = static_cast<std::int64_t>(At(value[1]).number);
    At(stage).loop = value[2];
    At(stage).inlined = false;
  } else if (kind == StepKind::CR || kind == StepKind::CI) {
    At(stage).computed_in = kUnknown;
    At(stage).inlined = kind == StepKind::CI;
  } else if (kind == StepKind::CHW || kind == StepKind::RF) {
    // The new stage comes before the one that now copies or reduces it.
    At(stage).axes.clear();
    At(stage).has_loops = false;
    if (kind == StepKind::CHW) Restart(&At(stage), false);
    Insert(static_cast<std::size_t>(stage), At(stage).operation, kind == StepKind::CHW);
  } else if (kind == StepKind::CHR) {
    return CacheRead(program, stage, value);
  } else {
    StageNote& note = At(stage);
    if (!note.axes.empty() && !DivideAxes(program, step, &note)) note.axes.clear();
    if (note.has_loops && !DivideLoops(program, step, &note)) note.has_loops = false;
  }
  return true;
}

bool StageList::CacheRead(const PrimitiveSequence& program, std::int64_t stage,
                          const std::int64_t* value) {
  const std::int64_t* const readers = value + 2;
  if (*readers < 1 || !Has(readers[1])) return false;
  const auto read_by = static_cast<std::int64_t>(At(readers[1]).number);
  Insert(static_cast<std::size_t>(stage) + 1, At(stage).operation, false);
  if (program.Name(value[1]) == "shared") {
    At(stage + 1).shared_for = read_by;
    At(stage + 1).has_loops = true;  // none until they are fused
  }
  return true;
}

}  // namespace ansor
}  // namespace tlp_tvm
