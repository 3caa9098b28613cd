// How far a misspelled name is from the one that was meant.
#ifndef ATTENDANT_CORE_BASE_MISSPELLED_H_
#define ATTENDANT_CORE_BASE_MISSPELLED_H_

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "absl/strings/string_view.h"

namespace attendant {

// Returns the number of letters to insert, delete or replace to turn one into
// the other (the Levenshtein distance).
inline std::size_t EditDistance(absl::string_view one,
                                absl::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);  // to each start of other
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < other.size(); ++j) {
      const std::size_t replaced = diagonal + (one[i] == other[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// The most edits by which a misspelled name may differ from the one meant.
inline std::size_t MaxEdits(absl::string_view name) {
  return std::min<std::size_t>(2, name.size() / 2);
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_MISSPELLED_H_
