/*!
 * \file core/primitive.h
 * \brief Abstract schedule primitives: the one form between every reader and the encoder.
 *
 * A program is a sequence of primitives; a primitive has a kind and the fields of that kind, in
 * order: numbers, names and lists of numbers (TLP, ASPLOS '23, figure 4). Which kinds and fields
 * there are is a framework's business: it hands a Vocabulary to those who need to know.
 */
#ifndef TLP_TVM_CORE_PRIMITIVE_H_
#define TLP_TVM_CORE_PRIMITIVE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <string_view>
#include <vector>

namespace tlp_tvm {

/*! \brief What a field of a primitive holds, and the range a reader accepts. */
enum class FieldType : std::uint8_t {
  kInt32,  ///< a number that fits 32 bits: an index, an enum, a factor
  kInt64,  ///< a number that fits 64 bits: an extent
  kFlag,   ///< 0 or 1
  kName,   ///< a short string from a small vocabulary
  kList,   ///< a list of numbers of 64 bits
};

struct FieldSpec {
  std::string_view name;
  FieldType type;
};

struct KindSpec {
  std::string_view name;
  const FieldSpec* fields;
  std::size_t field_count;
};

/*! \brief The kinds of primitives of one framework; a kind is its index here. */
struct Vocabulary {
  std::string_view framework;
  const KindSpec* kinds;
  std::size_t kind_count;

  /*! \return The index of the kind of that name, or -1. */
  int Find(std::string_view name) const;
};

/*!
 * \brief One primitive: its kind and where its values begin among those of its program.
 *
 * Not among those of the batch: the programs of a file of 8 GB have more than 32 bits can count,
 * while readers let no program have as many.
 */
struct Primitive {
  std::uint32_t kind;
  std::uint32_t first_value;
};

/*!
 * \brief The values of a primitive, in field order: a number as itself, a list as its size and then
 * its items, a name as a packed reference into the batch's text.
 */
class NameRef {
 public:
  static constexpr int kLengthBits = 16;
  static std::int64_t Pack(std::size_t offset, std::size_t length) {
    return static_cast<std::int64_t>((offset << kLengthBits) | length);
  }
  static std::string_view Unpack(std::int64_t value, const char* text) {
    const auto bits = static_cast<std::uint64_t>(value);
    return {text + (bits >> kLengthBits), bits & ((1u << kLengthBits) - 1)};
  }
};

/*! \brief One program: a view of a batch's buffers, valid while the batch is not written to. */
struct PrimitiveSequence {
  const Primitive* primitives;
  std::size_t size;
  const std::int64_t* values;
  const char* text;

  const std::int64_t* ValuesOf(const Primitive& primitive) const {
    return values + primitive.first_value;
  }
  const std::int64_t* ValuesOf(std::size_t i) const { return ValuesOf(primitives[i]); }
  std::string_view Name(std::int64_t value) const { return NameRef::Unpack(value, text); }
};

/*!
 * \brief Many programs in flat, reusable buffers: no allocation per program once they have grown.
 *
 * A program that fails half-way is taken back with Rollback, and the batch is as it was.
 */
class SequenceBatch {
 public:
  using Memory = std::pmr::memory_resource;

  SequenceBatch() = default;
  /*! \brief A copy in other memory, no larger than it needs to be. */
  SequenceBatch(const SequenceBatch& other, Memory* memory);
  /*! \return What such a copy takes, at most. */
  std::size_t BytesOfCopy() const;

  void Clear();
  std::size_t size() const { return ends_.size(); }
  PrimitiveSequence operator[](std::size_t i) const;

  void Begin(std::uint32_t kind) {
    primitives_.push_back({kind, static_cast<std::uint32_t>(value_count_ - last_end_value_)});
  }
  void AddNumber(std::int64_t value) {
    *Room(1) = value;
    ++value_count_;
  }
  void AddName(std::string_view name) { AddNumber(NameOf(name)); }
  /*! \brief Appends room for a list of n numbers and returns where they go. */
  std::int64_t* AddList(std::size_t n);
  /*! \brief Opens a list of unknown size; items follow with AddNumber, then EndList. */
  std::size_t BeginList() {
    AddNumber(0);
    return value_count_;
  }
  void EndList(std::size_t begin) {
    values_[begin - 1] = static_cast<std::int64_t>(value_count_ - begin);
  }
  std::size_t ListSize(std::size_t begin) const { return value_count_ - begin; }
  /*! \return The last n values added. */
  const std::int64_t* LastValues(std::size_t n) const { return values_.data() + value_count_ - n; }

  /*!
   * \brief The quick way to add a primitive: up to n values are written to the room, then kept.
   * What is not kept leaves nothing behind.
   */
  std::int64_t* Room(std::size_t n) {
    if (values_.size() - value_count_ < n) Grow(n);
    return values_.data() + value_count_;
  }
  void Keep(std::uint32_t kind, const std::int64_t* end) {
    Begin(kind);
    value_count_ = static_cast<std::size_t>(end - values_.data());
  }
  /*! \brief The value of a name; the batch holds its text until the next Rollback. */
  std::int64_t NameOf(std::string_view name);

  /*! \brief Ends the program begun after the last End. */
  void End();
  /*! \brief Forgets what was added since the last End. */
  void Rollback();
  std::size_t PrimitivesOfOpenProgram() const { return primitives_.size() - last_end_primitive_; }

 private:
  void Grow(std::size_t n);

  struct End_ {
    std::size_t primitive, value, text;
  };
  std::pmr::vector<Primitive> primitives_;
  // As long as its room: values are written to it without a check each, `value_count_` of them.
  std::pmr::vector<std::int64_t> values_;
  std::size_t value_count_ = 0;
  std::pmr::vector<char> text_;
  std::pmr::vector<End_> ends_;
  std::size_t last_end_primitive_ = 0;
  std::size_t last_end_value_ = 0;
};

/*! \return The most values that one primitive of the program has, lists spilled. */
std::size_t WidthOf(const PrimitiveSequence& sequence, const Vocabulary& vocabulary);

/*!
 * \brief A 64-bit hash of a program's content, the same in every process and release.
 * \note Two programs of one task are taken for the same when their hashes are.
 */
std::uint64_t HashOf(const PrimitiveSequence& sequence, const Vocabulary& vocabulary);

}  // namespace tlp_tvm

#endif  // TLP_TVM_CORE_PRIMITIVE_H_
