#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "check.h"
#include "core/json_cursor.h"

using tlp_tvm::JsonCursor;
using tlp_tvm::JsonFault;

namespace {

/*! \brief A text with the newline that a cursor needs after it. */
struct Line {
  std::string text;
  explicit Line(std::string content) : text(std::move(content) + "\n") {}
  JsonCursor cursor() const { return JsonCursor(text.data()); }
};

std::int64_t IntegerOf(const std::string& text) {
  const Line line(text);
  JsonCursor cursor = line.cursor();
  const std::int64_t value = cursor.Integer("the value");
  cursor.ExpectEnd();
  return value;
}

double NumberOf(const std::string& text) {
  const Line line(text);
  JsonCursor cursor = line.cursor();
  const double value = cursor.Number("the value");
  cursor.ExpectEnd();
  return value;
}

std::string StringOf(const std::string& text) {
  const Line line(text);
  JsonCursor cursor = line.cursor();
  std::string scratch;
  std::string value(cursor.String("the value", &scratch));
  cursor.ExpectEnd();
  return value;
}

void Skip(const std::string& text) {
  const Line line(text);
  JsonCursor cursor = line.cursor();
  cursor.SkipValue();
  cursor.ExpectEnd();
}

}  // namespace

TEST(Integers) {
  EXPECT_EQ(IntegerOf("0"), 0);
  EXPECT_EQ(IntegerOf("-0"), 0);
  EXPECT_EQ(IntegerOf(" \t\r42 "), 42);
  EXPECT_EQ(IntegerOf("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(IntegerOf("-9223372036854775808"), INT64_MIN);
  EXPECT_THROWS(IntegerOf("9223372036854775808"), JsonFault,
                "expected the value to fit 64 bits, found 9223372036854775808");
  EXPECT_THROWS(IntegerOf("99999999999999999999999"), JsonFault,
                "expected the value to fit 64 bits, found 99999999999999999999999");
  EXPECT_THROWS(IntegerOf("01"), JsonFault, "expected the value to be an integer, found 01");
  EXPECT_THROWS(IntegerOf("+1"), JsonFault, "expected the value to be an integer, found +1");
  EXPECT_THROWS(IntegerOf("2.5"), JsonFault, "expected the value to be an integer, found 2.5");
  EXPECT_THROWS(IntegerOf("1e3"), JsonFault, "expected the value to be an integer, found 1e3");
  EXPECT_THROWS(IntegerOf("true"), JsonFault, "expected the value to be an integer, found true");
  EXPECT_THROWS(IntegerOf("\"16\""), JsonFault,
                "expected the value to be an integer, found \"16\"");
  EXPECT_THROWS(IntegerOf("[1]"), JsonFault, "expected the value to be an integer, found a list");
  EXPECT_THROWS(IntegerOf("{}"), JsonFault, "expected the value to be an integer, found an object");
  EXPECT_THROWS(IntegerOf(""), JsonFault,
                "expected the value to be an integer, found the end of the line");
  EXPECT_THROWS(IntegerOf("-"), JsonFault, "expected the value to be an integer, found -");
}

TEST(IntegersInARange) {
  const Line line("2");
  JsonCursor cursor = line.cursor();
  EXPECT_THROWS(cursor.Integer("the flag", 0, 1), JsonFault,
                "expected the flag to be between 0 and 1, found 2");
}

TEST(Numbers) {
  EXPECT_EQ(NumberOf("0.389477"), 0.389477);
  EXPECT_EQ(NumberOf("1e10"), 1e10);
  EXPECT_EQ(NumberOf("-1.5E-3"), -1.5e-3);
  EXPECT_EQ(NumberOf("7"), 7.0);
  EXPECT_EQ(NumberOf("1e-400"), 0.0);
  EXPECT_EQ(NumberOf("5e-324"), 5e-324);
  for (const char* text : {"1.", ".5", "1e", "NaN", "Infinity", "-Infinity", "inf", "00.5"}) {
    EXPECT_THROWS(NumberOf(text), JsonFault,
                  std::string("expected the value to be a number, found ") + text);
  }
  EXPECT_THROWS(NumberOf("1e400"), JsonFault,
                "expected the value to be a finite number, found 1e400");
}

TEST(ShortNumbersAreTheNearestDoubles) {
  // Every length of digits and every power of ten around those that are exact.
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    std::string text = i % 3 == 0 ? "-" : "";
    text += std::to_string(random() >> (random() % 64));
    if (i % 2 == 0) text += "." + std::to_string(random() >> (random() % 64));
    if (i % 5 < 3) text += "e" + std::to_string(static_cast<int>(random() % 60) - 30);
    const double value = NumberOf(text);
    const double expected = std::strtod(text.c_str(), nullptr);
    if (std::memcmp(&value, &expected, sizeof value) != 0) check::Report(__FILE__, __LINE__, text);
  }
  for (const char* text :
       {"9007199254740993", "9007199254740992e22", "1e22", "1e23", "1e-22", "1e-23", "-0", "-0.0",
        "0e5", "0.0000000000000000001", "123456789012345678901"}) {
    const double value = NumberOf(text);
    const double expected = std::strtod(text, nullptr);
    if (std::memcmp(&value, &expected, sizeof value) != 0) check::Report(__FILE__, __LINE__, text);
  }
}

TEST(Strings) {
  EXPECT_EQ(StringOf(R"("plain")"), "plain");
  EXPECT_EQ(StringOf(R"("a\"b\\c\/d\b\f\n\r\t")"), "a\"b\\c/d\b\f\n\r\t");
  EXPECT_EQ(StringOf(R"("\u0041\u00e9\u20ac\ud83d\ude00")"), "A\u00e9\u20ac\U0001F600");
  EXPECT_EQ(StringOf("\"\u00e9\u20ac\U0001F600\""), "\u00e9\u20ac\U0001F600");
  EXPECT_EQ(StringOf(R"("\u0000")"), std::string(1, '\0'));
}

TEST(StringsThatAreNone) {
  EXPECT_THROWS(StringOf(R"("\ud800")"), JsonFault,
                R"(expected a pair of surrogates, found \ud800)");
  EXPECT_THROWS(StringOf(R"("\ud800\u0041")"), JsonFault,
                R"(expected a pair of surrogates, found \ud800\u0041)");
  EXPECT_THROWS(StringOf(R"("\udc00")"), JsonFault,
                R"(expected a pair of surrogates, found \udc00)");
  EXPECT_THROWS(StringOf(R"("\x41")"), JsonFault, R"(expected an escape of JSON, found \x41)");
  EXPECT_THROWS(StringOf(R"("\u00g0")"), JsonFault, "expected four hexadecimal digits, found g0");
  EXPECT_THROWS(StringOf("\"a\tb\""), JsonFault, "expected the end of a string, found b");
  EXPECT_THROWS(StringOf("\"ab"), JsonFault,
                "expected the end of a string, found the end of the line");
  // Overlong, surrogate, beyond Unicode, lone continuation, cut short.
  for (const char* bytes : {"\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                            "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\x80", "\xe2\x82"}) {
    std::string what;
    try {
      StringOf(std::string("\"") + bytes + "\"");
    } catch (const JsonFault& fault) {
      what = fault.what();
    }
    EXPECT_EQ(what.find("expected a string in UTF-8, found \\x"), 0u);
  }
}

TEST(SkippedValuesAreChecked) {
  Skip(R"({"a": [1, 2.5e3, -0, "x\n", true, false, null, {}, []], "b": {"c": []}})");
  EXPECT_THROWS(Skip("[1,]"), JsonFault, "expected a value, found ]");
  EXPECT_THROWS(Skip("[1 2]"), JsonFault, "expected ',' or ']', found 2");
  EXPECT_THROWS(Skip("{\"a\" 1}"), JsonFault, "expected ':', found 1");
  EXPECT_THROWS(Skip("{1: 2}"), JsonFault, "expected the key to be a string, found 1");
  EXPECT_THROWS(Skip("nul"), JsonFault, "expected a value, found nul");
  EXPECT_THROWS(Skip("NaN"), JsonFault, "expected a value, found NaN");
  EXPECT_THROWS(Skip("[]]"), JsonFault, "expected the end of the line, found ]");
  Skip(std::string(60, '[') + std::string(60, ']'));
  EXPECT_THROWS(Skip(std::string(100, '[') + std::string(100, ']')), JsonFault,
                "expected nesting of at most 64 levels, found a list");
}

TEST(ReasonsAreClasses) {
  const auto reason_of = [](const std::string& text) -> std::string {
    try {
      Skip(text);
    } catch (const JsonFault& fault) {
      return fault.reason();
    }
    return "";
  };
  EXPECT_EQ(reason_of("[1"), "truncated line");
  EXPECT_EQ(reason_of("[1 2]"), "not JSON");
}

TEST(WhatIsFoundIsShort) {
  EXPECT_THROWS(IntegerOf("\"" + std::string(100, 'x') + "\""), JsonFault,
                "expected the value to be an integer, found \"" + std::string(39, 'x') + "...");
}
