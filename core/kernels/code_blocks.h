// Iterates over blocks of codes, for vector levels of any register width.
// Internal.
#ifndef ATTENDANT_CORE_KERNELS_CODE_BLOCKS_H_
#define ATTENDANT_CORE_KERNELS_CODE_BLOCKS_H_

#include <cstdint>

#include "core/kernels/codes.h"

namespace attendant {

// How a plane's sum of products with codes becomes a dot product: factor *
// (2^shift * sum - middle * the sum of the query's components).
struct CodeMeaning {
  int shift;
  std::int32_t middle;
  float factor;
};
constexpr CodeMeaning CodeMeaningOf(int bits) {
  return bits == 8 ? CodeMeaning{0, 128, 1} : CodeMeaning{5, 241, 0.5f};
}

// The scales of a tile's rows, and where their logits are written.
struct CodeTarget {
  const float* scales;  // of the tile's first row
  std::int64_t stride;
  float* logits;  // of the first row and query
};

// The blocks of a call, from block `first` on.
struct CodeBlocks {
  const std::uint8_t* high;
  const std::uint8_t* low;
  std::int64_t step_count;
  std::int64_t block_count;  // in the call
  // The first block of the next call, as an index in this call.
  std::int64_t next_block;
  std::int64_t first = 0;  // the block that high and low point to

  CodeBlocks From(std::int64_t block) const {
    const std::int64_t at = (block - first) * CodePlaneBytes(step_count);
    return {high + at, low + at, step_count, block_count, next_block, block};
  }
  // Returns the distance from `first` to the block that is read `count` blocks
  // later, perhaps in the next call.
  std::int64_t Ahead(std::int64_t count) const {
    const std::int64_t left = block_count - first;
    return count < left ? count : next_block - first + count - left;
  }
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_KERNELS_CODE_BLOCKS_H_
