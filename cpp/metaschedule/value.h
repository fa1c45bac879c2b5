/*!
 * \file metaschedule/value.h
 * \brief An operand of an instruction, whether it came from a live trace or from JSON.
 */
#ifndef TLP_TVM_METASCHEDULE_VALUE_H_
#define TLP_TVM_METASCHEDULE_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tlp_tvm {
namespace metaschedule {

/*! \brief Why an instruction was refused: "expected X, found Y". Who reads knows where it stands.
 */
class TraceFault : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class ValueForm : std::uint8_t {
  kNothing,
  kInteger,  ///< true and false are 1 and 0
  kReal,     ///< one that is no integer
  kText,
  kReference,  ///< to a random variable: `number` is its number
  kGraph,      ///< another object of TVM: `text` is its JSON graph, without spaces and metadata
  kList,       ///< `number` items, which follow
  kMapping,    ///< `number` pairs of key and value, which follow
};

/*! \brief One value; those of a list follow it, nested ones in depth-first order. */
struct Value {
  ValueForm form = ValueForm::kNothing;
  std::uint32_t inside = 0;  ///< how many values follow that are part of it
  std::int64_t number = 0;
  double real = 0;
  std::string_view text;
};

/*! \brief The operands of one list of an instruction. */
class Values {
 public:
  Values(const Value* begin, const Value* end) : begin_(begin), end_(end) {}

  bool empty() const { return begin_ == end_; }
  const Value& front() const { return *begin_; }
  Values First() const { return {begin_, begin_ + 1 + begin_->inside}; }
  /*! \brief What follows the first. */
  Values Rest() const { return {begin_ + 1 + begin_->inside, end_}; }
  Values End() const { return {end_, end_}; }
  /*! \brief What is in the first, a list. */
  Values Inside() const { return {begin_ + 1, begin_ + 1 + begin_->inside}; }
  std::size_t Count() const {
    std::size_t count = 0;
    for (Values rest = *this; !rest.empty(); rest = rest.Rest()) ++count;
    return count;
  }
  /*! \brief All of them, one after the other in memory: they are. */
  const Values& Flat() const { return *this; }

 private:
  const Value* begin_;
  const Value* end_;
};

inline Value Integer(std::int64_t number) { return {ValueForm::kInteger, 0, number, 0, {}}; }
/*! \brief A real; one that is an integer becomes that, since TVM's own JSON writes it so. */
Value Real(double real);

/*! \return A short description of a value for a message. */
std::string Found(const Value& value);
/*! \return The same of the first of `values`. */
template <typename Operands>
std::string FoundFirst(const Operands& values) {
  return values.empty() ? "nothing more" : Found(values.front());
}

/*! \brief A text as JSON. */
void WriteText(std::string_view text, std::string* out);
void WriteInteger(std::int64_t number, std::string* out);
void WriteReal(double real, std::string* out);

/*!
 * \brief JSON of the operands, separated by commas, as TVM writes them.
 * \param quoted Whether texts carry quotes of their own: among inputs, outside of mappings.
 * \param letters Of each random variable.
 */
void WriteValues(Values values, bool quoted, const std::vector<char>& letters, std::string* out);

/*! \brief Sorts the pairs of the mapping (*values)[at], the last value, by their keys. */
void SortMapping(std::size_t at, std::vector<Value>* values);

/*! \brief The JSON graph of an object without what differs between writers: spaces, metadata. */
std::string PlainGraph(std::string_view graph);

}  // namespace metaschedule
}  // namespace tlp_tvm

#endif  // TLP_TVM_METASCHEDULE_VALUE_H_
