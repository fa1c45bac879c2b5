#include "ansor/type_index.h"

#include <cstdlib>
#include <string_view>
#include <utility>

namespace tlp_tvm {
namespace ansor {
namespace {

constexpr std::pair<std::string_view, TypeTag> kKeys[] = {
    {"auto_scheduler.State", TypeTag::kState},
    {"Array", TypeTag::kArray},
    {"runtime.String", TypeTag::kString},
    {"IntImm", TypeTag::kIntImm},
    {"auto_scheduler.Stage", TypeTag::kStage},
    {"auto_scheduler.Iterator", TypeTag::kIterator},
    {"Range", TypeTag::kRange},
    {"auto_scheduler.AnnotationStep", TagOf(StepKind::AN)},
    {"auto_scheduler.FuseStep", TagOf(StepKind::FU)},
    {"auto_scheduler.PragmaStep", TagOf(StepKind::PR)},
    {"auto_scheduler.ReorderStep", TagOf(StepKind::RE)},
    {"auto_scheduler.SplitStep", TagOf(StepKind::SP)},
    {"auto_scheduler.FollowSplitStep", TagOf(StepKind::FSP)},
    {"auto_scheduler.FollowFusedSplitStep", TagOf(StepKind::FFSP)},
    {"auto_scheduler.StorageAlignStep", TagOf(StepKind::SA)},
    {"auto_scheduler.ComputeAtStep", TagOf(StepKind::CA)},
    {"auto_scheduler.ComputeInlineStep", TagOf(StepKind::CI)},
    {"auto_scheduler.ComputeRootStep", TagOf(StepKind::CR)},
    {"auto_scheduler.CacheReadStep", TagOf(StepKind::CHR)},
    {"auto_scheduler.CacheWriteStep", TagOf(StepKind::CHW)},
    {"auto_scheduler.RfactorStep", TagOf(StepKind::RF)},
};
static_assert(std::size(kKeys) == 7 + kStepKindCount, "every step kind has its type key");

}  // namespace

std::string TypeIndex::Name(std::uint32_t index) const {
  char* key = nullptr;
  if (index >= kMaxIndex || index2key_(index, &key) != 0 || key == nullptr) {
    return "type index " + std::to_string(index);
  }
  std::string name = key;
  std::free(key);
  return name;
}

TypeTag TypeIndex::Ask(std::uint32_t index) {
  const std::string name = Name(index);
  TypeTag tag = TypeTag::kOther;
  for (const auto& [key, known] : kKeys) {
    if (name == key) tag = known;
  }
  // Two threads may ask at once: they get, and store, the same answer.
  tags_[index].store(tag, std::memory_order_relaxed);
  return tag;
}

}  // namespace ansor
}  // namespace tlp_tvm
