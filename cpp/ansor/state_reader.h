/*!
 * \file ansor/state_reader.h
 * \brief Live Ansor State objects -> PrimitiveSequence, without TVM's headers and without Python.
 */
#ifndef TLP_TVM_ANSOR_STATE_READER_H_
#define TLP_TVM_ANSOR_STATE_READER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ansor/abi.h"
#include "ansor/type_index.h"
#include "core/encoder.h"
#include "core/primitive.h"

namespace tlp_tvm {
namespace ansor {

/*!
 * \brief What one thread reads states into, and the reorders it has read before.
 *
 * All states of a sketch share its reorder steps, each a list of up to thirty objects: read once,
 * copied after that. Good for one call only, while the caller holds every state: afterwards another
 * step may stand at the same address.
 */
class ReadScratch {
 public:
  SequenceBatch batch;

  /*! \return The list read before from this Array, or null. */
  const std::vector<std::int64_t>* Find(const abi::Array* array) const {
    const Entry& entry = EntryOf(array);
    return entry.array == array ? &entry.items : nullptr;
  }
  void Keep(const abi::Array* array, const std::int64_t* items, std::size_t n) {
    Entry& entry = EntryOf(array);
    entry.array = array;
    entry.items.assign(items, items + n);
  }

 private:
  struct Entry {
    const abi::Array* array = nullptr;
    std::vector<std::int64_t> items;
  };
  static constexpr std::size_t kEntries = 32;
  static std::size_t Slot(const abi::Array* array) {
    return (reinterpret_cast<std::uintptr_t>(array) * 0x9e3779b97f4a7c15u) >> 59;
  }
  const Entry& EntryOf(const abi::Array* array) const { return entries_[Slot(array)]; }
  Entry& EntryOf(const abi::Array* array) { return entries_[Slot(array)]; }

  std::array<Entry, kEntries> entries_;
};

/*! \brief Reads states of one loaded TVM. Any number of threads may share it. */
class StateReader {
 public:
  explicit StateReader(TypeIndex::Index2Key index2key) : types_(index2key) {}

  /*!
   * \brief Takes a handle of `Array<State>` apart.
   * \param handle What `array.handle.value` is in Python.
   * \throws StateError when it is no Array of plausible size.
   */
  const abi::Array& StatesOf(const void* handle);

  /*!
   * \brief Appends the program of states.items()[i] to the scratch's batch.
   * \throws StateError that names the state, the step and the field; the batch is as before then.
   */
  void Read(const abi::Array& states, std::size_t i, ReadScratch* scratch);

  /*!
   * \brief Encodes every state: `out` gets states.size * L * E numbers.
   * \param threads 0 for every core; the bytes written do not depend on it.
   * \throws StateError of the first state that cannot be read.
   */
  void Encode(const abi::Array& states, const Encoder& encoder, int threads, float* out,
              EncodingReport* report);

  /*! \return What class an object is of. */
  TypeTag Tag(const abi::Object& object) { return types_[object.type_index]; }

 private:
  void ReadStep(const abi::Object* object, ReadScratch* scratch);
  void AddSharedList(const abi::Array* array, const char* field, ReadScratch* scratch);
  void AddList(const abi::Array* array, const char* field, SequenceBatch* batch);
  void AddName(const abi::String* name, const char* field, SequenceBatch* batch);
  std::int64_t IntegerOf(const abi::Object* integer, const char* field);
  void Expect(const abi::Object* object, TypeTag tag, const char* field, const char* expected);
  /*! \brief Starts fetching the objects of states [begin, end) before they are read. */
  void Prefetch(const abi::Array& states, std::size_t begin, std::size_t end);
  bool PrefetchItems(const abi::Array* array);
  const abi::Array* ListOf(const abi::Object* step);

  TypeIndex types_;
};

/*!
 * \brief A reader for the TVM whose library the process has loaded already.
 * \throws StateError when the library is not loaded or lacks TVM's C interface.
 */
StateReader* BindStateReader(const std::string& library_path);

}  // namespace ansor
}  // namespace tlp_tvm

#endif  // TLP_TVM_ANSOR_STATE_READER_H_
