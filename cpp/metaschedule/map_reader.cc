#include "metaschedule/map_reader.h"

#include <algorithm>
#include <cstddef>

namespace tlp_tvm {
namespace metaschedule {
namespace {

constexpr char kMapSize[] = "ffi.MapSize";
constexpr char kMapIterate[] = "ffi.MapForwardIterFunctor";

/*! \brief Commands of the function that ffi.MapForwardIterFunctor returns. */
constexpr std::int64_t kKey = 0;
constexpr std::int64_t kItem = 1;
constexpr std::int64_t kNext = 2;

ffi::Any IntegerAny(std::int64_t number) {
  ffi::Any any;
  any.type_index = ffi::kInt;
  any.integer = number;
  return any;
}

bool AreSame(const ffi::Any& a, const ffi::Any& b) {
  return a.type_index == b.type_index && a.small_size == b.small_size && a.integer == b.integer;
}

/*! \brief Follows the header of a Map. Up to four pairs lie side by side, more in blocks of slots.
 */
struct MapHead {
  static constexpr std::uint64_t kSmall = std::uint64_t{1} << 63;

  bool is_small() const { return (slots & kSmall) != 0; }

  const char* data;
  std::uint64_t size;
  std::uint64_t slots;
  void* deleter;
  // With blocks alone:
  std::uint32_t shift;
  std::uint64_t first;
  std::uint64_t last;
};

const MapHead& HeadOf(const ffi::Any& map) {
  return *reinterpret_cast<const MapHead*>(map.object + 1);
}

/*! \brief A pair, and the slots of those that were added before and after it. */
struct MapSlot {
  static constexpr std::uint64_t kOfBlock = 16;

  MapPair pair;
  std::uint64_t before = 0;
  std::uint64_t after = 0;
};
static_assert(sizeof(MapSlot) == 48, "as in map_base.h");

constexpr std::size_t kBlockBytes = MapSlot::kOfBlock * (1 + sizeof(MapSlot));

const MapSlot& SlotOf(const MapHead& head, std::uint64_t index) {
  const char* const block = head.data + index / MapSlot::kOfBlock * kBlockBytes;
  const char* const slots = block + MapSlot::kOfBlock;
  return reinterpret_cast<const MapSlot*>(slots)[index % MapSlot::kOfBlock];
}

/*! \brief Of so many slots, all lines at once: each slot alone says where the next one is. */
void TouchSlots(const MapHead& head) {
  constexpr std::uint64_t kMost = 4 * MapSlot::kOfBlock;
  const std::uint64_t blocks =
      (std::min(head.slots, kMost) + MapSlot::kOfBlock - 1) / MapSlot::kOfBlock;
  for (std::size_t at = 0; at < blocks * kBlockBytes; at += 64) ffi::Touch(head.data + at);
}

/*! \return Whether the pairs lie as expected. */
bool ReadInPlace(const MapHead& head, MapPairs* pairs) {
  pairs->clear();
  if (head.is_small()) {
    if (head.size > (head.slots & ~MapHead::kSmall)) return false;
    const auto* const first = reinterpret_cast<const MapPair*>(head.data);
    pairs->assign(first, first + head.size);
    return true;
  }
  if (head.size > head.slots) return false;
  TouchSlots(head);
  std::uint64_t index = head.first;
  for (std::uint64_t i = 0; i < head.size; ++i) {
    if (index >= head.slots) return false;
    const MapSlot& slot = SlotOf(head, index);
    pairs->push_back(slot.pair);
    index = slot.after;
  }
  return true;
}

}  // namespace

MapReader::MapReader(const ffi::Library* library)
    : library_(library),
      size_(library->FunctionOf(kMapSize)),
      iterate_(library->FunctionOf(kMapIterate)) {}

std::int64_t MapReader::SizeOf(const ffi::Any& map) const {
  return library_->Call(size_, kMapSize, &map, 1).integer;
}

void MapReader::Read(const ffi::Any& map, MapPairs* pairs) const {
  const MapHead& head = HeadOf(map);
  std::atomic<Trust>& trust = trust_[head.is_small() ? 1 : 0];
  const Trust known = trust.load(std::memory_order_relaxed);
  if (known == Trust::kInPlace && ReadInPlace(head, pairs)) return;
  ReadThroughFunctions(map, pairs);
  if (known == Trust::kUnknown && !pairs->empty()) {
    trust.store(Compare(map, *pairs), std::memory_order_relaxed);
  }
}

MapReader::Trust MapReader::Compare(const ffi::Any& map, const MapPairs& pairs) const {
  const MapHead& head = HeadOf(map);
  MapPairs in_place;
  const bool is_same = head.size == pairs.size() && ReadInPlace(head, &in_place) &&
                       std::equal(pairs.begin(), pairs.end(), in_place.begin(), in_place.end(),
                                  [](const MapPair& a, const MapPair& b) {
                                    return AreSame(a.key, b.key) && AreSame(a.value, b.value);
                                  });
  return is_same ? Trust::kInPlace : Trust::kFunctions;
}

void MapReader::ReadThroughFunctions(const ffi::Any& map, MapPairs* pairs) const {
  pairs->clear();
  const std::int64_t size = SizeOf(map);
  if (size == 0) return;
  const ffi::Any iterate = library_->Call(iterate_, kMapIterate, &map, 1);
  const auto ask = [&](std::int64_t command) {
    const ffi::Any argument = IntegerAny(command);
    const ffi::Any part = library_->Call(iterate.object, kMapIterate, &argument, 1);
    library_->Release(part);  // the map holds it
    return part;
  };
  for (std::int64_t i = 0; i < size; ++i) {
    const ffi::Any key = ask(kKey);
    pairs->push_back({key, ask(kItem)});
    ask(kNext);
  }
  library_->Release(iterate);
}

}  // namespace metaschedule
}  // namespace tlp_tvm
