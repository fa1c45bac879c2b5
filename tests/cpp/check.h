/*!
 * \file check.h
 * \brief The few macros the C++ tests need, so that they build wherever the core does.
 */
#ifndef TLP_TVM_TESTS_CHECK_H_
#define TLP_TVM_TESTS_CHECK_H_

#include <cstdio>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace check {

struct Test {
  const char* name;
  std::function<void()> body;
};

inline std::vector<Test>& Tests() {
  static std::vector<Test> tests;
  return tests;
}

inline int& Failures() {
  static int failures = 0;
  return failures;
}

struct Register {
  Register(const char* name, std::function<void()> body) { Tests().push_back({name, body}); }
};

template <typename T>
std::string Show(const T& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

inline void Report(const char* file, int line, const std::string& what) {
  ++Failures();
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
}

template <typename A, typename B>
void Equal(const A& a, const B& b, const char* text, const char* file, int line) {
  if (!(a == b)) Report(file, line, std::string(text) + ": " + Show(a) + " != " + Show(b));
}

}  // namespace check

#define TEST(name)                                                 \
  static void Test##name();                                        \
  static const check::Register register_##name(#name, Test##name); \
  static void Test##name()

#define EXPECT(condition) \
  if (!(condition)) check::Report(__FILE__, __LINE__, "expected " #condition)

#define EXPECT_EQ(a, b) check::Equal((a), (b), #a " == " #b, __FILE__, __LINE__)

/*! \brief The statement throws `type` with exactly this text. */
#define EXPECT_THROWS(statement, type, text)                                          \
  do {                                                                                \
    std::string what_ = "nothing thrown";                                             \
    try {                                                                             \
      statement;                                                                      \
    } catch (const type& error) {                                                     \
      what_ = error.what();                                                           \
    }                                                                                 \
    check::Equal(what_, std::string(text), #statement " throws", __FILE__, __LINE__); \
  } while (false)

int main() {
  for (const check::Test& test : check::Tests()) {
    const int before = check::Failures();
    try {
      test.body();
    } catch (const std::exception& error) {
      check::Report(test.name, 0, std::string("unexpected exception: ") + error.what());
    }
    std::printf("%s %s\n", check::Failures() == before ? "ok    " : "FAILED", test.name);
  }
  return check::Failures() == 0 ? 0 : 1;
}

#endif  // TLP_TVM_TESTS_CHECK_H_
