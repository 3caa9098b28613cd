// Shared by the tests of indexes: ids, data and shorthands for scans.
#ifndef ATTENDANT_TESTS_CORE_SHORTLIST_SCAN_FIXTURE_H_
#define ATTENDANT_TESTS_CORE_SHORTLIST_SCAN_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "core/attention/softmax/state.h"
#include "core/shortlist/keys/inverse_norm.h"
#include "core/shortlist/kinds/flat_index.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

// Resolves no ids, so that ties break by row.
class NoIds : public IdResolver {
 public:
  absl::string_view IdOf(std::int32_t, RowIndex) const override { return {}; }
};

inline const NoIds kNoIds;

// Row-major keys; a row without a key has an empty span.
struct KeyTable {
  std::int64_t dim = 0;
  std::vector<float> floats;
  std::vector<std::span<const float>> keys;

  std::int64_t row_count() const {
    return static_cast<std::int64_t>(keys.size());
  }
};

inline KeyTable TableOf(std::int64_t dim, std::vector<float> floats,
                        const std::vector<RowIndex>& keyless = {}) {
  KeyTable table = {dim, std::move(floats), {}};
  for (std::size_t at = 0; at < table.floats.size();
       at += static_cast<std::size_t>(dim)) {
    table.keys.emplace_back(table.floats.data() + at,
                            static_cast<std::size_t>(dim));
  }
  for (const RowIndex row : keyless) {
    table.keys[row] = {};
  }
  return table;
}

// Keys around random centres. Centres and keys both deviate by 1 in each
// component. Keys are then multiplied by a random factor in [1, norm_spread].
inline KeyTable ClusteredKeys(std::int64_t row_count, std::int64_t dim,
                              std::int64_t cluster_count, std::uint64_t seed,
                              float norm_spread = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> factor(1, norm_spread);
  std::vector<float> centres(static_cast<std::size_t>(cluster_count * dim));
  for (float& component : centres) component = normal(random);
  std::vector<float> floats;
  for (std::int64_t r = 0; r < row_count; ++r) {
    const std::size_t centre = random() %
                               static_cast<std::uint64_t>(cluster_count) *
                               static_cast<std::size_t>(dim);
    const float f = norm_spread > 1 ? factor(random) : 1;
    for (std::int64_t d = 0; d < dim; ++d) {
      floats.push_back(
          f * (centres[centre + static_cast<std::size_t>(d)] + normal(random)));
    }
  }
  return TableOf(dim, std::move(floats));
}

inline std::unique_ptr<FlatIndex> FlatOf(const KeyTable& table) {
  auto index = std::make_unique<FlatIndex>(table.dim, table.row_count());
  for (const auto key : table.keys) index->Append(key);
  return index;
}

// Expects that an index of these unnormalised keys reports each of them
// correctly.
inline void ExpectKeys(const KeyIndex& index, const KeyTable& table) {
  double norm = 0;
  for (RowIndex row = 0; row < table.row_count(); ++row) {
    const std::span<const float> key = table.keys[row];
    const std::span<const float> found = index.Key(row);
    ASSERT_TRUE(std::equal(key.begin(), key.end(), found.begin(), found.end()))
        << row;
    norm = std::max(norm, Norm(key));
    const std::uint64_t bit = std::uint64_t{1} << (row % 64);
    EXPECT_EQ(index.Keyed(row / 64, bit), key.empty() ? 0 : bit) << row;
    if (key.empty()) {
      EXPECT_TRUE(std::isnan(index.inverse_norm(row))) << row;
    } else {
      EXPECT_EQ(index.inverse_norm(row), InverseNorm(key)) << row;
    }
  }
  EXPECT_EQ(index.Keyed(0, 0), 0);
  EXPECT_GE(index.max_norm(), norm);
  // Covers a list's mean and the keys' residuals from it.
  EXPECT_LE(index.max_norm(), 3 * norm);
}

// Returns a query for all rows of an index.
inline ScanQuery QueryFor(std::span<const float> query,
                          std::int64_t row_count) {
  ScanQuery scan;
  scan.query = query;
  scan.row_end = static_cast<RowIndex>(row_count);
  return scan;
}

inline std::vector<RowIndex> RowsOf(const std::vector<Candidate>& candidates) {
  std::vector<RowIndex> rows;
  for (const Candidate& candidate : candidates) rows.push_back(candidate.row);
  return rows;
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_CORE_SHORTLIST_SCAN_FIXTURE_H_
