// The inner loops: one table of functions per instruction set, chosen at run
// time. Each function has a scalar twin of the same meaning.
//
// Thread-safe: all are pure functions of their arguments. None allocates.
// Pointers need no alignment. Counts may be 0.
#ifndef ATTENDANT_CORE_KERNELS_KERNELS_H_
#define ATTENDANT_CORE_KERNELS_KERNELS_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace attendant {

enum class KernelLevel { kScalar, kAvx2, kAvx512 };

// Sums over a block of logits, with e_i = exp(logit_i - max).
struct ExpSums {
  double sum = 0;         // of e_i
  double sum_gap = 0;     // of e_i * (logit_i - max), which is <= 0
  double sum_square = 0;  // of e_i^2
};

// Statistics of lists of keys, one array entry per list. Products of a list's
// keys with a query of norm 1 are modelled as normal.
struct NormalLists {
  const float* reaches;      // scores minus mean products
  const float* log_counts;   // log of the number of keys; < 0: no keys
  const float* mean_shares;  // variance along the mean, relative to its square
  const float* variances;    // variance across the mean
};

// Number of powers that SumPowers sums.
inline constexpr int kPowers = 7;

// Numbers per chunk of DotChunks.
inline constexpr std::int64_t kChunk = 16;

// The most numbers that Rank accepts.
inline constexpr std::int64_t kMaxRanked = 192;

// The error of a product of DotRows times a factor is at most this times the
// factor and both norms: its terms pass at most 83 roundings for 8,192
// dimensions.
inline constexpr double kDotRounding = 90 * 0x1p-24;

struct Kernels {
  // dots[r] = query . row r, for row_count rows of dim floats each, row-major.
  // A term passes at most ceil(min(dim, 64 w) / w) + log2 w + ceil(dim / (64
  // w)) roundings to float, where w is 8 or 16 floats per register; one in the
  // scalar twin, which adds in doubles. At a given level the additions of a
  // pair have one order, whatever the other rows and queries are: the same pair
  // gives the same bytes in DotRows and DotRowsMulti.
  void (*DotRows)(const float* query, const float* rows, std::int64_t row_count,
                  std::int64_t dim, float* dots);

  // dots[i] = query . row positions[i], for count rows of `rows` in any order.
  // Gives the same bytes as DotRows.
  void (*DotRowsAt)(const float* query, const float* rows,
                    const std::int32_t* positions, std::int64_t count,
                    std::int64_t dim, float* dots);

  // dots[q * row_count + r] = query q . row r, for query_count queries.
  void (*DotRowsMulti)(const float* queries, std::int64_t query_count,
                       const float* rows, std::int64_t row_count,
                       std::int64_t dim, float* dots);

  // dots[r] = sum over j of output_weight[j] * tanh(query[j] + row r[j]), for
  // row_count rows of dim finite floats each. The relative error of each tanh,
  // including the rounding of its argument, is at most 2^-21, and none exceeds
  // 1 in absolute value, so that dots stay within the L1 norm of output_weight
  // up to the rounding of their sum. At a given level that sum has one order,
  // whatever the other rows are.
  //
  // Error bound, by Expm1 of -2|t| (avx2.cc), in units of 2^-24: |t| has 1 from
  // its sum, the argument's remainder 1/2 absolute, the polynomial 2.6
  // relative, and 2^n p + (2^n - 1) then at most 4.1; the quotient multiplies
  // that by 1 + |tanh|, which is 1.2 where the error is greatest, and adds 2.
  void (*TanhDotRows)(const float* query, const float* output_weight,
                      const float* rows, std::int64_t row_count,
                      std::int64_t dim, float* dots);

  // scaled[i] = numbers[i] * factor, for n numbers, each rounded once. Returns
  // false if some product is not finite. `scaled` may be `numbers`.
  bool (*Scale)(const float* numbers, std::int64_t n, float factor,
                float* scaled);

  // Returns the greatest of n >= 1 numbers, none of them NaN.
  float (*Max)(const float* numbers, std::int64_t n);

  // numbers[i] += terms[i], for n >= 1 numbers, each rounded once. Returns the
  // greatest of the sums, none of which may be NaN.
  float (*AddMax)(const float* terms, std::int64_t n, float* numbers);

  // logits[i] += shift - factor * scales[i]^2, for n >= 1 logits, with at most
  // four roundings, the same at a level for every position i. Returns the
  // greatest of the logits, none of which may be NaN.
  float (*CorrectMax)(const float* scales, float factor, float shift,
                      std::int64_t n, float* logits);

  // Sums over n logits, none above max, which is finite; a logit may be
  // -infinity, then e_i is 0. If exps is not null it receives e_i; it may be
  // `logits`. With gap = logit_i - max, the relative error of each e_i is at
  // most 2^-21 + |gap| * 2^-24, except that e_i is 0 below a gap of -87. A few
  // terms at a time are added as floats, and those sums as doubles: the error
  // of a sum is its terms' errors plus at most 9 * 2^-24 of the sum (8 for
  // `sum`; sum_square is also off by what is below 2^-90).
  ExpSums (*SumExps)(const float* logits, std::int64_t n, float max,
                     float* exps);

  // sums[k] = the sum of the 2^(k + 1)-th powers of n numbers in [0, 1], for k
  // < kPowers. Each power is the square of the one before if that is at least
  // 2^-63, else 0: other squares may be denormal, which take processors a
  // hundred times as long. Powers have a relative error of 2^(k + 1) 2^-24, and
  // each sum passes at most n / 8 + 8 further roundings to float.
  void (*SumPowers)(const float* numbers, std::int64_t n, double* sums);

  // exps[i] = exp(logit_i - max) in doubles, for n logits that are at most max,
  // which is finite. The relative error is at most 2^-50, or 1 where the gap is
  // below -700. Returns their sum; each addition rounds once.
  double (*Exps)(const float* logits, std::int64_t n, double max, double* exps);

  // Writes the positions i with numbers[i] >= threshold in ascending order and
  // returns their number. positions has room for n.
  std::int64_t (*SelectAtLeast)(const float* numbers, std::int64_t n,
                                float threshold, std::int32_t* positions);

  // ranks[i] = the position of number i after a stable ascending sort of n
  // numbers: how many are less, or equal and before it. Takes n^2 steps. n <=
  // kMaxRanked.
  void (*Rank)(const std::uint32_t* numbers, std::int64_t n,
               std::uint32_t* ranks);

  // Returns how many numbers are >= threshold.
  std::int64_t (*CountAtLeast)(const float* numbers, std::int64_t n,
                               float threshold);

  // log_sums[l] = the log of the sum of exps of list l's n logits, modelled as
  // normal with mean m = unit (scores[l] - reaches[l]) and variance v = m^2
  // mean_shares[l] + spread variances[l]: log n + m + v / 2, or m + sqrt(2 v
  // log n) where v > 2 log n; -infinity without keys. In floats; products and
  // sums round once each or together.
  void (*NormalLogSums)(const NormalLists& lists, const float* scores,
                        float unit, float spread, std::int64_t list_count,
                        float* log_sums);

  // For the same lists and their measured log sums. Takes as v the variance at
  // which normal logits would have that log sum. log_squares[l] = the log of
  // the sum of the squares of list l's exps, log n + 2 m + 2 v, at most 2
  // log_sums[l]. Returns the sum over l of weights[l] (t - max), where t is the
  // mean of the list's logits weighted by their exps, m + v, at most
  // log_sums[l]; weights of 0 add nothing. Reads only the reaches and log
  // counts of the lists. In floats; products and sums round once each or
  // together.
  double (*NormalSquares)(const NormalLists& lists, const float* scores,
                          float unit, const float* log_sums,
                          const float* weights, float max,
                          std::int64_t list_count, float* log_squares);

  // of_key[l] = exp(power * log_sums[l] - log n - max), where n is the number
  // of keys of list l, or 1 if it has none: the share of each key in the power
  // of their sum. None is above 1; log_sums may be -infinity, which gives 0.
  // With x the exponent, a float that has the roundings of its terms and of two
  // sums, the relative error is that of SumExps; for x below -87 the result is
  // 0.
  void (*ExpsPerKey)(const float* log_sums, const float* log_counts,
                     std::int64_t list_count, float power, float max,
                     float* of_key);

  // sums[c] = sum of a[i] * b[i] over chunk c of n numbers; a chunk has kChunk
  // numbers, the last perhaps fewer. At most kChunk + 1 roundings to float.
  void (*DotChunks)(const float* a, const float* b, std::int64_t n,
                    float* sums);

  // The Walsh-Hadamard transform of each of row_count interleaved vectors,
  // [size / row_count, row_count], both powers of 2, in place and not
  // normalised: in stage s = log2(row_count), ..., log2(size) - 1, each pair of
  // components i and i + 2^s, where i lacks bit s, becomes its sum and
  // difference, each rounded once. Gives the same bytes at every level.
  void (*Transform)(float* vectors, std::int64_t size, std::int64_t row_count);

  // sum[i] += factor * row[i], for dim entries: sums of values in doubles.
  void (*AddScaled)(double factor, const float* row, std::int64_t dim,
                    double* sum);

  // sum[i] += factors[r] * rows[r][i], for n rows anywhere in memory, one after
  // the other. Gives the same bytes as AddScaled.
  void (*AddScaledRows)(const double* factors, const float* const* rows,
                        std::int64_t n, std::int64_t dim, double* sum);

  // Overwrites sums[q * dim + d] with the sum over r of weights[q * row_count +
  // r] * rows[r * dim + d]: pools the values of a tile of rows for query_count
  // queries. Each sum is one float to which the rows are added in order,
  // whatever the other queries are, so it suits a few hundred rows. All inputs
  // must be finite.
  void (*PoolRows)(const float* weights, std::int64_t query_count,
                   const float* rows, std::int64_t row_count, std::int64_t dim,
                   float* sums);
};

// Returns the best level of this processor, lowered by the environment variable
// ATTENDANT_KERNELS (scalar, avx2 or avx512) if set. Fixed at the first call.
KernelLevel ActiveKernelLevel();

// True if this processor can run `level`.
bool IsSupported(KernelLevel level);

// Returns the table of a supported level.
const Kernels& KernelsFor(KernelLevel level);

// Returns KernelsFor(ActiveKernelLevel()).
const Kernels& ActiveKernels();

// Returns "scalar", "avx2" or "avx512".
absl::string_view KernelLevelName(KernelLevel level);

}  // namespace attendant

#endif  // ATTENDANT_CORE_KERNELS_KERNELS_H_
