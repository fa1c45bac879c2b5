/*!
 * \file ansor/abi.h
 * \brief Views of the objects that an Ansor State is made of.
 *
 * No prebuilt TVM ships its C++ headers. These are not copies of them: they declare where the
 * fields lie (x86-64, Itanium C++ ABI), which is frozen since auto_scheduler was released in TVM
 * 0.8 and deleted in 0.20 with include/tvm/auto_scheduler/{loop_state,transform_step}.h unchanged
 * between. Every offset is checked against that table below, and the whole against TVM itself at
 * run time (python/tlp_tvm/ansor/loading/self_check.py) before it is trusted.
 */
#ifndef TLP_TVM_ANSOR_ABI_H_
#define TLP_TVM_ANSOR_ABI_H_

#include <cstddef>
#include <cstdint>

namespace tlp_tvm {
namespace ansor {
namespace abi {

static_assert(sizeof(void*) == 8, "the layout is that of a 64-bit process");

/*! \brief What an ObjectRef points to; classes with virtual functions keep their table before it.
 */
struct Object {
  std::uint32_t type_index;
  std::int32_t ref_counter;
  void (*deleter)(Object*);
};

struct Array : Object {
  std::int64_t size;
  std::int64_t capacity;
  const Object* const* items() const { return reinterpret_cast<const Object* const*>(this + 1); }
};

struct String : Object {
  const char* data;
  std::uint64_t size;
};

struct IntImm : Object {
  const void* dtype_and_span[2];
  std::int64_t value;
};

struct State : Object {
  const Array* stages;
  const Array* transform_steps;
  const Object* attach_map;
  const Object* current_compute_dag;
  bool concrete;
};

struct Stage : Object {
  const Object* op;
  const Array* iters;
  std::int32_t op_type, compute_at;
};

struct Iterator : Object {
  const String* name;
  const Object* range;
  std::int32_t iter_kind, annotation;
};

struct Range : Object {
  const Object* min;
  const Object* extent;
};

struct Step : Object {
  std::int32_t stage_id;
};

struct AnnotationStep : Object {
  std::int32_t stage_id, iter_id, annotation;
};
struct FuseStep : Object {
  std::int32_t stage_id;
  const Array* fused_ids;
};
struct PragmaStep : Object {
  std::int32_t stage_id, iter_id;
  const String* pragma_type;
};
struct ReorderStep : Object {
  std::int32_t stage_id;
  const Array* after_ids;
};
struct SplitStep : Object {
  std::int32_t stage_id, iter_id;
  const Object* extent;
  const Array* lengths;
  std::uint8_t inner_to_outer;
};
struct FollowSplitStep : Object {
  std::int32_t stage_id, iter_id, src_step_id, n_split;
};
struct FollowFusedSplitStep : Object {
  std::int32_t stage_id, iter_id;
  const Array* src_step_ids;
  std::int32_t level;
  std::uint8_t factor_or_nparts;
};
struct StorageAlignStep : Object {
  std::int32_t stage_id, iter_id, factor, offset;
};
struct ComputeAtStep : Object {
  std::int32_t stage_id, target_stage_id, target_iter_id;
};
struct CacheReadStep : Object {
  std::int32_t stage_id;
  const String* scope_name;
  const Array* reader_stage_ids;
};
struct CacheWriteStep : Object {
  std::int32_t stage_id;
  const String* scope_name;
};
struct RfactorStep : Object {
  std::int32_t stage_id, iter_id, factor_iter_id;
};

// offsetof of a class with a base is conditionally supported; GCC and Clang support it here.
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
#endif
#define TLP_TVM_AT(type, field, offset) \
  static_assert(offsetof(type, field) == (offset), #type "." #field " is not at " #offset)
TLP_TVM_AT(Object, type_index, 0);
TLP_TVM_AT(Object, ref_counter, 4);
TLP_TVM_AT(Object, deleter, 8);
TLP_TVM_AT(Array, size, 16);
TLP_TVM_AT(Array, capacity, 24);
static_assert(sizeof(Array) == 32, "the items of an Array begin at 32");
TLP_TVM_AT(String, data, 16);
TLP_TVM_AT(String, size, 24);
TLP_TVM_AT(IntImm, value, 32);
TLP_TVM_AT(State, stages, 16);
TLP_TVM_AT(State, transform_steps, 24);
TLP_TVM_AT(State, attach_map, 32);
TLP_TVM_AT(State, current_compute_dag, 40);
TLP_TVM_AT(State, concrete, 48);
TLP_TVM_AT(Stage, op, 16);
TLP_TVM_AT(Stage, iters, 24);
TLP_TVM_AT(Stage, op_type, 32);
TLP_TVM_AT(Stage, compute_at, 36);
TLP_TVM_AT(Iterator, name, 16);
TLP_TVM_AT(Iterator, range, 24);
TLP_TVM_AT(Iterator, iter_kind, 32);
TLP_TVM_AT(Iterator, annotation, 36);
TLP_TVM_AT(Range, min, 16);
TLP_TVM_AT(Range, extent, 24);
TLP_TVM_AT(Step, stage_id, 16);
TLP_TVM_AT(AnnotationStep, iter_id, 20);
TLP_TVM_AT(AnnotationStep, annotation, 24);
TLP_TVM_AT(FuseStep, fused_ids, 24);
TLP_TVM_AT(PragmaStep, iter_id, 20);
TLP_TVM_AT(PragmaStep, pragma_type, 24);
TLP_TVM_AT(ReorderStep, after_ids, 24);
TLP_TVM_AT(SplitStep, iter_id, 20);
TLP_TVM_AT(SplitStep, extent, 24);
TLP_TVM_AT(SplitStep, lengths, 32);
TLP_TVM_AT(SplitStep, inner_to_outer, 40);
TLP_TVM_AT(FollowSplitStep, src_step_id, 24);
TLP_TVM_AT(FollowSplitStep, n_split, 28);
TLP_TVM_AT(FollowFusedSplitStep, src_step_ids, 24);
TLP_TVM_AT(FollowFusedSplitStep, level, 32);
TLP_TVM_AT(FollowFusedSplitStep, factor_or_nparts, 36);
TLP_TVM_AT(StorageAlignStep, factor, 24);
TLP_TVM_AT(StorageAlignStep, offset, 28);
TLP_TVM_AT(ComputeAtStep, target_stage_id, 20);
TLP_TVM_AT(ComputeAtStep, target_iter_id, 24);
TLP_TVM_AT(CacheReadStep, scope_name, 24);
TLP_TVM_AT(CacheReadStep, reader_stage_ids, 32);
TLP_TVM_AT(CacheWriteStep, scope_name, 24);
TLP_TVM_AT(RfactorStep, iter_id, 20);
TLP_TVM_AT(RfactorStep, factor_iter_id, 24);
#undef TLP_TVM_AT
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

}  // namespace abi
}  // namespace ansor
}  // namespace tlp_tvm

#endif  // TLP_TVM_ANSOR_ABI_H_
