#include "core/shortlist/keys/rotation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "core/kernels/kernels.h"

namespace attendant {
namespace {

// The Walsh-Hadamard transform of the kernels.
void Transform(double* vector, std::int64_t size) {
  for (std::int64_t half = 1; half < size; half *= 2) {
    for (std::int64_t begin = 0; begin < size; begin += 2 * half) {
      double* first = vector + begin;
      double* second = first + half;
      for (std::int64_t i = 0; i < half; ++i) {
        const double sum = first[i] + second[i];
        second[i] = first[i] - second[i];
        first[i] = sum;
      }
    }
  }
}

}  // namespace

Rotation::Rotation(std::int64_t dim, std::uint64_t seed)
    : dim_(dim),
      transform_dim_(static_cast<std::int64_t>(
          std::bit_floor(static_cast<std::uint64_t>(dim)))) {
  const auto factor =
      static_cast<float>(1 / std::sqrt(static_cast<double>(transform_dim_)));
  const std::int64_t transforms = transform_dim_ < dim ? 2 * kRounds : kRounds;
  std::mt19937_64 random(seed);
  signs_.resize(static_cast<std::size_t>(transforms * transform_dim_));
  for (float& sign : signs_) sign = (random() >> 63) != 0 ? factor : -factor;
}

template <std::int64_t kRows>
void Rotation::ApplyTo(float* vectors) const {
  // Transforms the first components and then, if any are left over, the last
  // ones; the two ranges overlap.
  const std::int64_t rest = dim_ - transform_dim_;
  const float* signs = signs_.data();
  for (int round = 0; round < kRounds; ++round) {
    for (std::int64_t begin = 0; begin <= rest;
         begin += std::max<std::int64_t>(rest, 1)) {
      float* first = vectors + begin * kRows;
      for (std::int64_t d = 0; d < transform_dim_; ++d) {
        for (std::int64_t r = 0; r < kRows; ++r) {
          first[d * kRows + r] *= signs[d];
        }
      }
      ActiveKernels().Transform(first, transform_dim_ * kRows, kRows);
      signs += transform_dim_;
    }
  }
}

void Rotation::Apply(float* vector) const { ApplyTo<1>(vector); }

void Rotation::ApplyToBlock(float* block) const { ApplyTo<kBlockRows>(block); }

// A transform is symmetric and signs are their own inverses, so Undo applies
// them in reverse order.
void Rotation::Undo(double* vector) const {
  const std::int64_t rest = dim_ - transform_dim_;
  const float* signs = signs_.data() + signs_.size();
  const auto undo = [&](double* first) {
    signs -= transform_dim_;
    Transform(first, transform_dim_);
    for (std::int64_t d = 0; d < transform_dim_; ++d) first[d] *= signs[d];
  };
  for (int round = 0; round < kRounds; ++round) {
    if (rest > 0) undo(vector + rest);
    undo(vector);
  }
}

double Rotation::relative_error() const {
  // Each of at most 2 transforms per round has log2 stages, whose sums round
  // once, and a product that rounds twice, including the rounding of the factor
  // itself. In norm, each rounding adds 2^-24.
  const double stages = std::log2(static_cast<double>(transform_dim_)) + 2;
  return 2 * kRounds * stages * std::exp2(-24);
}

}  // namespace attendant
