#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "bindings/bindings.h"
#include "bindings/encode_all.h"
#include "metaschedule/kinds.h"
#include "metaschedule/trace_json.h"
#include "metaschedule/trace_reader.h"
#include "metaschedule/tuning_records.h"

namespace py = pybind11;

namespace tlp_tvm {
namespace bindings {
namespace {

using metaschedule::TraceReader;
using metaschedule::TraceVocabulary;
using metaschedule::TuningBatch;

const void* PointerOf(std::uintptr_t handle) { return reinterpret_cast<const void*>(handle); }

std::unique_ptr<TuningBatch> ReadTraces(const py::bytes& text, const std::string& path,
                                        std::int64_t first_line, const std::string& form,
                                        bool skip) {
  using metaschedule::LineForm;
  if (form != "trace" && form != "record") {
    throw std::invalid_argument("form: expected \"trace\" or \"record\", found \"" + form + "\"");
  }
  auto copy = static_cast<std::string>(text);
  auto batch = std::make_unique<TuningBatch>();
  // Safe without the GIL: the text is a copy, and nobody else has the batch yet.
  const py::gil_scoped_release release;
  metaschedule::ReadTuningRecords(std::move(copy), path, first_line,
                                  form == "trace" ? LineForm::kTrace : LineForm::kRecord, skip,
                                  batch.get());
  return batch;
}

py::dict EncodeBatch(const TuningBatch& batch, const Encoder& encoder, Embedding out, int threads) {
  return EncodePrograms(
      batch.sequences.size(), [&](std::size_t k) { return batch.sequences[k]; }, TraceVocabulary(),
      encoder, std::move(out), threads);
}

/*! \brief An array with of(program) for each program. */
template <typename T, typename Of>
py::array_t<T> OfPrograms(const TuningBatch& batch, Of of) {
  py::array_t<T> result(static_cast<py::ssize_t>(batch.sequences.size()));
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    result.mutable_data()[i] = static_cast<T>(of(batch.sequences[i]));
  }
  return result;
}

/*! \brief An array or list with of(row) for each record. */
template <typename T, typename Of>
py::array_t<T> OfRows(const TuningBatch& batch, Of of) {
  py::array_t<T> result(static_cast<py::ssize_t>(batch.rows.size()));
  for (std::size_t i = 0; i < batch.rows.size(); ++i) result.mutable_data()[i] = of(batch.rows[i]);
  return result;
}

py::dict ColumnsOfTraces(const TuningBatch& batch) {
  using metaschedule::TuningRow;
  py::dict columns;
  columns["lines"] = OfRows<std::int64_t>(batch, [](const TuningRow& row) { return row.line; });
  columns["workloads"] =
      OfRows<std::int64_t>(batch, [](const TuningRow& row) { return row.workload; });
  columns["latencies"] = OfRows<double>(batch, [](const TuningRow& row) { return row.latency; });
  py::list targets;
  py::list arguments;
  py::list costs;
  std::size_t begin = 0;
  for (const TuningRow& row : batch.rows) {
    targets.append(py::str(row.target.data(), row.target.size()));
    arguments.append(py::str(row.arguments.data(), row.arguments.size()));
    py::list of_row;
    for (; begin < row.costs_end; ++begin) of_row.append(batch.costs[begin]);
    costs.append(of_row);
  }
  columns["targets"] = targets;
  columns["arguments"] = arguments;
  columns["costs"] = costs;
  return columns;
}

void RegisterTraceBlock(py::module_& module) {
  const auto sequence = [](const TuningBatch& batch, std::size_t i) {
    if (i >= batch.sequences.size()) throw py::index_error("no such trace");
    return batch.sequences[i];
  };
  py::class_<TuningBatch>(module, "TraceBlock", "Traces read from JSON, one a line.")
      .def("__len__", [](const TuningBatch& batch) { return batch.sequences.size(); })
      .def_property_readonly(
          "skipped",
          [](const TuningBatch& batch) {
            py::list skipped;
            for (const auto& line : batch.skipped) {
              skipped.append(py::make_tuple(line.line, line.reason, line.sentence));
            }
            return skipped;
          })
      .def("columns", &ColumnsOfTraces, "What the records say beside their traces.")
      .def("lengths",
           [](const TuningBatch& batch) {
             return OfPrograms<std::int32_t>(
                 batch, [](const PrimitiveSequence& program) { return program.size; });
           })
      .def("widths",
           [](const TuningBatch& batch) {
             return OfPrograms<std::int32_t>(batch, [](const PrimitiveSequence& program) {
               return WidthOf(program, TraceVocabulary());
             });
           })
      .def("hashes",
           [](const TuningBatch& batch) {
             return OfPrograms<std::uint64_t>(batch, [](const PrimitiveSequence& program) {
               return HashOf(program, TraceVocabulary());
             });
           })
      .def("encode", &EncodeBatch, py::arg("encoder"), py::arg("out").noconvert(),
           py::arg("threads"))
      .def(
          "steps",
          [sequence](const TuningBatch& batch, std::size_t i) {
            return StepsOf(sequence(batch, i), TraceVocabulary());
          },
          py::arg("i"))
      .def(
          "json",
          [sequence](const TuningBatch& batch, std::size_t i) {
            std::string text;
            metaschedule::WriteTrace(sequence(batch, i), &text);
            return text;
          },
          py::arg("i"), "Trace i as TVM's Trace.apply_json_to_schedule takes it.");
  module.def("read_traces", &ReadTraces, py::arg("text"), py::arg("path"), py::arg("first_line"),
             py::arg("form"), py::arg("skip"),
             "Reads lines of JSON traces, or of records of MetaSchedule's database.");
}

}  // namespace

void RegisterTraces(py::module_& module) {
  RegisterTraceBlock(module);
  py::class_<TraceReader, std::unique_ptr<TraceReader, py::nodelete>>(
      module, "TraceReader", "Reads live traces of the TVM that the process has loaded.")
      .def_static("bind", &metaschedule::BindTraceReader, py::arg("library"),
                  py::return_value_policy::reference,
                  "The reader for tvm-ffi's library at this path; it must be loaded already.")
      .def(
          "count",
          [](const TraceReader& reader, std::uintptr_t handle) {
            return reader.TracesOf(PointerOf(handle)).size;
          },
          py::arg("handle"), "How many traces an Array holds.")
      .def(
          "steps",
          [](const TraceReader& reader, std::uintptr_t handle) {
            const auto& traces = reader.TracesOf(PointerOf(handle));
            metaschedule::TraceScratch scratch;
            py::list programs;
            for (std::size_t i = 0; i < static_cast<std::size_t>(traces.size); ++i) {
              scratch.batch.Clear();
              reader.Read(traces, i, {}, &scratch);
              programs.append(StepsOf(scratch.batch[0], TraceVocabulary()));
            }
            return programs;
          },
          py::arg("handle"), "Every trace of an Array as lists: kind and fields of each primitive.")
      .def(
          "json",
          [](const TraceReader& reader, std::uintptr_t handle) {
            const auto& traces = reader.TracesOf(PointerOf(handle));
            metaschedule::TraceScratch scratch;
            py::list texts;
            for (std::size_t i = 0; i < static_cast<std::size_t>(traces.size); ++i) {
              scratch.batch.Clear();
              reader.Read(traces, i, {}, &scratch);
              std::string text;
              metaschedule::WriteTrace(scratch.batch[0], &text);
              texts.append(text);
            }
            return texts;
          },
          py::arg("handle"), "The JSON of every trace of an Array.")
      .def(
          "encode",
          [](const TraceReader& reader, std::uintptr_t handle, const Encoder& encoder,
             Embedding out, int threads) {
            const auto& traces = reader.TracesOf(PointerOf(handle));
            float* const data =
                EmbeddingOf(out, static_cast<std::size_t>(traces.size), encoder, TraceVocabulary());
            EncodingReport report;
            {
              // Safe without the GIL: the caller holds the Array, its traces are not written to
              // while it is held, what is called in TVM is C++ alone, and `out` is ours until we
              // return.
              const py::gil_scoped_release release;
              reader.Encode(traces, encoder, threads, data, &report);
            }
            return ReportOf(report, TraceVocabulary());
          },
          py::arg("handle"), py::arg("encoder"), py::arg("out").noconvert(), py::arg("threads"),
          "Writes the embedding of every trace of an Array; returns the encoding report.");
}

}  // namespace bindings
}  // namespace tlp_tvm
