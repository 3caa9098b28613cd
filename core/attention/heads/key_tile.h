// A tile of keys and values, projected for every head. Internal.
#ifndef ATTENDANT_CORE_ATTENTION_HEADS_KEY_TILE_H_
#define ATTENDANT_CORE_ATTENTION_HEADS_KEY_TILE_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "core/attention/heads/multi_head.h"
#include "core/attention/heads/size.h"
#include "core/base/aligned_buffer.h"

namespace attendant {

// The most keys in a tile. The sums of values over a tile are floats: their
// rounding error is at most this many times 2^-24 of the sum of the addends'
// sizes.
inline constexpr std::int64_t kTileKeys = 128;

// Not thread-safe.
class KeyTile {
 public:
  // `input` must be valid and outlive the object.
  explicit KeyTile(const MultiHeadInput& input);

  // Returns the number of keys in the mask's order. The order is that of
  // positions unless the mask has its own.
  std::int64_t order_size() const { return order_size_; }

  // Loads at most kTileKeys keys, from `first` on in that order, without those
  // that no query up to `last_query` may attend to. The tile may be empty then.
  absl::Status Load(std::int64_t first, std::int64_t last_query);

  std::int64_t size() const { return size_; }
  // Positions of the keys in the input [size].
  const std::int32_t* positions() const { return positions_.data(); }
  std::int32_t max_position() const { return max_position_; }
  // Keys of one head [size, head_key_dim], under COSINE of norm 1 or 0.
  const float* keys(std::int64_t head) const;
  // An upper bound of the norms of a head's keys.
  double max_norm(std::int64_t head) const { return max_norms_[Size(head)]; }
  // Values of one head [size, head_value_dim].
  const float* values(std::int64_t head) const;

 private:
  void Choose(std::int64_t first, std::int64_t last_query);
  absl::Status LoadKeys();
  absl::Status LoadValues();
  std::span<const std::int32_t> chosen() const {
    return {positions_.data(), Size(size_)};
  }

  const MultiHeadInput& input_;
  std::int64_t order_size_;
  std::int64_t size_ = 0;
  std::int32_t max_position_ = -1;
  AlignedBuffer<std::int32_t> positions_;  // [kTileKeys]
  AlignedBuffer<float> gathered_keys_;     // [kTileKeys, key_dim]
  AlignedBuffer<float> gathered_values_;   // [kTileKeys, value_dim]
  AlignedBuffer<float> projected_keys_;    // [heads, kTileKeys, head_key_dim]
  AlignedBuffer<float> projected_values_;  // [heads, kTileKeys, head_value_dim]
  AlignedBuffer<double> max_norms_;        // [heads]
  // The data of keys() and values(): projected, or as in the input.
  const float* keys_ = nullptr;
  const float* values_ = nullptr;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_HEADS_KEY_TILE_H_
