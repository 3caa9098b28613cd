// The set of keys that a query has met. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_SCAN_VISITED_KEYS_H_
#define ATTENDANT_CORE_SHORTLIST_SCAN_VISITED_KEYS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace attendant {

// A set of positions that is quick to clear, because it keeps a list of its
// positions in addition to their bits. Not thread-safe; keeps its memory from
// query to query.
class VisitedKeys {
 public:
  // Empties the set, for positions in [0, key_count).
  void Reset(std::int64_t key_count) {
    for (const std::int32_t position : positions_) {
      words_[position >> 6] = 0;
    }
    positions_.clear();
    const auto word_count = static_cast<std::size_t>((key_count + 63) / 64);
    if (words_.size() < word_count) words_.resize(word_count);
  }

  // Returns false if `position` was already in the set.
  bool Add(std::int32_t position) {
    const auto w = static_cast<std::size_t>(position >> 6);
    const std::uint64_t bit = std::uint64_t{1} << (position & 63);
    if ((words_[w] & bit) != 0) return false;
    positions_.push_back(position);
    words_[w] |= bit;
    return true;
  }

  bool Has(std::int32_t position) const {
    return (words_[position >> 6] >> (position & 63)) & 1;
  }
  // The positions in the order in which they were added.
  std::span<const std::int32_t> positions() const { return positions_; }

 private:
  std::vector<std::uint64_t> words_;
  std::vector<std::int32_t> positions_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_SCAN_VISITED_KEYS_H_
