/*!
 * \file core/layout.h
 * \brief Which column of a row means what: the contract between the encoder and a model.
 */
#ifndef TLP_TVM_CORE_LAYOUT_H_
#define TLP_TVM_CORE_LAYOUT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/primitive.h"

namespace tlp_tvm {

/*! \brief Which rows go when a program has more primitives than the layout has rows. */
enum class Drop { kTail, kHead, kMiddle };

/*! \brief How a number becomes a column: value * scale, or sign * log2(1 + |value|) * scale. */
struct Scaling {
  bool log2 = false;
  float scale = 1.0f;
};

constexpr int kMostSums = 8;  ///< columns of a list whose log2 are summed, at most

/*! \brief Where a field of a kind goes in an aligned layout. */
struct FieldRule {
  enum class As {
    kSkip,      ///< the field is not encoded
    kNumber,    ///< one column, scaled
    kCategory,  ///< a one-hot of `columns` columns
    kList,      ///< up to `columns` columns, scaled; the rest of the list is cut and counted
    kToken,     ///< a name as the number its token stands for, scaled
    kOneHot,    ///< a name as a one-hot of `columns` columns, its token the position
  };
  As as = As::kSkip;
  int column = 0;
  int columns = 1;
  Scaling scaling;
  /*! \brief First of as many columns for how often two divides each number. */
  std::optional<int> twos = std::nullopt;
  /*! \brief First of as many columns for a list's log2, summed over a run of rows with lists as long. */
  std::optional<int> sums = std::nullopt;
};

/*! \brief Token values of the names of one field; a name that is not here is counted as unknown. */
using TokenTable = std::unordered_map<std::string, float>;

/*!
 * \brief The shape of an embedding and the meaning of its columns.
 *
 * A flat layout (the published one) writes the one-hot and then every field in order, lists
 * spilled in place, numbers raw, cut at the width. An aligned layout gives every field its columns.
 */
struct Layout {
  int length = 0;  ///< rows L
  int width = 0;   ///< columns E
  bool flat = true;
  Drop drop = Drop::kTail;
  int until = -1;  ///< the kind at which encoding ends: it and what follows are not shown; -1: none
  std::vector<bool> omitted;  ///< kinds without a row; empty: every kind has one
  int one_hot_width = 0;
  std::vector<int> one_hot;                     ///< kind -> column, -1 where the layout lacks it
  std::vector<std::vector<FieldRule>> rules;    ///< kind -> field -> rule; aligned layouts only
  std::vector<std::vector<TokenTable>> tokens;  ///< kind -> field -> table

  std::size_t size() const { return static_cast<std::size_t>(length) * width; }

  /*!
   * \brief Refuses a layout that would write outside its rows.
   * \throws LayoutError that names the kind and field at fault.
   */
  void Check(const Vocabulary& vocabulary) const;
};

}  // namespace tlp_tvm

#endif  // TLP_TVM_CORE_LAYOUT_H_
