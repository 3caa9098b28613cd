#include "core/attention/approximations/lsh_buckets.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "core/attention/approximations/angular_argmax.h"
#include "core/base/random.h"
#include "core/base/status.h"
#include "core/kernels/kernels.h"

namespace attendant {
namespace {

// The number of directions projected on at a time.
constexpr std::int64_t kDirections = 256;
// The number of components drawn between two checks of the interrupt.
constexpr std::size_t kDraws = 4096;

// Normals are below 10 and components at most 65,536. Between these bounds dots
// are finite and lose nothing to underflow that could change the greatest.
constexpr float kShortest = 0x1p-60f;
constexpr float kLongest = 0x1p60f;

// Returns `row` times the power of two that brings its greatest component near
// 1, which changes no bucket; empty if dots with `row` itself are in range.
std::vector<float> WithinReach(const float* row, std::int64_t dim) {
  float greatest = 0;
  for (std::int64_t d = 0; d < dim; ++d) {
    greatest = std::max(greatest, std::abs(row[d]));
  }
  if (greatest == 0 || (kShortest <= greatest && greatest <= kLongest)) {
    return {};
  }
  std::vector<float> scaled(row, row + dim);
  const int exponent = std::ilogb(greatest);
  for (float& component : scaled) component = std::scalbn(component, -exponent);
  return scaled;
}

}  // namespace

LshBuckets::LshBuckets(const LshShape& shape)
    : shape_(shape),
      directions_(static_cast<std::size_t>(
          shape.round_count * shape.bucket_count / 2 * shape.dim)) {}

absl::StatusOr<std::shared_ptr<const LshBuckets>> LshBuckets::Draw(
    const LshShape& shape, const Interrupt& interrupt) {
  const std::shared_ptr<LshBuckets> buckets(new LshBuckets(shape));
  const std::span<float> directions = {buckets->directions_.data(),
                                       buckets->directions_.size()};
  for (std::size_t first = 0; first < directions.size(); first += kDraws) {
    ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
    FillNormals(
        NormalUse::kHashDirections, shape.seed, first,
        directions.subspan(first, std::min(kDraws, directions.size() - first)));
  }
  return buckets;
}

void LshBuckets::Of(const float* row, std::int32_t* buckets) const {
  const std::vector<float> scaled = WithinReach(row, shape_.dim);
  if (!scaled.empty()) row = scaled.data();
  const std::int64_t half = shape_.bucket_count / 2;
  float dots[kDirections];
  for (std::int64_t round = 0; round < shape_.round_count; ++round) {
    AngularArgmax nearest;
    for (std::int64_t first = 0; first < half; first += kDirections) {
      const std::int64_t count = std::min(kDirections, half - first);
      ActiveKernels().DotRows(row, direction(round, first), count, shape_.dim,
                              dots);
      nearest.Add(dots, count);
    }
    buckets[round] = static_cast<std::int32_t>(nearest.bucket());
  }
}

absl::StatusOr<std::shared_ptr<const LshBuckets>> LastLshBuckets::Get(
    const LshShape& shape, const Interrupt& interrupt) {
  if (last_ == nullptr || last_->shape() != shape) {
    last_ = nullptr;  // frees memory before the next draw
    ATTENDANT_ASSIGN_OR_RETURN(last_, LshBuckets::Draw(shape, interrupt));
  }
  return last_;
}

}  // namespace attendant
