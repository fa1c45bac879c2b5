/*!
 * \file metaschedule/trace_reader.h
 * \brief Live traces -> PrimitiveSequence, through tvm-ffi and without Python.
 */
#ifndef TLP_TVM_METASCHEDULE_TRACE_READER_H_
#define TLP_TVM_METASCHEDULE_TRACE_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/encoder.h"
#include "core/primitive.h"
#include "metaschedule/ffi.h"
#include "metaschedule/instruction_builder.h"
#include "metaschedule/live_values.h"
#include "metaschedule/trace_touch.h"

namespace tlp_tvm {
namespace metaschedule {

/*! \brief What one thread reads traces into. Good for one call, while the caller holds the traces.
 */
class TraceScratch {
 public:
  SequenceBatch batch;

 private:
  friend class TraceReader;
  InstructionBuilder builder_{&batch};
  LiveScope scope_;
  ObjectTable kinds_;
  MapPairs decisions_;
  std::size_t next_decision_ = 0;           ///< where the next one is looked for first
  const ffi::Object* last_kind_ = nullptr;  ///< at which reading stops, once it has been met
};

/*! \brief What of a trace is asked for; the rest may be left out. */
struct Asked {
  int until = -1;  ///< the kind to stop before, or -1: see Layout::until
  const std::vector<bool>* omitted = nullptr;  ///< kinds to leave out, or null
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
   * \throws StateError that names the trace, the instruction and the operand; the batch is as
   * before then.
   */
  void Read(const ffi::Sequence& traces, std::size_t i, const Asked& asked,
            TraceScratch* scratch) const;

  /*!
   * \brief Encodes every trace: `out` gets traces.size * L * E numbers.
   * \param threads 0 for every core; the bytes written do not depend on it.
   * \throws StateError of the first trace that cannot be read.
   */
  void Encode(const ffi::Sequence& traces, const Encoder& encoder, int threads, float* out,
              EncodingReport* report) const;

 private:
  /*! \brief A trace, held until it has been read. */
  class Held {
   public:
    Held() = default;
    Held(const ffi::Library* library, const ffi::Object* its_trace, const ffi::Any& owned)
        : trace(its_trace), library_(library), owned_(owned) {}
    Held(Held&& other) noexcept { *this = std::move(other); }
    Held& operator=(Held&& other) noexcept {
      std::swap(trace, other.trace);
      std::swap(library_, other.library_);
      std::swap(owned_, other.owned_);
      return *this;
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() {
      if (library_ != nullptr) library_->Release(owned_);
    }
    const ffi::Object* trace = nullptr;

   private:
    const ffi::Library* library_ = nullptr;
    ffi::Any owned_;
  };
  /*! \brief The traces of a range in turn, the next two held ahead. */
  class Queue;

  Held TraceOf(const ffi::Any& item) const;
  bool IsSchedule(std::int32_t type) const;
  void ReadNext(std::size_t i, const Asked& asked, Queue* queue, TraceTouch* touch,
                TraceScratch* scratch) const;
  void ReadItem(const Held& held, const Asked& asked, TraceTouch* touch,
                TraceScratch* scratch) const;
  void ReadInstruction(const ffi::Object* instruction, std::size_t kind, bool is_omitted,
                       TraceScratch* scratch) const;
  /*! \return What was decided at the instruction, or none. */
  static ffi::Any DecisionOf(const ffi::Object* instruction, TraceScratch* scratch);
  std::size_t KindOf(const ffi::Object* instruction, TraceScratch* scratch) const;
  void DefineOutputs(const ffi::Sequence& outputs, const InstructionSpec& spec,
                     TraceScratch* scratch) const;

  ffi::Library library_;
  std::int32_t candidate_, schedule_, trace_;
  ffi::Field schedule_of_candidate_, instructions_, decisions_, name_;
  InstructionFields instruction_;
  ValueReader values_;
  const ffi::Object* get_trace_;
};

/*! \brief The reader for the tvm-ffi at this path; made once. \throws StateError as TraceReader. */
TraceReader* BindTraceReader(const std::string& library_path);

}  // namespace metaschedule
}  // namespace tlp_tvm

#endif  // TLP_TVM_METASCHEDULE_TRACE_READER_H_
