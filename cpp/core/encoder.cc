#include "core/encoder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace tlp_tvm {
namespace {

constexpr std::int64_t kLogTableSize = 4096;

/*! \brief log2(1 + v) for the small numbers that schedules are made of. */
const std::array<float, kLogTableSize>& LogTable() {
  static const std::array<float, kLogTableSize> table = [] {
    std::array<float, kLogTableSize> logs{};
    for (std::size_t v = 0; v < logs.size(); ++v) {
      logs[v] = static_cast<float>(std::log2(1.0 + static_cast<double>(v)));
    }
    return logs;
  }();
  return table;
}

float Scale(std::int64_t value, const Scaling& scaling, const float* log_table) {
  if (!scaling.log2) return static_cast<float>(value) * scaling.scale;
  if (value >= 0 && value < kLogTableSize) return log_table[value] * scaling.scale;
  const double magnitude = std::log2(1.0 + std::fabs(static_cast<double>(value)));
  return static_cast<float>(value < 0 ? -magnitude : magnitude) * scaling.scale;
}

/*! \brief How often two divides a number: a loop of 13 is no vectors, which log2 does not show. */
float Twos(std::int64_t value, const Scaling& scaling) {
  if (value == 0) return 0.0f;
  return static_cast<float>(__builtin_ctzll(static_cast<std::uint64_t>(value))) * scaling.scale;
}

}  // namespace

void EncodingReport::Add(const EncodingReport& other) {
  sequences += other.sequences;
  cut_sequences += other.cut_sequences;
  cut_rows += other.cut_rows;
  cut_columns += other.cut_columns;
  for (const auto& [kind, count] : other.unknown_kinds) unknown_kinds[kind] += count;
  for (const auto& [token, count] : other.unknown_tokens) unknown_tokens[token] += count;
}

Encoder::Encoder(Layout layout, const Vocabulary& vocabulary)
    : layout_(std::move(layout)), vocabulary_(vocabulary) {
  layout_.Check(vocabulary_);
  tokens_.resize(layout_.tokens.size());
  for (std::size_t kind = 0; kind < layout_.tokens.size(); ++kind) {
    for (const TokenTable& table : layout_.tokens[kind]) {
      auto& entries = tokens_[kind].emplace_back();
      for (const auto& [name, value] : table) entries.push_back({name, value});
    }
  }
}

void Encoder::Encode(const PrimitiveSequence& sequence, float* out, EncodingReport* report) const {
  const std::size_t written = EncodeRows(sequence, out, report) * layout_.width;
  std::memset(out + written, 0, (layout_.size() - written) * sizeof(float));
}

std::size_t Encoder::ShownRows(const PrimitiveSequence& sequence) const {
  if (layout_.until < 0 && layout_.omitted.empty()) return sequence.size;
  std::size_t shown = 0;
  for (std::size_t i = 0; i < sequence.size; ++i) {
    const auto kind = sequence.primitives[i].kind;
    if (static_cast<int>(kind) == layout_.until) break;
    shown += layout_.omitted.empty() || !layout_.omitted[kind];
  }
  return shown;
}

std::size_t Encoder::EncodeRows(const PrimitiveSequence& sequence, float* out,
                                EncodingReport* report) const {
  const auto length = static_cast<std::size_t>(layout_.length);
  const auto width = static_cast<std::size_t>(layout_.width);
  const std::size_t shown = ShownRows(sequence);
  const std::size_t kept = std::min(shown, length);
  const std::size_t cut = shown - kept;
  std::size_t head = kept;  // rows before the cut
  if (layout_.drop == Drop::kHead) head = 0;
  if (layout_.drop == Drop::kMiddle) head = kept / 2;

  TileRun run;
  std::size_t skipped = 0;  // of the rows that are cut
  std::size_t position = 0;
  for (std::size_t row = 0; row < kept; ++position) {
    const Primitive& primitive = sequence.primitives[position];
    if (!layout_.omitted.empty() && layout_.omitted[primitive.kind]) continue;
    if (row == head && skipped != cut) {
      ++skipped;
      continue;
    }
    std::memset(out, 0, width * sizeof(float));  // row by row: it is in the cache when it is filled
    if (const int column = layout_.one_hot[primitive.kind]; column >= 0) {
      out[column] = 1.0f;
    } else {
      ++report->unknown_kinds[primitive.kind];
    }
    if (layout_.flat) {
      FlatRow(primitive, sequence, out, report);
    } else {
      if (primitive.kind != run.kind) run.size = -1;
      AlignedRow(primitive, sequence, out, &run, report);
    }
    out += width;
    ++row;
  }
  ++report->sequences;
  report->cut_sequences += cut != 0;
  report->cut_rows += static_cast<std::int64_t>(cut);
  return kept;
}

const float* Encoder::Token(std::uint32_t kind, std::size_t field, std::string_view name,
                            EncodingReport* report) const {
  for (const TokenEntry& entry : tokens_[kind][field]) {
    if (entry.name == name) return &entry.value;
  }
  const KindSpec& spec = vocabulary_.kinds[kind];
  std::string where = std::string(spec.name) + "." + std::string(spec.fields[field].name);
  ++report->unknown_tokens[{std::move(where), std::string(name)}];
  return nullptr;
}

void Encoder::FlatRow(const Primitive& primitive, const PrimitiveSequence& sequence, float* row,
                      EncodingReport* report) const {
  const std::uint32_t kind = primitive.kind;
  const KindSpec& spec = vocabulary_.kinds[kind];
  float* column = row + layout_.one_hot_width;
  float* const end = row + layout_.width;
  const auto put = [&](float value) {
    if (column != end) {
      *column++ = value;
    } else {
      ++report->cut_columns;
    }
  };
  const std::int64_t* value = sequence.ValuesOf(primitive);
  for (std::size_t f = 0; f < spec.field_count; ++f) {
    if (spec.fields[f].type == FieldType::kName) {
      const float* token = Token(kind, f, sequence.Name(*value++), report);
      put(token != nullptr ? *token : 0.0f);
    } else if (spec.fields[f].type == FieldType::kList) {
      const std::int64_t* list_end = value + 1 + *value;
      for (++value; value != list_end; ++value) put(static_cast<float>(*value));
    } else {
      put(static_cast<float>(*value++));
    }
  }
}

void Encoder::AlignedRow(const Primitive& primitive, const PrimitiveSequence& sequence, float* row,
                         TileRun* run, EncodingReport* report) const {
  using As = FieldRule::As;
  static const float* const log_table = LogTable().data();
  const std::uint32_t kind = primitive.kind;
  const KindSpec& spec = vocabulary_.kinds[kind];
  const std::int64_t* value = sequence.ValuesOf(primitive);
  for (std::size_t f = 0; f < spec.field_count; ++f) {
    const FieldRule& rule = layout_.rules[kind][f];
    const bool is_list = spec.fields[f].type == FieldType::kList;
    const std::int64_t* const next = is_list ? value + 1 + *value : value + 1;
    float* const column = row + rule.column;
    switch (rule.as) {
      case As::kSkip:
        break;
      case As::kNumber:
        *column = Scale(*value, rule.scaling, log_table);
        if (rule.twos) row[*rule.twos] = Twos(*value, rule.scaling);
        break;
      case As::kCategory:
        if (*value >= 0 && *value < rule.columns) {
          column[*value] = 1.0f;
        } else {
          ++report->unknown_tokens[{std::string(spec.name) + "." + std::string(spec.fields[f].name),
                                    std::to_string(*value)}];
        }
        break;
      case As::kList: {
        const std::int64_t shown = std::min<std::int64_t>(*value, rule.columns);
        for (std::int64_t k = 0; k < shown; ++k) {
          column[k] = Scale(value[1 + k], rule.scaling, log_table);
        }
        if (rule.twos) {
          for (std::int64_t k = 0; k < shown; ++k) {
            row[*rule.twos + k] = Twos(value[1 + k], rule.scaling);
          }
        }
        if (rule.sums) {
          if (run->size != *value) *run = {kind, *value, {}};
          for (std::int64_t k = 0; k < shown; ++k) {
            const std::int64_t of = std::max<std::int64_t>(value[1 + k], 1) - 1;  // log2(1 + of)
            run->sums[k] += Scale(of, {true, rule.scaling.scale}, log_table);
            row[*rule.sums + k] = run->sums[k];
          }
        }
        report->cut_columns += *value - shown;
        break;
      }
      case As::kToken:
        if (const float* token = Token(kind, f, sequence.Name(*value), report)) {
          *column = *token * rule.scaling.scale;
        }
        break;
      case As::kOneHot:
        if (const float* token = Token(kind, f, sequence.Name(*value), report)) {
          column[static_cast<int>(*token)] = 1.0f;
        }
        break;
    }
    value = next;
  }
}

}  // namespace tlp_tvm
