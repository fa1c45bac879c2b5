#include "metaschedule/tuning_records.h"

#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/json_cursor.h"
#include "core/median.h"
#include "metaschedule/trace_json.h"

namespace tlp_tvm {
namespace metaschedule {
namespace {

/*! \brief The seconds that TVM writes for a program that could not be built or run. */
constexpr double kFailedCost = 1e10;

constexpr std::size_t kMaxCosts = 1 << 20;

class LineReader {
 public:
  LineReader(LineForm form, TuningBatch* batch)
      : form_(form), batch_(batch), traces_(&batch->sequences) {}

  std::string Place() const { return traces_.Place(); }

  void Read(JsonCursor* cursor, std::int64_t line) {
    TuningRow row;
    row.line = line;
    if (form_ == LineForm::kTrace) {
      traces_.Read(cursor);
    } else {
      ReadRecord(cursor, &row);
    }
    cursor->ExpectEnd();
    row.costs_end = batch_->costs.size();
    batch_->sequences.End();
    batch_->rows.push_back(row);
  }

 private:
  void ReadRecord(JsonCursor* cursor, TuningRow* row) {
    cursor->OpenList("the record");
    row->workload = cursor->Integer("the workload", 0, std::numeric_limits<std::int32_t>::max());
    cursor->NextField("the trace and its result");
    cursor->OpenList("the trace and its result");
    traces_.Read(cursor);
    cursor->NextField("the seconds of each run");
    ReadCosts(cursor, row);
    cursor->NextField("the target");
    row->target = Json(cursor, '{', "the target");
    cursor->NextField("the arguments");
    row->arguments = Json(cursor, '[', "the arguments");
    cursor->CloseList("the trace and its result");
    cursor->CloseList("the record");
  }

  /*! \return The text of what comes next, empty for null. */
  static std::string_view Json(JsonCursor* cursor, char begins, const char* what) {
    cursor->SkipSpace();
    const char* const begin = cursor->at();
    if (*begin != begins && *begin != 'n') {
      cursor->FailType(what, begins == '{' ? "an object or null" : "a list or null");
    }
    cursor->SkipValue();
    if (*begin == 'n') return {};
    return {begin, static_cast<std::size_t>(cursor->at() - begin)};
  }

  void ReadCosts(JsonCursor* cursor, TuningRow* row) {
    row->latency = std::numeric_limits<double>::infinity();
    cursor->SkipSpace();
    if (*cursor->at() == 'n') return cursor->SkipValue();
    cursor->OpenList("the seconds of each run");
    const std::size_t begin = batch_->costs.size();
    bool first = true;
    while (cursor->NextItem(']', &first)) {
      const double seconds = cursor->Number("the seconds of a run");
      if (!(seconds >= 0)) {
        throw JsonFault(reason::kRange, "expected the seconds of a run to be positive, found " +
                                            std::to_string(seconds));
      }
      batch_->costs.push_back(seconds);
      if (batch_->costs.size() - begin > kMaxCosts) {
        throw JsonFault(reason::kRange, "expected fewer runs, found more than any program has");
      }
    }
    if (batch_->costs.size() == begin || batch_->costs.back() >= kFailedCost) return;
    sorted_.assign(batch_->costs.begin() + static_cast<std::ptrdiff_t>(begin), batch_->costs.end());
    row->latency = Median(&sorted_);
  }

  LineForm form_;
  TuningBatch* batch_;
  TraceJsonReader traces_;
  std::vector<double> sorted_;  ///< the costs of a record, for their median
};

}  // namespace

void ReadTuningRecords(std::string text, const std::string& path, std::int64_t first_line,
                       LineForm form, bool skip, TuningBatch* batch) {
  batch->text = std::move(text);
  if (batch->text.empty() || batch->text.back() != '\n') batch->text += '\n';
  LineReader reader(form, batch);
  const char* at = batch->text.data();
  const char* const end = at + batch->text.size();
  for (std::int64_t line = first_line; at != end; ++line) {
    JsonCursor cursor(at);
    cursor.SkipSpace();
    if (!cursor.AtEnd()) {
      try {
        reader.Read(&cursor, line);
      } catch (const JsonFault& fault) {
        batch->sequences.Rollback();
        batch->costs.resize(batch->rows.empty() ? 0 : batch->rows.back().costs_end);
        const std::string sentence = reader.Place() + fault.what();
        if (!skip) throw RecordError(path + ":" + std::to_string(line) + ": " + sentence);
        batch->skipped.push_back({line, fault.reason(), sentence});
      }
    }
    at = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at))) + 1;
  }
}

}  // namespace metaschedule
}  // namespace tlp_tvm
