#include "ansor/state_reader.h"

#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "core/error.h"
#include "core/parallel_for.h"

namespace tlp_tvm {
namespace ansor {
namespace {

/*! \brief States per unit of work: enough to hide a thread's start, few enough to share out. */
constexpr std::size_t kStatesPerBlock = 64;

/*! \brief States whose objects are fetched ahead together; their lines fit the L1 cache. */
constexpr std::size_t kStatesPerPrefetch = 4;

/*! \brief Cache lines of an Array that hold the pointers of a usual program's steps. */
constexpr std::size_t kLinesOfSteps = 5;

constexpr std::int64_t kMaxStates = std::int64_t{1} << 32;

void PrefetchLine(const void* address) { __builtin_prefetch(address); }

}  // namespace

const abi::Array& StateReader::StatesOf(const void* handle) {
  const auto* array = static_cast<const abi::Array*>(handle);
  if (array == nullptr) {
    throw StateError("states: expected an Array of auto_scheduler.State, found a null handle");
  }
  if (Tag(*array) != TypeTag::kArray) {
    throw StateError("states: expected an Array of auto_scheduler.State, found " +
                     types_.Name(array->type_index));
  }
  if (array->size < 0 || array->size > kMaxStates) {
    throw StateError("states: expected an Array of at most 2^32 states, found a size of " +
                     std::to_string(array->size));
  }
  return *array;
}

void StateReader::Expect(const abi::Object* object, TypeTag tag, const char* field,
                         const char* expected) {
  if (object == nullptr) {
    throw StateError(std::string("expected ") + field + " to be " + expected + ", found null");
  }
  if (Tag(*object) != tag) {
    throw StateError(std::string("expected ") + field + " to be " + expected + ", found " +
                     types_.Name(object->type_index));
  }
}

std::int64_t StateReader::IntegerOf(const abi::Object* integer, const char* field) {
  if (integer == nullptr) {
    throw StateError(std::string("expected ") + field +
                     " to be filled in, found an empty one: a sketch is no program yet, sample "
                     "programs from it");
  }
  Expect(integer, TypeTag::kIntImm, field, "a constant integer");
  return static_cast<const abi::IntImm*>(integer)->value;
}

void StateReader::AddList(const abi::Array* array, const char* field, SequenceBatch* batch) {
  Expect(array, TypeTag::kArray, field, "an Array");
  if (array->size < 0 || array->size > static_cast<std::int64_t>(kMaxListSize)) {
    throw StateError(std::string("expected ") + field + " to have at most " +
                     std::to_string(kMaxListSize) + " items, found " + std::to_string(array->size));
  }
  const auto n = static_cast<std::size_t>(array->size);
  std::int64_t* out = batch->AddList(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = IntegerOf(array->items()[i], field);
}

void StateReader::AddSharedList(const abi::Array* array, const char* field, ReadScratch* scratch) {
  if (const std::vector<std::int64_t>* known = scratch->Find(array)) {
    std::copy(known->begin(), known->end(), scratch->batch.AddList(known->size()));
    return;
  }
  AddList(array, field, &scratch->batch);
  const auto n = static_cast<std::size_t>(array->size);
  scratch->Keep(array, scratch->batch.LastValues(n), n);
}

void StateReader::AddName(const abi::String* name, const char* field, SequenceBatch* batch) {
  Expect(name, TypeTag::kString, field, "a String");
  if (name->size > kMaxNameSize) {
    throw StateError(std::string("expected ") + field + " to be at most " +
                     std::to_string(kMaxNameSize) + " bytes long, found " +
                     std::to_string(name->size));
  }
  batch->AddName({name->data, static_cast<std::size_t>(name->size)});
}

void StateReader::ReadStep(const abi::Object* object, ReadScratch* scratch) {
  SequenceBatch* const batch = &scratch->batch;
  const auto tag = static_cast<std::uint8_t>(Tag(*object));
  constexpr auto kFirst = static_cast<std::uint8_t>(TypeTag::kFirstStep);
  if (tag < kFirst) {
    throw StateError("expected a transform step of Ansor, found " +
                     types_.Name(object->type_index));
  }
  const auto kind = static_cast<StepKind>(tag - kFirst);
  batch->Begin(static_cast<std::uint32_t>(kind));
  batch->AddNumber(static_cast<const abi::Step*>(object)->stage_id);
  switch (kind) {
    case StepKind::AN: {
      const auto& step = static_cast<const abi::AnnotationStep&>(*object);
      batch->AddNumber(step.iter_id);
      batch->AddNumber(step.annotation);
      break;
    }
    case StepKind::FU:
      AddList(static_cast<const abi::FuseStep*>(object)->fused_ids, "fused_ids", batch);
      break;
    case StepKind::PR: {
      const auto& step = static_cast<const abi::PragmaStep&>(*object);
      batch->AddNumber(step.iter_id);
      AddName(step.pragma_type, "pragma_type", batch);
      break;
    }
    case StepKind::RE:
      AddSharedList(static_cast<const abi::ReorderStep*>(object)->after_ids, "after_ids", scratch);
      break;
    case StepKind::SP: {
      const auto& step = static_cast<const abi::SplitStep&>(*object);
      batch->AddNumber(step.iter_id);
      batch->AddNumber(step.extent == nullptr ? 0 : IntegerOf(step.extent, "extent"));
      AddList(step.lengths, "lengths", batch);
      batch->AddNumber(step.inner_to_outer != 0);
      break;
    }
    case StepKind::FSP: {
      const auto& step = static_cast<const abi::FollowSplitStep&>(*object);
      batch->AddNumber(step.iter_id);
      batch->AddNumber(step.src_step_id);
      batch->AddNumber(step.n_split);
      break;
    }
    case StepKind::FFSP: {
      const auto& step = static_cast<const abi::FollowFusedSplitStep&>(*object);
      batch->AddNumber(step.iter_id);
      AddList(step.src_step_ids, "src_step_ids", batch);
      batch->AddNumber(step.level);
      batch->AddNumber(step.factor_or_nparts != 0);
      break;
    }
    case StepKind::SA: {
      const auto& step = static_cast<const abi::StorageAlignStep&>(*object);
      batch->AddNumber(step.iter_id);
      batch->AddNumber(step.factor);
      batch->AddNumber(step.offset);
      break;
    }
    case StepKind::CA: {
      const auto& step = static_cast<const abi::ComputeAtStep&>(*object);
      batch->AddNumber(step.target_stage_id);
      batch->AddNumber(step.target_iter_id);
      break;
    }
    case StepKind::CI:
    case StepKind::CR:
      break;
    case StepKind::CHR: {
      const auto& step = static_cast<const abi::CacheReadStep&>(*object);
      AddName(step.scope_name, "scope_name", batch);
      AddList(step.reader_stage_ids, "reader_stage_ids", batch);
      break;
    }
    case StepKind::CHW:
      AddName(static_cast<const abi::CacheWriteStep*>(object)->scope_name, "scope_name", batch);
      break;
    case StepKind::RF: {
      const auto& step = static_cast<const abi::RfactorStep&>(*object);
      batch->AddNumber(step.iter_id);
      batch->AddNumber(step.factor_iter_id);
      break;
    }
  }
}

void StateReader::Read(const abi::Array& states, std::size_t i, ReadScratch* scratch) {
  const abi::Object* object = states.items()[i];
  std::size_t step = 0;
  bool in_steps = false;
  try {
    Expect(object, TypeTag::kState, "the item", "an auto_scheduler.State");
    const abi::Array* steps = static_cast<const abi::State*>(object)->transform_steps;
    Expect(steps, TypeTag::kArray, "transform_steps", "an Array");
    if (steps->size < 0 || steps->size > static_cast<std::int64_t>(kMaxSteps)) {
      throw StateError("expected at most " + std::to_string(kMaxSteps) +
                       " transform_steps, found " + std::to_string(steps->size));
    }
    in_steps = true;
    for (; step < static_cast<std::size_t>(steps->size); ++step) {
      if (steps->items()[step] == nullptr) throw StateError("expected a step, found null");
      ReadStep(steps->items()[step], scratch);
    }
    scratch->batch.End();
  } catch (const StateError& error) {
    scratch->batch.Rollback();
    std::string where = "state " + std::to_string(i) + ": ";
    if (in_steps) where += "step " + std::to_string(step) + ": ";
    throw StateError(where + error.what());
  }
}

bool StateReader::PrefetchItems(const abi::Array* array) {
  // What is not an Array of plausible size is left for Read to refuse.
  if (array == nullptr || Tag(*array) != TypeTag::kArray) return false;
  if (array->size < 0 || array->size > static_cast<std::int64_t>(kMaxSteps)) return false;
  for (std::int64_t i = 0; i < array->size; ++i) PrefetchLine(array->items()[i]);
  return true;
}

const abi::Array* StateReader::ListOf(const abi::Object* step) {
  if (step == nullptr) return nullptr;
  const TypeTag tag = Tag(*step);
  if (tag == TagOf(StepKind::SP)) return static_cast<const abi::SplitStep*>(step)->lengths;
  if (tag == TagOf(StepKind::FU)) return static_cast<const abi::FuseStep*>(step)->fused_ids;
  if (tag == TagOf(StepKind::FFSP)) {
    return static_cast<const abi::FollowFusedSplitStep*>(step)->src_step_ids;
  }
  return nullptr;  // the other lists are shared between states (ReadScratch), or rare
}

void StateReader::Prefetch(const abi::Array& states, std::size_t begin, std::size_t end) {
  // Each round touches what the round before has asked for; the misses of one round overlap.
  const abi::Array* steps[kStatesPerPrefetch];
  std::size_t count = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const abi::Object* object = states.items()[i];
    if (object == nullptr || Tag(*object) != TypeTag::kState) continue;
    const char* array =
        reinterpret_cast<const char*>(static_cast<const abi::State*>(object)->transform_steps);
    for (std::size_t line = 0; line < kLinesOfSteps; ++line) PrefetchLine(array + 64 * line);
    steps[count++] = static_cast<const abi::State*>(object)->transform_steps;
  }
  for (std::size_t a = 0; a < count; ++a) {
    if (!PrefetchItems(steps[a])) steps[a] = nullptr;
  }
  const auto for_each_list = [&](auto&& body) {
    for (std::size_t a = 0; a < count; ++a) {
      if (steps[a] == nullptr) continue;
      for (std::int64_t s = 0; s < steps[a]->size; ++s) {
        if (const abi::Array* list = ListOf(steps[a]->items()[s])) body(list);
      }
    }
  };
  for_each_list([](const abi::Array* list) { PrefetchLine(list); });
  for_each_list([this](const abi::Array* list) { PrefetchItems(list); });
}

void StateReader::Encode(const abi::Array& states, const Encoder& encoder, int threads, float* out,
                         EncodingReport* report) {
  const auto count = static_cast<std::size_t>(states.size);
  const std::size_t size = encoder.layout().size();
  std::mutex report_mutex;
  // A thread works on one run of blocks, so that its scratch serves many states.
  const std::size_t share = std::max(
      kStatesPerBlock, count / (4 * static_cast<std::size_t>(ResolveThreads(threads))) + 1);
  ParallelFor(count, share, threads, [&](std::size_t begin, std::size_t end) {
    ReadScratch scratch;
    EncodingReport share_report;
    for (std::size_t i = begin; i < end; ++i) {
      if ((i - begin) % kStatesPerPrefetch == 0) {
        Prefetch(states, i, std::min(end, i + kStatesPerPrefetch));
      }
      scratch.batch.Clear();
      Read(states, i, &scratch);
      encoder.Encode(scratch.batch[0], out + i * size, &share_report);
    }
    const std::lock_guard<std::mutex> lock(report_mutex);
    report->Add(share_report);
  });
}

StateReader* BindStateReader(const std::string& library_path) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<StateReader>> readers;
  const std::lock_guard<std::mutex> lock(mutex);
  auto& reader = readers[library_path];
  if (reader) return reader.get();
  void* library = dlopen(library_path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) {
    throw StateError(library_path +
                     ": expected TVM's library to be loaded already, found it is "
                     "not; import tvm first");
  }
  void* index2key = dlsym(library, "TVMObjectTypeIndex2Key");
  if (index2key == nullptr) {
    throw StateError(library_path +
                     ": expected TVM's C interface, found no TVMObjectTypeIndex2Key; "
                     "use a TVM 0.8 to 0.19");
  }
  reader = std::make_unique<StateReader>(reinterpret_cast<TypeIndex::Index2Key>(index2key));
  return reader.get();
}

}  // namespace ansor
}  // namespace tlp_tvm
