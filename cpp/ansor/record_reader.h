/*!
 * \file ansor/record_reader.h
 * \brief Lines of Ansor measure records (TVM's own JSON log) -> RecordBatch.
 *
 * One record a line, an object with three keys in any order (TVM 0.8 to 0.19,
 * src/auto_scheduler/measure_record.cc):
 *
 *   {"i": [TASK, [[], [STEP, ...]]],
 *    "r": [[cost, ...], error_no, all_cost, timestamp],
 *    "v": "v0.6"}
 *
 *   TASK  [workload_key, target, [hardware parameters], target_host, layout_rewrite, [input names]]
 *         the first two always, the others from the versions that have them: 2 to 6 members
 *   STEP  see ansor/steps.h
 *   cost  seconds; a failed measurement has error_no != 0 and the single cost 1e10
 *
 * Tolerated: blank lines, CRLF, any space and escape that JSON allows, a missing "v", further keys,
 * integer costs, fractional timestamps. Refused, with line, field, expected and found: what is not
 * JSON, a missing, extra or doubled field, another type, an unknown step kind, a number out of
 * range.
 */
#ifndef TLP_TVM_ANSOR_RECORD_READER_H_
#define TLP_TVM_ANSOR_RECORD_READER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "ansor/record_batch.h"

namespace tlp_tvm {
namespace ansor {

/*! \brief What becomes of a line that is no record. */
enum class OnError { kRaise, kSkip };

/*! \brief What a line holds: a whole record, or the [STEP, ...] of one, as datasets keep them. */
enum class Form { kRecord, kSteps };

/*!
 * \brief Reads a block of whole lines, wherever in a file they stand: lines are counted from 1.
 * \param text Lines, each ended by '\n', the last one too.
 * \param threads 0 for every core; the records do not depend on it.
 * \return Batches that follow one another. With kRaise, one with a bad line ends at it (`fault`).
 * \throws RecordError where the text ends within a line.
 */
std::vector<RecordBatch> ParseRecords(std::string_view text, OnError on_error, int threads,
                                      Form form = Form::kRecord);

/*!
 * \brief Says where the lines of parsed batches stand.
 * \param path What messages call the input.
 * \param first_line The 1-based number of the first line in its file.
 * \throws RecordError of the first bad line, as `path:line: step: expected, found`.
 */
void Place(const std::string& path, std::int64_t first_line, std::vector<RecordBatch>* batches);

/*! \brief The two together. */
std::vector<RecordBatch> ReadRecords(std::string_view text, const std::string& path,
                                     std::int64_t first_line, OnError on_error, int threads);

}  // namespace ansor
}  // namespace tlp_tvm

#endif  // TLP_TVM_ANSOR_RECORD_READER_H_
