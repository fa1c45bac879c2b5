/*!
 * \file bindings/record_block.h
 * \brief Records as Python holds them: blocks of text that were read, one after the other.
 */
#ifndef TLP_TVM_BINDINGS_RECORD_BLOCK_H_
#define TLP_TVM_BINDINGS_RECORD_BLOCK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "ansor/record_batch.h"
#include "ansor/record_reader.h"
#include "bindings/bindings.h"
#include "core/parallel_for.h"

namespace tlp_tvm {
namespace bindings {

/*! \brief The records of one block of text: batches that follow one another. */
class RecordBlock {
 public:
  explicit RecordBlock(std::vector<ansor::RecordBatch> batches) : batches_(std::move(batches)) {}

  const std::vector<ansor::RecordBatch>& batches() const { return batches_; }
  void Place(const std::string& path, std::int64_t first_line) {
    ansor::Place(path, first_line, &batches_);
  }

 private:
  std::vector<ansor::RecordBatch> batches_;
};

using RecordBlocks = std::vector<const RecordBlock*>;

/*! \brief The records of several blocks, by their place among all of them. */
class Records {
 public:
  struct Place {
    const ansor::RecordBatch* batch;
    std::size_t row;
    PrimitiveSequence program() const { return batch->sequences[row]; }
  };

  explicit Records(const RecordBlocks& blocks) {
    for (const RecordBlock* block : blocks) {
      for (const ansor::RecordBatch& batch : block->batches()) {
        batches_.push_back(&batch);
        begins_.push_back(size_);
        size_ += batch.rows.size();
      }
    }
  }

  std::size_t size() const { return size_; }
  const std::vector<const ansor::RecordBatch*>& batches() const { return batches_; }
  /*! \return The place of the first record of batch b. */
  std::size_t Begin(std::size_t b) const { return begins_[b]; }

  Place operator[](std::size_t i) const {
    if (i >= size_) throw pybind11::index_error("record " + std::to_string(i) + " is out of range");
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), i);
    const auto b = static_cast<std::size_t>(after - begins_.begin()) - 1;
    return {batches_[b], i - begins_[b]};
  }

  /*! \brief A number of every program. */
  template <typename T, typename Of>
  pybind11::array_t<T> OfPrograms(int threads, Of of) const {
    pybind11::array_t<T> column(static_cast<pybind11::ssize_t>(size_));
    T* const out = column.mutable_data();
    // Safe without the GIL: blocks are not written to once they are placed, and the column is ours.
    const pybind11::gil_scoped_release release;
    ParallelFor(batches_.size(), 1, threads, [&](std::size_t b, std::size_t) {
      const SequenceBatch& sequences = batches_[b]->sequences;
      for (std::size_t i = 0; i < sequences.size(); ++i) {
        out[begins_[b] + i] = static_cast<T>(of(sequences[i]));
      }
    });
    return column;
  }

 private:
  std::vector<const ansor::RecordBatch*> batches_;
  std::vector<std::size_t> begins_;
  std::size_t size_ = 0;
};

/*! \return What records say beside their programs: a dictionary of arrays, and the tasks. */
pybind11::dict ColumnsOf(const RecordBlocks& blocks, int threads);

}  // namespace bindings
}  // namespace tlp_tvm

#endif  // TLP_TVM_BINDINGS_RECORD_BLOCK_H_
