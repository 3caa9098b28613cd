// The rows that a query sees. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_SCAN_ELIGIBLE_ROWS_H_
#define ATTENDANT_CORE_SHORTLIST_SCAN_ELIGIBLE_ROWS_H_

#include <cstdint>
#include <span>

#include "core/base/bitmap.h"
#include "core/base/ids.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

// The rows below a query's row_end that its masks leave. The masks must outlive
// the object.
class EligibleRows {
 public:
  explicit EligibleRows(const ScanQuery& query)
      : row_end_(query.row_end),
        allowed_(WordsOf(query.allowed)),
        allowed_beyond_(query.allowed == nullptr ? ~std::uint64_t{0} : 0),
        excluded_(WordsOf(query.excluded)) {}

  // Bit i is set if row 64 w + i is eligible.
  std::uint64_t Word(std::int64_t w) const {
    const std::uint64_t word = MaskWord(static_cast<std::size_t>(w));
    const std::int64_t visible = row_end_ - 64 * w;
    if (visible >= 64) return word;
    return visible <= 0 ? 0 : word & ((std::uint64_t{1} << visible) - 1);
  }
  // Returns 1 if `row` is eligible, otherwise 0.
  std::uint64_t Bit(RowIndex row) const {
    const std::uint64_t word =
        row < row_end_ ? MaskWord(static_cast<std::size_t>(row >> 6)) : 0;
    return word >> (row & 63) & 1;
  }

 private:
  static std::span<const std::uint64_t> WordsOf(const Bitmap* bitmap) {
    if (bitmap == nullptr) return {};
    return bitmap->words();
  }
  std::uint64_t MaskWord(std::size_t w) const {
    const std::uint64_t word =
        w < allowed_.size() ? allowed_[w] : allowed_beyond_;
    return word & ~(w < excluded_.size() ? excluded_[w] : 0);
  }

  RowIndex row_end_;
  // Words of the masks. allowed_beyond_ stands for the words past the end of
  // allowed_.
  std::span<const std::uint64_t> allowed_;
  std::uint64_t allowed_beyond_;
  std::span<const std::uint64_t> excluded_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_SCAN_ELIGIBLE_ROWS_H_
