// Compares a column of numbers, 64 rows per word: the inner loops of filters.
// One table of functions per instruction set, as in kernels.h, each with a
// scalar twin of the same meaning.
//
// Thread-safe: all are pure functions of their arguments. None allocates.
// Pointers need no alignment. Counts may be 0.
#ifndef ATTENDANT_CORE_KERNELS_COMPARE_H_
#define ATTENDANT_CORE_KERNELS_COMPARE_H_

#include <cstdint>

#include "core/kernels/kernels.h"

namespace attendant {

// All but CountBits write ceil(n / 64) words: bit i % 64 of word i / 64 tells
// whether row i passes; bits beyond n are clear. Nothing beyond n is read.
struct CompareKernels {
  // low <= numbers[i] <= high.
  void (*Integers)(const std::int64_t* numbers, std::int64_t n,
                   std::int64_t low, std::int64_t high, std::uint64_t* words);
  // low <= numbers[i] <= high. NaN does not pass; 0 equals -0.
  void (*Doubles)(const double* numbers, std::int64_t n, double low,
                  double high, std::uint64_t* words);
  // codes[i] == code.
  void (*Code)(const std::int32_t* codes, std::int64_t n, std::int32_t code,
               std::uint64_t* words);
  // Bit codes[i] % 32 of chosen[codes[i] / 32] is set. Codes outside [0,
  // code_count) do not pass. `chosen` has ceil(code_count / 32) words,
  // code_count >= 1.
  void (*Codes)(const std::int32_t* codes, std::int64_t n,
                const std::uint32_t* chosen, std::int32_t code_count,
                std::uint64_t* words);
  // Returns the number of bits that are set in `words` and not in `but` (null:
  // no bits), over n words.
  std::int64_t (*CountBits)(const std::uint64_t* words,
                            const std::uint64_t* but, std::int64_t n);
};

// Returns the table of a supported level.
const CompareKernels& CompareKernelsFor(KernelLevel level);

// Returns CompareKernelsFor(ActiveKernelLevel()).
const CompareKernels& ActiveCompareKernels();

}  // namespace attendant

#endif  // ATTENDANT_CORE_KERNELS_COMPARE_H_
