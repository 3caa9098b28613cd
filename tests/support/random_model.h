// Attention models with random weights.
#ifndef ATTENDANT_TESTS_SUPPORT_RANDOM_MODEL_H_
#define ATTENDANT_TESTS_SUPPORT_RANDOM_MODEL_H_

#include <cstdint>
#include <random>
#include <vector>

#include "core/attention/models/model.h"

namespace attendant {

// Numbers in [-1, 1), reproducible from the seed.
class RandomFloats {
 public:
  explicit RandomFloats(std::uint32_t seed) : random_(seed) {}

  float One() { return static_cast<float>(random_() >> 8) * 0x1p-23f - 1.0f; }
  std::vector<float> Vector(std::int64_t n) {
    std::vector<float> floats(static_cast<std::size_t>(n));
    for (float& f : floats) f = One();
    return floats;
  }
  attendant::Matrix Matrix(std::int64_t row_count, std::int64_t column_count) {
    return {row_count, column_count, Vector(row_count * column_count)};
  }
  attendant::Projection Projection(std::int64_t row_count,
                                   std::int64_t column_count) {
    return {Matrix(row_count, column_count), Vector(row_count)};
  }

 private:
  std::mt19937 random_;
};

// Two heads with keys [3] and values [2]; queries [5], keys [4], values [6],
// output [7].
inline AttentionModel RandomMultiHeadModel(std::uint32_t seed) {
  RandomFloats random(seed);
  MultiHeadProjections heads;
  heads.head_count = 2;
  heads.query = random.Projection(6, 5);
  heads.key = random.Projection(6, 4);
  heads.value = random.Projection(4, 6);
  heads.output = random.Projection(7, 4);
  return {heads};
}

// Queries [3], keys [5].
inline AttentionModel RandomBilinearModel(std::uint32_t seed) {
  return {BilinearForm{RandomFloats(seed).Matrix(3, 5)}};
}

// Queries [3], keys [5], four hidden units.
inline AttentionModel RandomAdditiveModel(std::uint32_t seed) {
  RandomFloats random(seed);
  AdditiveNetwork network;
  network.query_weight = random.Matrix(4, 3);
  network.key_weight = random.Matrix(4, 5);
  network.output_weight = random.Vector(4);
  return {network};
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_RANDOM_MODEL_H_
