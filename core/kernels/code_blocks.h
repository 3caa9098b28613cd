// How the vector levels go through blocks of codes, whatever their registers.
// Internal.
#ifndef ATTENDANT_CORE_KERNELS_CODE_BLOCKS_H_
#define ATTENDANT_CORE_KERNELS_CODE_BLOCKS_H_

#include <cstdint>

#include "core/kernels/codes.h"

namespace attendant {

// What a plane's sum of products with codes stands for.
struct CodeMeaning {
  int shift;            // the sum counts 2^shift times,
  std::int32_t middle;  // less this for each 1 of the query's components,
  float factor;         // and all of it this often
};
constexpr CodeMeaning CodeMeaningOf(int bits) {
  return bits == 8 ? CodeMeaning{0, 128, 1} : CodeMeaning{5, 241, 0.5f};
}

// Where the rows of a tile are scaled and written.
struct CodeTarget {
  const float* scales;  // of the tile's first row
  std::int64_t stride;
  float* logits;  // of the first row and query
};

// The blocks of a call, from one of them on.
struct CodeBlocks {
  const std::uint8_t* high;
  const std::uint8_t* low;
  std::int64_t step_count;
  std::int64_t block_count;  // of the call
  std::int64_t next_block;   // that the next call begins with, of the call's
  std::int64_t first = 0;    // that high and low point to

  CodeBlocks From(std::int64_t block) const {
    const std::int64_t at = (block - first) * CodePlaneBytes(step_count);
    return {high + at, low + at, step_count, block_count, next_block, block};
  }
  // How far from the first lies the block that is read `count` blocks later.
  std::int64_t Ahead(std::int64_t count) const {
    const std::int64_t left = block_count - first;
    return count < left ? count : next_block - first + count - left;
  }
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_KERNELS_CODE_BLOCKS_H_
