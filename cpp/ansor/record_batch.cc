#include "ansor/record_batch.h"

#include <utility>

#include "core/error.h"

namespace tlp_tvm {
namespace ansor {

std::string TaskEntry::Identity() const {
  std::string identity;
  // Sizes before texts: no two lists of texts run together to the same identity.
  const auto add = [&identity](std::string_view text) {
    identity += std::to_string(text.size());
    identity += ':';
    identity += text;
  };
  add(workload_key);
  add(target);
  add(target_host);
  identity += std::to_string(members) + '/' + std::to_string(layout_rewrite);
  for (std::int64_t parameter : hardware) identity += ',' + std::to_string(parameter);
  for (const std::string& name : input_names) add(name);
  return identity;
}

RecordBatch::RecordBatch(RecordBatch* other, std::shared_ptr<Arena> arena)
    : arena_(std::move(arena)),
      sequences(other->sequences, arena_.get()),
      rows(other->rows, arena_.get()),
      costs(other->costs, arena_.get()),
      tasks(std::move(other->tasks)),
      skipped(std::move(other->skipped)),
      fault(std::move(other->fault)),
      lines(other->lines) {}

std::size_t RecordBatch::BytesOfCopy() const {
  return sequences.BytesOfCopy() + rows.size() * sizeof(RecordRow) + costs.size() * sizeof(double) +
         2 * Arena::kSlack;
}

void RecordBatch::Clear() {
  sequences.Clear();
  rows.clear();
  costs.clear();
  tasks.clear();
  task_by_identity_.clear();
  skipped.clear();
  fault.reset();
  lines = 0;
}

std::uint32_t RecordBatch::Intern(TaskEntry task) {
  const auto [entry, is_new] =
      task_by_identity_.try_emplace(task.Identity(), static_cast<std::uint32_t>(tasks.size()));
  if (is_new) tasks.push_back(std::move(task));
  return entry->second;
}

void RecordBatch::Place(const std::string& path, std::int64_t lines_before) {
  const auto sentence_at = [&](const SkippedLine& bad) {
    return path + ":" + std::to_string(lines_before + bad.line) + ": " + bad.sentence;
  };
  if (fault) throw RecordError(sentence_at(*fault));
  for (RecordRow& row : rows) row.line += lines_before;
  for (SkippedLine& bad : skipped) {
    bad.sentence = sentence_at(bad);
    bad.line += lines_before;
  }
}

void RecordBatch::Rollback() {
  sequences.Rollback();
  costs.resize(CostsBegin(rows.size()));
}

}  // namespace ansor
}  // namespace tlp_tvm
