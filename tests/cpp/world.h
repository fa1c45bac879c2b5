/*!
 * \file world.h
 * \brief Ansor's objects, made here in the layout of abi.h.
 *
 * That TVM's own objects lie so is tested against TVM, in
 * tests/python/ansor/reading/test_state_parity.py.
 */
#ifndef TLP_TVM_TESTS_WORLD_H_
#define TLP_TVM_TESTS_WORLD_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ansor/abi.h"

namespace world {

namespace abi = tlp_tvm::ansor::abi;

inline const char* const kTypeKeys[] = {"",
                                        "auto_scheduler.State",
                                        "Array",
                                        "runtime.String",
                                        "IntImm",
                                        "auto_scheduler.AnnotationStep",
                                        "auto_scheduler.FuseStep",
                                        "auto_scheduler.PragmaStep",
                                        "auto_scheduler.ReorderStep",
                                        "auto_scheduler.SplitStep",
                                        "auto_scheduler.FollowSplitStep",
                                        "auto_scheduler.FollowFusedSplitStep",
                                        "auto_scheduler.StorageAlignStep",
                                        "auto_scheduler.ComputeAtStep",
                                        "auto_scheduler.ComputeInlineStep",
                                        "auto_scheduler.ComputeRootStep",
                                        "auto_scheduler.CacheReadStep",
                                        "auto_scheduler.CacheWriteStep",
                                        "auto_scheduler.RfactorStep",
                                        "Map",
                                        "auto_scheduler.Stage",
                                        "auto_scheduler.Iterator",
                                        "Range"};

inline int FakeIndex2Key(unsigned index, char** key) {
  if (index == 0 || index >= std::size(kTypeKeys)) return -1;
  *key = strdup(kTypeKeys[index]);
  return 0;
}

inline std::uint32_t IndexOf(const std::string& key) {
  for (std::uint32_t i = 1; i < std::size(kTypeKeys); ++i) {
    if (key == kTypeKeys[i]) return i;
  }
  throw std::logic_error(key);
}

/*! \brief Makes objects and keeps them. */
class World {
 public:
  template <typename T>
  T* Make(const char* key) {
    T* object = static_cast<T*>(Allocate(sizeof(T)));
    object->type_index = IndexOf(key);
    return object;
  }
  abi::Array* Array(const std::vector<const abi::Object*>& items) {
    auto* array = static_cast<abi::Array*>(Allocate(sizeof(abi::Array) + 8 * items.size()));
    array->type_index = IndexOf("Array");
    array->size = static_cast<std::int64_t>(items.size());
    std::copy(items.begin(), items.end(), reinterpret_cast<const abi::Object**>(array + 1));
    return array;
  }
  abi::IntImm* Integer(std::int64_t value) {
    auto* integer = Make<abi::IntImm>("IntImm");
    integer->value = value;
    return integer;
  }
  abi::Array* Integers(const std::vector<std::int64_t>& values) {
    std::vector<const abi::Object*> items;
    for (std::int64_t value : values) items.push_back(Integer(value));
    return Array(items);
  }
  abi::String* String(const char* text) {
    auto* string = Make<abi::String>("runtime.String");
    string->data = text;
    string->size = std::strlen(text);
    return string;
  }
  abi::State* State(const std::vector<const abi::Object*>& steps) {
    auto* state = Make<abi::State>("auto_scheduler.State");
    state->transform_steps = Array(steps);
    return state;
  }
  abi::SplitStep* Split(int stage, std::int64_t extent, const std::vector<std::int64_t>& lengths) {
    auto* step = Make<abi::SplitStep>("auto_scheduler.SplitStep");
    step->stage_id = stage;
    step->iter_id = 1;
    step->extent = extent == 0 ? nullptr : Integer(extent);
    step->lengths = Integers(lengths);
    step->inner_to_outer = 1;
    return step;
  }
  /*! \brief A stage with loops of these extents, each bound to the annotation of its place. */
  abi::Stage* Stage(const std::vector<std::int64_t>& extents,
                    const std::vector<std::int32_t>& annotations) {
    std::vector<const abi::Object*> loops;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      auto* range = Make<abi::Range>("Range");
      range->extent = Integer(extents[i]);
      auto* loop = Make<abi::Iterator>("auto_scheduler.Iterator");
      loop->range = range, loop->annotation = annotations.at(i);
      loops.push_back(loop);
    }
    auto* stage = Make<abi::Stage>("auto_scheduler.Stage");
    stage->iters = Array(loops);
    return stage;
  }
  /*! \brief One step of each kind: the same program as records::AllSteps. */
  std::vector<const abi::Object*> AllSteps();

 private:
  void* Allocate(std::size_t size) {
    memory_.push_back(std::make_unique<std::uint64_t[]>((size + 7) / 8));
    return memory_.back().get();
  }
  std::deque<std::unique_ptr<std::uint64_t[]>> memory_;
};

inline std::vector<const abi::Object*> World::AllSteps() {
  auto* an = Make<abi::AnnotationStep>("auto_scheduler.AnnotationStep");
  an->stage_id = 2, an->iter_id = 9, an->annotation = 2;
  auto* fu = Make<abi::FuseStep>("auto_scheduler.FuseStep");
  fu->stage_id = 2, fu->fused_ids = Integers({0, 1});
  auto* pr = Make<abi::PragmaStep>("auto_scheduler.PragmaStep");
  pr->stage_id = 2, pr->iter_id = 0, pr->pragma_type = String("auto_unroll_max_step$64");
  auto* re = Make<abi::ReorderStep>("auto_scheduler.ReorderStep");
  re->stage_id = 2, re->after_ids = Integers({0, 2, 1});
  auto* sp = Split(2, 512, {4, 2, 8});
  sp->iter_id = 0;
  auto* fsp = Make<abi::FollowSplitStep>("auto_scheduler.FollowSplitStep");
  fsp->stage_id = 4, fsp->iter_id = 0, fsp->src_step_id = 0, fsp->n_split = 2;
  auto* ffsp = Make<abi::FollowFusedSplitStep>("auto_scheduler.FollowFusedSplitStep");
  ffsp->stage_id = 6, ffsp->iter_id = 0, ffsp->src_step_ids = Integers({4, 3, 2, 1});
  ffsp->level = 1, ffsp->factor_or_nparts = 1;
  auto* sa = Make<abi::StorageAlignStep>("auto_scheduler.StorageAlignStep");
  sa->stage_id = 2, sa->iter_id = 1, sa->factor = 32, sa->offset = 4;
  auto* ca = Make<abi::ComputeAtStep>("auto_scheduler.ComputeAtStep");
  ca->stage_id = 2, ca->target_stage_id = 3, ca->target_iter_id = 4;
  auto* ci = Make<abi::Step>("auto_scheduler.ComputeInlineStep");
  ci->stage_id = 7;
  auto* cr = Make<abi::Step>("auto_scheduler.ComputeRootStep");
  cr->stage_id = 3;
  auto* chr = Make<abi::CacheReadStep>("auto_scheduler.CacheReadStep");
  chr->stage_id = 4, chr->scope_name = String("shared"), chr->reader_stage_ids = Integers({5});
  auto* chw = Make<abi::CacheWriteStep>("auto_scheduler.CacheWriteStep");
  chw->stage_id = 2, chw->scope_name = String("local");
  auto* rf = Make<abi::RfactorStep>("auto_scheduler.RfactorStep");
  rf->stage_id = 1, rf->iter_id = 2, rf->factor_iter_id = 2;
  return {an, fu, pr, re, sp, fsp, ffsp, sa, ca, ci, cr, chr, chw, rf};
}

}  // namespace world

#endif  // TLP_TVM_TESTS_WORLD_H_
