// The values of an index's rows as codes of 4 bits, from which rows are pooled
// that are not scored from their floats. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_LISTS_LIST_VALUES_H_
#define ATTENDANT_CORE_SHORTLIST_LISTS_LIST_VALUES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/aligned_buffer.h"
#include "core/base/views.h"
#include "core/shortlist/keys/key_codes.h"
#include "core/shortlist/lists/inverted_lists.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

// Values in the order of the keys of inverted lists, each coded as its
// difference from its list's mean value. Immutable; thread-safe.
class ListValues {
 public:
  // Every row's value is its key, so the keys' codes serve as the values'
  // codes. normalised: those codes are of normalised keys, as under COSINE.
  static ListValues OfKeys(const InvertedLists& lists, bool normalised);
  // Takes values of value_dim floats from `values`; the key if a row has none.
  static ListValues Of(const InvertedLists& lists, const ValueSource& values,
                       std::int64_t value_dim, std::uint64_t seed,
                       int thread_count);

  bool are_keys() const { return are_keys_; }
  // True if the codes are of value / norm, so that the key's norm is a factor.
  bool normalised() const { return normalised_; }
  std::int64_t dim() const { return dim_; }
  // False if some value is too large to be coded.
  bool usable(const InvertedLists& lists) const {
    return codes(lists).usable();
  }

  // `lists` are those that the values belong to.
  const KeyCodes& codes(const InvertedLists& lists) const {
    return are_keys_ ? lists.codes : codes_;
  }
  // Factor of a code in addition to its weight: the norm of the key if codes
  // are of normalised keys, otherwise 1.
  double NormOf(const InvertedLists& lists, std::int64_t position) const {
    if (!normalised_) return 1;
    const double inverse = lists.inverse_norms[position];
    return inverse > 0 ? 1 / inverse : 0;
  }
  // [lists, dim], means of each list's coded values.
  MatrixView means(const InvertedLists& lists) const {
    return {are_keys_ ? lists.means->means.data() : means_.data(),
            lists.list_count(), dim_};
  }
  // Means over the values of a list.
  struct Means {
    double square = 0;  // of the values' squared norms
    // Means of the codes' squared scales, times the key's norm or its square if
    // the codes are of normalised keys.
    double scale_square_norm = 0;
    double scale_square_norm_square = 0;
  };
  std::span<const Means> list_means() const { return list_means_; }

  // For values that are not keys.
  void Save(ByteSink& sink) const;
  static absl::StatusOr<ListValues> Load(ByteSource& source,
                                         const InvertedLists& lists,
                                         std::uint64_t seed);

  // Does not count what belongs to the lists.
  std::int64_t memory_bytes() const;

 private:
  // Sets the scales in list_means_.
  void LearnScales(const InvertedLists& lists);

  bool are_keys_ = false;
  bool normalised_ = false;
  std::int64_t dim_ = 0;
  KeyCodes codes_;
  AlignedBuffer<float> means_;
  std::vector<Means> list_means_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_LISTS_LIST_VALUES_H_
