/*!
 * \file bindings/encode_all.h
 * \brief Encoding many programs of either framework: without the GIL, on several threads.
 */
#ifndef TLP_TVM_BINDINGS_ENCODE_ALL_H_
#define TLP_TVM_BINDINGS_ENCODE_ALL_H_

#include <algorithm>
#include <cstddef>
#include <mutex>

#include "bindings/bindings.h"
#include "core/parallel_for.h"

namespace tlp_tvm {
namespace bindings {

/*!
 * \brief Output that a thread writes in one go: threads that share a large page get in each
 * other's way.
 */
constexpr std::size_t kBytesPerShare = std::size_t{8} << 20;

/*!
 * \brief body(k, report) for k in [0, count), each of which writes about so many bytes.
 * \return What the layout could not show, as ReportOf has it.
 */
template <typename Body>
pybind11::dict EncodeEach(std::size_t count, std::size_t bytes, const Encoder& encoder, int threads,
                          Body body) {
  EncodingReport report;
  {
    // Safe without the GIL: programs are not written to once they are read, and the caller's
    // arrays are ours until we return.
    const pybind11::gil_scoped_release release;
    std::mutex mutex;
    const std::size_t share =
        std::max<std::size_t>(1, kBytesPerShare / std::max<std::size_t>(1, bytes));
    ParallelFor(count, share, threads, [&](std::size_t begin, std::size_t end) {
      EncodingReport part;
      for (std::size_t k = begin; k < end; ++k) body(k, &part);
      const std::lock_guard<std::mutex> lock(mutex);
      report.Add(part);
    });
  }
  return ReportOf(report, encoder.vocabulary());
}

/*!
 * \brief Writes (N, L, E).
 * \param program program(k) is the k-th of `count`.
 * \throws LayoutError unless the encoder is of the programs' framework.
 */
template <typename Program>
pybind11::dict EncodePrograms(std::size_t count, Program program, const Vocabulary& vocabulary,
                              const Encoder& encoder, Embedding out, int threads) {
  const std::size_t size = encoder.layout().size();
  float* const data = EmbeddingOf(out, count, encoder, vocabulary);
  return EncodeEach(count, size * sizeof(float), encoder, threads,
                    [&](std::size_t k, EncodingReport* report) {
                      encoder.Encode(program(k), data + k * size, report);
                    });
}

}  // namespace bindings
}  // namespace tlp_tvm

#endif  // TLP_TVM_BINDINGS_ENCODE_ALL_H_
