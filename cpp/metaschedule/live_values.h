/*!
 * \file metaschedule/live_values.h
 * \brief Operands of a live instruction, taken apart as they are asked for: nothing is copied.
 */
#ifndef TLP_TVM_METASCHEDULE_LIVE_VALUES_H_
#define TLP_TVM_METASCHEDULE_LIVE_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "metaschedule/ffi.h"
#include "metaschedule/map_reader.h"
#include "metaschedule/object_table.h"
#include "metaschedule/value.h"

namespace tlp_tvm {
namespace metaschedule {

/*! \brief What one thread knows of the trace that it reads. */
struct LiveScope {
  ObjectTable variables;
  std::vector<Value> flat;
  std::deque<std::string> texts;  ///< that lie in no object of TVM

  void BeginTrace() {
    variables.Clear();
    texts.clear();
  }
};

/*! \brief Tells objects of TVM apart. Any number of threads may share it. */
class ValueReader {
 public:
  explicit ValueReader(const ffi::Library* library);

  std::int32_t block() const { return block_; }
  std::int32_t loop() const { return loop_; }
  std::int32_t variable() const { return variable_; }
  bool IsVariable(std::int32_t type) const {
    return type == loop_ || type == variable_ || type == block_;
  }
  /*! \brief Whether a decision is of that class: another one stands for "none". */
  bool IsDecision(std::int32_t type) const {
    return type == ffi::kArray || type == ffi::kInt || type == integer_;
  }

  /*!
   * \brief What an item is, without what is inside of it.
   * \throws TraceFault where it is nothing that an instruction has.
   */
  Value Read(const ffi::Any& item, const LiveScope& scope) const {
    const std::int32_t type = item.type_index;
    if (IsVariable(type)) {
      const std::int64_t number = scope.variables.Find(item.object);
      if (number < 0) RefuseStranger(item);
      return {ValueForm::kReference, 0, number, 0, {}};
    }
    if (type == integer_) return Integer(integer_value_.Read(item.object).integer);
    if (type == ffi::kInt || type == ffi::kBool) return Integer(item.integer);
    return ReadOther(item);
  }
  /*! \return The items of a list. \throws TraceFault where it is none of a plausible size. */
  const ffi::Sequence& ListOf(const ffi::Any& list, const char* what) const {
    if (list.type_index != ffi::kArray) RefuseList(list, what);
    const ffi::Sequence& sequence = ffi::SequenceOf(list.object);
    if (static_cast<std::uint64_t>(sequence.size) > kMost) RefuseList(list, what);
    return sequence;
  }
  /*! \brief Appends an item and all that is inside of it. */
  void Append(const ffi::Any& item, int depth, LiveScope* scope) const;
  const MapReader& maps() const { return maps_; }

 private:
  static const std::uint64_t kMost;

  Value ReadOther(const ffi::Any& item) const;
  void AppendMapping(const ffi::Any& map, int depth, LiveScope* scope) const;
  [[noreturn]] void RefuseStranger(const ffi::Any& item) const;
  [[noreturn]] void RefuseList(const ffi::Any& list, const char* what) const;

  const ffi::Library* library_;
  std::int32_t block_, loop_, variable_, integer_, real_;
  ffi::Field integer_value_, real_value_;
  MapReader maps_;
  const ffi::Object* graph_of_;
};

/*! \brief The operands of one list of an instruction, as `Values` is of those read from JSON. */
class LiveValues {
 public:
  LiveValues(const ffi::Any* begin, const ffi::Any* end, const ValueReader* reader,
             LiveScope* scope)
      : begin_(begin), end_(end), reader_(reader), scope_(scope) {}
  LiveValues(const ffi::Sequence& list, const ValueReader* reader, LiveScope* scope)
      : LiveValues(list.items, list.items + list.size, reader, scope) {}

  bool empty() const { return begin_ == end_; }
  Value front() const { return reader_->Read(*begin_, *scope_); }
  LiveValues First() const { return {begin_, begin_ + 1, reader_, scope_}; }
  LiveValues Rest() const { return {begin_ + 1, end_, reader_, scope_}; }
  LiveValues End() const { return {end_, end_, reader_, scope_}; }
  LiveValues Inside() const { return {reader_->ListOf(*begin_, "a list"), reader_, scope_}; }
  std::size_t Count() const { return static_cast<std::size_t>(end_ - begin_); }
  /*! \brief All of them with what is inside, good until the next call. */
  Values Flat() const {
    scope_->flat.clear();
    for (const ffi::Any* item = begin_; item != end_; ++item) reader_->Append(*item, 0, scope_);
    return {scope_->flat.data(), scope_->flat.data() + scope_->flat.size()};
  }

 private:
  const ffi::Any* begin_;
  const ffi::Any* end_;
  const ValueReader* reader_;
  LiveScope* scope_;
};

}  // namespace metaschedule
}  // namespace tlp_tvm

#endif  // TLP_TVM_METASCHEDULE_LIVE_VALUES_H_
