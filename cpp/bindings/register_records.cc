#include <pybind11/stl.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ansor/record_batch.h"
#include "ansor/record_reader.h"
#include "ansor/record_writer.h"
#include "ansor/steps.h"
#include "bindings/bindings.h"
#include "core/parallel_for.h"

namespace py = pybind11;

namespace tlp_tvm {
namespace bindings {
namespace {

using ansor::RecordBatch;
using ansor::RecordRow;
using ansor::TaskEntry;

/*! \brief The records of one block of text: batches that follow one another, under one task table.
 */
class RecordBlock {
 public:
  explicit RecordBlock(std::vector<RecordBatch> batches) : batches_(std::move(batches)) {
    RecordBatch merged;
    for (RecordBatch& batch : batches_) {
      begins_.push_back(size_);
      size_ += batch.rows.size();
      std::vector<std::uint32_t> merged_index;
      merged_index.reserve(batch.tasks.size());
      for (const TaskEntry& task : batch.tasks) merged_index.push_back(merged.Intern(task));
      task_of_.push_back(std::move(merged_index));
    }
    tasks_ = std::move(merged.tasks);
  }

  std::size_t size() const { return size_; }
  const std::vector<RecordBatch>& batches() const { return batches_; }
  const std::vector<TaskEntry>& tasks() const { return tasks_; }

  /*! \brief An array of one number a record. */
  template <typename T, typename Get>
  py::array_t<T> Column(Get get) const {
    py::array_t<T> column(static_cast<py::ssize_t>(size_));
    T* out = column.mutable_data();
    for (std::size_t b = 0; b < batches_.size(); ++b) {
      for (std::size_t i = 0; i < batches_[b].rows.size(); ++i) *out++ = static_cast<T>(get(b, i));
    }
    return column;
  }

  template <typename T>
  py::array_t<T> RowColumn(T RecordRow::* member) const {
    return Column<T>([&](std::size_t b, std::size_t i) { return batches_[b].rows[i].*member; });
  }

  py::array_t<std::int32_t> TaskIds() const {
    return Column<std::int32_t>(
        [&](std::size_t b, std::size_t i) { return task_of_[b][batches_[b].rows[i].task]; });
  }

  py::array_t<double> Costs() const {
    std::size_t count = 0;
    for (const RecordBatch& batch : batches_) count += batch.costs.size();
    py::array_t<double> costs(static_cast<py::ssize_t>(count));
    double* out = costs.mutable_data();
    for (const RecordBatch& batch : batches_) {
      out = std::copy(batch.costs.begin(), batch.costs.end(), out);
    }
    return costs;
  }

  py::dict Encode(const Encoder& encoder, Embedding out, int threads) const {
    float* const data = EmbeddingOf(out, size_, encoder.layout());
    EncodingReport report;
    {
      // Safe without the GIL: the block is not written to after it is made, and `out` is ours.
      const py::gil_scoped_release release;
      std::mutex mutex;
      ParallelFor(batches_.size(), 1, threads, [&](std::size_t begin, std::size_t) {
        const SequenceBatch& sequences = batches_[begin].sequences;
        EncodingReport batch_report;
        float* row = data + begins_[begin] * encoder.layout().size();
        for (std::size_t i = 0; i < sequences.size(); ++i, row += encoder.layout().size()) {
          encoder.Encode(sequences[i], row, &batch_report);
        }
        const std::lock_guard<std::mutex> lock(mutex);
        report.Add(batch_report);
      });
    }
    return ReportOf(report, encoder.vocabulary());
  }

  /*! \return The batch that holds record i, and its place there. */
  std::pair<const RecordBatch*, std::size_t> At(std::size_t i) const {
    if (i >= size_) throw py::index_error("record " + std::to_string(i) + " is out of range");
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), i);
    const auto b = static_cast<std::size_t>(after - begins_.begin()) - 1;
    return {&batches_[b], i - begins_[b]};
  }

 private:
  std::vector<RecordBatch> batches_;
  std::vector<std::size_t> begins_;
  std::size_t size_ = 0;
  std::vector<TaskEntry> tasks_;
  std::vector<std::vector<std::uint32_t>> task_of_;  ///< batch -> its task -> the block's task
};

std::unique_ptr<RecordBlock> ReadBlock(const py::buffer& text, const std::string& path,
                                       std::int64_t first_line, bool skip, int threads) {
  const py::buffer_info info = text.request();
  if (info.ndim != 1 || info.itemsize != 1) {
    throw std::invalid_argument("text: expected bytes, found another kind of buffer");
  }
  const std::string_view view(static_cast<const char*>(info.ptr),
                              static_cast<std::size_t>(info.size));
  // Safe without the GIL: the caller's buffer is exported, and so fixed, until `info` goes.
  const py::gil_scoped_release release;
  return std::make_unique<RecordBlock>(ansor::ReadRecords(
      view, path, first_line, skip ? ansor::OnError::kSkip : ansor::OnError::kRaise, threads));
}

py::list TasksOf(const RecordBlock& block) {
  py::list tasks;
  for (const TaskEntry& task : block.tasks()) {
    py::object hardware = py::none();
    if (task.members >= 3) hardware = py::tuple(py::cast(task.hardware));
    tasks.append(py::make_tuple(task.workload_key, task.target, hardware, task.target_host,
                                task.layout_rewrite, py::tuple(py::cast(task.input_names)),
                                task.members));
  }
  return tasks;
}

py::list SkippedOf(const RecordBlock& block) {
  py::list skipped;
  for (const RecordBatch& batch : block.batches()) {
    for (const ansor::SkippedLine& line : batch.skipped) {
      skipped.append(py::make_tuple(line.line, line.reason, line.sentence));
    }
  }
  return skipped;
}

}  // namespace

void RegisterRecords(py::module_& module) {
  module.def("read_block", &ReadBlock, py::arg("text"), py::arg("path"), py::arg("first_line"),
             py::arg("skip"), py::arg("threads"),
             "Reads whole lines of measure records; the last byte must be a newline.");

  py::class_<RecordBlock>(module, "RecordBlock", "The records of one block of lines.")
      .def("__len__", &RecordBlock::size)
      .def_property_readonly("tasks", &TasksOf)
      .def_property_readonly("skipped", &SkippedOf)
      .def_property_readonly("lines",
                             [](const RecordBlock& block) {
                               std::int64_t lines = 0;
                               for (const RecordBatch& batch : block.batches())
                                 lines += batch.lines;
                               return lines;
                             })
      .def("task_ids", &RecordBlock::TaskIds)
      .def("latencies", [](const RecordBlock& b) { return b.RowColumn(&RecordRow::latency); })
      .def("errors", [](const RecordBlock& b) { return b.RowColumn(&RecordRow::error_no); })
      .def("elapsed", [](const RecordBlock& b) { return b.RowColumn(&RecordRow::elapsed); })
      .def("timestamps", [](const RecordBlock& b) { return b.RowColumn(&RecordRow::timestamp); })
      .def("line_numbers", [](const RecordBlock& b) { return b.RowColumn(&RecordRow::line); })
      .def("costs", &RecordBlock::Costs)
      .def("cost_counts",
           [](const RecordBlock& block) {
             return block.Column<std::int64_t>([&](std::size_t b, std::size_t i) {
               const RecordBatch& batch = block.batches()[b];
               return batch.rows[i].costs_end - batch.CostsBegin(i);
             });
           })
      .def("lengths",
           [](const RecordBlock& block) {
             return block.Column<std::int32_t>([&](std::size_t b, std::size_t i) {
               return block.batches()[b].sequences[i].size;
             });
           })
      .def("widths",
           [](const RecordBlock& block) {
             return block.Column<std::int32_t>([&](std::size_t b, std::size_t i) {
               return WidthOf(block.batches()[b].sequences[i], ansor::kVocabulary);
             });
           })
      .def("hashes",
           [](const RecordBlock& block) {
             return block.Column<std::uint64_t>([&](std::size_t b, std::size_t i) {
               return HashOf(block.batches()[b].sequences[i], ansor::kVocabulary);
             });
           })
      .def("encode", &RecordBlock::Encode, py::arg("encoder"), py::arg("out").noconvert(),
           py::arg("threads"))
      .def(
          "steps",
          [](const RecordBlock& block, std::size_t i) {
            const auto [batch, row] = block.At(i);
            return StepsOf(batch->sequences[row], ansor::kVocabulary);
          },
          py::arg("i"))
      .def(
          "line",
          [](const RecordBlock& block, std::size_t i) {
            const auto [batch, row] = block.At(i);
            std::string line;
            ansor::WriteRecord(*batch, row, &line);
            return py::str(line);
          },
          py::arg("i"), "Record i as TVM writes it, with its newline.");
}

}  // namespace bindings
}  // namespace tlp_tvm
