#include "ansor/record_reader.h"

#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "ansor/step_names.h"
#include "ansor/step_scan.h"
#include "ansor/steps.h"
#include "core/arena.h"
#include "core/error.h"
#include "core/json_cursor.h"
#include "core/median.h"
#include "core/parallel_for.h"

namespace tlp_tvm {
namespace ansor {
namespace {

/*! \brief Bytes of lines per unit of work. */
constexpr std::size_t kBytesPerChunk = std::size_t{1} << 20;

/*! \brief The cost that TVM writes for a program that could not be measured. */
constexpr double kFailedCost = 1e10;

constexpr std::size_t kMaxHardwareParams = 64;
constexpr std::size_t kMaxCosts = 1 << 20;

constexpr std::int64_t kMinInt32 = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();

/*! \brief Of steps alone: an empty workload, so that their records can be written. */
TaskEntry NoTask() {
  TaskEntry task;
  task.workload_key = "[]";
  return task;
}

/*! \brief Reads the records of one chunk, one after the other. */
class ChunkReader {
 public:
  ChunkReader(RecordBatch* batch, const char* end, Form form)
      : batch_(batch), end_(end), form_(form) {}

  /*! \return The '\n' that ends the line. */
  const char* ReadLine(const char* begin) {
    JsonCursor cursor(begin);
    cursor.SkipSpace();
    if (cursor.AtEnd()) return cursor.at();  // a blank line
    place_ = {};
    row_ = {};
    has_new_task_ = false;
    if (form_ == Form::kSteps) {
      ReadSteps(&cursor);
      cursor.ExpectEnd();
      batch_->costs.push_back(0);
      if (batch_->tasks.empty()) batch_->Intern(NoTask());
    } else {
      ReadRecord(&cursor);
    }
    if (has_new_task_) {
      last_task_index_ = batch_->Intern(std::move(new_task_));
      last_task_ = new_task_text_;
    }
    row_.task = last_task_index_;
    row_.costs_end = batch_->costs.size();
    row_.line = batch_->lines;
    batch_->sequences.End();
    batch_->rows.push_back(row_);
    return cursor.at();
  }

  /*! \return Where in the record the reader stood, for a message: "step 7: ", or nothing. */
  std::string Place() const {
    return place_.in_steps ? "step " + std::to_string(place_.step) + ": " : "";
  }

 private:
  void ReadRecord(JsonCursor* cursor) {
    if (!cursor->Accept('{')) cursor->FailType("the record", "an object");
    bool has_input = false;
    bool has_result = false;
    bool first = true;
    while (cursor->NextItem('}', &first)) {
      const std::string_view key = cursor->String("the key", &scratch_);
      const bool is_input = key == "i";
      const bool is_result = key == "r";
      if (!cursor->Accept(':')) cursor->FailSyntax("':'");
      if ((is_input && has_input) || (is_result && has_result)) {
        throw JsonFault(reason::kExtra, std::string("expected one \"") + (is_input ? "i" : "r") +
                                            "\" (" + (is_input ? "input" : "result") +
                                            "), found a second one");
      }
      if (is_input) {
        ReadInput(cursor);
        has_input = true;
      } else if (is_result) {
        ReadResult(cursor);
        has_result = true;
      } else {
        cursor->SkipValue();
      }
    }
    cursor->ExpectEnd();
    if (!has_input) Missing("\"i\" (the measured input)");
    if (!has_result) Missing("\"r\" (the measured result)");
  }

  [[noreturn]] static void Missing(const char* what) {
    throw JsonFault(reason::kMissing,
                    std::string("expected ") + what + ", found a record without it");
  }

  void ReadInput(JsonCursor* cursor) {
    cursor->OpenList("the input");
    ReadTask(cursor);
    cursor->NextField("the state of the input");
    cursor->OpenList("the state");
    cursor->SkipSpace();
    if (*cursor->at() != '[') cursor->FailType("the state's stages", "a list");
    cursor->SkipValue();
    cursor->NextField("the steps of the state");
    ReadSteps(cursor);
    cursor->CloseList("the state");
    cursor->CloseList("the input");
  }

  void ReadTask(JsonCursor* cursor) {
    cursor->SkipSpace();
    const char* const begin = cursor->at();
    // A log has long runs of one task: the same bytes mean the same task.
    if (!last_task_.empty() && static_cast<std::size_t>(end_ - begin) >= last_task_.size() &&
        std::memcmp(begin, last_task_.data(), last_task_.size()) == 0) {
      cursor->MoveTo(begin + last_task_.size());
      return;
    }
    TaskEntry task;
    cursor->OpenList("the task");
    task.workload_key = cursor->String("the workload key", &scratch_);
    cursor->NextField("the target");
    task.target = cursor->String("the target", &scratch_);
    if (cursor->Accept(',')) ReadLaterMembers(cursor, &task);
    cursor->CloseList("the task");
    // The batch learns of it when the whole record is read: a bad line leaves nothing behind.
    new_task_ = std::move(task);
    new_task_text_ = {begin, static_cast<std::size_t>(cursor->at() - begin)};
    has_new_task_ = true;
  }

  void ReadLaterMembers(JsonCursor* cursor, TaskEntry* task) {
    task->members = 3;
    cursor->OpenList("the hardware parameters");
    bool first = true;
    while (cursor->NextItem(']', &first)) {
      task->hardware.push_back(cursor->Integer("a hardware parameter"));
      if (task->hardware.size() > kMaxHardwareParams) TooLong("the hardware parameters");
    }
    if (!cursor->Accept(',')) return;
    task->members = 4;
    task->target_host = cursor->String("the target host", &scratch_);
    if (!cursor->Accept(',')) return;
    task->members = 5;
    task->layout_rewrite = cursor->Integer("the layout rewrite option", kMinInt32, kMaxInt32);
    if (!cursor->Accept(',')) return;
    task->members = 6;
    cursor->OpenList("the input names");
    first = true;
    while (cursor->NextItem(']', &first)) {
      task->input_names.emplace_back(cursor->String("an input name", &scratch_));
    }
  }

  [[noreturn]] static void TooLong(const std::string& what) {
    throw JsonFault(reason::kRange,
                    "expected " + what + " to be shorter, found more items than any program has");
  }

  void ReadSteps(JsonCursor* cursor) {
    cursor->OpenList("the steps");
    place_.in_steps = true;
    bool first = true;
    while (cursor->NextItem(']', &first)) {
      if (place_.step >= kMaxSteps) TooLong("the steps");
      ReadStep(cursor);
      ++place_.step;
    }
    place_.in_steps = false;
  }

  std::size_t ReadKind(JsonCursor* cursor) {
    cursor->SkipSpace();
    const char* const begin = cursor->at();
    const std::string_view name = cursor->String("the step's kind", &scratch_);
    if (const int kind = FindStepKind(name); kind >= 0) return static_cast<std::size_t>(kind);
    cursor->MoveTo(begin);
    cursor->Fail(reason::kUnknownKind, "one of the 14 step kinds of Ansor (AN to RF)");
  }

  void ReadStep(JsonCursor* cursor) {
    cursor->SkipSpace();
    if (const char* const end = ScanStep(cursor->at(), &batch_->sequences)) {
      cursor->MoveTo(end);
      return;
    }
    cursor->OpenList("the step");
    const std::size_t kind = ReadKind(cursor);
    const KindSpec& spec = kStepKinds[kind];
    SequenceBatch& out = batch_->sequences;
    out.Begin(static_cast<std::uint32_t>(kind));
    for (std::size_t f = 0; f < spec.field_count; ++f) {
      const char* const what = StepFieldName(kind, f);
      cursor->NextField(what);
      switch (spec.fields[f].type) {
        case FieldType::kInt32:
          out.AddNumber(cursor->Integer(what, kMinInt32, kMaxInt32));
          break;
        case FieldType::kInt64:
          out.AddNumber(cursor->Integer(what));
          break;
        case FieldType::kFlag:
          out.AddNumber(cursor->Integer(what, 0, 1));
          break;
        case FieldType::kName: {
          const std::string_view name = cursor->String(what, &scratch_);
          if (name.size() > kMaxNameSize) TooLong(what);
          out.AddName(name);
          break;
        }
        case FieldType::kList: {
          cursor->OpenList(what);
          const std::size_t list = out.BeginList();
          bool first = true;
          while (cursor->NextItem(']', &first)) {
            out.AddNumber(cursor->Integer(what));
            if (out.ListSize(list) > kMaxListSize) TooLong(what);
          }
          out.EndList(list);
          break;
        }
      }
    }
    cursor->CloseList("the step");
  }

  void ReadResult(JsonCursor* cursor) {
    cursor->OpenList("the result");
    cursor->OpenList("the costs");
    const std::size_t begin = batch_->costs.size();
    bool failed = false;
    bool first = true;
    while (cursor->NextItem(']', &first)) {
      const double cost = cursor->Number("a cost");
      if (cost < 0) {
        throw JsonFault(reason::kRange, "expected a cost in seconds, found a negative number");
      }
      failed = failed || cost >= kFailedCost;
      batch_->costs.push_back(cost);
      if (batch_->costs.size() - begin > kMaxCosts) TooLong("the costs");
    }
    const bool none = batch_->costs.size() == begin;
    cursor->NextField("the error number");
    row_.error_no =
        static_cast<std::int32_t>(cursor->Integer("the error number", kMinInt32, kMaxInt32));
    cursor->NextField("the elapsed time");
    row_.elapsed = cursor->Number("the elapsed time");
    cursor->NextField("the timestamp");
    row_.timestamp = ReadTimestamp(cursor);
    cursor->CloseList("the result");
    if (none && row_.error_no == 0) {
      throw JsonFault(reason::kMissing, "expected at least one cost, found none and no error");
    }
    failed = failed || row_.error_no != 0;
    row_.latency = std::numeric_limits<double>::infinity();
    if (failed) return;
    sorted_.assign(batch_->costs.begin() + static_cast<std::ptrdiff_t>(begin), batch_->costs.end());
    row_.latency = Median(&sorted_);
  }

  static std::int64_t ReadTimestamp(JsonCursor* cursor) {
    const double seconds = cursor->Number("the timestamp");
    if (seconds < -9e15 || seconds > 9e15) {
      throw JsonFault(reason::kRange,
                      "expected the timestamp in seconds since 1970, found one beyond reason");
    }
    return static_cast<std::int64_t>(seconds);
  }

  struct PlaceInRecord {
    bool in_steps = false;
    std::size_t step = 0;
  };

  RecordBatch* batch_;
  const char* end_;  ///< of the chunk
  Form form_;
  RecordRow row_;
  std::vector<double> sorted_;  ///< the costs of a record, for their median
  PlaceInRecord place_;
  std::string scratch_;
  std::string_view last_task_;  ///< its bytes in the chunk
  std::uint32_t last_task_index_ = 0;
  bool has_new_task_ = false;  ///< the record names another task than the record before
  TaskEntry new_task_;
  std::string_view new_task_text_;
};

void ReadChunk(std::string_view chunk, OnError on_error, Form form, RecordBatch* batch) {
  const char* at = chunk.data();
  const char* const end = at + chunk.size();
  ChunkReader reader(batch, end, form);
  while (at != end) {
    ++batch->lines;
    try {
      at = reader.ReadLine(at) + 1;
    } catch (const JsonFault& fault) {
      batch->Rollback();
      SkippedLine line{batch->lines, fault.reason(), reader.Place() + fault.what()};
      if (on_error == OnError::kRaise) {
        batch->fault = std::move(line);
        return;
      }
      batch->skipped.push_back(std::move(line));
      at = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at))) + 1;
    }
  }
}

/*! \brief Reads chunks one after the other, with what one of them leaves for the next to use. */
class ChunkParser {
 public:
  std::unique_ptr<RecordBatch> Parse(std::string_view chunk, OnError on_error, Form form) {
    // Read where the caches are warm, then copied in one go: arrays that grow in new memory would
    // touch several times what they need.
    scratch_.Clear();
    ReadChunk(chunk, on_error, form, &scratch_);
    const std::size_t bytes = scratch_.BytesOfCopy();
    if (!arena_ || arena_->left() < bytes) arena_ = Arena::Take(bytes);
    return std::make_unique<RecordBatch>(&scratch_, arena_);
  }

 private:
  RecordBatch scratch_;
  std::shared_ptr<Arena> arena_;
};

std::vector<std::string_view> CutAtLines(std::string_view text) {
  std::vector<std::string_view> chunks;
  while (!text.empty()) {
    std::size_t size = text.size();
    if (size > kBytesPerChunk) size = text.find('\n', kBytesPerChunk) + 1;
    chunks.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return chunks;
}

}  // namespace

std::vector<RecordBatch> ParseRecords(std::string_view text, OnError on_error, int threads,
                                      Form form) {
  if (!text.empty() && text.back() != '\n') {
    throw RecordError("expected a block of whole lines, found one that ends within a line");
  }
  const std::vector<std::string_view> chunks = CutAtLines(text);
  std::vector<std::unique_ptr<RecordBatch>> parsed(chunks.size());
  ParallelFor(chunks.size(), 1, threads, [&](std::size_t begin, std::size_t end) {
    thread_local ChunkParser parser;
    for (std::size_t c = begin; c < end; ++c) parsed[c] = parser.Parse(chunks[c], on_error, form);
  });
  std::vector<RecordBatch> batches;
  batches.reserve(parsed.size());
  for (const auto& batch : parsed) batches.push_back(std::move(*batch));
  return batches;
}

void Place(const std::string& path, std::int64_t first_line, std::vector<RecordBatch>* batches) {
  std::int64_t before = first_line - 1;
  for (RecordBatch& batch : *batches) {
    batch.Place(path, before);
    before += batch.lines;
  }
}

std::vector<RecordBatch> ReadRecords(std::string_view text, const std::string& path,
                                     std::int64_t first_line, OnError on_error, int threads) {
  std::vector<RecordBatch> batches = ParseRecords(text, on_error, threads);
  Place(path, first_line, &batches);
  return batches;
}

}  // namespace ansor
}  // namespace tlp_tvm
