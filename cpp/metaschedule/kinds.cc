#include "metaschedule/kinds.h"

#include <deque>
#include <string>

namespace tlp_tvm {
namespace metaschedule {
namespace {

/*! \brief The fields of all kinds; a deque, so that names and rows stay where they are. */
struct Tables {
  std::deque<std::string> names;
  std::deque<std::vector<FieldSpec>> fields;
  std::vector<KindSpec> kinds;
  Vocabulary vocabulary{"metaschedule", nullptr, 0};

  Tables() {
    for (const InstructionSpec& spec : Instructions()) {
      std::vector<FieldSpec>& row = fields.emplace_back();
      for (const SlotSpec& slot : spec.inputs) AddSlot(slot, &row);
      for (const SlotSpec& slot : spec.attributes) AddSlot(slot, &row);
      if (spec.outputs != Outputs::kNone) row.push_back({"defines", FieldType::kInt32});
      if (spec.outputs == Outputs::kMany) row.push_back({"outputs", FieldType::kInt32});
      if (spec.decision == Decision::kIndex) row.push_back({"decision", FieldType::kInt64});
      if (spec.decision == Decision::kFactors) row.push_back({"decision", FieldType::kList});
      kinds.push_back({spec.name, row.data(), row.size()});
    }
    vocabulary.kinds = kinds.data();
    vocabulary.kind_count = kinds.size();
  }

  void AddSlot(const SlotSpec& slot, std::vector<FieldSpec>* row) {
    const auto add = [&](const char* suffix, FieldType type) {
      row->push_back({names.emplace_back(std::string(slot.name) + suffix), type});
    };
    switch (slot.slot) {
      case Slot::kReference:
        return add("", FieldType::kInt32);
      case Slot::kReferences:
      case Slot::kReferenceList:
      case Slot::kIntegers:
      case Slot::kReals:
        return add("", FieldType::kList);
      case Slot::kAmounts:
        add("", FieldType::kList);
        return add("_from", FieldType::kList);
      case Slot::kAnything:
        add("_form", FieldType::kInt32);
        add("", FieldType::kInt64);
        add("_from", FieldType::kInt32);
        add("_text", FieldType::kName);
        return add("_items", FieldType::kList);
      case Slot::kInteger:
        return add("", FieldType::kInt64);
      case Slot::kFlag:
        return add("", FieldType::kFlag);
      case Slot::kName:
      case Slot::kRest:
        return add("", FieldType::kName);
    }
  }
};

}  // namespace

const std::vector<InstructionSpec>& Instructions() {
  constexpr auto kRef = Slot::kReference;
  constexpr auto kInt = Slot::kInteger;
  constexpr auto kFlag = Slot::kFlag;
  constexpr auto kName = Slot::kName;
  constexpr auto kRest = Slot::kRest;
  constexpr auto kOne = Outputs::kOne;
  constexpr auto kMany = Outputs::kMany;
  constexpr auto kNothing = Outputs::kNone;
  constexpr auto kFixed = Decision::kNone;
  using Specs = std::vector<SlotSpec>;
  static const Specs kBlock = {{"block", kRef}};
  static const Specs kLoop = {{"loop", kRef}};
  static const Specs kBlockLoop = {{"block", kRef}, {"loop", kRef}};
  static const Specs kAnyInputs = {{"inputs", kRest}};
  static const Specs kAnyAttributes = {{"attributes", kRest}};
  static const Specs kMove = {{"preserve_unit_loops", kFlag}, {"index", kInt}};
  static const Specs kCacheInputs = {{"block", kRef}, {"consumer_blocks", Slot::kReferenceList}};
  // Kinds that no design space of TVM's own makes keep their operands as JSON.
  static const std::vector<InstructionSpec> kInstructions = {
      {"SampleCategorical",
       {},
       {{"candidates", Slot::kIntegers}, {"probs", Slot::kReals}},
       'v',
       kOne,
       Decision::kIndex},
      {"SamplePerfectTile",
       kLoop,
       {{"n", kInt}, {"max_innermost_factor", kInt}},
       'v',
       kMany,
       Decision::kFactors},
      {"SamplePartitionedTile",
       kLoop,
       {{"n", kInt}, {"partition_pos", kInt}, {"innerpart_factor", kInt}},
       'v',
       kMany,
       Decision::kFactors},
      {"SampleComputeLocation", kBlock, {}, 'l', kOne, Decision::kIndex},
      {"GetSBlock", {}, {{"name", kName}, {"func_name", kName}}, 'b', kOne, kFixed},
      {"GetLoops", kBlock, {}, 'l', kMany, kFixed},
      {"GetChildBlocks", {{"block_or_loop", kRef}}, {}, 'b', kMany, kFixed},
      {"GetProducers", kBlock, {}, 'b', kMany, kFixed},
      {"GetConsumers", kBlock, {}, 'b', kMany, kFixed},
      {"GetOutputBlocks", kBlock, {}, 'b', kMany, kFixed},
      {"Merge", {{"loops", Slot::kReferences}}, {}, 'l', kOne, kFixed},
      {"Fuse", {{"loops", Slot::kReferences}}, {{"preserve_unit_iters", kFlag}}, 'l', kOne, kFixed},
      {"Split",
       {{"loop", kRef}, {"factors", Slot::kAmounts}},
       {{"preserve_unit_iters", kFlag}, {"disable_predication", kFlag}},
       'l',
       kMany,
       kFixed},
      {"LoopPartition",
       {{"loop", kRef}, {"factors", Slot::kAmounts}},
       kAnyAttributes,
       'l',
       kMany,
       kFixed},
      {"Reorder", {{"loops", Slot::kReferences}}, {}, 'l', kNothing, kFixed},
      {"ReorderBlockIterVar", kAnyInputs, kAnyAttributes, 'l', kNothing, kFixed},
      {"AddUnitLoop", {{"block_or_loop", kRef}}, {}, 'l', kOne, kFixed},
      {"Parallel", kLoop, {}, 'l', kNothing, kFixed},
      {"Vectorize", kLoop, {}, 'l', kNothing, kFixed},
      {"Bind", kLoop, {{"thread_axis", kName}}, 'l', kNothing, kFixed},
      {"Unroll", kLoop, {}, 'l', kNothing, kFixed},
      {"CacheRead",
       kCacheInputs,
       {{"read_buffer_index", kInt}, {"storage_scope", kName}},
       'b',
       kOne,
       kFixed},
      {"CacheWrite",
       kCacheInputs,
       {{"write_buffer_index", kInt}, {"storage_scope", kName}},
       'b',
       kOne,
       kFixed},
      {"ReindexCacheRead", kAnyInputs, kAnyAttributes, 'b', kOne, kFixed},
      {"ReindexCacheWrite", kAnyInputs, kAnyAttributes, 'b', kOne, kFixed},
      {"CacheInplace", kAnyInputs, kAnyAttributes, 'b', kMany, kFixed},
      {"CacheIndex", kAnyInputs, kAnyAttributes, 'b', kMany, kFixed},
      {"ReIndex", kBlock, {{"buffer_index", kInt}, {"buffer_index_type", kInt}}, 'b', kOne, kFixed},
      {"ReadAt", kAnyInputs, kAnyAttributes, 'b', kOne, kFixed},
      {"WriteAt", kAnyInputs, kAnyAttributes, 'b', kOne, kFixed},
      {"ComputeAt", kBlockLoop, kMove, 'l', kNothing, kFixed},
      {"ReverseComputeAt", kBlockLoop, kMove, 'l', kNothing, kFixed},
      {"ComputeInline", kBlock, {}, 'b', kNothing, kFixed},
      {"ReverseComputeInline", kBlock, {}, 'b', kNothing, kFixed},
      {"FuseReductionEpilogue", kAnyInputs, kAnyAttributes, 'b', kNothing, kFixed},
      {"DecomposeReduction", kBlockLoop, {}, 'b', kOne, kFixed},
      {"RFactor", kLoop, {{"factor_axis", kInt}}, 'b', kOne, kFixed},
      {"StorageAlign",
       kBlock,
       {{"buffer_index", kInt}, {"axis", kInt}, {"factor", kInt}, {"offset", kInt}},
       'b',
       kNothing,
       kFixed},
      {"SetScope",
       kBlock,
       {{"buffer_index", kInt}, {"storage_scope", kName}},
       'b',
       kNothing,
       kFixed},
      {"UnsafeSetDType", kAnyInputs, kAnyAttributes, 'b', kNothing, kFixed},
      {"Blockize", kAnyInputs, {{"preserve_unit_iters", kFlag}}, 'b', kOne, kFixed},
      {"Tensorize",
       {{"block_or_loop", kRef}},
       {{"tensor_intrin", kName}, {"preserve_unit_iters", kFlag}},
       'b',
       kNothing,
       kFixed},
      {"Annotate",
       {{"block_or_loop", kRef}, {"value", Slot::kAnything}},
       {{"key", kName}},
       'b',
       kNothing,
       kFixed},
      {"Unannotate", {{"block_or_loop", kRef}}, {{"key", kName}}, 'b', kNothing, kFixed},
      {"TransformLayout",
       {{"block", kRef}, {"index_map", kRest}},
       kAnyAttributes,
       'b',
       kNothing,
       kFixed},
      {"TransformBlockLayout",
       {{"block", kRef}, {"index_map", kRest}},
       kAnyAttributes,
       'b',
       kNothing,
       kFixed},
      {"SetAxisSeparator", kAnyInputs, kAnyAttributes, 'b', kNothing, kFixed},
      {"DecomposePadding", kBlockLoop, {}, 'b', kOne, kFixed},
      {"PadEinsum", kAnyInputs, kAnyAttributes, 'b', kNothing, kFixed},
      {"RollingBuffer", kAnyInputs, kAnyAttributes, 'b', kNothing, kFixed},
      {"UnsafeHideBufferAccess", kAnyInputs, kAnyAttributes, 'b', kNothing, kFixed},
      {"AnnotateBufferAccess", kAnyInputs, kAnyAttributes, 'b', kNothing, kFixed},
      {"EnterPostproc", {}, {}, 'b', kNothing, kFixed},
  };
  return kInstructions;
}

const Vocabulary& TraceVocabulary() {
  static const Tables tables;
  return tables.vocabulary;
}

}  // namespace metaschedule
}  // namespace tlp_tvm
