#include "metaschedule/trace_reader.h"

#include <algorithm>
#include <array>
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

constexpr std::int64_t kMaxTraces = std::int64_t{1} << 32;

constexpr char kGetTrace[] = "s_tir.schedule.ScheduleGetTrace";

void Fetch(const ffi::Object* object, std::size_t bytes) {
  for (std::size_t k = 0; object != nullptr && k < bytes; k += 64) {
    __builtin_prefetch(reinterpret_cast<const char*>(object) + k);
  }
}

}  // namespace

class TraceReader::Queue {
 public:
  Queue(const TraceReader* reader, const ffi::Sequence* traces, std::size_t begin, std::size_t end)
      : reader_(reader), items_(traces->items), end_(end) {
    for (std::size_t i = begin; i < begin + kHeld; ++i) Hold(i);
  }

  /*! \throws StateError where item i is nothing with a trace. */
  const Held& At(std::size_t i) {
    Held& held = held_[i % kHeld];
    if (held.trace == nullptr) held = reader_->TraceOf(items_[i]);
    return held;
  }
  /*! \brief Lets go of trace i, and takes another up. */
  void Advance(std::size_t i) {
    Hold(i + kHeld);
    if (i + kHeld + 1 < end_) FetchSchedule(items_[i + kHeld + 1]);
    if (i + kHeld + 2 < end_) FetchItem(items_[i + kHeld + 2]);
  }

 private:
  static constexpr std::size_t kHeld = 3;
  /*! \brief A schedule's own fields come before its trace; TVM reads that one. */
  static constexpr std::size_t kScheduleBytes = 256;

  void Hold(std::size_t i) {
    Held& held = held_[i % kHeld];
    held = Held();
    if (i >= end_) return;
    try {
      held = reader_->TraceOf(items_[i]);
    } catch (const StateError&) {
      return;  // its turn has not come: At says it
    }
    Fetch(reader_->instructions_.Peek(held.trace), 128);
    Fetch(reader_->decisions_.Peek(held.trace), 64);
  }
  void FetchItem(const ffi::Any& item) const {
    if (item.type_index >= ffi::kFirstObject) Fetch(item.object, 64);
  }
  void FetchSchedule(const ffi::Any& item) const {
    if (item.type_index < ffi::kFirstObject || item.type_index == reader_->trace_) return;
    Fetch(item.type_index == reader_->candidate_ ? reader_->schedule_of_candidate_.Peek(item.object)
                                                 : item.object,
          kScheduleBytes);
  }

  const TraceReader* reader_;
  const ffi::Any* items_;
  std::size_t end_;
  std::array<Held, kHeld> held_;
};

TraceReader::TraceReader(const std::string& library_path)
    : library_(library_path),
      candidate_(library_.IndexOf("s_tir.meta_schedule.MeasureCandidate")),
      schedule_(library_.IndexOf("s_tir.Schedule")),
      trace_(library_.IndexOf("s_tir.Trace")),
      schedule_of_candidate_(&library_, "s_tir.meta_schedule.MeasureCandidate", "sch"),
      instructions_(&library_, "s_tir.Trace", "insts"),
      decisions_(&library_, "s_tir.Trace", "decisions"),
      name_(&library_, "s_tir.InstructionKind", "name"),
      instruction_(&library_),
      values_(&library_),
      get_trace_(library_.FunctionOf(kGetTrace)) {}

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

bool TraceReader::IsSchedule(std::int32_t type) const {
  // Schedules are objects of classes derived from s_tir.Schedule.
  if (type < ffi::kFirstObject) return false;
  const ffi::TypeInfo* const info = library_.InfoOf(type);
  bool is_schedule = type == schedule_;
  for (std::int32_t depth = 0; info != nullptr && depth < info->depth; ++depth) {
    is_schedule = is_schedule || info->ancestors[depth]->type_index == schedule_;
  }
  return is_schedule;
}

TraceReader::Held TraceReader::TraceOf(const ffi::Any& item) const {
  ffi::Any at = item;
  if (at.type_index == candidate_) at = schedule_of_candidate_.Read(at.object);
  if (at.type_index == trace_) return {&library_, at.object, {}};
  if (!IsSchedule(at.type_index)) {
    throw StateError("expected a Trace, a Schedule or a MeasureCandidate of tvm.s_tir, found " +
                     library_.NameOf(at));
  }
  const ffi::Any trace = library_.Call(get_trace_, kGetTrace, &at, 1);
  Held held(&library_, trace.object, trace);
  if (trace.type_index != trace_) {
    throw StateError(
        "expected a schedule with a trace, found one without; make it with tvm.s_tir.Schedule");
  }
  return held;
}

std::size_t TraceReader::KindOf(const ffi::Object* instruction, TraceScratch* scratch) const {
  const ffi::Any kind = instruction_.kind.Read(instruction);
  if (kind.type_index < ffi::kFirstObject) throw TraceFault("expected a kind, found none");
  const std::int64_t known = scratch->kinds_.Find(kind.object);
  if (known >= 0) return static_cast<std::size_t>(known);
  const ffi::Any name = name_.Read(kind.object);
  const int found = ffi::IsText(name) ? TraceVocabulary().Find(ffi::TextOf(name)) : -1;
  if (found < 0) {
    throw TraceFault("expected an instruction of TVM 0.25 to 0.27, found " + library_.NameOf(name));
  }
  scratch->kinds_.Add(kind.object, static_cast<std::int32_t>(found));
  return static_cast<std::size_t>(found);
}

void TraceReader::DefineOutputs(const ffi::Sequence& outputs, const InstructionSpec& spec,
                                TraceScratch* scratch) const {
  std::int32_t expected = values_.variable();
  if (spec.letter == 'b') expected = values_.block();
  if (spec.letter == 'l') expected = values_.loop();
  auto number = static_cast<std::int32_t>(scratch->builder_.variables()) -
                static_cast<std::int32_t>(outputs.size);
  for (std::int64_t i = 0; i < outputs.size; ++i) {
    const ffi::Any& output = outputs.items[i];
    if (output.type_index != expected) {
      throw TraceFault("expected the outputs to be of " +
                       std::string(spec.letter == 'b'   ? "blocks"
                                   : spec.letter == 'l' ? "loops"
                                                        : "numbers") +
                       ", found " + library_.NameOf(output));
    }
    if (!scratch->scope_.variables.Add(output.object, number++)) {
      throw TraceFault("expected a new random variable among the outputs, found one from before");
    }
  }
}

ffi::Any TraceReader::DecisionOf(const ffi::Object* instruction, TraceScratch* scratch) {
  const MapPairs& decisions = scratch->decisions_;
  // TVM adds decisions in the order of the instructions; a trace from elsewhere may not.
  std::size_t& next = scratch->next_decision_;
  for (std::size_t tried = 0; tried < decisions.size(); ++tried) {
    if (next == decisions.size()) next = 0;
    const MapPair& pair = decisions[next++];
    if (pair.key.type_index >= ffi::kFirstObject && pair.key.object == instruction)
      return pair.value;
  }
  return {};
}

void TraceReader::ReadInstruction(const ffi::Object* instruction, std::size_t kind, bool is_omitted,
                                  TraceScratch* scratch) const {
  const InstructionSpec& spec = Instructions()[kind];
  const auto values = [&](const ffi::Field& field, const char* what) {
    return LiveValues(values_.ListOf(field.Read(instruction), what), &values_, &scratch->scope_);
  };
  ffi::Any decision;
  if (spec.decision != Decision::kNone) decision = DecisionOf(instruction, scratch);
  const ffi::Sequence& outputs =
      values_.ListOf(instruction_.outputs.Read(instruction), "the outputs");
  const bool is_decided = values_.IsDecision(decision.type_index);
  const LiveValues decided(&decision, &decision + is_decided, &values_, &scratch->scope_);
  const auto count = static_cast<std::size_t>(outputs.size);
  if (is_omitted) {
    const bool is_place = spec.decision == Decision::kIndex && spec.letter == 'v';
    scratch->builder_.Skip(Instruction<LiveValues>{
        kind, decided.End(),
        is_place ? values(instruction_.attributes, "the attributes") : decided.End(), count,
        is_decided, decided});
  } else {
    scratch->builder_.Add(Instruction<LiveValues>{kind, values(instruction_.inputs, "the inputs"),
                                                  values(instruction_.attributes, "the attributes"),
                                                  count, is_decided, decided});
  }
  DefineOutputs(outputs, spec, scratch);
}

void TraceReader::ReadItem(const Held& held, const Asked& asked, TraceTouch* touch,
                           TraceScratch* scratch) const {
  scratch->builder_.BeginTrace();
  scratch->scope_.BeginTrace();
  const ffi::Any instructions = instructions_.Read(held.trace);
  const ffi::Any decisions = decisions_.Read(held.trace);
  if (instructions.type_index != ffi::kArray || decisions.type_index != ffi::kMap) {
    throw StateError("expected a Trace with instructions and decisions, found one without");
  }
  const ffi::Sequence& list = ffi::SequenceOf(instructions.object);
  if (list.size < 0 || list.size > static_cast<std::int64_t>(kMaxInstructions)) {
    throw StateError("expected at most " + std::to_string(kMaxInstructions) +
                     " instructions, found " + std::to_string(list.size));
  }
  (*touch)(list, scratch->last_kind_);
  values_.maps().Read(decisions, &scratch->decisions_);
  scratch->next_decision_ = 0;
  TraceTouch::TouchValues(scratch->decisions_);
  std::int64_t decided = 0;
  std::int64_t i = 0;
  const InstructionSpec* spec = nullptr;
  try {
    for (; i < list.size; ++i) {
      spec = nullptr;
      if (list.items[i].type_index != instruction_.type) {
        throw TraceFault("expected an Instruction, found " + library_.NameOf(list.items[i]));
      }
      const ffi::Object* const instruction = list.items[i].object;
      const std::size_t kind = KindOf(instruction, scratch);
      if (static_cast<int>(kind) == asked.until) {
        scratch->last_kind_ = instruction_.kind.Read(instruction).object;
        return;  // what was decided after it is not of interest
      }
      spec = &Instructions()[kind];
      const bool is_omitted = asked.omitted != nullptr && (*asked.omitted)[kind];
      ReadInstruction(instruction, kind, is_omitted, scratch);
      decided += spec->decision != Decision::kNone;
    }
  } catch (const TraceFault& fault) {
    throw StateError("instruction " + std::to_string(i) +
                     (spec == nullptr ? "" : " (" + std::string(spec->name) + ")") + ": " +
                     fault.what());
  }
  const auto all = static_cast<std::int64_t>(scratch->decisions_.size());
  if (all != decided) {
    throw StateError("expected decisions of sampling instructions only, found " +
                     std::to_string(all - decided) + " of others");
  }
}

void TraceReader::Read(const ffi::Sequence& traces, std::size_t i, const Asked& asked,
                       TraceScratch* scratch) const {
  TraceTouch touch(&instruction_, &values_, &scratch->kinds_, asked.omitted);
  Queue queue(this, &traces, i, i + 1);
  ReadNext(i, asked, &queue, &touch, scratch);
}

void TraceReader::ReadNext(std::size_t i, const Asked& asked, Queue* queue, TraceTouch* touch,
                           TraceScratch* scratch) const {
  try {
    ReadItem(queue->At(i), asked, touch, scratch);
    scratch->batch.End();
  } catch (const StateError& error) {
    scratch->batch.Rollback();
    throw StateError("trace " + std::to_string(i) + ": " + error.what());
  }
  queue->Advance(i);
}

void TraceReader::Encode(const ffi::Sequence& traces, const Encoder& encoder, int threads,
                         float* out, EncodingReport* report) const {
  const auto count = static_cast<std::size_t>(traces.size);
  const Layout& layout = encoder.layout();
  const std::size_t size = layout.size();
  const Asked asked{layout.until, layout.omitted.empty() ? nullptr : &layout.omitted};
  std::mutex report_mutex;
  // A thread works on one run of blocks, so that its scratch serves many traces.
  const std::size_t share = std::max(
      kTracesPerBlock, count / (4 * static_cast<std::size_t>(ResolveThreads(threads))) + 1);
  ParallelFor(count, share, threads, [&](std::size_t begin, std::size_t end) {
    TraceScratch scratch;
    TraceTouch touch(&instruction_, &values_, &scratch.kinds_, asked.omitted);
    Queue queue(this, &traces, begin, end);
    EncodingReport part;
    for (std::size_t i = begin; i < end; ++i) {
      scratch.batch.Clear();
      ReadNext(i, asked, &queue, &touch, &scratch);
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
