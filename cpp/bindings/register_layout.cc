#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "ansor/steps.h"
#include "bindings/bindings.h"
#include "core/error.h"
#include "metaschedule/kinds.h"

namespace py = pybind11;

namespace tlp_tvm {
namespace bindings {
namespace {

const Vocabulary& VocabularyOf(const std::string& framework) {
  if (framework == ansor::kVocabulary.framework) return ansor::kVocabulary;
  const Vocabulary& traces = metaschedule::TraceVocabulary();
  if (framework == traces.framework) return traces;
  throw LayoutError(
      "layout: expected a framework that this version knows (ansor, metaschedule), found \"" +
      framework + "\"");
}

/*! \brief The entry of a mapping, or a sentence that says which one is missing. */
py::object Entry(const py::dict& mapping, const char* key, const std::string& where) {
  if (!mapping.contains(key)) {
    throw LayoutError(where + ": expected \"" + key + "\", found no such entry");
  }
  return mapping[key];
}

template <typename T>
constexpr const char* kTypeName = nullptr;
template <>
constexpr const char* kTypeName<int> = "an integer";
template <>
constexpr const char* kTypeName<float> = "a number";
template <>
constexpr const char* kTypeName<bool> = "true or false";
template <>
constexpr const char* kTypeName<std::string> = "a string";
template <>
constexpr const char* kTypeName<py::list> = "a list";
template <>
constexpr const char* kTypeName<py::dict> = "an object";

/*! \brief A value as T and nothing that could be made into one; `what` names it in the refusal. */
template <typename T>
T ValueOf(const py::handle& value, const std::string& what) {
  if constexpr (std::is_base_of_v<py::object, T>) {
    if (py::isinstance<T>(value)) return py::reinterpret_borrow<T>(value);
  } else {
    try {
      return value.cast<T>();
    } catch (const py::cast_error&) {
      // The sentence below says it better.
    }
  }
  throw LayoutError(what + " to be " + kTypeName<T> + ", found " +
                    py::repr(value).cast<std::string>());
}

template <typename T>
T EntryOf(const py::dict& mapping, const char* key, const std::string& where) {
  return ValueOf<T>(Entry(mapping, key, where), where + ": expected \"" + key + "\"");
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

FieldRule RuleOf(const py::dict& spec, const std::string& where) {
  using As = FieldRule::As;
  static const std::map<std::string, As> kAs = {
      {"number", As::kNumber}, {"category", As::kCategory}, {"list", As::kList},
      {"token", As::kToken},   {"one_hot", As::kOneHot},
  };
  FieldRule rule;
  const auto as = kAs.find(EntryOf<std::string>(spec, "as", where));
  if (as == kAs.end()) {
    throw LayoutError(where + ": expected \"as\" to be number, category, list, token or one_hot");
  }
  rule.as = as->second;
  rule.column = EntryOf<int>(spec, "column", where);
  if (spec.contains("columns")) rule.columns = EntryOf<int>(spec, "columns", where);
  if (spec.contains("log2")) rule.scaling.log2 = EntryOf<bool>(spec, "log2", where);
  if (spec.contains("scale")) rule.scaling.scale = EntryOf<float>(spec, "scale", where);
  return rule;
}

Drop DropOf(const std::string& name) {
  if (name == "tail") return Drop::kTail;
  if (name == "head") return Drop::kHead;
  if (name == "middle") return Drop::kMiddle;
  throw LayoutError("layout: expected \"drop\" to be tail, head or middle, found \"" + name + "\"");
}

/*! \brief Reads the dictionary form of a layout; features.py describes it. */
Layout LayoutOf(const py::dict& spec, const Vocabulary& vocabulary) {
  Layout layout;
  layout.length = EntryOf<int>(spec, "length", "layout");
  layout.width = EntryOf<int>(spec, "width", "layout");
  layout.drop = DropOf(EntryOf<std::string>(spec, "drop", "layout"));
  if (spec.contains("until")) {
    layout.until =
        static_cast<int>(KindOf(vocabulary, EntryOf<std::string>(spec, "until", "layout")));
  }
  if (spec.contains("omit")) {
    layout.omitted.assign(vocabulary.kind_count, false);
    for (const auto& item : EntryOf<py::list>(spec, "omit", "layout")) {
      layout.omitted[KindOf(vocabulary, ValueOf<std::string>(item, "layout: expected a kind"))] =
          true;
    }
  }
  layout.one_hot.assign(vocabulary.kind_count, -1);
  for (const auto& item : EntryOf<py::list>(spec, "kinds", "layout")) {
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
  for (const auto& [field, table] : EntryOf<py::dict>(spec, "tokens", "layout")) {
    const auto path = ValueOf<std::string>(field, "layout: expected the field of a token");
    const std::size_t dot = path.find('.');
    const std::size_t kind = KindOf(vocabulary, path.substr(0, dot));
    const std::size_t f = FieldOf(vocabulary.kinds[kind], path.substr(dot + 1));
    const std::string what = "layout: expected the tokens of " + path;
    for (const auto& [name, value] : ValueOf<py::dict>(table, what)) {
      layout.tokens[kind][f][ValueOf<std::string>(name, what)] = ValueOf<float>(value, what);
    }
  }
  layout.flat = !spec.contains("fields");
  if (layout.flat) return layout;
  for (const auto& [kind_name, fields] : EntryOf<py::dict>(spec, "fields", "layout")) {
    const auto kind_text = ValueOf<std::string>(kind_name, "layout: expected a kind");
    const std::size_t kind = KindOf(vocabulary, kind_text);
    const std::string what = "layout: expected the fields of " + kind_text;
    for (const auto& [field_name, rule] : ValueOf<py::dict>(fields, what)) {
      const auto field_text = ValueOf<std::string>(field_name, what);
      const std::size_t f = FieldOf(vocabulary.kinds[kind], field_text);
      const std::string path = kind_text + "." + field_text;
      layout.rules[kind][f] = RuleOf(
          ValueOf<py::dict>(rule, "layout: expected the rule of " + path), "layout: " + path);
    }
  }
  return layout;
}

py::tuple KindsOf(const std::string& framework) {
  static const char* const kTypes[] = {"int32", "int64", "flag", "name", "list"};
  py::list kinds;
  const Vocabulary& vocabulary = VocabularyOf(framework);
  for (std::size_t kind = 0; kind < vocabulary.kind_count; ++kind) {
    py::list fields;
    for (std::size_t f = 0; f < vocabulary.kinds[kind].field_count; ++f) {
      const FieldSpec& field = vocabulary.kinds[kind].fields[f];
      fields.append(py::make_tuple(field.name, kTypes[static_cast<std::size_t>(field.type)]));
    }
    kinds.append(py::make_tuple(vocabulary.kinds[kind].name, py::tuple(fields)));
  }
  return py::tuple(kinds);
}

}  // namespace

py::list StepsOf(const PrimitiveSequence& sequence, const Vocabulary& vocabulary) {
  py::list steps;
  for (std::size_t i = 0; i < sequence.size; ++i) {
    const KindSpec& spec = vocabulary.kinds[sequence.primitives[i].kind];
    const std::int64_t* value = sequence.ValuesOf(i);
    py::list step;
    step.append(spec.name);
    for (std::size_t f = 0; f < spec.field_count; ++f) {
      if (spec.fields[f].type == FieldType::kName) {
        step.append(sequence.Name(*value++));
      } else if (spec.fields[f].type == FieldType::kList) {
        py::list items;
        const std::int64_t* const end = value + 1 + *value;
        for (++value; value != end; ++value) items.append(*value);
        step.append(std::move(items));
      } else {
        step.append(*value++);
      }
    }
    steps.append(std::move(step));
  }
  return steps;
}

py::dict ReportOf(const EncodingReport& report, const Vocabulary& vocabulary) {
  py::dict kinds;
  for (const auto& [kind, count] : report.unknown_kinds) {
    kinds[py::str(vocabulary.kinds[kind].name.data(), vocabulary.kinds[kind].name.size())] = count;
  }
  py::dict tokens;
  for (const auto& [token, count] : report.unknown_tokens) {
    tokens[py::str(token.first + "=" + token.second)] = count;
  }
  py::dict result;
  result["sequences"] = report.sequences;
  result["cut_sequences"] = report.cut_sequences;
  result["cut_rows"] = report.cut_rows;
  result["cut_columns"] = report.cut_columns;
  result["unknown_kinds"] = kinds;
  result["unknown_tokens"] = tokens;
  return result;
}

void RequireFramework(const Encoder& encoder, const Vocabulary& programs) {
  const std::string_view framework = encoder.vocabulary().framework;
  if (framework == programs.framework) return;
  throw LayoutError("layout: expected one for programs of " + std::string(programs.framework) +
                    ", found one for " + std::string(framework) +
                    "; choose a layout of that framework");
}

float* EmbeddingOf(Embedding& out, std::size_t count, const Encoder& encoder,
                   const Vocabulary& programs) {
  RequireFramework(encoder, programs);
  const Layout& layout = encoder.layout();
  const auto is = [&](int axis, std::size_t size) {
    return out.shape(axis) == static_cast<py::ssize_t>(size);
  };
  if (out.ndim() != 3 || !is(0, count) || !is(1, static_cast<std::size_t>(layout.length)) ||
      !is(2, static_cast<std::size_t>(layout.width))) {
    throw std::invalid_argument("out: expected a float32 array of shape (" + std::to_string(count) +
                                ", " + std::to_string(layout.length) + ", " +
                                std::to_string(layout.width) + "), found another shape");
  }
  return out.mutable_data();  // throws for a read-only array
}

void RegisterLayout(py::module_& module) {
  module.def("kinds_of", &KindsOf, py::arg("framework"),
             "Names of a framework's primitive kinds, each with its fields and their types.");
  py::class_<Encoder>(module, "Encoder", "Encodes programs by one layout.")
      .def(py::init([](const py::dict& spec) {
             const Vocabulary& vocabulary =
                 VocabularyOf(EntryOf<std::string>(spec, "framework", "layout"));
             return std::make_unique<Encoder>(LayoutOf(spec, vocabulary), vocabulary);
           }),
           py::arg("spec"))
      .def_property_readonly("length", [](const Encoder& e) { return e.layout().length; })
      .def_property_readonly("width", [](const Encoder& e) { return e.layout().width; });
}

}  // namespace bindings
}  // namespace tlp_tvm
