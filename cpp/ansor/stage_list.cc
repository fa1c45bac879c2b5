#include "ansor/stage_list.h"

#include <string_view>

#include "ansor/steps.h"
#include "core/saturating.h"

namespace tlp_tvm {
namespace ansor {
namespace {

constexpr std::int64_t kMaxListed = 4096;

Loop LoopOf(StateReader* reader, const abi::Object* object) {
  const auto* iterator = As<abi::Iterator>(reader, object, TypeTag::kIterator);
  if (iterator == nullptr) return {kUnknown, 0};
  const auto* range = As<abi::Range>(reader, iterator->range, TypeTag::kRange);
  if (range == nullptr) return {kUnknown, iterator->annotation};
  const auto* extent = As<abi::IntImm>(reader, range->extent, TypeTag::kIntImm);
  const bool is_known = extent != nullptr && extent->value >= 0;
  return {is_known ? extent->value : kUnknown, iterator->annotation};
}

bool Integers(StateReader* reader, const abi::Object* object, std::vector<std::int64_t>* out) {
  const abi::Array* list = ListOf(reader, object);
  for (std::int64_t i = 0; list != nullptr && i < list->size; ++i) {
    const auto* integer = As<abi::IntImm>(reader, list->items()[i], TypeTag::kIntImm);
    if (integer == nullptr) return false;
    out->push_back(integer->value);
  }
  return list != nullptr;
}

bool Split(std::int64_t loop, std::size_t more, std::vector<std::size_t>* axes) {
  if (loop < 0 || loop >= static_cast<std::int64_t>(axes->size())) return false;
  if (axes->size() + more > static_cast<std::size_t>(kMaxListed)) return false;
  const std::size_t axis = (*axes)[static_cast<std::size_t>(loop)];
  axes->insert(axes->begin() + loop, more, axis);
  return true;
}

/*! \return Whether it is known what the step makes of the stage's loops. */
bool Divide(StateReader* reader, TypeTag tag, const abi::Object& object, StageNote* stage) {
  std::vector<std::size_t>& axes = stage->axes;
  std::vector<std::int64_t> numbers;
  if (tag == TagOf(StepKind::SP)) {
    const auto& step = static_cast<const abi::SplitStep&>(object);
    if (!Integers(reader, step.lengths, &numbers)) return false;
    std::int64_t inside = 1;
    for (const std::int64_t length : numbers) {
      if (length < 0) return false;
      inside = Product(inside, length);
    }
    if (!Split(step.iter_id, numbers.size(), &axes)) return false;
    const std::size_t axis = axes[static_cast<std::size_t>(step.iter_id)];
    if (axis != kFused && stage->tiles[axis] == 0) stage->tiles[axis] = inside;
    return true;
  }
  if (tag == TagOf(StepKind::FSP)) {
    const auto& step = static_cast<const abi::FollowSplitStep&>(object);
    return step.n_split >= 0 && step.n_split < kMaxListed &&
           Split(step.iter_id, static_cast<std::size_t>(step.n_split), &axes);
  }
  if (tag == TagOf(StepKind::FFSP)) {
    return Split(static_cast<const abi::FollowFusedSplitStep&>(object).iter_id, 1, &axes);
  }
  if (tag == TagOf(StepKind::RE)) {
    const abi::Array* order = static_cast<const abi::ReorderStep&>(object).after_ids;
    if (!Integers(reader, order, &numbers) || numbers.size() != axes.size()) return false;
    std::vector<std::size_t> after;
    for (const std::int64_t loop : numbers) {
      if (loop < 0 || loop >= static_cast<std::int64_t>(axes.size())) return false;
      after.push_back(axes[static_cast<std::size_t>(loop)]);
    }
    axes = std::move(after);
    return true;
  }
  if (tag == TagOf(StepKind::FU)) {
    const abi::Array* fused = static_cast<const abi::FuseStep&>(object).fused_ids;
    if (!Integers(reader, fused, &numbers) || numbers.empty()) return false;
    const std::int64_t first = numbers.front();
    const std::int64_t end = Sum(first, static_cast<std::int64_t>(numbers.size()));
    if (first < 0 || end > static_cast<std::int64_t>(axes.size())) return false;
    axes[static_cast<std::size_t>(first)] = kFused;
    axes.erase(axes.begin() + first + 1, axes.begin() + end);
  }
  return true;  // the other kinds leave loops as they are
}

}  // namespace

const abi::Array* ListOf(StateReader* reader, const abi::Object* object) {
  const auto* list = As<abi::Array>(reader, object, TypeTag::kArray);
  if (list == nullptr || list->size < 0 || list->size > kMaxListed) return nullptr;
  return list;
}

std::vector<std::vector<Loop>> LoopsOf(StateReader* reader, const abi::Object* object) {
  std::vector<std::vector<Loop>> loops;
  const auto* state = As<abi::State>(reader, object, TypeTag::kState);
  const abi::Array* stages = state == nullptr ? nullptr : ListOf(reader, state->stages);
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

StageList::StageList(const std::vector<AxisCount>& operations) : operations_(operations) {
  for (std::size_t i = 0; i < operations.size(); ++i) Insert(i, i, true);
}

bool StageList::Follow(StateReader* reader, const abi::Array& steps) {
  for (std::int64_t i = 0; i < steps.size; ++i) {
    if (steps.items()[i] == nullptr || !Apply(reader, *steps.items()[i])) return false;
  }
  return true;
}

void StageList::Insert(std::size_t position, std::size_t operation, bool follow_axes) {
  StageNote stage;
  stage.number = stages_.size();
  stage.operation = operation;
  if (follow_axes) {
    const AxisCount& known = operations_[operation];
    for (std::size_t i = 0; i < known.spatial + known.reduce; ++i) {
      stage.axes.push_back(i);
    }
    stage.tiles.resize(stage.axes.size());
  }
  stages_.insert(stages_.begin() + static_cast<std::ptrdiff_t>(position), std::move(stage));
}

bool StageList::Apply(StateReader* reader, const abi::Object& object) {
  const TypeTag tag = reader->Tag(object);
  if (tag < TypeTag::kFirstStep) return false;
  const std::int64_t stage = static_cast<const abi::Step&>(object).stage_id;
  if (!Has(stage)) return false;
  if (tag == TagOf(StepKind::CA)) {
    const auto& step = static_cast<const abi::ComputeAtStep&>(object);
    if (!Has(step.target_stage_id)) return false;
    At(stage).computed_in = static_cast<std::int64_t>(At(step.target_stage_id).number);
    At(stage).loop = step.target_iter_id;
  } else if (tag == TagOf(StepKind::CR) || tag == TagOf(StepKind::CI)) {
    At(stage).computed_in = kUnknown;
  } else if (tag == TagOf(StepKind::CHW) || tag == TagOf(StepKind::RF)) {
    // The new stage comes before the one that now copies or reduces it.
    At(stage).axes.clear();
    Insert(static_cast<std::size_t>(stage), At(stage).operation, tag == TagOf(StepKind::CHW));
  } else if (tag == TagOf(StepKind::CHR)) {
    return CacheRead(reader, stage, static_cast<const abi::CacheReadStep&>(object));
  } else if (!At(stage).axes.empty() && !Divide(reader, tag, object, &At(stage))) {
    At(stage).axes.clear();
  }
  return true;
}

bool StageList::CacheRead(StateReader* reader, std::int64_t stage, const abi::CacheReadStep& step) {
  const auto* scope = As<abi::String>(reader, step.scope_name, TypeTag::kString);
  std::vector<std::int64_t> readers;
  if (scope == nullptr || !Integers(reader, step.reader_stage_ids, &readers)) return false;
  if (readers.empty() || !Has(readers[0])) return false;
  const auto read_by = static_cast<std::int64_t>(At(readers[0]).number);
  Insert(static_cast<std::size_t>(stage) + 1, At(stage).operation, false);
  if (std::string_view(scope->data, scope->size) == "shared") {
    At(stage + 1).shared_for = read_by;
  }
  return true;
}

}  // namespace ansor
}  // namespace tlp_tvm
