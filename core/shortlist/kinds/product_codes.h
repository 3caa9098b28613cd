// Codes of keys by product quantisation. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_KINDS_PRODUCT_CODES_H_
#define ATTENDANT_CORE_SHORTLIST_KINDS_PRODUCT_CODES_H_

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/byte_stream.h"
#include "core/base/views.h"

namespace attendant {

struct ProductCodeOptions {
  std::int64_t part_count = 1;  // in [1, dim]
  std::uint64_t seed = 0;
  const std::atomic<bool>* cancelled = nullptr;
};

// One byte per part and key. Immutable once built; thread-safe.
class ProductCodes {
 public:
  // Codes keys [n, dim] x factors [n], n >= 1. Errors: Cancelled,
  // ResourceExhausted, Internal if FAISS fails.
  absl::Status Build(MatrixView keys, std::span<const float> factors,
                     const ProductCodeOptions& options);

  std::int64_t part_count() const { return options_.part_count; }

  // Sets table [parts, 256] to the products of each part of `query` with the
  // centroids of that part.
  void MakeTable(std::span<const float> query, std::vector<float>& table) const;

  // Returns the product of the query that `table` was made for with the code of
  // the key at `position`.
  float Product(const std::vector<float>& table, std::int64_t position) const {
    const std::uint8_t* code = codes_.data() + position * options_.part_count;
    const float* row = table.data();
    // Four sums, so that no addition waits for the one before it.
    float sums[4] = {};
    std::int64_t part = 0;
    for (; part + 4 <= options_.part_count; part += 4, row += 4 * kCentroids) {
      sums[0] += row[code[part]];
      sums[1] += row[kCentroids + code[part + 1]];
      sums[2] += row[2 * kCentroids + code[part + 2]];
      sums[3] += row[3 * kCentroids + code[part + 3]];
    }
    for (; part < options_.part_count; ++part, row += kCentroids) {
      sums[0] += row[code[part]];
    }
    return sums[0] + sums[1] + (sums[2] + sums[3]);
  }

  std::int64_t memory_bytes() const {
    return static_cast<std::int64_t>(codes_.size() +
                                     centroids_.size() * sizeof(float));
  }

  void Save(ByteSink& sink) const;
  // Loads the codes of key_count keys of `dim`. DataLoss if the bytes are no
  // such codes.
  static absl::StatusOr<ProductCodes> Load(ByteSource& source,
                                           std::int64_t key_count,
                                           std::int64_t dim);

 private:
  static constexpr std::int64_t kCentroids = 256;

  absl::Status EncodePart(MatrixView keys, std::span<const float> factors,
                          std::int64_t part, std::int64_t centroid_count);

  // The first component of `part`; dim for part_count.
  std::int64_t PartBegin(std::int64_t part) const {
    return part * dim_ / options_.part_count;
  }

  ProductCodeOptions options_;
  std::int64_t dim_ = 0;
  // [dim, 256], component by component; 0 past the last centroid.
  std::vector<float> centroids_;
  std::vector<std::uint8_t> codes_;  // [keys, parts]
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KINDS_PRODUCT_CODES_H_
