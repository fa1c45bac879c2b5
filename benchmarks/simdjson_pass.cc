/*!
 * \brief The floor for a record reader: simdjson's passes over the same bytes, nothing kept.
 *
 *   simdjson_pass FILE REPEATS
 *
 * Prints bytes per second of the best repeat, one thread, of two passes over every line: `dom` builds
 * simdjson's tree; `values` walks that tree too and adds up every number, as a reader must at least.
 */
#include <simdjson.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

double SumOf(simdjson::dom::element element) {
  double sum = 0;
  switch (element.type()) {
    case simdjson::dom::element_type::ARRAY:
      for (simdjson::dom::element item : simdjson::dom::array(element)) sum += SumOf(item);
      return sum;
    case simdjson::dom::element_type::OBJECT:
      for (auto field : simdjson::dom::object(element)) sum += SumOf(field.value);
      return sum;
    case simdjson::dom::element_type::STRING:
      return static_cast<double>(std::string_view(element).size());
    case simdjson::dom::element_type::INT64:
    case simdjson::dom::element_type::UINT64:
    case simdjson::dom::element_type::DOUBLE:
      return double(element);
    default:
      return 0;
  }
}

double BestRate(const simdjson::padded_string& text, int repeats, bool walk) {
  simdjson::dom::parser parser;
  double best = 0;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    double sum = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (simdjson::dom::element line : parser.parse_many(text, 1 << 20)) {
      sum += walk ? SumOf(line) : 1;
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (sum == 0) std::exit(1);
    best = std::max(best, static_cast<double>(text.size()) / seconds.count());
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: simdjson_pass FILE REPEATS\n");
    return 2;
  }
  const simdjson::padded_string text = simdjson::padded_string::load(argv[1]);
  const int repeats = std::atoi(argv[2]);
  std::printf("{\"dom\": %.0f, \"values\": %.0f}\n", BestRate(text, repeats, false),
              BestRate(text, repeats, true));
  return 0;
}
