// A random orthogonal transform that spreads what a vector holds over all of
// its components: rounds of random signs and Walsh-Hadamard transforms (Ailon,
// Chazelle 2009). It preserves dot products, and codes of the transformed
// components have similar errors whatever the keys are.
#ifndef ATTENDANT_CORE_SHORTLIST_KEYS_ROTATION_H_
#define ATTENDANT_CORE_SHORTLIST_KEYS_ROTATION_H_

#include <cstdint>
#include <vector>

namespace attendant {

// Immutable; thread-safe.
class Rotation {
 public:
  // Vectors that ApplyToBlock transforms at once.
  static constexpr std::int64_t kBlockRows = 16;

  // dim >= 1. The same seed gives the same rotation.
  Rotation(std::int64_t dim, std::uint64_t seed);

  std::int64_t dim() const { return dim_; }

  // Transform in place: one vector [dim], or kBlockRows interleaved vectors
  // [dim, kBlockRows]. A vector's result is the same in both.
  void Apply(float* vector) const;
  void ApplyToBlock(float* block) const;
  // Inverts Apply for one vector [dim], in doubles.
  void Undo(double* vector) const;

  // Upper bound of the norm of the rounding error of a vector of norm 1.
  double relative_error() const;

 private:
  static constexpr int kRounds = 2;

  template <std::int64_t kRows>
  void ApplyTo(float* vectors) const;

  std::int64_t dim_;
  std::int64_t transform_dim_;  // the greatest power of 2 <= dim
  // [transforms, transform_dim], + or - the factor that makes a transform
  // orthogonal.
  std::vector<float> signs_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KEYS_ROTATION_H_
