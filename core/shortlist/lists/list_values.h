// The values of an index's rows as codes of 4 bits: what is pooled of rows that
// are not scored from their floats. Internal.
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

// Values in the order of the keys of inverted lists, each coded as what it is
// beyond its list's mean. Immutable; thread-safe.
class ListValues {
 public:
  // Every row's value is its key, and the keys' codes are the values' codes.
  // normalised: those codes are of normalised keys, as under COSINE.
  static ListValues OfKeys(const InvertedLists& lists, bool normalised);
  // `values` of value_dim floats; the key where a row has none.
  static ListValues Of(const InvertedLists& lists, const ValueSource& values,
                       std::int64_t value_dim, std::uint64_t seed,
                       int thread_count);

  bool are_keys() const { return are_keys_; }
  // What is coded is value / norm, so that the key's norm is a factor.
  bool normalised() const { return normalised_; }
  std::int64_t dim() const { return dim_; }
  // False if some value is too large for codes.
  bool usable(const InvertedLists& lists) const {
    return codes(lists).usable();
  }

  // `lists` are those that the values are of.
  const KeyCodes& codes(const InvertedLists& lists) const {
    return are_keys_ ? lists.codes : codes_;
  }
  // What a code counts beside its weight: the norm of a key that was
  // normalised.
  double NormOf(const InvertedLists& lists, std::int64_t position) const {
    if (!normalised_) return 1;
    const double inverse =
        lists.inverse_norms[static_cast<std::size_t>(position)];
    return inverse > 0 ? 1 / inverse : 0;
  }
  // Of each list's coded values.
  MatrixView means(const InvertedLists& lists) const {
    return {are_keys_ ? lists.means->means.data() : means_.data(),
            lists.list_count(), dim_};
  }
  // What is known of a list's values.
  struct Means {
    double square = 0;  // of their norms
    // Of their codes' scales squared, and the same times the key's norm, or its
    // square, where codes are of normalised keys.
    double scale_square_norm = 0;
    double scale_square_norm_square = 0;
  };
  std::span<const Means> list_means() const { return list_means_; }

  // Of values that are not keys.
  void Save(ByteSink& sink) const;
  static absl::StatusOr<ListValues> Load(ByteSource& source,
                                         const InvertedLists& lists,
                                         std::uint64_t seed);

  // Without what is the lists' own.
  std::int64_t memory_bytes() const;

 private:
  // What list_means_ says of scales.
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
