// Keys as codes of 8 bits per component, whose high nibbles are codes of 4
// bits: a scan reads a quarter or an eighth of the bytes of the floats. Keys
// are rotated so that their components are alike, and each key is quantised in
// 255 equal steps of its own scale.
#ifndef ATTENDANT_CORE_SHORTLIST_KEYS_KEY_CODES_H_
#define ATTENDANT_CORE_SHORTLIST_KEYS_KEY_CODES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/aligned_buffer.h"
#include "core/base/byte_stream.h"
#include "core/base/views.h"
#include "core/kernels/codes.h"
#include "core/shortlist/keys/rotation.h"

namespace attendant {

// Bits of a code that are read.
enum class CodeBits { k4, k8 };

// The codes of n keys, in the order of the keys: key p is row p % 16 of block p
// / 16. Immutable; thread-safe.
//
// If keys lie in lists, a code is that of the key minus its list's mean: the
// nearer the key is to the mean, the finer the steps.
//
// Error of a code: let k be a key, R the rotation and c the code as a vector of
// floats, scale x (code - 128). With q' the coded query,
//   |q . k - q' . c| <= |q'| |R k - c| + |R q - q'| |k|.
// In the first term, |R k - c| is at most ErrorPerScale(bits) times the key's
// scale; this holds for every key, since ErrorPerScale is the greatest such
// ratio found. The second term is bounded by the query's own rounding. Taken as
// a random vector, R k - c has components of mean 0 and variance step^2 / 12,
// where step is 1 scale for 8 bits and 16 scales for 4 bits.
class KeyCodes {
 public:
  // Keys, queries and logits are used as codes only well within the range of
  // floats. No step is smaller than kMinScale, however near to 0 the components
  // are.
  static constexpr double kMaxNorm = 1e30;
  static constexpr float kMinScale = 1e-30f;
  // Covers, with a margin, the rounding of the float sums that errors are
  // computed from: the root of a sum of n squares is off by at most n 2^-25 of
  // itself, and n is at most kMaxDimension.
  static constexpr double kSlack = 1 + 3e-4;

  KeyCodes() = default;
  // Codes keys[p] x factors[p], or the keys as they are if `factors` is empty.
  // dim in [1, kMaxDimension].
  KeyCodes(MatrixView keys, std::span<const float> factors, std::uint64_t seed)
      : KeyCodes(keys, factors, MatrixView{}, {}, seed, /*thread_count=*/1) {}
  // Codes the keys, scaled as above, minus the mean of each key's list. List l
  // holds the keys from offsets[l] to offsets[l + 1]. The codes do not depend
  // on the number of threads.
  KeyCodes(MatrixView keys, std::span<const float> factors, MatrixView means,
           std::span<const std::int64_t> offsets, std::uint64_t seed,
           int thread_count);

  std::int64_t key_count() const { return key_count_; }
  std::int64_t dim() const { return rotation_.dim(); }
  std::int64_t step_count() const { return CodeStepCount(dim()); }
  const Rotation& rotation() const { return rotation_; }
  // False if there are no keys, or some key is too large to rotate and code in
  // floats; the codes must then not be used.
  bool usable() const { return totals_.usable; }

  // One scale per key, then 0 up to the end of the last block.
  std::span<const float> scales() const { return scales_.span(); }
  float max_scale() const { return totals_.max_scale; }
  // Mean over keys.
  double mean_square_scale() const {
    return totals_.square_scale_sum / static_cast<double>(key_count_);
  }
  // RepeatsOf: how many keys of a list have the same code as a key of the list,
  // in the mean over its keys; 1 if all codes differ. Equal keys have equal
  // errors, so the variance of the sum of their errors is that many times the
  // variance for different keys. If keys lie in no lists, all are in list 0.
  bool has_repeats() const { return !repeats_.empty(); }
  bool TellsRepeatsOf(std::size_t list_count) const {
    return repeats_.empty() || repeats_.size() == list_count;
  }
  double RepeatsOf(std::int64_t list) const {
    return repeats_.empty() ? 1 : repeats_[list];
  }
  // The greatest norm among the coded vectors.
  double max_norm() const { return totals_.max_norm; }
  // The greatest norm among those of a list, rounded up; 0 if it is empty. Only
  // if the codes are usable and of keys in lists: KnowsLists is true for as
  // many.
  float MaxNormOf(std::int64_t list) const { return list_norms_[list]; }
  bool KnowsLists(std::size_t list_count) const {
    return list_norms_.size() == list_count;
  }
  double ErrorPerScale(CodeBits bits) const {
    return bits == CodeBits::k4 ? totals_.error_per_scale_4
                                : totals_.error_per_scale_8;
  }

  // Sets logits[q * stride + i] to the logit of query q and key 16 x
  // first_block + i, for 16 x block_count keys; those in the last block may be
  // past the end.
  void Logits(std::span<const CodeQuery> queries, CodeBits bits,
              std::int64_t first_block, std::int64_t block_count,
              std::int64_t stride, float* logits) const {
    Logits(queries, bits, first_block, block_count, first_block + block_count,
           stride, logits);
  }
  // As above, and also prefetches the blocks from next_block on.
  void Logits(std::span<const CodeQuery> queries, CodeBits bits,
              std::int64_t first_block, std::int64_t block_count,
              std::int64_t next_block, std::int64_t stride,
              float* logits) const;

  // Sets logits[16 i + r] to the logit of key r of blocks[i], from 4 bits. The
  // `count` blocks may be in any order. Gives the same bytes as Logits.
  void LogitsAt(const CodeQuery& query, const std::int32_t* blocks,
                std::int64_t count, float* logits) const;

  // Adds to `sums` a weighted sum of the keys in up to kMaxWeighedBlocks
  // blocks, as 4 bits show them, rotated and divided by the keys' scales:
  //   sums[d] += unit x sum of weights[16 b + r] x (16 n + 7.5 - 128 + e_d)
  // for d in [0, 8 step_count). The sum is over all b and r; n is the high
  // nibble of component d of row r in blocks[b], and e_d the mean error of
  // component d over all keys. Without e_d, the errors of the greatest
  // components, which lie where the steps end, would add up. See
  // WeighCodesKernels.
  void AddWeighed(std::span<const std::uint32_t> weights, int plane_count,
                  std::span<const std::int32_t> blocks, double unit,
                  double* sums) const;

  // Frees the memory of the low nibbles; only 4 bits may be read afterwards.
  void DropLowPlane() { low_plane_ = {}; }
  // True if 8 bits may be read.
  bool has_low_plane() const { return low_plane_.size() == high_plane_.size(); }

  // Prefetches the codes of a block, or the scales of the keys [begin, end).
  void PrefetchBlock(std::int64_t block, CodeBits bits) const;
  void PrefetchScales(std::int64_t begin, std::int64_t end) const;

  std::int64_t memory_bytes() const;

  // Load takes the seed that the saved codes were made with.
  void Save(ByteSink& sink) const;
  static KeyCodes Load(ByteSource& source, std::uint64_t seed);

 private:
  // Totals over coded keys, all or some of them.
  struct Totals {
    bool usable = true;
    float max_scale = 0;
    double scale_sum = 0;
    double square_scale_sum = 0;
    std::vector<double> errors_4;  // of 4 bits, sum by component
    double max_norm = 0;
    double error_per_scale_4 = 0;
    double error_per_scale_8 = 0;

    void Add(const Totals& others);
  };
  struct Source;
  // What is made of each key while it is coded.
  struct OfKeys {
    std::vector<std::uint64_t> hashes;  // of the code
    std::vector<float> norms;           // of the coded vector, rounded up
  };

  // Codes the keys of blocks [begin, end), and stops at the first that is not
  // usable.
  void EncodeBlocks(const Source& source, std::int64_t begin, std::int64_t end,
                    Totals& totals, OfKeys& of_keys);
  // Quantises the rotated rows of one block, [dim, 16]. Adds the errors of the
  // codes of 4 bits to errors_4 [dim, 16].
  void EncodeBlock(const float* rotated, std::int64_t block, Totals& totals,
                   float* errors_4, std::uint64_t* hashes);
  void FindListNorms(std::span<const std::int64_t> offsets,
                     std::span<const float> norms);
  // Sets repeats_. Sorts the hashes of each list.
  void CountRepeats(std::span<const std::int64_t> offsets,
                    std::span<std::uint64_t> hashes);

  std::int64_t key_count_ = 0;
  Rotation rotation_{1, 0};
  AlignedBuffer<std::uint8_t> high_plane_;
  AlignedBuffer<std::uint8_t> low_plane_;
  AlignedBuffer<float> scales_;
  std::vector<float> repeats_;     // [lists]; empty: all 1
  std::vector<float> list_norms_;  // [lists], see MaxNormOf
  Totals totals_ = {.usable = false, .errors_4 = {}};
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KEYS_KEY_CODES_H_
