/*!
 * \file metaschedule/trace_reader.h
 * \brief Live traces -> PrimitiveSequence, through tvm-ffi and without Python.
 */
#ifndef TLP_TVM_METASCHEDULE_TRACE_READER_H_
#define TLP_TVM_METASCHEDULE_TRACE_READER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "core/encoder.h"
#include "core/primitive.h"
#include "metaschedule/ffi.h"
#include "metaschedule/instruction_builder.h"

namespace tlp_tvm {
namespace metaschedule {

/*! \brief Numbers by the address of their object; emptied without touching its entries. */
class ObjectTable {
 public:
  ObjectTable() : entries_(kFirstSize) {}

  void Clear() {
    ++epoch_;
    count_ = 0;
  }
  /*! \return The number of the object, or -1. */
  std::int64_t Find(const ffi::Object* object) const {
    for (std::size_t slot = Slot(object);; slot = (slot + 1) & (entries_.size() - 1)) {
      const Entry& entry = entries_[slot];
      if (entry.epoch != epoch_) return -1;
      if (entry.object == object) return entry.number;
    }
  }
  /*! \brief Adds an object that is not there. */
  void Add(const ffi::Object* object, std::int64_t number);

 private:
  struct Entry {
    const ffi::Object* object = nullptr;
    std::int64_t number = 0;
    std::uint64_t epoch = 0;
  };
  static constexpr std::size_t kFirstSize = 512;

  std::size_t Slot(const ffi::Object* object) const {
    return ((reinterpret_cast<std::uintptr_t>(object) * 0x9e3779b97f4a7c15u) >> 32) &
           (entries_.size() - 1);
  }

  std::vector<Entry> entries_;
  std::uint64_t epoch_ = 1;
  std::size_t count_ = 0;
};

/*! \brief What one thread reads traces into. Good for one call, while the caller holds the traces.
 */
class TraceScratch {
 public:
  SequenceBatch batch;

 private:
  friend class TraceReader;
  InstructionBuilder builder_{&batch};
  Instruction instruction_;
  ObjectTable variables_;
  ObjectTable kinds_;
  std::deque<std::string> graphs_;
};

/*! \brief Reads traces of the TVM that the process has loaded. Any number of threads may share it.
 */
class TraceReader {
 public:
  explicit TraceReader(const std::string& library_path);

  /*!
   * \brief Takes a handle of an Array of Trace, Schedule or MeasureCandidate apart.
   * \throws StateError when it is no Array of plausible size.
   */
  const ffi::Sequence& TracesOf(const void* handle) const;

  /*!
   * \brief Appends the program of traces.items[i] to the scratch's batch.
   * \param until The kind to stop before, or -1: see Layout::until.
   * \throws StateError that names the trace, the instruction and the operand; the batch is as
   * before then.
   */
  void Read(const ffi::Sequence& traces, std::size_t i, int until, TraceScratch* scratch) const;

  /*!
   * \brief Encodes every trace: `out` gets traces.size * L * E numbers.
   * \param threads 0 for every core; the bytes written do not depend on it.
   * \throws StateError of the first trace that cannot be read.
   */
  void Encode(const ffi::Sequence& traces, const Encoder& encoder, int threads, float* out,
              EncodingReport* report) const;

 private:
  /*! \brief A trace, and what to give back when it has been read. */
  struct Held {
    const ffi::Object* trace = nullptr;
    ffi::Any owned;
  };
  Held TraceOf(const ffi::Any& item) const;
  void ReadTrace(const ffi::Object* trace, int until, TraceScratch* scratch) const;
  /*! \brief Starts fetching the objects of instructions [begin, end) before they are read. */
  void Prefetch(const ffi::Sequence& instructions, std::int64_t begin, std::int64_t end) const;
  std::size_t KindOf(const ffi::Object* instruction, TraceScratch* scratch) const;
  const ffi::Sequence& ListOf(const ffi::Any& list, const char* what) const;
  void AddAll(const ffi::Sequence& list, int depth, TraceScratch* scratch,
              std::vector<Value>* values) const;
  void AddValue(const ffi::Any& item, int depth, TraceScratch* scratch,
                std::vector<Value>* values) const;
  void AddMapping(const ffi::Any& map, int depth, TraceScratch* scratch,
                  std::vector<Value>* values) const;
  void AddDecision(const ffi::Any& decisions, const ffi::Object* instruction,
                   TraceScratch* scratch) const;
  void DefineOutputs(const ffi::Sequence& outputs, const InstructionSpec& spec,
                     TraceScratch* scratch) const;

  ffi::Library library_;
  std::int32_t candidate_, schedule_, trace_, instruction_, block_, loop_, variable_, integer_,
      real_;
  ffi::Field schedule_of_candidate_, instructions_, decisions_, kind_, inputs_, attributes_,
      outputs_, name_, integer_value_, real_value_;
  const ffi::Object* get_trace_;
  const ffi::Object* map_size_;
  const ffi::Object* map_find_;
  const ffi::Object* map_iterate_;
  const ffi::Object* graph_of_;
};

/*! \brief The reader for the tvm-ffi at this path; made once. \throws StateError as TraceReader. */
TraceReader* BindTraceReader(const std::string& library_path);

}  // namespace metaschedule
}  // namespace tlp_tvm

#endif  // TLP_TVM_METASCHEDULE_TRACE_READER_H_
