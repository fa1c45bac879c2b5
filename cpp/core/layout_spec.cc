#include "core/layout_spec.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/error.h"

namespace tlp_tvm {
namespace {

using SpecList = SpecValue::List;
using SpecObject = SpecValue::Object;

template <typename T>
constexpr const char* kTypeName = nullptr;
template <>
constexpr const char* kTypeName<int> = "an integer";
template <>
constexpr const char* kTypeName<float> = "a finite number";
template <>
constexpr const char* kTypeName<bool> = "true or false";
template <>
constexpr const char* kTypeName<std::string> = "a string";
template <>
constexpr const char* kTypeName<SpecList> = "a list";
template <>
constexpr const char* kTypeName<SpecObject> = "an object";

/*! \return The value as T, or nothing where it is of another type or out of range. */
template <typename T>
const T* As(const SpecValue& value, T* scratch) {
  if constexpr (std::is_same_v<T, int>) {
    const std::int64_t* number = std::get_if<std::int64_t>(&value.value);
    if (number == nullptr || *number < std::numeric_limits<int>::min() ||
        *number > std::numeric_limits<int>::max()) {
      return nullptr;
    }
    return *scratch = static_cast<int>(*number), scratch;
  } else if constexpr (std::is_same_v<T, float>) {
    if (const double* number = std::get_if<double>(&value.value)) {
      const bool fits = std::fabs(*number) <= std::numeric_limits<float>::max();  // NaN does not
      return fits ? (*scratch = static_cast<float>(*number), scratch) : nullptr;
    }
    const std::int64_t* number = std::get_if<std::int64_t>(&value.value);
    return number == nullptr ? nullptr : (*scratch = static_cast<float>(*number), scratch);
  } else {
    return std::get_if<T>(&value.value);
  }
}

/*! \brief A value as T; `what` names it in the refusal. */
template <typename T>
T ValueOf(const SpecValue& value, const std::string& what) {
  T scratch{};
  if (const T* found = As<T>(value, &scratch)) return *found;
  throw LayoutError(what + " to be " + kTypeName<T> + ", found " + value.shown);
}

const SpecValue* Find(const SpecValue& spec, const std::string& key) {
  const SpecObject* members = std::get_if<SpecObject>(&spec.value);
  if (members == nullptr) return nullptr;
  for (const auto& [name, value] : *members) {
    const std::string* text = std::get_if<std::string>(&name.value);
    if (text != nullptr && *text == key) return &value;
  }
  return nullptr;
}

bool Has(const SpecValue& spec, const char* key) { return Find(spec, key) != nullptr; }

template <typename T>
T EntryOf(const SpecValue& spec, const char* key, const std::string& where) {
  const SpecValue* value = Find(spec, key);
  if (value == nullptr) {
    throw LayoutError(where + ": expected \"" + key + "\", found no such entry");
  }
  return ValueOf<T>(*value, where + ": expected \"" + key + "\"");
}

std::size_t KindOf(const Vocabulary& vocabulary, const std::string& name) {
  const int kind = vocabulary.Find(name);
  if (kind < 0) {
    throw LayoutError("layout: expected a kind of " + std::string(vocabulary.framework) +
                      ", found \"" + name + "\"");
  }
  return static_cast<std::size_t>(kind);
}

std::size_t FieldOf(const KindSpec& spec, const std::string& name) {
  for (std::size_t f = 0; f < spec.field_count; ++f) {
    if (spec.fields[f].name == name) return f;
  }
  throw LayoutError("layout: expected a field of " + std::string(spec.name) + ", found \"" + name +
                    "\"");
}

/*! \brief Refuses entries of other names: one that is misspelt would say nothing. */
void ExpectKnown(const SpecValue& spec, std::initializer_list<std::string_view> names,
                 const std::string& where) {
  for (const auto& [key, value] : ValueOf<SpecObject>(spec, where + ": expected it")) {
    const std::string* name = std::get_if<std::string>(&key.value);
    if (name == nullptr || std::find(names.begin(), names.end(), *name) == names.end()) {
      throw LayoutError(where + ": expected no other entries than those of a layout, found " +
                        key.shown);
    }
  }
}

FieldRule RuleOf(const SpecValue& spec, const std::string& where) {
  using As = FieldRule::As;
  static const std::map<std::string, As> kAs = {
      {"number", As::kNumber}, {"category", As::kCategory}, {"list", As::kList},
      {"token", As::kToken},   {"one_hot", As::kOneHot},
  };
  ExpectKnown(spec, {"as", "column", "columns", "log2", "scale", "twos", "sums"}, where);
  FieldRule rule;
  const auto name = EntryOf<std::string>(spec, "as", where);
  const auto as = kAs.find(name);
  if (as == kAs.end()) {
    throw LayoutError(where +
                      ": expected \"as\" to be number, category, list, token or one_hot, found \"" +
                      name + "\"");
  }
  rule.as = as->second;
  rule.column = EntryOf<int>(spec, "column", where);
  if (Has(spec, "columns")) rule.columns = EntryOf<int>(spec, "columns", where);
  if (Has(spec, "log2")) rule.scaling.log2 = EntryOf<bool>(spec, "log2", where);
  if (Has(spec, "scale")) rule.scaling.scale = EntryOf<float>(spec, "scale", where);
  if (Has(spec, "twos")) {
    rule.twos = EntryOf<int>(spec, "twos", where);
    if (rule.as != As::kNumber && rule.as != As::kList) {
      throw LayoutError(where + ": expected \"twos\" of a number or a list, found it of a " + name);
    }
  }
  if (Has(spec, "sums")) {
    rule.sums = EntryOf<int>(spec, "sums", where);
    if (rule.as != As::kList) {
      throw LayoutError(where + ": expected \"sums\" of a list, found it of a " + name);
    }
  }
  return rule;
}

Drop DropOf(const std::string& name) {
  if (name == "tail") return Drop::kTail;
  if (name == "head") return Drop::kHead;
  if (name == "middle") return Drop::kMiddle;
  throw LayoutError("layout: expected \"drop\" to be tail, head or middle, found \"" + name + "\"");
}

}  // namespace

std::string SpecText(const SpecValue& spec, const char* key) {
  return EntryOf<std::string>(spec, key, "layout");
}

Layout LayoutOf(const SpecValue& spec, const Vocabulary& vocabulary) {
  ExpectKnown(spec,
              {"name", "framework", "version", "numbers", "length", "width", "drop", "until",
               "omit", "kinds", "tokens", "fields"},
              "layout");
  Layout layout;
  layout.length = EntryOf<int>(spec, "length", "layout");
  layout.width = EntryOf<int>(spec, "width", "layout");
  layout.drop = DropOf(EntryOf<std::string>(spec, "drop", "layout"));
  if (Has(spec, "until")) {
    layout.until =
        static_cast<int>(KindOf(vocabulary, EntryOf<std::string>(spec, "until", "layout")));
  }
  if (Has(spec, "omit")) {
    layout.omitted.assign(vocabulary.kind_count, false);
    for (const SpecValue& item : EntryOf<SpecList>(spec, "omit", "layout")) {
      layout.omitted[KindOf(vocabulary, ValueOf<std::string>(item, "layout: expected a kind"))] =
          true;
    }
  }
  layout.one_hot.assign(vocabulary.kind_count, -1);
  for (const SpecValue& item : EntryOf<SpecList>(spec, "kinds", "layout")) {
    const auto name = ValueOf<std::string>(item, "layout: expected a kind");
    int& column = layout.one_hot[KindOf(vocabulary, name)];
    if (column >= 0) {
      throw LayoutError("layout: expected each kind once, found " + name + " twice");
    }
    column = layout.one_hot_width++;
  }
  layout.tokens.resize(vocabulary.kind_count);
  layout.rules.resize(vocabulary.kind_count);
  for (std::size_t kind = 0; kind < vocabulary.kind_count; ++kind) {
    layout.tokens[kind].resize(vocabulary.kinds[kind].field_count);
    layout.rules[kind].resize(vocabulary.kinds[kind].field_count);
  }
  for (const auto& [field, table] : EntryOf<SpecObject>(spec, "tokens", "layout")) {
    const auto path = ValueOf<std::string>(field, "layout: expected the field of a token");
    const std::size_t dot = path.find('.');
    const std::size_t kind = KindOf(vocabulary, path.substr(0, dot));
    const std::size_t f = FieldOf(vocabulary.kinds[kind], path.substr(dot + 1));
    const std::string what = "layout: expected the tokens of " + path;
    for (const auto& [name, value] : ValueOf<SpecObject>(table, what)) {
      layout.tokens[kind][f][ValueOf<std::string>(name, what)] = ValueOf<float>(value, what);
    }
  }
  layout.flat = !Has(spec, "fields");
  if (layout.flat) return layout;
  for (const auto& [kind_name, fields] : EntryOf<SpecObject>(spec, "fields", "layout")) {
    const auto kind_text = ValueOf<std::string>(kind_name, "layout: expected a kind");
    const std::size_t kind = KindOf(vocabulary, kind_text);
    const std::string what = "layout: expected the fields of " + kind_text;
    for (const auto& [field_name, rule] : ValueOf<SpecObject>(fields, what)) {
      const auto field_text = ValueOf<std::string>(field_name, what);
      const std::size_t f = FieldOf(vocabulary.kinds[kind], field_text);
      const std::string path = kind_text + "." + field_text;
      ValueOf<SpecObject>(rule, "layout: expected the rule of " + path);
      layout.rules[kind][f] = RuleOf(rule, "layout: " + path);
    }
  }
  return layout;
}

}  // namespace tlp_tvm
