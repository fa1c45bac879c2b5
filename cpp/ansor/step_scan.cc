#include "ansor/step_scan.h"

#include <cstddef>
#include <cstdint>

#include "ansor/step_names.h"
#include "ansor/steps.h"

namespace tlp_tvm {
namespace ansor {
namespace {

/*! \brief Digits that fit every type of number. */
constexpr std::ptrdiff_t kMaxDigits = 9;

/*! \brief Items of a list that is read here, and room for the values of any such step. */
constexpr std::int64_t kMaxItems = 48;
constexpr std::size_t kRoom = 64;

constexpr bool EveryStepHasRoom() {
  for (const KindSpec& spec : kStepKinds) {
    std::size_t values = 0;
    for (std::size_t f = 0; f < spec.field_count; ++f) {
      values += 1 + (spec.fields[f].type == FieldType::kList ? kMaxItems : 0);
    }
    if (values > kRoom) return false;
  }
  return true;
}
static_assert(EveryStepHasRoom(), "a step may have more values than the room that it gets");

/*! \return Where the number ends, or nullptr. What follows it is for the caller to check. */
const char* ScanNumber(const char* at, std::int64_t* value) {
  const char* const begin = at;
  std::uint64_t number = 0;  // too many digits wrap, and are refused below
  while (static_cast<unsigned char>(*at - '0') < 10) {
    number = number * 10 + static_cast<unsigned char>(*at++ - '0');
  }
  if (at == begin || at - begin > kMaxDigits || (*begin == '0' && at - begin > 1)) return nullptr;
  *value = static_cast<std::int64_t>(number);
  return at;
}

/*! \param value Gets the number of items, then the items. */
const char* ScanList(const char* at, std::int64_t* value) {
  if (*at++ != '[') return nullptr;
  std::int64_t count = 0;
  if (*at != ']') {
    while (true) {
      at = ScanNumber(at, value + ++count);
      if (at == nullptr) return nullptr;
      if (*at == ']') break;
      if (count == kMaxItems || at[0] != ',' || at[1] != ' ') return nullptr;
      at += 2;
    }
  }
  *value = count;
  return at + 1;
}

const char* ScanName(const char* at, std::int64_t* value, SequenceBatch* out) {
  if (*at++ != '"') return nullptr;
  const char* const begin = at;
  while (*at >= ' ' && *at <= '~' && *at != '"' && *at != '\\') ++at;
  const auto size = static_cast<std::size_t>(at - begin);
  if (*at != '"' || size > kMaxNameSize) return nullptr;
  *value = out->NameOf({begin, size});
  return at + 1;
}

}  // namespace

const char* ScanStep(const char* at, SequenceBatch* out) {
  if (at[0] != '[' || at[1] != '"') return nullptr;
  at += 2;
  const char* const name = at;
  while (*at >= 'A' && *at <= 'Z') ++at;
  const int kind = FindStepKind({name, static_cast<std::size_t>(at - name)});
  if (kind < 0 || *at++ != '"') return nullptr;
  const KindSpec& spec = kStepKinds[kind];
  std::int64_t* value = out->Room(kRoom);
  for (std::size_t f = 0; f < spec.field_count; ++f) {
    if (at[0] != ',' || at[1] != ' ') return nullptr;
    at += 2;
    switch (spec.fields[f].type) {
      case FieldType::kList:
        at = ScanList(at, value);
        if (at != nullptr) value += *value;
        break;
      case FieldType::kName:
        at = ScanName(at, value, out);
        break;
      default:
        at = ScanNumber(at, value);
        if (at != nullptr && spec.fields[f].type == FieldType::kFlag && *value > 1) return nullptr;
    }
    if (at == nullptr) return nullptr;
    ++value;
  }
  if (*at != ']') return nullptr;
  out->Keep(static_cast<std::uint32_t>(kind), value);
  return at + 1;
}

}  // namespace ansor
}  // namespace tlp_tvm
