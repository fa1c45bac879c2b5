/*!
 * \file ansor/record_batch.h
 * \brief What a measure record says, for many records: programs, tasks, results.
 */
#ifndef TLP_TVM_ANSOR_RECORD_BATCH_H_
#define TLP_TVM_ANSOR_RECORD_BATCH_H_

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/arena.h"
#include "core/primitive.h"

namespace tlp_tvm {
namespace ansor {

/*! \brief What a record says of its task. Members that old versions lack are empty. */
struct TaskEntry {
  std::string workload_key;
  std::string target;
  std::vector<std::int64_t> hardware;  ///< HardwareParams in the order of its record
  std::string target_host;
  std::int64_t layout_rewrite = 0;
  std::vector<std::string> input_names;
  int members = 2;  ///< how many of these the record has: 2 (v0.2) to 6 (v0.6)

  /*! \return A text that two entries share exactly when they say the same. */
  std::string Identity() const;
};

/*! \brief One record beside its program. */
struct RecordRow {
  std::int64_t line = 0;  ///< 1-based in its file
  std::uint32_t task = 0;
  std::int32_t error_no = 0;   ///< TVM's MeasureErrorNo; 0 is fine
  double latency = 0;          ///< median cost in seconds; infinity for a failed measurement
  double elapsed = 0;          ///< seconds that the measurement took, compilation included
  std::int64_t timestamp = 0;  ///< seconds since 1970
  std::size_t costs_end = 0;   ///< in RecordBatch::costs; a row's begin at the row's before
};

/*! \brief A line that was passed over, and why. */
struct SkippedLine {
  std::int64_t line;
  const char* reason;
  std::string sentence;
};

/*! \brief Records in the order of their lines. A record is in all of it or in none of it. */
class RecordBatch {
 private:
  std::shared_ptr<Arena> arena_;  ///< where the arrays lie, if not on the heap; goes last

 public:
  RecordBatch() = default;
  RecordBatch(RecordBatch&&) = default;
  RecordBatch& operator=(RecordBatch&&) = delete;  // the arrays would stay where they were
  /*! \brief What `other` holds, its arrays copied to the arena, with the rest moved. */
  RecordBatch(RecordBatch* other, std::shared_ptr<Arena> arena);
  std::size_t BytesOfCopy() const;
  void Clear();

  SequenceBatch sequences;
  std::pmr::vector<RecordRow> rows;
  std::pmr::vector<double> costs;  ///< seconds
  std::vector<TaskEntry> tasks;
  std::vector<SkippedLine> skipped;
  std::optional<SkippedLine> fault;  ///< the bad line that ended the reading
  std::int64_t lines = 0;            ///< lines read, blank and skipped ones included

  /*! \return The index of the task in `tasks`, added if it is new. */
  std::uint32_t Intern(TaskEntry task);
  std::size_t CostsBegin(std::size_t row) const { return row == 0 ? 0 : rows[row - 1].costs_end; }
  /*!
   * \brief Turns line numbers within the batch into those of its file.
   * \throws RecordError where the batch has a fault.
   */
  void Place(const std::string& path, std::int64_t lines_before);
  /*! \brief Forgets what was added after the last complete row. */
  void Rollback();

 private:
  std::unordered_map<std::string, std::uint32_t> task_by_identity_;
};

}  // namespace ansor
}  // namespace tlp_tvm

#endif  // TLP_TVM_ANSOR_RECORD_BATCH_H_
