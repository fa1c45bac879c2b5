/*!
 * \file metaschedule/object_table.h
 * \brief Numbers by the address of their object: the random variables of a trace.
 */
#ifndef TLP_TVM_METASCHEDULE_OBJECT_TABLE_H_
#define TLP_TVM_METASCHEDULE_OBJECT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "metaschedule/ffi.h"

namespace tlp_tvm {
namespace metaschedule {

/*! \brief Emptied without touching its entries; small enough for the L1 cache beside a trace. */
class ObjectTable {
 public:
  ObjectTable() : entries_(kFirstSize) {}

  void Clear() {
    count_ = 0;
    if (++epoch_ == 0) {  // entries of four billion traces ago would be there again
      entries_.assign(entries_.size(), Entry{});
      epoch_ = 1;
    }
  }
  /*! \return The number of the object, or -1. */
  std::int64_t Find(const ffi::Object* object) const {
    const Entry& entry = entries_[SlotOf(object)];
    return entry.epoch == epoch_ ? entry.number : -1;
  }
  /*! \brief Adds an object. \return False where it is there already: nothing is changed. */
  bool Add(const ffi::Object* object, std::int32_t number) {
    if (2 * (count_ + 1) > entries_.size()) Grow();
    Entry& entry = entries_[SlotOf(object)];
    if (entry.epoch == epoch_) return false;
    entry = {object, number, epoch_};
    ++count_;
    return true;
  }

 private:
  struct Entry {
    const ffi::Object* object = nullptr;
    std::int32_t number = 0;
    std::uint32_t epoch = 0;
  };
  static constexpr std::size_t kFirstSize = 512;

  /*! \brief Where the object is, or the free entry where it belongs. */
  std::size_t SlotOf(const ffi::Object* object) const {
    const std::size_t mask = entries_.size() - 1;
    std::size_t slot = (reinterpret_cast<std::uintptr_t>(object) * 0x9e3779b97f4a7c15u) >> 32;
    while (entries_[slot & mask].epoch == epoch_ && entries_[slot & mask].object != object) ++slot;
    return slot & mask;
  }

  void Grow() {
    std::vector<Entry> old(2 * entries_.size());
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.epoch == epoch_) entries_[SlotOf(entry.object)] = entry;
    }
  }

  std::vector<Entry> entries_;
  std::uint32_t epoch_ = 1;
  std::size_t count_ = 0;
};

}  // namespace metaschedule
}  // namespace tlp_tvm

#endif  // TLP_TVM_METASCHEDULE_OBJECT_TABLE_H_
