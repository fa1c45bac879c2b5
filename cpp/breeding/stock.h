/*!
 * \file breeding/stock.h
 * \brief The sketches and forms that a task's programs have shown, and programs written by them.
 */
#ifndef TLP_TVM_BREEDING_STOCK_H_
#define TLP_TVM_BREEDING_STOCK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "breeding/form.h"
#include "breeding/tiles.h"
#include "core/primitive.h"

namespace tlp_tvm {
namespace breeding {

/*! \brief Forms that share their splits. */
struct Sketch {
  std::vector<std::size_t> forms;
  /*! \brief Of each split: the lengths of the first program, and whether others had other ones. */
  std::vector<std::vector<std::int64_t>> lengths;
  std::vector<bool> varies;
};

/*! \brief What one thread writes programs into. */
struct Draft {
  std::vector<Primitive> primitives;
  std::vector<std::int64_t> values;
};

/*! \brief Grows by one program at a time; any number of threads may read it in between. */
class Stock {
 public:
  explicit Stock(const Species& species) : species_(&species) {}

  const Species& species() const { return *species_; }
  /*!
   * \brief Takes a program in.
   * \return Its form and its genes.
   * \throws RecordError of what is no program of the species; the stock is as before then.
   */
  std::pair<std::size_t, Row> Add(const PrimitiveSequence& program);

  const std::vector<Form>& forms() const { return forms_; }
  const std::vector<Sketch>& sketches() const { return sketches_; }
  /*! \brief Numbers of the longest row. */
  std::size_t stride() const { return stride_; }

  std::uint64_t HashOf(std::size_t form, const std::int64_t* row) const;
  /*! \brief What divides an extent that was shown, or null. */
  const Divisors* DivisorsOf(std::int64_t extent) const;
  /*! \brief Makes a number known that unroll pragmas may have. */
  void KnowUnroll(std::int64_t number);

  /*! \return The program, valid while the draft and the stock are not written to. */
  PrimitiveSequence Write(std::size_t index, const std::int64_t* row, Draft* draft) const;

 private:
  std::int64_t NameOf(std::string_view name);
  void TakeNames(const PrimitiveSequence& program, Form* form);
  std::int64_t UnrollName(std::int64_t number) const;
  void Note(const Form& form, const Row& row);

  const Species* species_;
  std::vector<Form> forms_;
  std::vector<Sketch> sketches_;
  std::unordered_map<std::string, std::size_t> form_of_, sketch_of_;
  std::unordered_map<std::int64_t, Divisors> divisors_;
  std::unordered_map<std::string, std::int64_t> names_;
  std::vector<std::pair<std::int64_t, std::int64_t>> unrolls_;  ///< number, name
  std::string text_;
  std::size_t stride_ = 1;
};

}  // namespace breeding
}  // namespace tlp_tvm

#endif  // TLP_TVM_BREEDING_STOCK_H_
