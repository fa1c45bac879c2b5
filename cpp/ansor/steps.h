/*!
 * \file ansor/steps.h
 * \brief The 14 transform steps of Ansor as primitives: the one home of their names and fields.
 *
 * A record writes a step as a JSON array, its name first, then the fields in this order; flags as 0
 * or 1, lists as arrays (TVM 0.8 to 0.19, src/auto_scheduler/transform_step.cc, WriteToRecord):
 *
 *   AN    annotate            ["AN", stage_id, iter_id, annotation]
 *                             ["AN", 2, 9, 2]
 *   FU    fuse                ["FU", stage_id, [fused_ids]]
 *                             ["FU", 2, [0, 1]]
 *   PR    pragma              ["PR", stage_id, iter_id, pragma_type]
 *                             ["PR", 2, 0, "auto_unroll_max_step$64"]
 *   RE    reorder             ["RE", stage_id, [after_ids]]
 *                             ["RE", 2, [0, 2, 1]]
 *   SP    split               ["SP", stage_id, iter_id, extent, [lengths], inner_to_outer]
 *                             ["SP", 2, 0, 512, [4, 2, 8], 1]
 *   FSP   follow split        ["FSP", stage_id, iter_id, src_step_id, n_split]
 *                             ["FSP", 4, 0, 0, 2]
 *   FFSP  follow fused split  ["FFSP", stage_id, iter_id, [src_step_ids], level, factor_or_nparts]
 *                             ["FFSP", 6, 0, [4, 3], 1, 1]
 *   SA    storage align       ["SA", stage_id, iter_id, factor, offset]
 *                             ["SA", 2, 1, 32, 4]
 *   CA    compute at          ["CA", stage_id, target_stage_id, target_iter_id]
 *                             ["CA", 2, 3, 4]
 *   CI    compute inline      ["CI", stage_id]
 *                             ["CI", 7]
 *   CR    compute root        ["CR", stage_id]
 *                             ["CR", 3]
 *   CHR   cache read          ["CHR", stage_id, scope_name, [reader_stage_ids]]
 *                             ["CHR", 4, "shared", [5]]
 *   CHW   cache write         ["CHW", stage_id, scope_name]
 *                             ["CHW", 2, "local"]
 *   RF    rfactor             ["RF", stage_id, iter_id, factor_iter_id]
 *                             ["RF", 1, 2, 2]
 *
 * An absent extent is written as 0. A tile size that is not filled yet has no record form.
 */
#ifndef TLP_TVM_ANSOR_STEPS_H_
#define TLP_TVM_ANSOR_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "core/primitive.h"

namespace tlp_tvm {
namespace ansor {

enum class StepKind : std::uint32_t { AN, FU, PR, RE, SP, FSP, FFSP, SA, CA, CI, CR, CHR, CHW, RF };

constexpr std::size_t kStepKindCount = 14;

/*! \brief Sizes above these come from a damaged record or a wrong pointer, not from Ansor. */
constexpr std::size_t kMaxSteps = 4096;
constexpr std::size_t kMaxListSize = 1024;
constexpr std::size_t kMaxNameSize = 256;

namespace fields {
inline constexpr FieldSpec kStage{"stage_id", FieldType::kInt32};
inline constexpr FieldSpec kIter{"iter_id", FieldType::kInt32};
inline constexpr FieldSpec kAnnotate[] = {kStage, kIter, {"annotation", FieldType::kInt32}};
inline constexpr FieldSpec kFuse[] = {kStage, {"fused_ids", FieldType::kList}};
inline constexpr FieldSpec kPragma[] = {kStage, kIter, {"pragma_type", FieldType::kName}};
inline constexpr FieldSpec kReorder[] = {kStage, {"after_ids", FieldType::kList}};
inline constexpr FieldSpec kSplit[] = {kStage,
                                       kIter,
                                       {"extent", FieldType::kInt64},
                                       {"lengths", FieldType::kList},
                                       {"inner_to_outer", FieldType::kFlag}};
inline constexpr FieldSpec kFollowSplit[] = {
    kStage, kIter, {"src_step_id", FieldType::kInt32}, {"n_split", FieldType::kInt32}};
inline constexpr FieldSpec kFollowFusedSplit[] = {kStage,
                                                  kIter,
                                                  {"src_step_ids", FieldType::kList},
                                                  {"level", FieldType::kInt32},
                                                  {"factor_or_nparts", FieldType::kFlag}};
inline constexpr FieldSpec kStorageAlign[] = {
    kStage, kIter, {"factor", FieldType::kInt32}, {"offset", FieldType::kInt32}};
inline constexpr FieldSpec kComputeAt[] = {
    kStage, {"target_stage_id", FieldType::kInt32}, {"target_iter_id", FieldType::kInt32}};
inline constexpr FieldSpec kComputeInline[] = {kStage};
inline constexpr FieldSpec kComputeRoot[] = {kStage};
inline constexpr FieldSpec kCacheRead[] = {
    kStage, {"scope_name", FieldType::kName}, {"reader_stage_ids", FieldType::kList}};
inline constexpr FieldSpec kCacheWrite[] = {kStage, {"scope_name", FieldType::kName}};
inline constexpr FieldSpec kRfactor[] = {kStage, kIter, {"factor_iter_id", FieldType::kInt32}};
}  // namespace fields

/*! \brief In the order of StepKind. */
inline constexpr KindSpec kStepKinds[] = {
    {"AN", fields::kAnnotate, std::size(fields::kAnnotate)},
    {"FU", fields::kFuse, std::size(fields::kFuse)},
    {"PR", fields::kPragma, std::size(fields::kPragma)},
    {"RE", fields::kReorder, std::size(fields::kReorder)},
    {"SP", fields::kSplit, std::size(fields::kSplit)},
    {"FSP", fields::kFollowSplit, std::size(fields::kFollowSplit)},
    {"FFSP", fields::kFollowFusedSplit, std::size(fields::kFollowFusedSplit)},
    {"SA", fields::kStorageAlign, std::size(fields::kStorageAlign)},
    {"CA", fields::kComputeAt, std::size(fields::kComputeAt)},
    {"CI", fields::kComputeInline, std::size(fields::kComputeInline)},
    {"CR", fields::kComputeRoot, std::size(fields::kComputeRoot)},
    {"CHR", fields::kCacheRead, std::size(fields::kCacheRead)},
    {"CHW", fields::kCacheWrite, std::size(fields::kCacheWrite)},
    {"RF", fields::kRfactor, std::size(fields::kRfactor)},
};

static_assert(std::size(kStepKinds) == kStepKindCount, "every step kind has its row");
static_assert(kStepKinds[static_cast<std::size_t>(StepKind::RF)].name == "RF",
              "rows stand in the order of StepKind");

inline constexpr Vocabulary kVocabulary{"ansor", kStepKinds, kStepKindCount};

}  // namespace ansor
}  // namespace tlp_tvm

#endif  // TLP_TVM_ANSOR_STEPS_H_
