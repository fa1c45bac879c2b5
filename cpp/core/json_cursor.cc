#include "core/json_cursor.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace tlp_tvm {
namespace {

constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxFound = 40;

bool IsDigit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/*! \brief Bytes that a plain scan of a string stops at: quote, escape, control and non-ASCII. */
constexpr std::array<bool, 256> kStopsString = [] {
  std::array<bool, 256> stops{};
  for (std::size_t c = 0; c < 256; ++c) stops[c] = c < 0x20 || c >= 0x80 || c == '"' || c == '\\';
  return stops;
}();

const char* PlainEnd(const char* at) {
  while (!kStopsString[static_cast<unsigned char>(*at)]) ++at;
  return at;
}

void AppendUtf8(std::uint32_t point, std::string* out) {
  const auto put = [out](std::uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xc0 | point >> 6);
    put(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    put(0xe0 | point >> 12);
    put(0x80 | (point >> 6 & 0x3f));
    put(0x80 | (point & 0x3f));
  } else {
    put(0xf0 | point >> 18);
    put(0x80 | (point >> 12 & 0x3f));
    put(0x80 | (point >> 6 & 0x3f));
    put(0x80 | (point & 0x3f));
  }
}

/*!
 * \brief A number whose digits and power of ten are both exact as doubles: so their product or
 * quotient, rounded once, is the nearest double (Clinger, PLDI 1990).
 * \return Whether the number is one of those; its grammar has been checked.
 */
bool ShortNumber(const char* at, const char* stop, double* value) {
  static constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  constexpr std::ptrdiff_t kMaxSize = 20;  // leaves the digits below 2^64
  if (stop - at > kMaxSize) return false;
  const bool negative = *at == '-';
  at += negative;
  std::uint64_t digits = 0;
  int power = 0;
  for (; IsDigit(*at); ++at) digits = digits * 10 + static_cast<std::uint64_t>(*at - '0');
  if (*at == '.') {
    for (++at; IsDigit(*at); ++at, --power) {
      digits = digits * 10 + static_cast<std::uint64_t>(*at - '0');
    }
  }
  if (at != stop) {  // the exponent
    const bool is_small = *++at == '-';
    at += *at == '-' || *at == '+';
    int exponent = 0;
    for (; at != stop && exponent < 1000; ++at) exponent = exponent * 10 + (*at - '0');
    power += is_small ? -exponent : exponent;
  }
  if (digits > std::uint64_t{1} << 53 || power < -22 || power > 22) return false;
  const auto exact = static_cast<double>(digits);
  *value = power < 0 ? exact / kPowers[-power] : exact * kPowers[power];
  if (negative) *value = -*value;
  return true;
}

}  // namespace

std::string JsonCursor::Found() const {
  const char* at = at_;
  while (*at == ' ' || *at == '\t' || *at == '\r') ++at;
  if (*at == '\n') return "the end of the line";
  if (*at == '[') return "a list";
  if (*at == '{') return "an object";
  const char* stop = at + 1;
  if (*at == '"') {
    while (*stop != '\n' && *stop != '"') stop += (*stop == '\\' && stop[1] != '\n') ? 2 : 1;
    if (*stop == '"') ++stop;
  } else {
    while (std::strchr("\n \t\r,:]}[{\"", *stop) == nullptr) ++stop;
  }
  std::string found;
  for (const char* c = at; c != stop; ++c) {
    if (found.size() >= kMaxFound) return found + "...";
    if (static_cast<unsigned char>(*c) < 0x20 || static_cast<unsigned char>(*c) >= 0x7f) {
      static const char* const kHex = "0123456789abcdef";
      found += "\\x";
      found += kHex[static_cast<unsigned char>(*c) >> 4];
      found += kHex[*c & 0xf];
    } else {
      found += *c;
    }
  }
  return found;
}

void JsonCursor::Fail(const char* reason, const std::string& expected) const {
  const std::string found = Found();
  const bool truncated = found == "the end of the line";
  throw JsonFault(truncated ? reason::kTruncated : reason,
                  "expected " + expected + ", found " + found);
}

void JsonCursor::FailType(const char* what, const char* type) const {
  Fail(reason::kType, std::string(what) + " to be " + type);
}

void JsonCursor::FailSyntax(const char* expected) const { Fail(reason::kSyntax, expected); }

void JsonCursor::FailField(const char* what) const {
  if (*at_ != ']') FailSyntax("',' or ']'");
  throw JsonFault(reason::kMissing,
                  std::string("expected ") + what + ", found the list ends before it");
}

void JsonCursor::FailClose(const char* what) const {
  if (*at_ != ',') FailSyntax("',' or ']'");
  throw JsonFault(reason::kExtra,
                  std::string("expected ") + what + " to end, found one more field");
}

void JsonCursor::ExpectEnd() {
  SkipSpace();
  if (!AtEnd()) Fail(reason::kSyntax, "the end of the line");
}

std::int64_t JsonCursor::AnyInteger(const char* what, std::int64_t min, std::int64_t max) {
  const char* at = at_;
  const bool negative = *at == '-';
  at += negative;
  if (!IsDigit(*at) || (*at == '0' && IsDigit(at[1]))) FailType(what, "an integer");
  std::uint64_t magnitude = 0;
  const char* const digits = at;
  do {
    magnitude = magnitude * 10 + static_cast<std::uint64_t>(*at++ - '0');
  } while (IsDigit(*at));
  if (*at == '.' || *at == 'e' || *at == 'E') FailType(what, "an integer");
  // 18 digits always fit; more are rare enough to count again with care.
  auto value = static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
  if (at - digits > 18 && std::from_chars(at_, at, value).ec != std::errc()) {
    Fail(reason::kRange, std::string(what) + " to fit 64 bits");
  }
  if (value < min || value > max) {
    Fail(reason::kRange, std::string(what) + " to be between " + std::to_string(min) + " and " +
                             std::to_string(max));
  }
  at_ = at;
  return value;
}

const char* JsonCursor::EndOfNumber(const char* at) const {
  at += *at == '-';
  if (!IsDigit(*at) || (*at == '0' && IsDigit(at[1]))) return nullptr;
  while (IsDigit(*at)) ++at;
  if (*at == '.') {
    if (!IsDigit(*++at)) return nullptr;
    while (IsDigit(*at)) ++at;
  }
  if (*at == 'e' || *at == 'E') {
    ++at;
    at += *at == '-' || *at == '+';
    if (!IsDigit(*at)) return nullptr;
    while (IsDigit(*at)) ++at;
  }
  return at;
}

double JsonCursor::Number(const char* what) {
  SkipSpace();
  const char* const stop = EndOfNumber(at_);
  if (stop == nullptr) FailType(what, "a number");
  double value = 0.0;
  if (!ShortNumber(at_, stop, &value)) {
    if (std::from_chars(at_, stop, value).ec == std::errc::result_out_of_range) {
      value = std::strtod(std::string(at_, stop).c_str(), nullptr);  // tells 0 from infinity
    }
    if (!std::isfinite(value)) Fail(reason::kRange, std::string(what) + " to be a finite number");
  }
  at_ = stop;
  return value;
}

std::string_view JsonCursor::String(const char* what, std::string* scratch) {
  SkipSpace();
  if (*at_ != '"') FailType(what, "a string");
  const char* const begin = at_ + 1;
  const char* const stop = PlainEnd(begin);
  if (*stop != '"') return EscapedString(begin, scratch);
  at_ = stop + 1;
  return {begin, static_cast<std::size_t>(stop - begin)};
}

std::string_view JsonCursor::EscapedString(const char* begin, std::string* scratch) {
  scratch->clear();
  at_ = begin;
  while (true) {
    const char* const stop = PlainEnd(at_);
    scratch->append(at_, stop);
    at_ = stop;
    if (*stop == '"') break;
    if (*stop == '\\') {
      AppendEscape(scratch);
    } else if (static_cast<unsigned char>(*stop) >= 0x80) {
      at_ = EndOfUtf8(stop);
      if (at_ == nullptr) {
        at_ = stop;
        FailSyntax("a string in UTF-8");
      }
      scratch->append(stop, at_);
    } else {
      FailSyntax("the end of a string");
    }
  }
  ++at_;
  return *scratch;
}

std::uint32_t JsonCursor::HexUnit() {
  std::uint32_t unit = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const char c = *at_;
    std::uint32_t digit = 0;
    if (IsDigit(c)) {
      digit = static_cast<std::uint32_t>(c - '0');
    } else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) {
      digit = static_cast<std::uint32_t>((c | 0x20) - 'a' + 10);
    } else {
      FailSyntax("four hexadecimal digits");
    }
    unit = unit << 4 | digit;
  }
  return unit;
}

void JsonCursor::AppendEscape(std::string* scratch) {
  static constexpr char kEscapes[] = "\"\\/bfnrt";
  static constexpr char kMeanings[] = "\"\\/\b\f\n\r\t";
  const char c = at_[1];
  if (c == 'u') {
    const char* const begin = at_;
    at_ += 2;
    std::uint32_t point = HexUnit();
    bool paired = true;
    if (point >= 0xd800 && point < 0xdc00) {
      paired = at_[0] == '\\' && at_[1] == 'u';
      if (paired) {
        at_ += 2;
        const std::uint32_t low = HexUnit();
        paired = low >= 0xdc00 && low < 0xe000;
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
      }
    } else if (point >= 0xdc00 && point < 0xe000) {
      paired = false;
    }
    if (!paired) {
      at_ = begin;
      FailSyntax("a pair of surrogates");
    }
    AppendUtf8(point, scratch);
    return;
  }
  const char* const escape = c == '\0' ? nullptr : std::strchr(kEscapes, c);
  if (escape == nullptr) FailSyntax("an escape of JSON");
  scratch->push_back(kMeanings[escape - kEscapes]);
  at_ += 2;
}

const char* JsonCursor::EndOfUtf8(const char* at) const {
  const auto lead = static_cast<unsigned char>(at[0]);
  const auto next = static_cast<unsigned char>(at[1]);
  if (lead >= 0xc2 && lead < 0xe0) return IsContinuation(at[1]) ? at + 2 : nullptr;
  if (lead >= 0xe0 && lead < 0xf0) {
    const bool shortest = lead != 0xe0 || next >= 0xa0;
    const bool surrogate = lead == 0xed && next >= 0xa0;
    return shortest && !surrogate && IsContinuation(at[1]) && IsContinuation(at[2]) ? at + 3
                                                                                    : nullptr;
  }
  if (lead >= 0xf0 && lead < 0xf5) {
    const bool in_range = (lead != 0xf0 || next >= 0x90) && (lead != 0xf4 || next < 0x90);
    return in_range && IsContinuation(at[1]) && IsContinuation(at[2]) && IsContinuation(at[3])
               ? at + 4
               : nullptr;
  }
  return nullptr;
}

void JsonCursor::SkipValue(int depth) {
  if (depth > kMaxDepth) Fail(reason::kRange, "nesting of at most 64 levels");
  SkipSpace();
  std::string scratch;
  bool first = true;
  switch (*at_) {
    case '[':
      ++at_;
      while (NextItem(']', &first)) SkipValue(depth + 1);
      return;
    case '{':
      ++at_;
      while (NextItem('}', &first)) {
        String("the key", &scratch);
        if (!Accept(':')) FailSyntax("':'");
        SkipValue(depth + 1);
      }
      return;
    case '"':
      String("a value", &scratch);
      return;
    default:
      break;
  }
  for (const std::string_view word : {"true", "false", "null"}) {
    if (std::strncmp(at_, word.data(), word.size()) == 0) {  // ends at a '\n' like every scan
      at_ += word.size();
      return;
    }
  }
  const char* const stop = EndOfNumber(at_);
  if (stop == nullptr) FailSyntax("a value");
  at_ = stop;
}

}  // namespace tlp_tvm
