#include "ansor/record_writer.h"

#include <charconv>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "ansor/steps.h"

namespace tlp_tvm {
namespace ansor {
namespace {

void WriteInteger(std::int64_t value, std::string* out) {
  char text[24];
  out->append(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

/*! \brief The shortest text that reads back as the same double. */
void WriteNumber(double value, std::string* out) {
  char text[32];
  out->append(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

void WriteString(std::string_view text, std::string* out) {
  static constexpr char kHex[] = "0123456789abcdef";
  *out += '"';
  for (char c : text) {
    if (c == '"' || c == '\\') {
      *out += '\\';
      *out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      *out += "\\u00";
      *out += kHex[c >> 4];
      *out += kHex[c & 0xf];
    } else {
      *out += c;
    }
  }
  *out += '"';
}

template <typename Iterator, typename Write>
void WriteList(Iterator begin, Iterator end, Write write, std::string* out) {
  *out += '[';
  for (Iterator item = begin; item != end; ++item) {
    if (item != begin) *out += ", ";
    write(*item, out);
  }
  *out += ']';
}

void WriteTask(const TaskEntry& task, std::string* out) {
  *out += '[';
  WriteString(task.workload_key, out);
  *out += ", ";
  WriteString(task.target, out);
  if (task.members >= 3) {
    *out += ", ";
    WriteList(task.hardware.begin(), task.hardware.end(), WriteInteger, out);
  }
  if (task.members >= 4) {
    *out += ", ";
    WriteString(task.target_host, out);
  }
  if (task.members >= 5) {
    *out += ", ";
    WriteInteger(task.layout_rewrite, out);
  }
  if (task.members >= 6) {
    *out += ", ";
    WriteList(task.input_names.begin(), task.input_names.end(), WriteString, out);
  }
  *out += ']';
}

}  // namespace

void WriteSteps(const PrimitiveSequence& sequence, std::string* out) {
  *out += '[';
  for (std::size_t i = 0; i < sequence.size; ++i) {
    if (i != 0) *out += ", ";
    const KindSpec& spec = kStepKinds[sequence.primitives[i].kind];
    *out += '[';
    WriteString(spec.name, out);
    const std::int64_t* value = sequence.ValuesOf(i);
    for (std::size_t f = 0; f < spec.field_count; ++f) {
      *out += ", ";
      if (spec.fields[f].type == FieldType::kName) {
        WriteString(sequence.Name(*value++), out);
      } else if (spec.fields[f].type == FieldType::kList) {
        const std::int64_t* const end = value + 1 + *value;
        WriteList(value + 1, end, WriteInteger, out);
        value = end;
      } else {
        WriteInteger(*value++, out);
      }
    }
    *out += ']';
  }
  *out += ']';
}

void WriteRecord(const RecordBatch& batch, std::size_t row, std::string* out) {
  const RecordRow& record = batch.rows[row];
  const TaskEntry& task = batch.tasks[record.task];
  *out += "{\"i\": [";
  WriteTask(task, out);
  *out += ", [[], ";
  WriteSteps(batch.sequences[row], out);
  *out += "]], \"r\": [";
  WriteList(batch.costs.begin() + static_cast<std::ptrdiff_t>(batch.CostsBegin(row)),
            batch.costs.begin() + static_cast<std::ptrdiff_t>(record.costs_end), WriteNumber, out);
  *out += ", ";
  WriteInteger(record.error_no, out);
  *out += ", ";
  WriteNumber(record.elapsed, out);
  *out += ", ";
  WriteInteger(record.timestamp, out);
  *out += "], \"v\": \"v0." + std::to_string(task.members) + "\"}\n";
}

}  // namespace ansor
}  // namespace tlp_tvm
