/*!
 * \file core/layout_spec.h
 * \brief The description of a layout, as its JSON has it -> Layout.
 *
 *   framework  whose programs
 *   length     rows L                      width  columns E
 *   drop       "tail", "head" or "middle": which rows go when there are more than L
 *   until      a kind at which encoding ends; may be missing
 *   omit       kinds without a row; may be missing
 *   kinds      in the order of the one-hot
 *   tokens     {"KIND.field": {name: number}}
 *   fields     {"KIND": {"field": RULE}}; missing in a flat layout
 *   RULE       {"as": "number" | "category" | "list" | "token" | "one_hot", "column": 3,
 *              "columns": 4, "log2": true, "scale": 0.5}, all but the first two may be missing
 *
 *   name, version, numbers  what it is called and for whom; passed over here
 *
 * Refused, with the entry, what was expected and what was found: a missing entry, another type, a
 * kind or field that the framework lacks, a number that is not finite, and every other entry: one
 * that is misspelt would say nothing.
 */
#ifndef TLP_TVM_CORE_LAYOUT_SPEC_H_
#define TLP_TVM_CORE_LAYOUT_SPEC_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/layout.h"
#include "core/primitive.h"

namespace tlp_tvm {

/*! \brief A value of a description: what JSON has, and how messages show it. */
struct SpecValue {
  using List = std::vector<SpecValue>;
  using Object = std::vector<std::pair<SpecValue, SpecValue>>;

  /*! \brief Nothing that a description may hold, where it is std::monostate. */
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Object> value;
  std::string shown;
};

/*! \brief The text of an entry of a description.
 *  \throws LayoutError that names the entry. */
std::string SpecText(const SpecValue& spec, const char* key);

/*!
 * \brief Reads a description.
 * \throws LayoutError that says where, expected and found.
 */
Layout LayoutOf(const SpecValue& spec, const Vocabulary& vocabulary);

}  // namespace tlp_tvm

#endif  // TLP_TVM_CORE_LAYOUT_SPEC_H_
