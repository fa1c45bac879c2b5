#include "ansor/step_names.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ansor/steps.h"

namespace tlp_tvm {
namespace ansor {
namespace {

/*! \brief The up to four characters of a step's name as one number, to compare at once. */
constexpr std::uint32_t Code(std::string_view name) {
  std::uint32_t code = 0;
  for (char c : name) code = code << 8 | static_cast<unsigned char>(c);
  return code;
}

/*! \brief Step kinds by code: a table of 32 places in which no two kinds meet. */
constexpr std::size_t PlaceOf(std::uint32_t code) { return (code * 0x129d15d7u) >> 27; }

struct KindPlace {
  std::uint32_t code = 0;
  std::uint32_t kind = 0;
};

constexpr std::array<KindPlace, 32> kKindPlaces = [] {
  std::array<KindPlace, 32> places{};
  for (std::uint32_t kind = 0; kind < kStepKindCount; ++kind) {
    const std::uint32_t code = Code(kStepKinds[kind].name);
    places[PlaceOf(code)] = {code, kind};
  }
  return places;
}();

constexpr bool EveryKindHasItsPlace() {
  for (const KindSpec& spec : kStepKinds) {
    const std::uint32_t code = Code(spec.name);
    if (kKindPlaces[PlaceOf(code)].code != code) return false;
  }
  return true;
}
static_assert(EveryKindHasItsPlace(), "two kinds meet: choose another multiplier");

/*! \brief Names of the fields for messages, "split lengths" style: built once. */
struct FieldNames {
  std::array<std::vector<std::string>, kStepKindCount> names;
  FieldNames() {
    for (std::size_t kind = 0; kind < kStepKindCount; ++kind) {
      for (std::size_t f = 0; f < kStepKinds[kind].field_count; ++f) {
        names[kind].emplace_back(std::string(kStepKinds[kind].name) + " " +
                                 std::string(kStepKinds[kind].fields[f].name));
      }
    }
  }
};

}  // namespace

int FindStepKind(std::string_view name) {
  if (name.empty() || name.size() > 4) return -1;
  const std::uint32_t code = Code(name);
  const KindPlace& place = kKindPlaces[PlaceOf(code)];
  // The size too: "\0CI" has the code of "CI".
  const bool found = place.code == code && kStepKinds[place.kind].name.size() == name.size();
  return found ? static_cast<int>(place.kind) : -1;
}

const char* StepFieldName(std::size_t kind, std::size_t field) {
  static const FieldNames table;
  return table.names[kind][field].c_str();
}

}  // namespace ansor
}  // namespace tlp_tvm
