#include "core/primitive.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/arena.h"

namespace tlp_tvm {

int Vocabulary::Find(std::string_view name) const {
  for (std::size_t kind = 0; kind < kind_count; ++kind) {
    if (kinds[kind].name == name) return static_cast<int>(kind);
  }
  return -1;
}

void SequenceBatch::Clear() {
  primitives_.clear();
  value_count_ = 0;
  text_.clear();
  ends_.clear();
  last_end_primitive_ = 0;
  last_end_value_ = 0;
}

SequenceBatch::SequenceBatch(const SequenceBatch& other, Memory* memory)
    : primitives_(other.primitives_, memory),
      values_(other.values_.begin(),
              other.values_.begin() + static_cast<std::ptrdiff_t>(other.value_count_), memory),
      value_count_(other.value_count_),
      text_(other.text_, memory),
      ends_(other.ends_, memory),
      last_end_primitive_(other.last_end_primitive_),
      last_end_value_(other.last_end_value_) {}

std::size_t SequenceBatch::BytesOfCopy() const {
  return primitives_.size() * sizeof(Primitive) + value_count_ * sizeof(std::int64_t) +
         text_.size() + ends_.size() * sizeof(End_) + 4 * Arena::kSlack;
}

void SequenceBatch::Grow(std::size_t n) {
  values_.resize(std::max(value_count_ + n, 2 * values_.size()));
}

PrimitiveSequence SequenceBatch::operator[](std::size_t i) const {
  const End_ begin = i == 0 ? End_{0, 0, 0} : ends_[i - 1];
  return {primitives_.data() + begin.primitive, ends_[i].primitive - begin.primitive,
          values_.data() + begin.value, text_.data()};
}

std::int64_t SequenceBatch::NameOf(std::string_view name) {
  if (name.size() >= (1u << NameRef::kLengthBits)) {
    throw std::length_error("a name in a primitive is longer than 65,535 bytes");
  }
  const std::size_t begin = text_.size();
  text_.insert(text_.end(), name.begin(), name.end());
  return NameRef::Pack(begin, name.size());
}

std::int64_t* SequenceBatch::AddList(std::size_t n) {
  std::int64_t* const list = Room(1 + n);
  *list = static_cast<std::int64_t>(n);
  value_count_ += 1 + n;
  return list + 1;
}

void SequenceBatch::End() {
  ends_.push_back({primitives_.size(), value_count_, text_.size()});
  last_end_primitive_ = primitives_.size();
  last_end_value_ = value_count_;
}

void SequenceBatch::Rollback() {
  const End_ end = ends_.empty() ? End_{0, 0, 0} : ends_.back();
  primitives_.resize(end.primitive);
  value_count_ = end.value;
  text_.resize(end.text);
}

std::size_t WidthOf(const PrimitiveSequence& sequence, const Vocabulary& vocabulary) {
  std::size_t widest = 0;
  for (std::size_t i = 0; i < sequence.size; ++i) {
    const KindSpec& spec = vocabulary.kinds[sequence.primitives[i].kind];
    const std::int64_t* value = sequence.ValuesOf(i);
    std::size_t width = 0;
    for (std::size_t f = 0; f < spec.field_count; ++f) {
      const bool is_list = spec.fields[f].type == FieldType::kList;
      width += is_list ? static_cast<std::size_t>(*value) : 1;
      value += is_list ? 1 + *value : 1;
    }
    widest = std::max(widest, width);
  }
  return widest;
}

namespace {

/*! \brief One round of the splitmix64 finaliser (Steele et al., OOPSLA 2014). */
std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t Combine(std::uint64_t hash, std::uint64_t value) { return Mix(hash ^ Mix(value)); }

std::uint64_t Combine(std::uint64_t hash, std::string_view text) {
  for (char c : text) hash = Combine(hash, static_cast<unsigned char>(c));
  return Combine(hash, text.size());
}

}  // namespace

std::uint64_t HashOf(const PrimitiveSequence& sequence, const Vocabulary& vocabulary) {
  std::uint64_t hash = sequence.size;
  for (std::size_t i = 0; i < sequence.size; ++i) {
    const KindSpec& spec = vocabulary.kinds[sequence.primitives[i].kind];
    const std::int64_t* value = sequence.ValuesOf(i);
    hash = Combine(hash, spec.name);
    for (std::size_t f = 0; f < spec.field_count; ++f) {
      if (spec.fields[f].type == FieldType::kName) {
        hash = Combine(hash, sequence.Name(*value++));
      } else if (spec.fields[f].type == FieldType::kList) {
        const std::int64_t* end = value + 1 + *value;
        while (value != end) hash = Combine(hash, static_cast<std::uint64_t>(*value++));
      } else {
        hash = Combine(hash, static_cast<std::uint64_t>(*value++));
      }
    }
  }
  return hash;
}

}  // namespace tlp_tvm
