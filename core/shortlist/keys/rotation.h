// A random orthogonal transform, which spreads what a vector holds over all of
// its components: rounds of random signs and Walsh-Hadamard transforms (Ailon,
// Chazelle 2009). Dot products keep their values, and codes of the transformed
// components err alike whatever the keys are.
#ifndef ATTENDANT_CORE_SHORTLIST_KEYS_ROTATION_H_
#define ATTENDANT_CORE_SHORTLIST_KEYS_ROTATION_H_

#include <cstdint>
#include <vector>

namespace attendant {

// Immutable; thread-safe.
class Rotation {
 public:
  // Vectors that ApplyToBlock takes at once.
  static constexpr std::int64_t kBlockRows = 16;

  // dim >= 1. The same for the same seed.
  Rotation(std::int64_t dim, std::uint64_t seed);

  std::int64_t dim() const { return dim_; }

  // In place: of one vector [dim], and of kBlockRows of them, which lie
  // interleaved, [dim, kBlockRows]. A vector's result is the same in both.
  void Apply(float* vector) const;
  void ApplyToBlock(float* block) const;
  // Back again, of one vector, in doubles.
  void Undo(double* vector) const;

  // What rounding may add to the result of a vector of norm 1, in norm.
  double relative_error() const;

 private:
  static constexpr int kRounds = 2;

  template <std::int64_t kRows>
  void ApplyTo(float* vectors) const;

  std::int64_t dim_;
  std::int64_t transform_dim_;  // the greatest power of 2 that is at most dim
  // [transforms, transform_dim], + or - what makes a transform orthogonal.
  std::vector<float> signs_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KEYS_ROTATION_H_
