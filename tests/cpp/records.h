/*!
 * \file records.h
 * \brief A real record with one of each step kind, and its parts, for the tests to take apart.
 */
#ifndef TLP_TVM_TESTS_RECORDS_H_
#define TLP_TVM_TESTS_RECORDS_H_

#include <string>

namespace records {

inline const std::string kSteps[] = {
    R"(["AN", 2, 9, 2])",
    R"(["FU", 2, [0, 1]])",
    R"(["PR", 2, 0, "auto_unroll_max_step$64"])",
    R"(["RE", 2, [0, 2, 1]])",
    R"(["SP", 2, 0, 512, [4, 2, 8], 1])",
    R"(["FSP", 4, 0, 0, 2])",
    R"(["FFSP", 6, 0, [4, 3, 2, 1], 1, 1])",
    R"(["SA", 2, 1, 32, 4])",
    R"(["CA", 2, 3, 4])",
    R"(["CI", 7])",
    R"(["CR", 3])",
    R"(["CHR", 4, "shared", [5]])",
    R"(["CHW", 2, "local"])",
    R"(["RF", 1, 2, 2])",
};

inline std::string AllSteps() {
  std::string steps;
  for (const std::string& step : kSteps) steps += (steps.empty() ? "" : ", ") + step;
  return "[" + steps + "]";
}

inline const std::string kTask =
    R"(["[\"4e44\", [16, 64]]", "llvm -keys=cpu", [2, 64, 64, 0, 0, 0, 0, 0], "", 2, []])";
inline const std::string kResult = "[[0.25, 0.75], 0, 1.5, 1795174880]";

inline std::string Record(const std::string& steps = AllSteps(), const std::string& task = kTask,
                          const std::string& result = kResult) {
  return R"({"i": [)" + task + ", [[], " + steps + R"(]], "r": )" + result + R"(, "v": "v0.6"})";
}

}  // namespace records

#endif  // TLP_TVM_TESTS_RECORDS_H_
