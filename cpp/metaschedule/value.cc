#include "metaschedule/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace tlp_tvm {
namespace metaschedule {
namespace {

constexpr double kMostExact = 9007199254740992.0;  // 2^53

constexpr std::size_t kShownText = 40;

void WriteReference(std::int64_t number, const std::vector<char>& letters, std::string* out) {
  *out += '"';
  *out += letters.at(static_cast<std::size_t>(number));
  WriteInteger(number, out);
  *out += '"';
}

}  // namespace

Value Real(double real) {
  if (std::fabs(real) < kMostExact && std::floor(real) == real) {
    return Integer(static_cast<std::int64_t>(real));
  }
  return {ValueForm::kReal, 0, 0, real, {}};
}

std::string Found(const Value& value) {
  switch (value.form) {
    case ValueForm::kNothing:
      return "none";
    case ValueForm::kInteger:
      return std::to_string(value.number);
    case ValueForm::kReal:
      return std::to_string(value.real);
    case ValueForm::kText:
      return "\"" + std::string(value.text.substr(0, kShownText)) + "\"";
    case ValueForm::kReference:
      return "random variable " + std::to_string(value.number);
    case ValueForm::kGraph:
      return "an object";
    case ValueForm::kList:
      return "a list of " + std::to_string(value.number);
    case ValueForm::kMapping:
      return "a mapping";
  }
  return "another value";
}

void WriteText(std::string_view text, std::string* out) {
  static constexpr char kHex[] = "0123456789abcdef";
  *out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      *out += '\\';
      *out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      *out += "\\u00";
      *out += kHex[static_cast<unsigned char>(c) >> 4];
      *out += kHex[static_cast<unsigned char>(c) & 0xf];
    } else {
      *out += c;
    }
  }
  *out += '"';
}

void WriteInteger(std::int64_t number, std::string* out) {
  char text[24];
  out->append(text, std::to_chars(text, text + sizeof(text), number).ptr);
}

void WriteReal(double real, std::string* out) {
  char text[32];
  out->append(text, std::to_chars(text, text + sizeof(text), real).ptr);
}

void WriteValues(Values values, bool quoted, const std::vector<char>& letters, std::string* out) {
  for (bool first = true; !values.empty(); values = values.Rest(), first = false) {
    if (!first) *out += ',';
    const Value& value = values.front();
    switch (value.form) {
      case ValueForm::kNothing:
        *out += quoted ? "\"None\"" : "null";
        break;
      case ValueForm::kInteger:
        WriteInteger(value.number, out);
        break;
      case ValueForm::kReal:
        WriteReal(value.real, out);
        break;
      case ValueForm::kText:
        WriteText(quoted ? "\"" + std::string(value.text) + "\"" : std::string(value.text), out);
        break;
      case ValueForm::kReference:
        WriteReference(value.number, letters, out);
        break;
      case ValueForm::kGraph:
        WriteText(value.text, out);
        break;
      case ValueForm::kList:
        *out += '[';
        WriteValues(values.Inside(), quoted, letters, out);
        *out += ']';
        break;
      case ValueForm::kMapping: {
        *out += '{';
        bool first_pair = true;
        for (Values pairs = values.Inside(); !pairs.empty(); first_pair = false) {
          if (!first_pair) *out += ',';
          WriteText(pairs.front().text, out);
          *out += ':';
          const Values item = pairs.Rest();
          pairs = item.Rest();
          const Value* const begin = &item.front();
          WriteValues({begin, begin + 1 + begin->inside}, false, letters, out);
        }
        *out += '}';
        break;
      }
    }
  }
}

void SortMapping(std::size_t at, std::vector<Value>* values) {
  std::vector<std::vector<Value>> pairs;
  const Value* const mapping = values->data() + at;
  for (Values rest(mapping + 1, mapping + 1 + mapping->inside); !rest.empty();) {
    const Values item = rest.Rest();
    pairs.emplace_back(&rest.front(), &item.front() + 1 + item.front().inside);
    rest = item.Rest();
  }
  std::sort(pairs.begin(), pairs.end(),
            [](const auto& a, const auto& b) { return a.front().text < b.front().text; });
  values->resize(at + 1);
  for (const std::vector<Value>& pair : pairs) {
    values->insert(values->end(), pair.begin(), pair.end());
  }
}

std::string PlainGraph(std::string_view graph) {
  std::string plain;
  plain.reserve(graph.size());
  bool in_text = false;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const char c = graph[i];
    if (in_text) {
      plain += c;
      if (c == '\\' && i + 1 < graph.size()) plain += graph[++i];
      if (c == '"') in_text = false;
    } else if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
      plain += c;
      in_text = c == '"';
    }
  }
  // TVM writes it last: the version of the writer.
  const std::size_t metadata = plain.rfind(",\"metadata\":{");
  if (metadata != std::string::npos && plain.size() >= 2 &&
      plain.compare(plain.size() - 2, 2, "}}") == 0 &&
      plain.find('}', metadata) == plain.size() - 2) {
    plain.replace(metadata, std::string::npos, "}");
  }
  return plain;
}

}  // namespace metaschedule
}  // namespace tlp_tvm
