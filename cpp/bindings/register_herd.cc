#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "ansor/program_form.h"
#include "ansor/record_writer.h"
#include "bindings/encode_all.h"
#include "bindings/herd.h"
#include "metaschedule/trace_json.h"
#include "model/network.h"

namespace py = pybind11;

namespace tlp_tvm {
namespace bindings {
namespace {

using breeding::Draft;
using breeding::Population;
using Lock = std::shared_lock<std::shared_mutex>;
using Places = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;

/*! \brief Programs that a thread encodes and scores together, so that they stay in its caches. */
constexpr std::size_t kBlock = 32;

Herd Take(const Herd& herd, const Places& places) {
  std::vector<std::size_t> chosen;
  chosen.reserve(static_cast<std::size_t>(places.size()));
  for (py::ssize_t i = 0; i < places.size(); ++i) {
    chosen.push_back(herd.Checked(static_cast<std::size_t>(places.data()[i])));
  }
  return {herd.owner, Population::Of(herd.programs, chosen)};
}

py::array_t<std::uint64_t> HashesOf(const Herd& herd) {
  py::array_t<std::uint64_t> hashes(static_cast<py::ssize_t>(herd.programs.size()));
  for (std::size_t i = 0; i < herd.programs.size(); ++i) {
    hashes.mutable_data()[i] = herd.programs.hash(i);
  }
  return hashes;
}

py::array_t<std::uint64_t> SequenceHashesOf(const Herd& herd) {
  py::array_t<std::uint64_t> hashes(static_cast<py::ssize_t>(herd.programs.size()));
  Draft draft;
  for (std::size_t i = 0; i < herd.programs.size(); ++i) {
    hashes.mutable_data()[i] = HashOf(herd.Write(i, &draft), herd.vocabulary());
  }
  return hashes;
}

py::array_t<std::int64_t> FormsOf(const Herd& herd) {
  py::array_t<std::int64_t> forms(static_cast<py::ssize_t>(herd.programs.size()));
  for (std::size_t i = 0; i < herd.programs.size(); ++i) {
    forms.mutable_data()[i] = static_cast<std::int64_t>(herd.programs.form(i));
  }
  return forms;
}

/*!
 * \brief body(k, program, report) for every program, each thread with a draft of its own.
 */
template <typename Body>
py::dict OverPrograms(const Herd& herd, const Encoder& encoder, int threads, Body body) {
  RequireFramework(encoder, herd.vocabulary());
  EncodingReport report;
  {
    // Safe without the GIL: a herd is not written to, its stock is locked, arrays are the caller's.
    const py::gil_scoped_release release;
    const Lock lock(herd.owner->mutex);
    std::mutex mutex;
    ParallelFor(herd.programs.size(), kBlock, threads, [&](std::size_t begin, std::size_t end) {
      EncodingReport part;
      body(begin, end, &part);
      const std::lock_guard<std::mutex> guard(mutex);
      report.Add(part);
    });
  }
  return ReportOf(report, herd.vocabulary());
}

py::dict Encode(const Herd& herd, const Encoder& encoder, Embedding out, int threads) {
  const std::size_t size = encoder.layout().size();
  float* const data = EmbeddingOf(out, herd.programs.size(), encoder, herd.vocabulary());
  return OverPrograms(herd, encoder, threads,
                      [&](std::size_t begin, std::size_t end, EncodingReport* report) {
                        Draft draft;
                        for (std::size_t i = begin; i < end; ++i) {
                          encoder.Encode(herd.Write(i, &draft), data + i * size, report);
                        }
                      });
}

/*! \brief Some numbers of each flattened embedding. */
class Columns {
 public:
  Columns(const Places& columns, const Encoder& encoder, std::size_t programs)
      : begin_(columns.data()),
        count_(static_cast<std::size_t>(columns.size())),
        kept_({static_cast<py::ssize_t>(programs), columns.size()}),
        to_(kept_.mutable_data()) {
    const std::size_t size = encoder.layout().size();
    for (std::size_t c = 0; c < count_; ++c) {
      if (begin_[c] < 0 || begin_[c] >= static_cast<std::int64_t>(size)) {
        throw std::invalid_argument("columns: expected numbers below " + std::to_string(size) +
                                    ", found " + std::to_string(begin_[c]));
      }
    }
  }
  void Keep(std::size_t program, const float* x) const {
    for (std::size_t c = 0; c < count_; ++c) to_[program * count_ + c] = x[begin_[c]];
  }
  const py::array_t<float>& kept() const { return kept_; }

 private:
  const std::int64_t* begin_;
  std::size_t count_;
  py::array_t<float> kept_;
  float* to_;
};

/*!
 * \brief Encodes and scores every program, and keeps some columns of its embedding.
 * \return Scores (N, heads or 1), columns (N, C).
 */
py::tuple Score(const Herd& herd, const Encoder& encoder, const model::Network& network, int head,
                const Places& places, int threads) {
  const Layout& layout = encoder.layout();
  const model::NetworkShape& shape = network.shape();
  if (layout.length != shape.length || layout.width != shape.width || head < -1 ||
      head >= shape.heads) {
    throw std::invalid_argument(
        "network: expected one that reads the encoder's layout and has the head, found another");
  }
  const Columns columns(places, encoder, herd.programs.size());
  const std::size_t size = layout.size();
  const auto heads = static_cast<std::size_t>(head < 0 ? shape.heads : 1);
  py::array_t<float> scores(
      {static_cast<py::ssize_t>(herd.programs.size()), static_cast<py::ssize_t>(heads)});
  float* const to = scores.mutable_data();
  OverPrograms(herd, encoder, threads,
               [&](std::size_t begin, std::size_t end, EncodingReport* report) {
                 Draft draft;
                 std::vector<float> block((end - begin) * size);
                 for (std::size_t i = begin; i < end; ++i) {
                   float* const x = block.data() + (i - begin) * size;
                   encoder.Encode(herd.Write(i, &draft), x, report);
                   columns.Keep(i, x);
                 }
                 network.Score(block.data(), end - begin, head, 1, to + begin * heads);
               });
  return py::make_tuple(scores, columns.kept());
}

}  // namespace

void RegisterHerd(py::module_& module) {
  py::class_<Herd>(module, "Herd", "Programs of a stock.")
      .def("__len__", [](const Herd& herd) { return herd.programs.size(); })
      .def_property_readonly("hashes", &HashesOf, "(N,) two programs are equal when theirs are.")
      .def_property_readonly("sequence_hashes", &SequenceHashesOf, "(N,) as of records.")
      .def_property_readonly("forms", &FormsOf, "(N,) the number of each one's form.")
      .def("take", &Take, py::arg("places"), "The programs at these places.")
      .def(
          "steps",
          [](const Herd& herd, std::size_t i) {
            Draft draft;
            return StepsOf(herd.Write(herd.Checked(i), &draft), herd.vocabulary());
          },
          py::arg("i"), "The record form of program i.")
      .def(
          "text",
          [](const Herd& herd, std::size_t i) {
            const bool is_ansors = &herd.stock().species() == &ansor::ProgramSpecies();
            const auto write = is_ansors ? &ansor::WriteSteps : &metaschedule::WriteTrace;
            Draft draft;
            std::string text;
            write(herd.Write(herd.Checked(i), &draft), &text);
            return text;
          },
          py::arg("i"), "The same as JSON.")
      .def("encode", &Encode, py::arg("encoder"), py::arg("out").noconvert(), py::arg("threads"),
           "Writes (N, L, E); returns the encoding report.")
      .def("score", &Score, py::arg("encoder"), py::arg("network"), py::arg("head"),
           py::arg("columns"), py::arg("threads"),
           "Encodes and scores in one pass: scores (N, heads or 1), and the named numbers of each "
           "flattened embedding (N, C).");
}

}  // namespace bindings
}  // namespace tlp_tvm
