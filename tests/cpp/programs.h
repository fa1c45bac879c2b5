/*!
 * \file programs.h
 * \brief Programs of a small task that breed, as the steps of a record.
 */
#ifndef TLP_TVM_TESTS_PROGRAMS_H_
#define TLP_TVM_TESTS_PROGRAMS_H_

#include <string>
#include <vector>

#include "ansor/record_reader.h"
#include "ansor/record_writer.h"
#include "core/primitive.h"

namespace programs {

/*! \brief A matrix product: tiled, two loops of its consumer fused, the last one vectorised. */
inline std::string Product(const std::string& rows = "[4, 2, 8]", const std::string& fused = "0, 1",
                           const std::string& vectorised = "4", const std::string& unroll = "64") {
  return R"([["SP", 2, 0, 512, )" + rows +
         R"(, 1], ["SP", 2, 4, 12, [3], 1], ["FSP", 3, 0, 0, 2],)" +
         R"( ["RE", 2, [0, 4, 1, 2, 3, 5]], ["CA", 2, 3, 1], ["FU", 3, [)" + fused +
         R"(]], ["AN", 3, 0, 3], ["PR", 2, 0, "auto_unroll_max_step$)" + unroll +
         R"("], ["AN", 3, )" + vectorised + ", 2]]";
}

/*! \brief The same with its product computed elsewhere: another form of the sketch. */
inline std::string Elsewhere() {
  return R"([["SP", 2, 0, 512, [2, 2, 2], 1], ["SP", 2, 4, 12, [6], 1], ["FSP", 3, 0, 0, 2],)"
         R"( ["RE", 2, [0, 4, 1, 2, 3, 5]], ["CR", 2], ["FU", 3, [0]], ["AN", 3, 0, 3],)"
         R"( ["PR", 2, 0, "auto_unroll_max_step$0"]])";
}

/*! \brief Of another sketch: a third loop is split. */
inline std::string Another() {
  return R"([["SP", 2, 0, 512, [4, 2, 8], 1], ["SP", 2, 4, 12, [3], 1], ["SP", 2, 6, 7, [7], 1]])";
}

/*! \brief Reads the steps of some programs; keeps them. */
class Read {
 public:
  explicit Read(const std::vector<std::string>& steps) {
    std::string lines;
    for (const std::string& each : steps) lines += each + "\n";
    batches_ = tlp_tvm::ansor::ParseRecords(lines, tlp_tvm::ansor::OnError::kRaise, 1,
                                            tlp_tvm::ansor::Form::kSteps);
    tlp_tvm::ansor::Place("steps", 1, &batches_);
  }
  tlp_tvm::PrimitiveSequence operator[](std::size_t i) const { return batches_[0].sequences[i]; }

 private:
  std::vector<tlp_tvm::ansor::RecordBatch> batches_;
};

inline std::string Text(const tlp_tvm::PrimitiveSequence& program) {
  std::string text;
  tlp_tvm::ansor::WriteSteps(program, &text);
  return text;
}

}  // namespace programs

#endif  // TLP_TVM_TESTS_PROGRAMS_H_
