#include <pybind11/stl.h>

#include <cstdint>
#include <vector>

#include "bindings/record_block.h"

namespace py = pybind11;

namespace tlp_tvm {
namespace bindings {
namespace {

using ansor::RecordBatch;
using ansor::RecordRow;
using ansor::TaskEntry;

template <typename T>
struct Column {
  py::array_t<T> array;
  T* data;
  explicit Column(std::size_t size)
      : array(static_cast<py::ssize_t>(size)), data(array.mutable_data()) {}
};

py::list TasksOf(const std::vector<TaskEntry>& tasks) {
  py::list list;
  for (const TaskEntry& task : tasks) {
    py::object hardware = py::none();
    if (task.members >= 3) hardware = py::tuple(py::cast(task.hardware));
    list.append(py::make_tuple(task.workload_key, task.target, hardware, task.target_host,
                               task.layout_rewrite, py::tuple(py::cast(task.input_names)),
                               task.members));
  }
  return list;
}

}  // namespace

py::dict ColumnsOf(const RecordBlocks& blocks, int threads) {
  const Records records(blocks);
  const auto& batches = records.batches();
  RecordBatch merged;  // the tasks of all batches
  std::vector<std::vector<std::uint32_t>> merged_task(batches.size());
  std::vector<std::size_t> costs_begin{0};
  for (std::size_t b = 0; b < batches.size(); ++b) {
    for (const TaskEntry& task : batches[b]->tasks) merged_task[b].push_back(merged.Intern(task));
    costs_begin.push_back(costs_begin.back() + batches[b]->costs.size());
  }
  Column<std::int32_t> task_ids(records.size());
  Column<std::int32_t> errors(records.size());
  Column<std::int32_t> lengths(records.size());
  Column<double> latencies(records.size());
  Column<double> elapsed(records.size());
  Column<std::int64_t> timestamps(records.size());
  Column<std::int64_t> line_numbers(records.size());
  Column<std::int64_t> cost_offsets(records.size() + 1);
  Column<double> cost_values(costs_begin.back());
  cost_offsets.data[0] = 0;
  {
    // Safe without the GIL: blocks are not written to once they are placed, and the columns are
    // ours.
    const py::gil_scoped_release release;
    ParallelFor(batches.size(), 1, threads, [&](std::size_t b, std::size_t) {
      const RecordBatch& batch = *batches[b];
      std::copy(batch.costs.begin(), batch.costs.end(), cost_values.data + costs_begin[b]);
      for (std::size_t i = 0; i < batch.rows.size(); ++i) {
        const RecordRow& row = batch.rows[i];
        const std::size_t at = records.Begin(b) + i;
        task_ids.data[at] = static_cast<std::int32_t>(merged_task[b][row.task]);
        errors.data[at] = row.error_no;
        lengths.data[at] = static_cast<std::int32_t>(batch.sequences[i].size);
        latencies.data[at] = row.latency;
        elapsed.data[at] = row.elapsed;
        timestamps.data[at] = row.timestamp;
        line_numbers.data[at] = row.line;
        cost_offsets.data[at + 1] = static_cast<std::int64_t>(costs_begin[b] + row.costs_end);
      }
    });
  }
  py::dict columns;
  columns["tasks"] = TasksOf(merged.tasks);
  columns["task_ids"] = task_ids.array;
  columns["latencies"] = latencies.array;
  columns["errors"] = errors.array;
  columns["timestamps"] = timestamps.array;
  columns["elapsed"] = elapsed.array;
  columns["lengths"] = lengths.array;
  columns["cost_values"] = cost_values.array;
  columns["cost_offsets"] = cost_offsets.array;
  columns["line_numbers"] = line_numbers.array;
  return columns;
}

}  // namespace bindings
}  // namespace tlp_tvm
