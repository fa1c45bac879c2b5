#include "metaschedule/trace_reader.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "core/error.h"
#include "core/parallel_for.h"

namespace tlp_tvm {
namespace metaschedule {
namespace {

/*! \brief Traces per unit of work: enough to hide a thread's start, few enough to share out. */
constexpr std::size_t kTracesPerBlock = 32;

/*! \brief Instructions whose objects are fetched ahead together; their lines fit the L1 cache. */
constexpr std::int64_t kInstructionsPerPrefetch = 16;

constexpr std::int64_t kMaxTraces = std::int64_t{1} << 32;

constexpr char kGetTrace[] = "s_tir.schedule.ScheduleGetTrace";
constexpr char kMapSize[] = "ffi.MapSize";
constexpr char kMapFind[] = "ffi.MapGetItemOrMissing";
constexpr char kMapIterate[] = "ffi.MapForwardIterFunctor";
constexpr char kGraphOf[] = "ffi.ToJSONGraphString";

/*! \brief Commands of the function that ffi.MapForwardIterFunctor returns. */
constexpr std::int64_t kKey = 0;
constexpr std::int64_t kItem = 1;
constexpr std::int64_t kNext = 2;

ffi::Any IntegerAny(std::int64_t number) {
  ffi::Any any;
  any.type_index = ffi::kInt;
  any.integer = number;
  return any;
}

}  // namespace

void ObjectTable::Add(const ffi::Object* object, std::int64_t number) {
  if (2 * (count_ + 1) > entries_.size()) {
    std::vector<Entry> old(2 * entries_.size());
    old.swap(entries_);
    count_ = 0;
    for (const Entry& entry : old) {
      if (entry.epoch == epoch_) Add(entry.object, entry.number);
    }
  }
  std::size_t slot = Slot(object);
  while (entries_[slot].epoch == epoch_) slot = (slot + 1) & (entries_.size() - 1);
  entries_[slot] = {object, number, epoch_};
  ++count_;
}

TraceReader::TraceReader(const std::string& library_path)
    : library_(library_path),
      candidate_(library_.IndexOf("s_tir.meta_schedule.MeasureCandidate")),
      schedule_(library_.IndexOf("s_tir.Schedule")),
      trace_(library_.IndexOf("s_tir.Trace")),
      instruction_(library_.IndexOf("s_tir.Instruction")),
      block_(library_.IndexOf("s_tir.SBlockRV")),
      loop_(library_.IndexOf("s_tir.LoopRV")),
      variable_(library_.IndexOf("ir.Var")),
      integer_(library_.IndexOf("ir.IntImm")),
      real_(library_.IndexOf("ir.FloatImm")),
      schedule_of_candidate_(&library_, "s_tir.meta_schedule.MeasureCandidate", "sch"),
      instructions_(&library_, "s_tir.Trace", "insts"),
      decisions_(&library_, "s_tir.Trace", "decisions"),
      kind_(&library_, "s_tir.Instruction", "kind"),
      inputs_(&library_, "s_tir.Instruction", "inputs"),
      attributes_(&library_, "s_tir.Instruction", "attrs"),
      outputs_(&library_, "s_tir.Instruction", "outputs"),
      name_(&library_, "s_tir.InstructionKind", "name"),
      integer_value_(&library_, "ir.IntImm", "value"),
      real_value_(&library_, "ir.FloatImm", "value"),
      get_trace_(library_.FunctionOf(kGetTrace)),
      map_size_(library_.FunctionOf(kMapSize)),
      map_find_(library_.FunctionOf(kMapFind)),
      map_iterate_(library_.FunctionOf(kMapIterate)),
      graph_of_(library_.FunctionOf(kGraphOf)) {}

const ffi::Sequence& TraceReader::TracesOf(const void* handle) const {
  const auto* const array = static_cast<const ffi::Object*>(handle);
  if (array == nullptr) {
    throw StateError("traces: expected an Array of traces, found a null handle");
  }
  if (array->type_index != ffi::kArray) {
    throw StateError("traces: expected an Array of traces, found " +
                     library_.NameOf(ffi::AnyOf(array)));
  }
  const ffi::Sequence& sequence = ffi::SequenceOf(array);
  if (sequence.size < 0 || sequence.size > kMaxTraces) {
    throw StateError("traces: expected an Array of at most 2^32 traces, found a size of " +
                     std::to_string(sequence.size));
  }
  return sequence;
}

TraceReader::Held TraceReader::TraceOf(const ffi::Any& item) const {
  ffi::Any at = item;
  if (at.type_index == candidate_) at = schedule_of_candidate_.Read(at.object);
  if (at.type_index == trace_) return {at.object, {}};
  // Schedules are objects of classes derived from s_tir.Schedule.
  const ffi::TypeInfo* const info =
      at.type_index < ffi::kFirstObject ? nullptr : library_.InfoOf(at.type_index);
  bool is_schedule = at.type_index == schedule_;
  for (std::int32_t depth = 0; info != nullptr && depth < info->depth; ++depth) {
    is_schedule = is_schedule || info->ancestors[depth]->type_index == schedule_;
  }
  if (!is_schedule) {
    throw StateError("expected a Trace, a Schedule or a MeasureCandidate of tvm.s_tir, found " +
                     library_.NameOf(at));
  }
  const ffi::Any trace = library_.Call(get_trace_, kGetTrace, &at, 1);
  if (trace.type_index != trace_) {
    library_.Release(trace);
    throw StateError(
        "expected a schedule with a trace, found one without; make it with tvm.s_tir.Schedule");
  }
  return {trace.object, trace};
}

const ffi::Sequence& TraceReader::ListOf(const ffi::Any& list, const char* what) const {
  if (list.type_index != ffi::kArray) {
    throw TraceFault(std::string("expected ") + what + " to be an Array, found " +
                     library_.NameOf(list));
  }
  const ffi::Sequence& sequence = ffi::SequenceOf(list.object);
  if (sequence.size < 0 || sequence.size > static_cast<std::int64_t>(kMaxOperands)) {
    throw TraceFault(std::string("expected ") + what + " to have at most " +
                     std::to_string(kMaxOperands) + " items, found " +
                     std::to_string(sequence.size));
  }
  return sequence;
}

std::size_t TraceReader::KindOf(const ffi::Object* instruction, TraceScratch* scratch) const {
  const ffi::Any kind = kind_.Read(instruction);
  if (kind.type_index < ffi::kFirstObject) throw TraceFault("expected a kind, found none");
  const std::int64_t known = scratch->kinds_.Find(kind.object);
  if (known >= 0) return static_cast<std::size_t>(known);
  const ffi::Any name = name_.Read(kind.object);
  const int found = ffi::IsText(name) ? TraceVocabulary().Find(ffi::TextOf(name)) : -1;
  if (found < 0) {
    throw TraceFault("expected an instruction of TVM 0.25 to 0.27, found " + library_.NameOf(name));
  }
  scratch->kinds_.Add(kind.object, found);
  return static_cast<std::size_t>(found);
}

void TraceReader::AddAll(const ffi::Sequence& list, int depth, TraceScratch* scratch,
                         std::vector<Value>* values) const {
  for (std::int64_t i = 0; i < list.size; ++i) AddValue(list.items[i], depth, scratch, values);
}

void TraceReader::AddValue(const ffi::Any& item, int depth, TraceScratch* scratch,
                           std::vector<Value>* values) const {
  if (depth > kMaxDepth) throw TraceFault("expected lists in lists to end, found them too deep");
  const std::int32_t type = item.type_index;
  if (type == loop_ || type == variable_ || type == block_) {
    const std::int64_t number = scratch->variables_.Find(item.object);
    if (number < 0) {
      throw TraceFault("expected a random variable of an instruction before, found another " +
                       library_.NameOf(item));
    }
    values->push_back({ValueForm::kReference, 0, number, 0, {}});
  } else if (type == integer_) {
    values->push_back(Integer(integer_value_.Read(item.object).integer));
  } else if (type == ffi::kInt || type == ffi::kBool) {
    values->push_back(Integer(item.integer));
  } else if (ffi::IsText(item)) {
    values->push_back({ValueForm::kText, 0, 0, 0, ffi::TextOf(item)});
  } else if (type == ffi::kNone) {
    values->push_back({});
  } else if (type == ffi::kFloat) {
    values->push_back(Real(item.real));
  } else if (type == real_) {
    values->push_back(Real(real_value_.Read(item.object).real));
  } else if (type == ffi::kArray) {
    const std::size_t at = values->size();
    const ffi::Sequence& list = ListOf(item, "a list");
    values->push_back({ValueForm::kList, 0, list.size, 0, {}});
    AddAll(list, depth + 1, scratch, values);
    (*values)[at].inside = static_cast<std::uint32_t>(values->size() - at - 1);
  } else if (type == ffi::kMap) {
    AddMapping(item, depth, scratch, values);
  } else if (type >= ffi::kFirstObject) {
    const ffi::Any args[] = {item, {}};
    const ffi::Any graph = library_.Call(graph_of_, kGraphOf, args, 2);
    scratch->graphs_.push_back(PlainGraph(ffi::TextOf(graph)));
    library_.Release(graph);
    values->push_back({ValueForm::kGraph, 0, 0, 0, scratch->graphs_.back()});
  } else {
    throw TraceFault("expected a number, text, list or object, found " + library_.NameOf(item));
  }
}

void TraceReader::AddMapping(const ffi::Any& map, int depth, TraceScratch* scratch,
                             std::vector<Value>* values) const {
  const std::size_t at = values->size();
  const std::int64_t size = library_.Call(map_size_, kMapSize, &map, 1).integer;
  values->push_back({ValueForm::kMapping, 0, size, 0, {}});
  if (size == 0) return;
  const ffi::Any iterate = library_.Call(map_iterate_, kMapIterate, &map, 1);
  for (std::int64_t i = 0; i < size; ++i) {
    for (const std::int64_t command : {kKey, kItem}) {
      const ffi::Any argument = IntegerAny(command);
      const ffi::Any part = library_.Call(iterate.object, kMapIterate, &argument, 1);
      if (ffi::IsText(part)) {
        // A short text lies in `part`, which goes.
        scratch->graphs_.emplace_back(ffi::TextOf(part));
        values->push_back({ValueForm::kText, 0, 0, 0, scratch->graphs_.back()});
      } else {
        AddValue(part, depth + 1, scratch, values);
      }
      library_.Release(part);  // the map holds it
    }
    const ffi::Any next = IntegerAny(kNext);
    library_.Call(iterate.object, kMapIterate, &next, 1);
  }
  library_.Release(iterate);
  (*values)[at].inside = static_cast<std::uint32_t>(values->size() - at - 1);
  SortMapping(at, values);
}

void TraceReader::AddDecision(const ffi::Any& decisions, const ffi::Object* instruction,
                              TraceScratch* scratch) const {
  const ffi::Any args[] = {decisions, ffi::AnyOf(instruction)};
  const ffi::Any decision = library_.Call(map_find_, kMapFind, args, 2);
  // An object that stands for "missing" is neither a number nor a list.
  scratch->instruction_.is_decided = decision.type_index == ffi::kInt ||
                                     decision.type_index == integer_ ||
                                     decision.type_index == ffi::kArray;
  if (scratch->instruction_.is_decided) {
    AddValue(decision, 0, scratch, &scratch->instruction_.decision);
  }
  library_.Release(decision);  // the trace holds it
}

void TraceReader::DefineOutputs(const ffi::Sequence& outputs, const InstructionSpec& spec,
                                TraceScratch* scratch) const {
  std::int32_t expected = variable_;
  if (spec.letter == 'b') expected = block_;
  if (spec.letter == 'l') expected = loop_;
  auto number = static_cast<std::int64_t>(scratch->builder_.variables()) - outputs.size;
  for (std::int64_t i = 0; i < outputs.size; ++i) {
    const ffi::Any& output = outputs.items[i];
    if (output.type_index != expected) {
      throw TraceFault("expected the outputs to be of " +
                       std::string(spec.letter == 'b'   ? "blocks"
                                   : spec.letter == 'l' ? "loops"
                                                        : "numbers") +
                       ", found " + library_.NameOf(output));
    }
    if (scratch->variables_.Find(output.object) >= 0) {
      throw TraceFault("expected a new random variable among the outputs, found one from before");
    }
    scratch->variables_.Add(output.object, number++);
  }
}

void TraceReader::Prefetch(const ffi::Sequence& instructions, std::int64_t begin,
                           std::int64_t end) const {
  // Each round touches what the round before has asked for; the misses of one round overlap.
  for (std::int64_t i = begin; i < end; ++i) __builtin_prefetch(instructions.items[i].object);
  const ffi::Object* lists[3 * kInstructionsPerPrefetch];
  std::size_t count = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    // What is not as it should be is left for ReadTrace to refuse.
    if (instructions.items[i].type_index != instruction_) continue;
    for (const ffi::Field* field : {&inputs_, &attributes_, &outputs_}) {
      const ffi::Object* const list = field->Peek(instructions.items[i].object);
      if (list == nullptr) continue;
      __builtin_prefetch(list);
      __builtin_prefetch(reinterpret_cast<const char*>(list) + 64);
      lists[count++] = list;
    }
  }
  for (std::size_t k = 0; k < count; ++k) {
    if (lists[k]->type_index != ffi::kArray) continue;
    const ffi::Sequence& list = ffi::SequenceOf(lists[k]);
    for (std::int64_t i = 0; i < std::min(list.size, kInstructionsPerPrefetch); ++i) {
      if (list.items[i].type_index >= ffi::kFirstObject) __builtin_prefetch(list.items[i].object);
    }
  }
}

void TraceReader::ReadTrace(const ffi::Object* trace, int until, TraceScratch* scratch) const {
  scratch->builder_.BeginTrace();
  scratch->variables_.Clear();
  scratch->graphs_.clear();
  const ffi::Any instructions = instructions_.Read(trace);
  const ffi::Any decisions = decisions_.Read(trace);
  if (instructions.type_index != ffi::kArray || decisions.type_index != ffi::kMap) {
    throw StateError("expected a Trace with instructions and decisions, found one without");
  }
  const ffi::Sequence& list = ffi::SequenceOf(instructions.object);
  if (list.size < 0 || list.size > static_cast<std::int64_t>(kMaxInstructions)) {
    throw StateError("expected at most " + std::to_string(kMaxInstructions) +
                     " instructions, found " + std::to_string(list.size));
  }
  Instruction& read = scratch->instruction_;
  std::int64_t decided = 0;
  std::int64_t i = 0;
  const InstructionSpec* spec = nullptr;
  try {
    for (; i < list.size; ++i) {
      spec = nullptr;
      if (i % kInstructionsPerPrefetch == 0) {
        Prefetch(list, i, std::min(list.size, i + kInstructionsPerPrefetch));
      }
      if (list.items[i].type_index != instruction_) {
        throw TraceFault("expected an Instruction, found " + library_.NameOf(list.items[i]));
      }
      const ffi::Object* const instruction = list.items[i].object;
      read.Clear();
      read.kind = KindOf(instruction, scratch);
      if (static_cast<int>(read.kind) == until) break;
      spec = &Instructions()[read.kind];
      AddAll(ListOf(inputs_.Read(instruction), "the inputs"), 0, scratch, &read.inputs);
      AddAll(ListOf(attributes_.Read(instruction), "the attributes"), 0, scratch, &read.attributes);
      const ffi::Sequence& outputs = ListOf(outputs_.Read(instruction), "the outputs");
      read.outputs = static_cast<std::size_t>(outputs.size);
      if (spec->decision != Decision::kNone) {
        AddDecision(decisions, instruction, scratch);
        decided += read.is_decided;
      }
      scratch->builder_.Add(read);
      DefineOutputs(outputs, *spec, scratch);
    }
  } catch (const TraceFault& fault) {
    throw StateError("instruction " + std::to_string(i) +
                     (spec == nullptr ? "" : " (" + std::string(spec->name) + ")") + ": " +
                     fault.what());
  }
  const std::int64_t all = library_.Call(map_size_, kMapSize, &decisions, 1).integer;
  if (i == list.size && all != decided) {
    throw StateError("expected decisions of sampling instructions only, found " +
                     std::to_string(all - decided) + " of others");
  }
}

void TraceReader::Read(const ffi::Sequence& traces, std::size_t i, int until,
                       TraceScratch* scratch) const {
  try {
    const Held held = TraceOf(traces.items[i]);
    try {
      ReadTrace(held.trace, until, scratch);
    } catch (const StateError&) {
      library_.Release(held.owned);
      throw;
    }
    library_.Release(held.owned);
    scratch->batch.End();
  } catch (const StateError& error) {
    scratch->batch.Rollback();
    throw StateError("trace " + std::to_string(i) + ": " + error.what());
  }
}

void TraceReader::Encode(const ffi::Sequence& traces, const Encoder& encoder, int threads,
                         float* out, EncodingReport* report) const {
  const auto count = static_cast<std::size_t>(traces.size);
  const std::size_t size = encoder.layout().size();
  std::mutex report_mutex;
  // A thread works on one run of blocks, so that its scratch serves many traces.
  const std::size_t share = std::max(
      kTracesPerBlock, count / (4 * static_cast<std::size_t>(ResolveThreads(threads))) + 1);
  ParallelFor(count, share, threads, [&](std::size_t begin, std::size_t end) {
    TraceScratch scratch;
    EncodingReport part;
    for (std::size_t i = begin; i < end; ++i) {
      scratch.batch.Clear();
      Read(traces, i, encoder.layout().until, &scratch);
      encoder.Encode(scratch.batch[0], out + i * size, &part);
    }
    const std::lock_guard<std::mutex> lock(report_mutex);
    report->Add(part);
  });
}

TraceReader* BindTraceReader(const std::string& library_path) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<TraceReader>> readers;
  const std::lock_guard<std::mutex> lock(mutex);
  auto& reader = readers[library_path];
  if (!reader) reader = std::make_unique<TraceReader>(library_path);
  return reader.get();
}

}  // namespace metaschedule
}  // namespace tlp_tvm
