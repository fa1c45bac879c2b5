/*!
 * \file layouts.h
 * \brief Small layouts over Ansor's vocabulary for the tests of the core.
 */
#ifndef TLP_TVM_TESTS_LAYOUTS_H_
#define TLP_TVM_TESTS_LAYOUTS_H_

#include "ansor/steps.h"
#include "core/layout.h"

namespace layouts {

inline std::size_t KindOf(const char* name) {
  return static_cast<std::size_t>(tlp_tvm::ansor::kVocabulary.Find(name));
}

/*! \brief A flat layout that knows SP and CHW; "local" is 1. */
inline tlp_tvm::Layout Flat(int length, int width) {
  const tlp_tvm::Vocabulary& vocabulary = tlp_tvm::ansor::kVocabulary;
  tlp_tvm::Layout layout;
  layout.length = length;
  layout.width = width;
  layout.one_hot.assign(vocabulary.kind_count, -1);
  layout.one_hot[KindOf("SP")] = 0;
  layout.one_hot[KindOf("CHW")] = 1;
  layout.one_hot_width = 2;
  for (std::size_t kind = 0; kind < vocabulary.kind_count; ++kind) {
    layout.rules.emplace_back(vocabulary.kinds[kind].field_count);
    layout.tokens.emplace_back(vocabulary.kinds[kind].field_count);
  }
  layout.tokens[KindOf("CHW")][1] = {{"local", 1.0f}};
  return layout;
}

/*! \brief An aligned layout: SP extent (log2) at 2, two lengths at 3, AN annotation one-hot at 5.
 */
inline tlp_tvm::Layout Aligned(int length) {
  using As = tlp_tvm::FieldRule::As;
  tlp_tvm::Layout layout = Flat(length, 8);
  layout.flat = false;
  layout.rules[KindOf("SP")][2] = {As::kNumber, 2, 1, {true, 0.5f}};
  layout.rules[KindOf("SP")][3] = {As::kList, 3, 2, {false, 1.0f}};
  layout.rules[KindOf("AN")][2] = {As::kCategory, 5, 3, {}};
  layout.rules[KindOf("CHW")][1] = {As::kToken, 2, 1, {false, 0.25f}};
  return layout;
}

}  // namespace layouts

#endif  // TLP_TVM_TESTS_LAYOUTS_H_
