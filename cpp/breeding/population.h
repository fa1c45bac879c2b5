/*!
 * \file breeding/population.h
 * \brief Programs as rows of genes: some forty numbers each, in one array.
 */
#ifndef TLP_TVM_BREEDING_POPULATION_H_
#define TLP_TVM_BREEDING_POPULATION_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tlp_tvm {
namespace breeding {

/*! \brief Programs of one breeder, which knows their forms; written to by their index alone. */
class Population {
 public:
  /*! \param stride Numbers of a row; those behind a form's own genes are 0. */
  Population(std::size_t count, std::size_t stride)
      : stride_(stride), forms_(count), hashes_(count), rows_(count * stride) {}

  std::size_t size() const { return forms_.size(); }
  std::size_t stride() const { return stride_; }
  std::size_t form(std::size_t i) const { return forms_[i]; }
  const std::int64_t* row(std::size_t i) const { return rows_.data() + i * stride_; }
  /*! \brief Of form and genes: two programs are taken for the same when theirs are. */
  std::uint64_t hash(std::size_t i) const { return hashes_[i]; }

  void Set(std::size_t i, std::size_t form, std::uint64_t hash, const std::int64_t* row,
           std::size_t size) {
    forms_[i] = static_cast<std::uint32_t>(form);
    hashes_[i] = hash;
    std::copy_n(row, size, rows_.data() + i * stride_);
  }
  /*! \brief Takes the programs at these places, in their order, from another. */
  static Population Of(const Population& from, const std::vector<std::size_t>& places) {
    Population taken(places.size(), from.stride_);
    for (std::size_t i = 0; i < places.size(); ++i) {
      taken.Set(i, from.form(places[i]), from.hash(places[i]), from.row(places[i]), from.stride_);
    }
    return taken;
  }
  /*! \brief One population after the other. */
  static Population Joined(const std::vector<const Population*>& parts) {
    std::size_t count = 0, stride = 0;
    for (const Population* part : parts) {
      count += part->size();
      stride = std::max(stride, part->stride_);
    }
    Population joined(count, stride);
    std::size_t at = 0;
    for (const Population* part : parts) {
      for (std::size_t i = 0; i < part->size(); ++i) {
        joined.Set(at++, part->form(i), part->hash(i), part->row(i), part->stride_);
      }
    }
    return joined;
  }

 private:
  std::size_t stride_;
  std::vector<std::uint32_t> forms_;
  std::vector<std::uint64_t> hashes_;
  std::vector<std::int64_t> rows_;
};

}  // namespace breeding
}  // namespace tlp_tvm

#endif  // TLP_TVM_BREEDING_POPULATION_H_
