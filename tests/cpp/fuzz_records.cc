/*!
 * \brief Mutates real-looking record lines and reads them: nothing may crash, and what is accepted
 * must survive being written and read again.
 *
 *   fuzz_records --lines N --seed S [--dump] [CORPUS_FILE...]
 *
 * With --dump every mutated line goes to standard output, the reader's verdict in the line before
 * it ("+" and the record as we write it, or "-" and the refusal), for tests/python/fuzz_oracle.py
 * to compare with Python's json. The corpus lines join the built-in ones.
 */
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "ansor/record_reader.h"
#include "ansor/record_writer.h"
#include "core/error.h"
#include "records.h"

namespace {

using tlp_tvm::RecordError;
using tlp_tvm::ansor::OnError;
using tlp_tvm::ansor::ReadRecords;

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::size_t Below(std::size_t n) { return random_() % n; }

  std::string Mutate(const std::vector<std::string>& corpus) {
    std::string line = corpus[Below(corpus.size())];
    for (std::size_t edits = 1 + Below(3); edits > 0; --edits) Edit(corpus, &line);
    for (char& c : line) {
      if (c == '\n') c = ' ';
    }
    return line;
  }

 private:
  void Edit(const std::vector<std::string>& corpus, std::string* line) {
    static const std::string kTokens[] = {
        "\"",     "\\",  "[",        "]",       "{",
        "}",      ",",   ":",        "-",       "0",
        "1e400",  "1.5", "-0",       "01",      "true",
        "null",   "NaN", "\\u",      "\\ud800", "\\u0041",
        " ",      "\t",  "\r",       "1e10",    "99999999999999999999",
        "\"SP\"", "[]",  "\xc3\xa9", "\xff",    "\"i\": ",
        "\"r\": "};
    static const std::string kEscapes[] = {"\\u0000",        "\\u0053", "\\u0069", "\\n", "\\\"",
                                           "\\ud83d\\ude00", "\\u00e9", "\\\\",    "\\/", "\\x"};
    const std::size_t at = Below(line->size() + 1);
    switch (Below(9)) {
      case 0:
        if (at < line->size()) (*line)[at] = static_cast<char>(random_());
        break;
      case 1:
        line->erase(at, 1 + Below(8));
        break;
      case 2:
      case 3:
        line->insert(at, kTokens[Below(std::size(kTokens))]);
        break;
      case 4: {  // a piece from elsewhere
        const std::string& other = corpus[Below(corpus.size())];
        line->insert(at, other.substr(Below(other.size() + 1), 1 + Below(20)));
        break;
      }
      case 5: {  // a digit becomes another
        const std::size_t digit = line->find_first_of("0123456789", at);
        if (digit != std::string::npos) (*line)[digit] = static_cast<char>('0' + Below(10));
        break;
      }
      case 6: {  // an escape at the begin or the end of a name, a key or another text
        const std::size_t quote = line->find('"', at);
        if (quote != std::string::npos) {
          line->insert(quote + Below(2), kEscapes[Below(std::size(kEscapes))]);
        }
        break;
      }
      case 7: {  // a character of a text is spelled as an escape, and so means the same
        const std::size_t quote = line->find('"', at);
        if (quote != std::string::npos && quote + 1 < line->size()) {
          static constexpr char kHex[] = "0123456789abcdef";
          const auto byte = static_cast<unsigned char>((*line)[quote + 1]);
          line->replace(quote + 1, 1, std::string("\\u00") + kHex[byte >> 4] + kHex[byte & 0xf]);
        }
        break;
      }
      default:  // a token takes the place of what stands there
        line->replace(at, 1 + Below(4), kTokens[Below(std::size(kTokens))]);
    }
  }

  std::mt19937_64 random_;
};

/*! \return "+" and the record as we write it, "-" and the refusal, or "=" for a blank line. */
std::string Verdict(const std::string& line) {
  try {
    const auto batches = ReadRecords(line + "\n", "fuzz", 1, OnError::kRaise, 1);
    if (batches.at(0).rows.empty()) return "=";
    std::string written;
    tlp_tvm::ansor::WriteRecord(batches[0], 0, &written);
    const auto again = ReadRecords(written, "again", 1, OnError::kRaise, 1);
    std::string twice;
    tlp_tvm::ansor::WriteRecord(again.at(0), 0, &twice);
    if (written != twice) {
      std::cerr << "not the same when written and read again:\n" << line << "\n" << written;
      std::exit(1);
    }
    written.pop_back();
    return "+" + written;
  } catch (const RecordError& error) {
    return std::string("-") + error.what();
  }
}

}  // namespace

int main(int argc, char** argv) {
  long lines = 1000;
  unsigned long seed = 1;
  bool dump = false;
  std::vector<std::string> corpus = {records::Record()};
  for (const std::string& step : records::kSteps)
    corpus.push_back(records::Record("[" + step + "]"));
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--lines" && i + 1 < argc) {
      lines = std::atol(argv[++i]);
    } else if (flag == "--seed" && i + 1 < argc) {
      seed = std::strtoul(argv[++i], nullptr, 10);
    } else if (flag == "--dump") {
      dump = true;
    } else {
      std::ifstream file(flag);
      if (!file) {
        std::cerr << flag << ": expected a readable corpus file\n";
        return 2;
      }
      for (std::string line; std::getline(file, line);) corpus.push_back(line);
    }
  }
  std::ios::sync_with_stdio(false);
  Mutator mutator(seed);
  long accepted = 0;
  for (long i = 0; i < lines; ++i) {
    const std::string line = mutator.Mutate(corpus);
    const std::string verdict = Verdict(line);
    accepted += verdict[0] == '+';
    if (dump) std::cout << verdict << "\n" << line << "\n";
  }
  std::fprintf(stderr, "%ld mutated lines: %ld accepted, %ld refused, no crash\n", lines, accepted,
               lines - accepted);
  return accepted == 0 && lines > 1000 ? 1 : 0;
}
