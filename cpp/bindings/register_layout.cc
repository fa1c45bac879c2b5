#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "ansor/steps.h"
#include "bindings/bindings.h"
#include "core/error.h"
#include "core/layout_spec.h"
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

SpecValue SpecOf(const py::handle& object) {
  SpecValue spec;
  spec.shown = py::repr(object).cast<std::string>();
  if (py::isinstance<py::bool_>(object)) {
    spec.value = object.cast<bool>();
  } else if (py::isinstance<py::dict>(object)) {
    SpecValue::Object members;
    for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(object)) {
      members.emplace_back(SpecOf(key), SpecOf(value));
    }
    spec.value = std::move(members);
  } else if (py::isinstance<py::list>(object)) {
    SpecValue::List items;
    for (const py::handle item : py::reinterpret_borrow<py::list>(object)) {
      items.push_back(SpecOf(item));
    }
    spec.value = std::move(items);
  } else if (py::isinstance<py::float_>(object)) {
    spec.value = object.cast<double>();
  } else {
    try {
      if (py::isinstance<py::str>(object)) {
        spec.value = object.cast<std::string>();  // unless half a surrogate is in it
      } else {
        spec.value = object.cast<std::int64_t>();
      }
    } catch (const py::cast_error&) {
      // Nothing that a description may hold; whoever looks at it says so.
    }
  }
  return spec;
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
             const SpecValue value = SpecOf(spec);
             const Vocabulary& vocabulary = VocabularyOf(SpecText(value, "framework"));
             return std::make_unique<Encoder>(LayoutOf(value, vocabulary), vocabulary);
           }),
           py::arg("spec"))
      .def_property_readonly("length", [](const Encoder& e) { return e.layout().length; })
      .def_property_readonly("width", [](const Encoder& e) { return e.layout().width; });
}

}  // namespace bindings
}  // namespace tlp_tvm
