/*!
 * \file ansor/record_writer.h
 * \brief Programs and records -> the JSON that TVM writes and reads.
 */
#ifndef TLP_TVM_ANSOR_RECORD_WRITER_H_
#define TLP_TVM_ANSOR_RECORD_WRITER_H_

#include <cstddef>
#include <string>

#include "ansor/record_batch.h"
#include "core/primitive.h"

namespace tlp_tvm {
namespace ansor {

/*! \brief Appends the steps of a program as TVM writes them: [["CI", 7], ["SP", ...]]. */
void WriteSteps(const PrimitiveSequence& sequence, std::string* out);

/*! \brief Appends record `row` of the batch as one line, its '\n' included. */
void WriteRecord(const RecordBatch& batch, std::size_t row, std::string* out);

}  // namespace ansor
}  // namespace tlp_tvm

#endif  // TLP_TVM_ANSOR_RECORD_WRITER_H_
