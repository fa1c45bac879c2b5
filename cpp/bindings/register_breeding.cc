#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ansor/gpu_check.h"
#include "ansor/program_form.h"
#include "ansor/state_reader.h"
#include "ansor/steps.h"
#include "bindings/bindings.h"
#include "bindings/herd.h"
#include "bindings/record_block.h"
#include "breeding/breed.h"
#include "core/error.h"
#include "metaschedule/trace_form.h"
#include "metaschedule/tuning_records.h"

namespace py = pybind11;

namespace tlp_tvm {
namespace bindings {
namespace {

using namespace breeding;  // NOLINT(google-build-using-namespace): this file is about them
using StockHandle = std::shared_ptr<SharedStock>;
using Hashes = py::array_t<std::uint64_t, py::array::c_style>;
using Weights = py::array_t<double, py::array::c_style | py::array::forcecast>;

StockHandle NewStock(const std::string& framework) {
  for (const Species* species : {&ansor::ProgramSpecies(), &metaschedule::TraceSpecies()}) {
    if (species->vocabulary->framework == framework) return std::make_shared<SharedStock>(*species);
  }
  throw std::invalid_argument("framework: expected ansor or metaschedule, found \"" + framework +
                              "\"");
}

/*! \brief Takes programs in, one after the other; of one that is refused, says which it is. */
template <typename ProgramAt>
Herd AddAll(const StockHandle& stock, const Species& species, std::size_t count,
            ProgramAt program) {
  if (&stock->stock.species() != &species) {
    throw std::invalid_argument(
        "programs: expected those of the stock's framework, found another's");
  }
  const py::gil_scoped_release release;
  const std::unique_lock<std::shared_mutex> lock(stock->mutex);
  std::vector<std::pair<std::size_t, Row>> added;
  for (std::size_t i = 0; i < count; ++i) {
    try {
      added.push_back(stock->stock.Add(program(i)));
    } catch (const RecordError& error) {
      throw RecordError("program " + std::to_string(i) + ": " + error.what());
    }
  }
  Population programs(count, stock->stock.stride());
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [form, row] = added[i];
    programs.Set(i, form, stock->stock.HashOf(form, row.data()), row.data(), row.size());
  }
  return {stock, std::move(programs)};
}

Herd AddStates(const StockHandle& stock, ansor::StateReader& reader, std::uintptr_t handle) {
  const ansor::abi::Array& states =
      reader.StatesOf(reinterpret_cast<const void*>(handle));  // which the caller holds
  ansor::ReadScratch scratch;
  const auto count = static_cast<std::size_t>(states.size);
  return AddAll(stock, ansor::ProgramSpecies(), count, [&](std::size_t i) {
    scratch.batch.Clear();
    reader.Read(states, i, &scratch);
    return scratch.batch[0];
  });
}

Herd AddRecords(const StockHandle& stock, const RecordBlock& block) {
  const Records records({&block});
  return AddAll(stock, ansor::ProgramSpecies(), records.size(),
                [&](std::size_t i) { return records[i].program(); });
}

Herd AddTraces(const StockHandle& stock, const metaschedule::TuningBatch& block) {
  return AddAll(stock, metaschedule::TraceSpecies(), block.sequences.size(),
                [&](std::size_t i) { return block.sequences[i]; });
}

void RequireStock(const StockHandle& stock, const Herd& herd) {
  if (herd.owner != stock) {
    throw std::invalid_argument(
        "programs: expected programs of this stock, found another's; add them to it first");
  }
}

double ShareOf(const char* name, double value) {
  if (value >= 0 && value <= 1) return value;
  throw std::invalid_argument(std::string(name) + ": expected a share between 0 and 1, found " +
                              std::to_string(value));
}

Plan PlanOf(const std::vector<double>& changes, const std::vector<std::int64_t>& unrolls,
            std::int64_t most_innermost, double another, double fresh, double cross, double alter) {
  Plan plan;
  double sum = 0;
  for (const double weight : changes) sum += weight >= 0 ? weight : -1e300;
  if (changes.size() != kChangeCount || !(sum > 0)) {
    throw std::invalid_argument("changes: expected " + std::to_string(kChangeCount) +
                                " weights of 0 or more, one of them above 0, found others");
  }
  std::copy(changes.begin(), changes.end(), plan.rules.weights);
  for (const std::int64_t number : unrolls) {
    if (number < 0) throw std::invalid_argument("unrolls: expected no number below 0, found one");
  }
  plan.rules.unrolls = unrolls;
  plan.rules.most_innermost = most_innermost;
  plan.rules.another = std::min(ShareOf("another", another), 0.9);
  plan.fresh = ShareOf("fresh", fresh);
  plan.cross = ShareOf("cross", cross);
  plan.alter = ShareOf("alter", alter);
  return plan;
}

/*! \brief What a task's GPU can run. */
struct GpuRules {
  ansor::GpuGraph graph;
  ansor::GpuLimits limits;

  AcceptsOfThread accepts() const {
    return [this] {
      const auto check = std::make_shared<ansor::ProgramCheck>(limits, graph);
      return [check](const PrimitiveSequence& program) {
        return check->FaultOf(program) == ansor::GpuFault::kNone;
      };
    };
  }
};

py::array_t<std::uint8_t> FaultsOf(const GpuRules& rules, const Herd& herd) {
  py::array_t<std::uint8_t> faults(static_cast<py::ssize_t>(herd.programs.size()));
  Draft draft;
  ansor::ProgramCheck check(rules.limits, rules.graph);
  for (std::size_t i = 0; i < herd.programs.size(); ++i) {
    faults.mutable_data()[i] = static_cast<std::uint8_t>(check.FaultOf(herd.Write(i, &draft)));
  }
  return faults;
}

py::tuple BreedHerd(const StockHandle& stock, const Herd& parents, const Weights& weights,
                    const Plan& plan, std::size_t count, std::uint64_t seed, const Hashes& known,
                    const GpuRules* gpu, int threads) {
  RequireStock(stock, parents);
  const std::vector<double> chances(weights.data(), weights.data() + weights.size());
  const bool fits = chances.size() == parents.programs.size() &&
                    std::all_of(chances.begin(), chances.end(),
                                [](double weight) { return weight >= 0 && weight < 1e300; });
  if (!fits) {
    throw std::invalid_argument(
        "weights: expected a finite number of 0 or more for each parent, found others");
  }
  std::vector<std::uint64_t> hashes(known.data(), known.data() + known.size());
  Tally tally;
  Herd herd{stock, Population(0, 1)};
  {
    // Safe without the GIL: what Python passed was copied or is not written to.
    const py::gil_scoped_release release;
    {
      const std::unique_lock<std::shared_mutex> lock(stock->mutex);
      for (const std::int64_t number : plan.rules.unrolls) stock->stock.KnowUnroll(number);
    }
    const std::shared_lock<std::shared_mutex> lock(stock->mutex);
    std::sort(hashes.begin(), hashes.end());
    herd.programs = Breed(stock->stock, parents.programs, chances, plan, count, seed, hashes,
                          gpu == nullptr ? AcceptsOfThread() : gpu->accepts(), threads, &tally);
  }
  py::dict counts;
  counts["made"] = tally.made;
  counts["barren"] = tally.barren;
  counts["refused"] = tally.refused;
  counts["equal"] = tally.equal;
  return py::make_tuple(std::move(herd), counts);
}

Herd CrossHerd(const StockHandle& stock, const Herd& programs, std::size_t first,
               std::size_t second, std::uint64_t seed) {
  RequireStock(stock, programs);
  const Child child = CrossOf(stock->stock, programs.programs, programs.Checked(first),
                              programs.Checked(second), seed);
  Population one(1, stock->stock.stride());
  const std::uint64_t hash = stock->stock.HashOf(child.form, child.row.data());
  one.Set(0, child.form, hash, child.row.data(), child.row.size());
  return {stock, std::move(one)};
}

Herd Joined(const StockHandle& stock, const std::vector<const Herd*>& herds) {
  std::vector<const Population*> parts;
  for (const Herd* herd : herds) {
    RequireStock(stock, *herd);
    parts.push_back(&herd->programs);
  }
  return {stock, Population::Joined(parts)};
}

}  // namespace

void RegisterBreeding(py::module_& module) {
  RegisterHerd(module);
  py::class_<Plan>(module, "BreedingPlan", "How children differ from their parents.")
      .def(py::init(&PlanOf), py::kw_only(), py::arg("changes"), py::arg("unrolls"),
           py::arg("most_innermost"), py::arg("another"), py::arg("fresh"), py::arg("cross"),
           py::arg("alter"),
           "Changes: weights of breeding::Change. The others are as in breeding::Rules and Plan.");
  py::class_<GpuRules>(module, "GpuRules", "What a task's GPU can run, by the steps alone.")
      .def(py::init([](const ansor::GpuGraph& graph, std::int64_t threads_per_block,
                       std::int64_t shared_bytes_per_block, std::int64_t vthreads,
                       std::int64_t vector_bytes) {
             return GpuRules{graph,
                             {threads_per_block, shared_bytes_per_block, vthreads, vector_bytes}};
           }),
           py::kw_only(), py::arg("graph"), py::arg("threads_per_block"),
           py::arg("shared_bytes_per_block"), py::arg("vthreads"), py::arg("vector_bytes"))
      .def("faults", &FaultsOf, py::arg("herd"),
           "Why each program cannot run (ansor::GpuFault), 0 where nothing speaks against it.");
  py::class_<SharedStock, StockHandle>(module, "Stock", "What a task's programs have shown.")
      .def(py::init(&NewStock), py::arg("framework"))
      .def_property_readonly("sketches",
                             [](const SharedStock& s) { return s.stock.sketches().size(); })
      .def_property_readonly("forms", [](const SharedStock& s) { return s.stock.forms().size(); })
      .def("add_states", &AddStates, py::arg("reader"), py::arg("handle"),
           "Takes in the states of an Array, given its handle; returns them as a herd.")
      .def("add_records", &AddRecords, py::arg("block"), "Takes in the programs of records.")
      .def("add_traces", &AddTraces, py::arg("block"), "Takes in the traces of a block.")
      .def("joined", &Joined, py::arg("herds"), "One herd after the other.")
      .def("cross", &CrossHerd, py::arg("programs"), py::arg("first"), py::arg("second"),
           py::arg("seed"), "The child of two programs of a sketch.")
      .def("breed", &BreedHerd, py::arg("parents"), py::arg("weights"), py::arg("plan"),
           py::kw_only(), py::arg("count"), py::arg("seed"), py::arg("known"), py::arg("gpu"),
           py::arg("threads"),
           "Children that differ from each other and from what is known, and what became of the "
           "others.");
}

}  // namespace bindings
}  // namespace tlp_tvm
