/*!
 * \file core/json_cursor.h
 * \brief Reads JSON (RFC 8259) front to back, straight into the values the caller expects.
 *
 * No tree is built: a caller that knows its format asks for the next value by type and says what it
 * is, and a text that has something else there is refused with what was expected and found. What
 * Python's json module refuses is refused here too; beyond that, so are numbers and texts that do
 * not fit (64 bits, double, Unicode).
 */
#ifndef TLP_TVM_CORE_JSON_CURSOR_H_
#define TLP_TVM_CORE_JSON_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <string>
#include <string_view>

namespace tlp_tvm {

/*! \brief Why a text was refused: a class to count by, and the sentence "expected X, found Y". */
class JsonFault : public std::exception {
 public:
  JsonFault(const char* reason, std::string sentence)
      : reason_(reason), sentence_(std::move(sentence)) {}
  const char* what() const noexcept override { return sentence_.c_str(); }
  const char* reason() const noexcept { return reason_; }

 private:
  const char* reason_;
  std::string sentence_;
};

namespace reason {
inline constexpr char kTruncated[] = "truncated line";
inline constexpr char kSyntax[] = "not JSON";
inline constexpr char kType[] = "wrong type";
inline constexpr char kRange[] = "value out of range";
inline constexpr char kMissing[] = "missing field";
inline constexpr char kExtra[] = "extra field";
inline constexpr char kUnknownKind[] = "unknown step kind";
}  // namespace reason

class JsonCursor {
 public:
  /*!
   * \brief Starts at `begin`, in a text with a '\n' further on: no scan goes past it, so that none
   * needs a bound, and nobody needs to look for it first.
   */
  explicit JsonCursor(const char* begin) : at_(begin) {}

  const char* at() const { return at_; }
  void MoveTo(const char* at) { at_ = at; }
  bool AtEnd() const { return *at_ == '\n'; }

  void SkipSpace() {
    while (*at_ == ' ' || *at_ == '\t' || *at_ == '\r') ++at_;
  }
  /*! \brief Skips space; takes `c` if it comes next. */
  bool Accept(char c) {
    SkipSpace();
    if (*at_ != c) return false;
    ++at_;
    return true;
  }
  /*! \brief Takes the '[' of `what` or refuses. */
  void OpenList(const char* what) {
    if (!Accept('[')) FailType(what, "a list");
  }
  /*!
   * \brief Between the items of a list or object: true when an item follows.
   * \param first Whether none has been read; set to false.
   */
  bool NextItem(char close, bool* first) {
    if (Accept(close)) return false;
    if (!*first && !Accept(',')) FailSyntax(close == ']' ? "',' or ']'" : "',' or '}'");
    *first = false;
    return true;
  }
  /*! \brief Takes the ',' before the field `what`; refuses a list that ends there. */
  void NextField(const char* what) {
    if (!Accept(',')) FailField(what);
  }
  /*! \brief Takes the ']' after the last field of `what`. */
  void CloseList(const char* what) {
    if (!Accept(']')) FailClose(what);
  }
  void ExpectEnd();

  std::int64_t Integer(const char* what,
                       std::int64_t min = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t max = std::numeric_limits<std::int64_t>::max()) {
    SkipSpace();
    // Nearly every number is short, without a sign, and followed by ',' or ']': no further checks.
    const char* at = at_;
    std::int64_t value = 0;
    if (*at == '0') {
      ++at;
    } else {
      while (*at >= '0' && *at <= '9' && at - at_ < kShortDigits)
        value = value * 10 + (*at++ - '0');
    }
    if ((*at == ',' || *at == ']') && at != at_ && value >= min && value <= max) {
      at_ = at;
      return value;
    }
    return AnyInteger(what, min, max);
  }
  double Number(const char* what);
  /*! \return The text without escapes, in the input or in `scratch`; valid till either changes. */
  std::string_view String(const char* what, std::string* scratch);
  /*! \brief Passes over one value of any type, checking that it is JSON. */
  void SkipValue(int depth = 0);

  /*! \return What stands here, short enough for a message. */
  std::string Found() const;
  [[noreturn]] void Fail(const char* reason, const std::string& expected) const;
  [[noreturn]] void FailType(const char* what, const char* type) const;
  [[noreturn]] void FailSyntax(const char* expected) const;

 private:
  static constexpr std::ptrdiff_t kShortDigits = 9;

  std::int64_t AnyInteger(const char* what, std::int64_t min, std::int64_t max);
  [[noreturn]] void FailField(const char* what) const;
  [[noreturn]] void FailClose(const char* what) const;
  std::string_view EscapedString(const char* begin, std::string* scratch);
  std::uint32_t HexUnit();
  void AppendEscape(std::string* scratch);
  const char* EndOfUtf8(const char* at) const;
  const char* EndOfNumber(const char* at) const;

  const char* at_;
};

}  // namespace tlp_tvm

#endif  // TLP_TVM_CORE_JSON_CURSOR_H_
