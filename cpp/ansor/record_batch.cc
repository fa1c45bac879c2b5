#include "ansor/record_batch.h"

#include <utility>

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

std::uint32_t RecordBatch::Intern(TaskEntry task) {
  const auto [entry, is_new] =
      task_by_identity_.try_emplace(task.Identity(), static_cast<std::uint32_t>(tasks.size()));
  if (is_new) tasks.push_back(std::move(task));
  return entry->second;
}

void RecordBatch::Rollback() {
  sequences.Rollback();
  costs.resize(CostsBegin(rows.size()));
}

}  // namespace ansor
}  // namespace tlp_tvm
