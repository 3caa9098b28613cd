#include "core/shortlist/kinds/product_codes.h"

#include <algorithm>
#include <random>
#include <utility>

#include "core/base/status.h"
#include "core/kernels/kernels.h"
#include "core/shortlist/builds/guard_build.h"
#include "core/shortlist/lists/learn_centroids.h"

namespace attendant {
namespace {

// Number of keys that centroids are learned from.
constexpr std::int64_t kTrainingKeys = 64 * 256;

// Returns positions of keys chosen at random.
std::vector<std::int64_t> SamplePositions(std::int64_t key_count,
                                          std::uint64_t seed) {
  std::vector<std::int64_t> positions(static_cast<std::size_t>(key_count));
  for (std::int64_t p = 0; p < key_count; ++p) {
    positions[p] = p;
  }
  const auto count =
      static_cast<std::size_t>(std::min(key_count, kTrainingKeys));
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < count; ++i) {
    std::swap(positions[i], positions[i + random() % (positions.size() - i)]);
  }
  positions.resize(count);
  return positions;
}

}  // namespace

absl::Status ProductCodes::Build(MatrixView keys,
                                 std::span<const float> factors,
                                 const ProductCodeOptions& options) {
  options_ = options;
  dim_ = keys.dim;
  const std::int64_t parts = options.part_count;
  centroids_.assign(static_cast<std::size_t>(dim_ * kCentroids), 0);
  codes_.resize(static_cast<std::size_t>(keys.row_count * parts));
  const std::vector<std::int64_t> sample =
      SamplePositions(keys.row_count, options.seed);
  std::vector<float> rows;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t first = PartBegin(part);
    const std::int64_t width = PartBegin(part + 1) - first;
    const auto append = [&](std::int64_t position) {
      const float* key = keys.Row(position).data() + first;
      const float factor = factors[position];
      for (std::int64_t d = 0; d < width; ++d) rows.push_back(key[d] * factor);
    };
    rows.clear();
    for (const std::int64_t position : sample) append(position);
    const auto sample_count = static_cast<std::int64_t>(sample.size());
    const LearnOptions learn_options = {
        .centroid_count = std::min(kCentroids, sample_count),
        .seed = options.seed,
        .cancelled = options.cancelled};
    ATTENDANT_ASSIGN_OR_RETURN(
        const std::vector<float> centroids,
        LearnCentroids({rows.data(), sample_count, width}, learn_options));
    for (std::int64_t c = 0; c < learn_options.centroid_count; ++c) {
      for (std::int64_t d = 0; d < width; ++d) {
        centroids_[(first + d) * kCentroids + c] = centroids[c * width + d];
      }
    }

    ATTENDANT_RETURN_IF_ERROR(
        EncodePart(keys, factors, part, learn_options.centroid_count));
  }
  return absl::OkStatus();
}

absl::Status ProductCodes::EncodePart(MatrixView keys,
                                      std::span<const float> factors,
                                      std::int64_t part,
                                      std::int64_t centroid_count) {
  const Kernels& kernels = ActiveKernels();
  // |x - c|^2 / 2 = |x|^2 / 2 - (x . c - |c|^2 / 2): the greatest score wins.
  std::vector<float> half_squares(kCentroids);
  for (std::int64_t d = PartBegin(part); d < PartBegin(part + 1); ++d) {
    for (std::int64_t c = 0; c < centroid_count; ++c) {
      const float component = centroids_[d * kCentroids + c];
      half_squares[c] += component * component / 2;
    }
  }
  float scores[kCentroids];
  std::int32_t best[kCentroids];
  for (std::int64_t p = 0; p < keys.row_count; ++p) {
    if (p % 256 == 0 && IsCancelled(options_.cancelled)) {
      return BuildCancelled();
    }
    const float factor = factors[p];
    for (std::int64_t c = 0; c < kCentroids; ++c) {
      scores[c] = -half_squares[c];
    }
    for (std::int64_t d = PartBegin(part); d < PartBegin(part + 1); ++d) {
      const float component = keys.Row(p)[d] * factor;
      const float* of_component = centroids_.data() + d * kCentroids;
      for (std::int64_t c = 0; c < kCentroids; ++c) {
        scores[c] += component * of_component[c];
      }
    }
    // Takes the first of equal scores; finds none if a score is NaN.
    const bool found =
        kernels.SelectAtLeast(scores, centroid_count,
                              kernels.Max(scores, centroid_count), best) > 0;
    codes_[p * options_.part_count + part] =
        static_cast<std::uint8_t>(found ? best[0] : 0);
  }
  return absl::OkStatus();
}

void ProductCodes::MakeTable(std::span<const float> query,
                             std::vector<float>& table) const {
  table.assign(static_cast<std::size_t>(options_.part_count * kCentroids), 0);
  for (std::int64_t part = 0; part < options_.part_count; ++part) {
    float* products = table.data() + part * kCentroids;
    for (std::int64_t d = PartBegin(part); d < PartBegin(part + 1); ++d) {
      const float component = query[d];
      const float* of_component = centroids_.data() + d * kCentroids;
      for (std::int64_t c = 0; c < kCentroids; ++c) {
        products[c] += component * of_component[c];
      }
    }
  }
}

void ProductCodes::Save(ByteSink& sink) const {
  sink.Put(options_.part_count);
  sink.PutArray(std::span<const float>(centroids_));
  sink.PutArray(std::span<const std::uint8_t>(codes_));
}

absl::StatusOr<ProductCodes> ProductCodes::Load(ByteSource& source,
                                                std::int64_t key_count,
                                                std::int64_t dim) {
  ProductCodes codes;
  codes.dim_ = dim;
  codes.options_.part_count = source.Get<std::int64_t>();
  codes.centroids_ = source.GetArray<std::vector<float>>();
  codes.codes_ = source.GetArray<std::vector<std::uint8_t>>();
  ATTENDANT_RETURN_IF_ERROR(source.status());
  const std::int64_t parts = codes.part_count();
  if (parts < 1 || parts > dim ||
      static_cast<std::int64_t>(codes.centroids_.size()) != dim * kCentroids ||
      static_cast<std::int64_t>(codes.codes_.size()) != key_count * parts) {
    return absl::DataLossError("it has no codes of its keys");
  }
  return codes;
}

}  // namespace attendant
