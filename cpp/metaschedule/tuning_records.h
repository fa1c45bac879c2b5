/*!
 * \file metaschedule/tuning_records.h
 * \brief Lines of MetaSchedule's database_tuning_record.json, or of bare traces -> TuningBatch.
 *
 * One record a line (TVM 0.25 to 0.27, src/s_tir/meta_schedule/database/database.cc):
 *
 *   [workload, [TRACE, [seconds, ...] or null, TARGET or null, [ARGUMENT, ...] or null]]
 *
 *   workload  the line, from 0, of its program in database_workload.json
 *   TRACE     see trace_json.h
 *   seconds   of each run; 1e10 for a program that failed
 *
 * Tolerated: blank lines, CRLF, any space and escape that JSON allows. Refused, with line,
 * instruction, expected and found: everything else.
 */
#ifndef TLP_TVM_METASCHEDULE_TUNING_RECORDS_H_
#define TLP_TVM_METASCHEDULE_TUNING_RECORDS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/primitive.h"

namespace tlp_tvm {
namespace metaschedule {

/*! \brief What a line holds. */
enum class LineForm : std::uint8_t { kTrace, kRecord };

/*! \brief What a record says beside its trace. */
struct TuningRow {
  std::int64_t line = 0;  ///< 1-based in its file
  std::int64_t workload = -1;
  double latency = 0;  ///< median seconds; infinity for a program that failed or was not measured
  std::size_t costs_end = 0;
  std::string_view target;     ///< its JSON, or empty; lies in the text that was read
  std::string_view arguments;  ///< its JSON, or empty
};

struct SkippedTrace {
  std::int64_t line;
  const char* reason;
  std::string sentence;
};

/*! \brief Traces in the order of their lines. A record is in all of it or in none of it. */
struct TuningBatch {
  std::string text;  ///< what was read
  SequenceBatch sequences;
  std::vector<TuningRow> rows;
  std::vector<double> costs;  ///< seconds
  std::vector<SkippedTrace> skipped;
};

/*!
 * \brief Reads whole lines; a missing newline at the end is added.
 * \param path What messages call the input.
 * \param first_line The 1-based number of the first line in its file.
 * \param skip Whether to pass over a bad line and note it, instead of ending there.
 * \throws RecordError of the first bad line, as `path:line: instruction: expected, found`.
 */
void ReadTuningRecords(std::string text, const std::string& path, std::int64_t first_line,
                       LineForm form, bool skip, TuningBatch* batch);

}  // namespace metaschedule
}  // namespace tlp_tvm

#endif  // TLP_TVM_METASCHEDULE_TUNING_RECORDS_H_
