#include "ansor/gpu_check.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "core/error.h"
#include "core/parallel_for.h"
#include "core/saturating.h"

namespace tlp_tvm {
namespace ansor {
namespace {

constexpr std::size_t kStatesPerBlock = 64;

/*! \brief TVM's IteratorAnnotation. */
enum Annotation : std::int32_t {
  kVectorize = 2,
  kVThread = 4,
  kThreadX = 6,
  kThreadY = 8,
  kThreadZ = 10,
};

/*! \brief Virtual threads that TVM writes out one by one, whatever the limit; it loops over more.
 */
constexpr std::int64_t kUnrolledVthreads = 15;

/*! \brief A stage in shared memory. */
struct SharedBuffer {
  /*! \brief Elements that its loops cover, of which some may be masked, and those that it has. */
  std::int64_t covered = 0, elements = kUnknown;
  /*! \brief Fewest elements that would need these loops. */
  std::int64_t fewest = 0;
  /*! \brief As in Tile. */
  std::int64_t row = 1;

  std::int64_t AtLeast() const { return elements == kUnknown ? fewest : elements; }
};

/*! \brief What a stage reads in its tile at one of its loops. */
struct Tile {
  std::int64_t elements = kUnknown;
  /*! \brief Size of its last dimension that has more than one element. */
  std::int64_t row = 1;
};

Tile TileRead(const GpuGraph& graph, const StageNote& reader, const std::vector<Loop>& loops,
              const StageNote& read) {
  const auto wanted = [&](const GpuRead& entry) {
    return entry.reader == reader.operation && entry.read == read.operation;
  };
  const auto found = std::find_if(graph.reads.begin(), graph.reads.end(), wanted);
  Tile known;
  if (found == graph.reads.end() || reader.axes.size() != loops.size()) return known;
  std::int64_t elements = 1;
  for (const auto& dimension : found->dimensions) {
    std::int64_t size = 1;
    for (const auto& [axis, factor] : dimension) {
      std::int64_t tile = 1;
      if (axis < graph.axes[reader.operation].spatial) {
        if (axis >= reader.tiles.size()) return {};  // its axes are not followed
        tile = reader.tiles[axis];                   // all threads of a block together
      } else {
        for (std::size_t i = static_cast<std::size_t>(read.loop) + 1; i < loops.size(); ++i) {
          if (reader.axes[i] != axis) continue;
          if (loops[i].first == kUnknown) return {};
          tile = Product(tile, loops[i].first);
        }
      }
      if (tile <= 0) return {};
      size = Sum(size, Product(Magnitude(factor), tile - 1));
    }
    elements = Product(elements, size);
    if (size > 1) known.row = size;
  }
  known.elements = elements;
  return known;
}

/*! \brief A buffer whose loops were fused and split again. */
SharedBuffer BufferOf(const std::vector<Loop>& loops, const Tile& tile) {
  SharedBuffer buffer;
  std::int64_t inner = 1, outer = 1;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].first == kUnknown) return buffer;
    std::int64_t& part = i == 0 ? outer : inner;
    part = Product(part, loops[i].first);
  }
  buffer.covered = Product(outer, inner);
  // The outermost loop is rounded up: its last turn covers one element at least.
  buffer.fewest = loops.size() > 1 && outer > 0 ? Sum(Product(outer - 1, inner), 1) : outer;
  if (tile.elements >= buffer.fewest && tile.elements <= buffer.covered) {
    buffer.elements = tile.elements;
    buffer.row = tile.row;
  }
  return buffer;
}

bool StaysVector(Vectors vectors, const SharedBuffer& buffer, std::int64_t extent) {
  if (vectors == Vectors::kTakenApart || buffer.elements <= 0 || extent <= 0) return false;
  if (buffer.elements == buffer.covered) return true;
  return vectors == Vectors::kUnlessCut && buffer.row % extent == 0;
}

/*! \brief What the stages of one kernel take together. */
class Kernel {
 public:
  /*! \return What is wrong with the loops of a stage, among those that were added before it. */
  GpuFault Add(const StageNote& note, const std::vector<Loop>& loops, const SharedBuffer& buffer,
               const GpuOperation& operation, const GpuLimits& limits) {
    const std::int64_t bytes = operation.element_bytes;
    for (const auto& [extent, annotation] : loops) {
      if (extent == kUnknown) continue;
      if (annotation == kVThread && extent > std::max(limits.vthreads, kUnrolledVthreads)) {
        return GpuFault::kVthreads;
      }
      if (annotation == kThreadX || annotation == kThreadY || annotation == kThreadZ) {
        if (Of(annotation, extent, &threads_) != extent) return GpuFault::kThreadsApart;
      }
      if (annotation == kVectorize && Product(extent, bytes) > limits.vector_bytes &&
          StaysVector(operation.vectors, buffer, extent)) {
        return GpuFault::kVector;
      }
    }
    if (note.shared_for != kUnknown) {
      std::int64_t& shared = Of(note.shared_for, 0, &shared_);
      shared = Sum(shared, Product(buffer.AtLeast(), bytes));
    }
    return GpuFault::kNone;
  }

  GpuFault Total(const GpuLimits& limits) const {
    std::int64_t threads = 1;
    for (const auto& [annotation, extent] : threads_) threads = Product(threads, extent);
    if (threads > limits.threads_per_block) return GpuFault::kThreads;
    // Buffers that the same stage reads are alive together; others may take each other's place.
    for (const auto& [reader, bytes] : shared_) {
      if (bytes > limits.shared_bytes_per_block) return GpuFault::kSharedMemory;
    }
    return GpuFault::kNone;
  }

 private:
  using Numbers = std::vector<std::pair<std::int64_t, std::int64_t>>;  // a few, so a scan will do

  static std::int64_t& Of(std::int64_t key, std::int64_t otherwise, Numbers* numbers) {
    for (auto& [known, number] : *numbers) {
      if (known == key) return number;
    }
    return numbers->emplace_back(key, otherwise).second;
  }

  Numbers threads_;  ///< by annotation
  Numbers shared_;   ///< by the reader
};

/*! \brief What is wrong with a program whose stages have these loops. */
GpuFault FaultOf(const std::vector<StageNote>& notes, const std::vector<std::vector<Loop>>& loops,
                 const std::vector<bool>& inlined, const GpuLimits& limits, const GpuGraph& graph) {
  std::vector<std::size_t> place(notes.size());  // of each number
  for (std::size_t i = 0; i < notes.size(); ++i) place[notes[i].number] = i;
  std::map<std::size_t, Kernel> kernels;
  for (std::size_t i = 0; i < notes.size(); ++i) {
    const StageNote& note = notes[i];
    if (inlined[i]) continue;
    SharedBuffer buffer;
    if (note.shared_for != kUnknown) {
      Tile tile;
      if (note.computed_in == note.shared_for) {
        const std::size_t at = place[static_cast<std::size_t>(note.shared_for)];
        tile = TileRead(graph, notes[at], loops[at], note);
      }
      buffer = BufferOf(loops[i], tile);
    }
    std::size_t root = i;
    for (std::size_t hops = 0; notes[root].computed_in != kUnknown; ++hops) {
      if (hops == notes.size()) return GpuFault::kNone;
      root = place[static_cast<std::size_t>(notes[root].computed_in)];
    }
    const GpuOperation& operation = graph.operations[note.operation];
    const GpuFault fault = kernels[root].Add(note, loops[i], buffer, operation, limits);
    if (fault != GpuFault::kNone) return fault;
  }
  for (const auto& [root, kernel] : kernels) {
    if (const GpuFault fault = kernel.Total(limits); fault != GpuFault::kNone) return fault;
  }
  return GpuFault::kNone;
}

GpuFault FaultOfState(StateReader* reader, const abi::Array& states, std::size_t i,
                      const GpuLimits& limits, const GpuGraph& graph, ReadScratch* scratch) {
  StageList list(graph.axes);
  scratch->batch.Clear();
  try {
    reader->Read(states, i, scratch);
  } catch (const StateError&) {
    return GpuFault::kNone;
  }
  if (!list.Follow(scratch->batch[0])) return GpuFault::kNone;
  const auto loops = LoopsOf(reader, states.items()[i]);
  const auto inlined = InlinedOf(reader, states.items()[i]);
  const std::size_t count = list.stages().size();
  if (loops.size() != count || inlined.size() != count) return GpuFault::kNone;
  return FaultOf(list.stages(), loops, inlined, limits, graph);
}

}  // namespace

void ProgramCheck::FindLoops() {
  const std::vector<StageNote>& notes = list_.stages();
  loops_.resize(notes.size());
  for (std::size_t i = 0; i < notes.size(); ++i) {
    const StageNote& note = notes[i];
    loops_[i].clear();
    if (!note.has_loops) continue;
    loops_[i].assign(note.loops.begin(), note.loops.end());
    if (note.computed_in == kUnknown || note.shared_for != kUnknown) continue;
    // Computed in another stage, it covers what that reads: only loops that reduce stay whole.
    const bool has_axes = note.axes.size() == note.loops.size();
    for (std::size_t k = 0; k < note.loops.size(); ++k) {
      const bool reduces =
          has_axes && note.axes[k] != kFused && note.axes[k] >= graph_.axes[note.operation].spatial;
      if (!reduces) loops_[i][k].first = kUnknown;
    }
  }
  for (std::size_t i = 0; i < notes.size(); ++i) {
    const StageNote& note = notes[i];
    if (loops_[i].empty() || loops_[i][0].first != kUnknown) continue;
    if (note.shared_for == kUnknown || note.computed_in != note.shared_for) continue;
    // A copy: its loops are those of the tile that is read, fused and split again.
    for (std::size_t at = 0; at < notes.size(); ++at) {
      if (static_cast<std::int64_t>(notes[at].number) != note.shared_for) continue;
      std::int64_t rest = TileRead(graph_, notes[at], loops_[at], note).elements;
      for (std::size_t k = 1; k < loops_[i].size() && rest != kUnknown; ++k) {
        const std::int64_t inner = loops_[i][k].first;
        rest = inner > 0 ? Sum(rest, inner - 1) / inner : kUnknown;
      }
      loops_[i][0].first = rest;
    }
  }
}

GpuFault ProgramCheck::FaultOf(const PrimitiveSequence& program) {
  list_ = start_;
  if (!list_.Follow(program)) return GpuFault::kNone;
  inlined_.clear();
  inlined_.reserve(list_.stages().size());
  for (const StageNote& note : list_.stages()) inlined_.push_back(note.inlined);
  FindLoops();
  return ansor::FaultOf(list_.stages(), loops_, inlined_, limits_, graph_);
}

void CheckGpu(StateReader* reader, const abi::Array& states, const GpuLimits& limits,
              const GpuGraph& graph, int threads, GpuFault* faults) {
  const auto count = static_cast<std::size_t>(states.size);
  ParallelFor(count, kStatesPerBlock, threads, [&](std::size_t begin, std::size_t end) {
    ReadScratch scratch;
    for (std::size_t i = begin; i < end; ++i) {
      faults[i] = FaultOfState(reader, states, i, limits, graph, &scratch);
    }
  });
}

}  // namespace ansor
}  // namespace tlp_tvm
