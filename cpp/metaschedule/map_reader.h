/*!
 * \file metaschedule/map_reader.h
 * \brief Reads the pairs of a Map, in the order in which they were added.
 */
#ifndef TLP_TVM_METASCHEDULE_MAP_READER_H_
#define TLP_TVM_METASCHEDULE_MAP_READER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "metaschedule/ffi.h"

namespace tlp_tvm {
namespace metaschedule {

/*! \brief Owned by the Map that it was read from. */
struct MapPair {
  ffi::Any key, value;
};
using MapPairs = std::vector<MapPair>;

/*!
 * \brief Reads Maps. Any number of threads may share it.
 *
 * The functions of a Map take an atomic count of every value that they hand out and wait for one
 * entry at a time. So entries are read in place. How they lie is compiled into everything that uses
 * tvm-ffi's headers (tvm/ffi/container/map_base.h of 0.1) but is no part of its C interface: the
 * first Map of each of the two forms is read both ways, and where they differ the functions are
 * used.
 */
class MapReader {
 public:
  explicit MapReader(const ffi::Library* library);

  /*! \param map An Any of type index kMap. */
  void Read(const ffi::Any& map, MapPairs* pairs) const;
  std::int64_t SizeOf(const ffi::Any& map) const;

 private:
  enum class Trust : std::uint8_t { kUnknown, kInPlace, kFunctions };

  void ReadThroughFunctions(const ffi::Any& map, MapPairs* pairs) const;
  Trust Compare(const ffi::Any& map, const MapPairs& pairs) const;

  const ffi::Library* library_;
  const ffi::Object* size_;
  const ffi::Object* iterate_;
  mutable std::array<std::atomic<Trust>, 2>
      trust_{};  ///< of the form with blocks, of the small one
};

}  // namespace metaschedule
}  // namespace tlp_tvm

#endif  // TLP_TVM_METASCHEDULE_MAP_READER_H_
