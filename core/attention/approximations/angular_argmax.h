// Cross-polytope LSH (Andoni et al. 2015): hashes a vector by random
// directions.
#ifndef ATTENDANT_CORE_ATTENTION_APPROXIMATIONS_ANGULAR_ARGMAX_H_
#define ATTENDANT_CORE_ATTENTION_APPROXIMATIONS_ANGULAR_ARGMAX_H_

#include <cmath>
#include <cstdint>

namespace attendant {

// argmax([p; -p]) of a vector's products p with random directions, added in
// parts: the direction that the vector is nearest to, either along it or
// against it. Of equal products the first wins; if all are zero, direction 0,
// along.
struct AngularArgmax {
  std::int64_t direction = 0;
  bool is_against = false;
  float size = 0;  // absolute value of the product
  std::int64_t added_count = 0;

  // Adds the finite products [count] with the directions that follow those
  // already added.
  void Add(const float* products, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (!(std::abs(products[i]) > size)) continue;
      size = std::abs(products[i]);
      direction = added_count + i;
      is_against = products[i] < 0;
    }
    added_count += count;
  }

  // Returns the bucket in [0, 2 x added_count): first the buckets along the
  // directions, then those against.
  std::int64_t bucket() const {
    return direction + (is_against ? added_count : 0);
  }
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_APPROXIMATIONS_ANGULAR_ARGMAX_H_
