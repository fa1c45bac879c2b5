#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ansor/record_reader.h"
#include "ansor/record_writer.h"
#include "ansor/steps.h"
#include "bindings/bindings.h"
#include "bindings/encode_all.h"
#include "bindings/record_block.h"

namespace py = pybind11;

namespace tlp_tvm {
namespace bindings {
namespace {

using Indices = py::array_t<std::int64_t, py::array::c_style>;

std::unique_ptr<RecordBlock> ParseLines(const py::buffer& text, bool skip, int threads,
                                        ansor::Form form) {
  const py::buffer_info info = text.request();
  if (info.ndim != 1 || info.itemsize != 1) {
    throw std::invalid_argument("text: expected bytes, found another kind of buffer");
  }
  const std::string_view view(static_cast<const char*>(info.ptr),
                              static_cast<std::size_t>(info.size));
  // Safe without the GIL: the caller's buffer is exported, and so fixed, until `info` goes.
  const py::gil_scoped_release release;
  return std::make_unique<RecordBlock>(ansor::ParseRecords(
      view, skip ? ansor::OnError::kSkip : ansor::OnError::kRaise, threads, form));
}

std::unique_ptr<RecordBlock> ParseBlock(const py::buffer& text, bool skip, int threads) {
  return ParseLines(text, skip, threads, ansor::Form::kRecord);
}

std::unique_ptr<RecordBlock> ReadStepLines(const py::buffer& text, const std::string& path,
                                           int threads) {
  std::unique_ptr<RecordBlock> block = ParseLines(text, false, threads, ansor::Form::kSteps);
  block->Place(path, 1);
  return block;
}

std::unique_ptr<RecordBlock> ReadBlock(const py::buffer& text, const std::string& path,
                                       std::int64_t first_line, bool skip, int threads) {
  std::unique_ptr<RecordBlock> block = ParseBlock(text, skip, threads);
  block->Place(path, first_line);
  return block;
}

py::dict EncodeBlocks(const RecordBlocks& blocks, const Encoder& encoder, Embedding out,
                      int threads) {
  const Records records(blocks);
  return EncodePrograms(
      records.size(), [&](std::size_t k) { return records[k].program(); }, ansor::kVocabulary,
      encoder, std::move(out), threads);
}

/*!
 * \param chosen (n,): which records.
 * \param begins (n + 1,): where their rows go in `out`.
 */
py::dict EncodeRows(const RecordBlocks& blocks, const Encoder& encoder, const Indices& chosen,
                    const Indices& begins, Embedding out, int threads) {
  RequireFramework(encoder, ansor::kVocabulary);
  const Records records(blocks);
  const Layout& layout = encoder.layout();
  const auto count = static_cast<std::size_t>(chosen.size());
  const std::int64_t* const record = chosen.data();
  const std::int64_t* const begin = begins.data();
  bool fits = out.ndim() == 2 && out.shape(1) == layout.width && begins.size() == chosen.size() + 1;
  for (std::size_t k = 0; fits && k < count; ++k) {
    const std::size_t rows = records[static_cast<std::size_t>(record[k])].program().size;
    const auto kept = std::min(static_cast<std::int64_t>(rows), std::int64_t{layout.length});
    fits = begin[k] >= 0 && begin[k + 1] - begin[k] == kept && begin[k + 1] <= out.shape(0);
  }
  if (!fits) throw std::invalid_argument("out: expected room for the rows of the chosen records");
  float* const data = out.mutable_data();
  return EncodeEach(count, layout.size() * sizeof(float), encoder, threads,
                    [&](std::size_t k, EncodingReport* report) {
                      encoder.EncodeRows(records[static_cast<std::size_t>(record[k])].program(),
                                         data + begin[k] * layout.width, report);
                    });
}

py::list SkippedOf(const RecordBlock& block) {
  py::list skipped;
  for (const ansor::RecordBatch& batch : block.batches()) {
    for (const ansor::SkippedLine& line : batch.skipped) {
      skipped.append(py::make_tuple(line.line, line.reason, line.sentence));
    }
  }
  return skipped;
}

py::array_t<std::uint64_t> HashesOf(const RecordBlocks& blocks, int threads) {
  return Records(blocks).OfPrograms<std::uint64_t>(threads, [](const PrimitiveSequence& program) {
    return HashOf(program, ansor::kVocabulary);
  });
}

}  // namespace

void RegisterRecords(py::module_& module) {
  py::class_<RecordBlock>(module, "RecordBlock", "The records of one block of lines.")
      .def("__len__", [](const RecordBlock& block) { return Records({&block}).size(); })
      .def_property_readonly("skipped", &SkippedOf)
      .def_property_readonly("lines",
                             [](const RecordBlock& block) {
                               std::int64_t lines = 0;
                               for (const ansor::RecordBatch& batch : block.batches()) {
                                 lines += batch.lines;
                               }
                               return lines;
                             })
      .def("place", &RecordBlock::Place, py::arg("path"), py::arg("first_line"),
           "Says where the lines stand; refuses a block with a bad line, naming it.")
      .def("lengths",
           [](const RecordBlock& block) {
             return Records({&block}).OfPrograms<std::int32_t>(
                 1, [](const PrimitiveSequence& program) { return program.size; });
           })
      .def("widths",
           [](const RecordBlock& block) {
             return Records({&block}).OfPrograms<std::int32_t>(
                 1, [](const PrimitiveSequence& program) {
                   return WidthOf(program, ansor::kVocabulary);
                 });
           })
      .def("hashes", [](const RecordBlock& block) { return HashesOf({&block}, 1); })
      .def(
          "encode",
          [](const RecordBlock& block, const Encoder& encoder, const Embedding& out, int threads) {
            return EncodeBlocks({&block}, encoder, out, threads);
          },
          py::arg("encoder"), py::arg("out").noconvert(), py::arg("threads"))
      .def(
          "steps",
          [](const RecordBlock& block, std::size_t i) {
            return StepsOf(Records({&block})[i].program(), ansor::kVocabulary);
          },
          py::arg("i"))
      .def(
          "line",
          [](const RecordBlock& block, std::size_t i) {
            const Records::Place place = Records({&block})[i];
            std::string line;
            ansor::WriteRecord(*place.batch, place.row, &line);
            return py::str(line);
          },
          py::arg("i"), "Record i as TVM writes it, with its newline.");

  module.def("read_block", &ReadBlock, py::arg("text"), py::arg("path"), py::arg("first_line"),
             py::arg("skip"), py::arg("threads"),
             "Reads whole lines of measure records; the last byte must be a newline.");
  module.def("parse_block", &ParseBlock, py::arg("text"), py::arg("skip"), py::arg("threads"),
             "The same before it is known where in a file the lines stand: see RecordBlock.place.");
  module.def("read_steps", &ReadStepLines, py::arg("text"), py::arg("path"), py::arg("threads"),
             "Reads lines that hold the steps of a program each, as a record has them.");
  module.def("columns_of", &ColumnsOf, py::arg("blocks"), py::arg("threads"),
             "What the records of all blocks say beside their programs, an array each.");
  module.def("hashes_of", &HashesOf, py::arg("blocks"), py::arg("threads"),
             "A hash of every program of all blocks.");
  module.def("encode_blocks", &EncodeBlocks, py::arg("blocks"), py::arg("encoder"),
             py::arg("out").noconvert(), py::arg("threads"),
             "Writes (N, L, E): the programs of all blocks.");
  module.def("encode_rows", &EncodeRows, py::arg("blocks"), py::arg("encoder"), py::arg("chosen"),
             py::arg("begins"), py::arg("out").noconvert(), py::arg("threads"),
             "Writes (R, E): the rows of the chosen programs, one program after the other.");
}

}  // namespace bindings
}  // namespace tlp_tvm
