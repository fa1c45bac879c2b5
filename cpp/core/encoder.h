/*!
 * \file core/encoder.h
 * \brief PrimitiveSequence -> (L, E) float32, by a layout.
 */
#ifndef TLP_TVM_CORE_ENCODER_H_
#define TLP_TVM_CORE_ENCODER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/primitive.h"

namespace tlp_tvm {

/*! \brief What a layout could not show of the programs it encoded. Sums over programs. */
struct EncodingReport {
  std::int64_t sequences = 0;
  std::int64_t cut_sequences = 0;  ///< programs that lost rows
  std::int64_t cut_rows = 0;
  std::int64_t cut_columns = 0;  ///< values that did not fit the width or their list
  std::map<std::uint32_t, std::int64_t> unknown_kinds;
  std::map<std::pair<std::string, std::string>, std::int64_t> unknown_tokens;  ///< (field, name)

  void Add(const EncodingReport& other);
};

/*! \brief Sums over the rows so far of a run: one after the other, of one kind, with lists as long. */
struct TileRun {
  std::uint32_t kind = 0;
  std::int64_t size = -1;  ///< of the lists; -1: no run
  std::array<float, kMostSums> sums{};
};

/*! \brief Encodes programs by one layout. Stateless: any number of threads may share it. */
class Encoder {
 public:
  /*! \throws LayoutError where the layout contradicts itself. */
  Encoder(Layout layout, const Vocabulary& vocabulary);

  const Layout& layout() const { return layout_; }
  const Vocabulary& vocabulary() const { return vocabulary_; }

  /*! \return How many rows the program has before any are cut. */
  std::size_t ShownRows(const PrimitiveSequence& sequence) const;
  /*! \brief Writes all L * E numbers of `out`; rows past the program are zero. */
  void Encode(const PrimitiveSequence& sequence, float* out, EncodingReport* report) const;
  /*! \brief Writes the rows of the program alone. \return How many: at most L. */
  std::size_t EncodeRows(const PrimitiveSequence& sequence, float* out,
                         EncodingReport* report) const;

 private:
  void FlatRow(const Primitive& primitive, const PrimitiveSequence& sequence, float* row,
               EncodingReport* report) const;
  void AlignedRow(const Primitive& primitive, const PrimitiveSequence& sequence, float* row,
                  TileRun* run, EncodingReport* report) const;
  const float* Token(std::uint32_t kind, std::size_t field, std::string_view name,
                     EncodingReport* report) const;

  struct TokenEntry {
    std::string name;
    float value;
  };
  Layout layout_;
  const Vocabulary& vocabulary_;
  /*! \brief kind -> field -> names; a handful each, so a scan beats a hash. */
  std::vector<std::vector<std::vector<TokenEntry>>> tokens_;
};

}  // namespace tlp_tvm

#endif  // TLP_TVM_CORE_ENCODER_H_
