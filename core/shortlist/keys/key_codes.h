// Keys as codes of 8 bits a component, whose high nibbles are codes of 4 bits:
// a quarter and an eighth of their floats to read. Keys are rotated, so that
// components are alike, and each is cut into 255 equal steps of its own scale.
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

// How many bits of a code are read.
enum class CodeBits { k4, k8 };

// The codes of n keys, in the order of the keys: key p is row p % 16 of block
// p / 16. Immutable; thread-safe.
//
// Where keys lie in lists, a code is that of the key less its list's mean: the
// nearer to the mean, the finer the steps.
//
// The error of a code. Let k be a key, R the rotation and c the code as a
// vector, in floats scale x (code - 128). With q' the coded query,
//   |q . k - q' . c| <= |q'| |R k - c| + |R q - q'| |k|.
// The first factor |R k - c| is at most ErrorPerScale(bits) times the key's
// scale, which holds for every key as it is the greatest such ratio found; the
// second is bounded by the query's own rounding. As a random number R k - c has
// components of variance (step)^2 / 12, step being 1 or 16 scales, and mean 0.
class KeyCodes {
 public:
  // Keys, queries and logits are used as codes only well within the range of
  // floats; steps are no less than kMinScale, whatever is so near to 0.
  static constexpr double kMaxNorm = 1e30;
  static constexpr float kMinScale = 1e-30f;
  // Of the float sums that errors are taken from, and then some: a root of a
  // sum of n squares is off by n 2^-25 of itself at most, and n is
  // kMaxDimension at most.
  static constexpr double kSlack = 1 + 3e-4;

  KeyCodes() = default;
  // Codes of keys[p] x factors[p]; of keys as they are if factors is empty.
  // dim in [1, kMaxDimension].
  KeyCodes(MatrixView keys, std::span<const float> factors, std::uint64_t seed)
      : KeyCodes(keys, factors, MatrixView{}, {}, seed, /*thread_count=*/1) {}
  // The same less the mean of each key's list, list l holding the keys from
  // offsets[l] to offsets[l + 1]; the same for any number of threads.
  KeyCodes(MatrixView keys, std::span<const float> factors, MatrixView means,
           std::span<const std::int64_t> offsets, std::uint64_t seed,
           int thread_count);

  std::int64_t key_count() const { return key_count_; }
  std::int64_t dim() const { return rotation_.dim(); }
  std::int64_t step_count() const { return CodeStepCount(dim()); }
  const Rotation& rotation() const { return rotation_; }
  // False if some key is too large for floats to rotate and cut, or there is
  // none: the codes must then not be used.
  bool usable() const { return totals_.usable; }

  // One a key, and 0 up to the end of the last block.
  std::span<const float> scales() const { return scales_.span(); }
  float max_scale() const { return totals_.max_scale; }
  // Over keys.
  double mean_square_scale() const {
    return totals_.square_scale_sum / static_cast<double>(key_count_);
  }
  // How often the key of a list is there, in the mean over its keys: 1 where
  // none has the code of another. Equal keys have equal errors, so that the
  // variance of their sum is so many times that of as many different ones.
  // Where keys lie in no lists all are of list 0.
  bool has_repeats() const { return !repeats_.empty(); }
  bool TellsRepeatsOf(std::size_t list_count) const {
    return repeats_.empty() || repeats_.size() == list_count;
  }
  double RepeatsOf(std::int64_t list) const {
    return repeats_.empty() ? 1 : repeats_[static_cast<std::size_t>(list)];
  }
  // The greatest norm of what was coded.
  double max_norm() const { return totals_.max_norm; }
  double ErrorPerScale(CodeBits bits) const {
    return bits == CodeBits::k4 ? totals_.error_per_scale_4
                                : totals_.error_per_scale_8;
  }

  // logits[q * stride + i] of the keys from 16 x first_block on, for
  // 16 block_count of them, the last of which may be past the end.
  void Logits(std::span<const CodeQuery> queries, CodeBits bits,
              std::int64_t first_block, std::int64_t block_count,
              std::int64_t stride, float* logits) const {
    Logits(queries, bits, first_block, block_count, first_block + block_count,
           stride, logits);
  }
  // The same, and meanwhile asks for the blocks from next_block on.
  void Logits(std::span<const CodeQuery> queries, CodeBits bits,
              std::int64_t first_block, std::int64_t block_count,
              std::int64_t next_block, std::int64_t stride,
              float* logits) const;

  // logits[16 i + r] of key r of blocks[i], `count` blocks in any order, by 4
  // bits: the bytes of Logits.
  void LogitsAt(const CodeQuery& query, const std::int32_t* blocks,
                std::int64_t count, float* logits) const;

  // Adds `unit` times the sum over up to kMaxWeighedBlocks blocks of their
  // keys' weights times what 4 bits say of them over their scales, rotated:
  // sums[d] += unit x sum of weights[16 b + r] x (16 n + 7.5 - 128 + the mean
  // error of all keys' component d), [8 step_count]. See WeighCodesKernels.
  // Without their means the errors of the greatest components, which are where
  // the steps end, would add up.
  void AddWeighed(std::span<const std::uint32_t> weights, int plane_count,
                  std::span<const std::int32_t> blocks, double unit,
                  double* sums) const;

  // Gives the memory of 8 bits back: only 4 may be read from then on.
  void DropLowPlane() { low_plane_ = {}; }
  // Whether 8 may be read.
  bool has_low_plane() const { return low_plane_.size() == high_plane_.size(); }

  // Asks for the codes of a block, or the scales of keys [begin, end).
  void PrefetchBlock(std::int64_t block, CodeBits bits) const;
  void PrefetchScales(std::int64_t begin, std::int64_t end) const;

  std::int64_t memory_bytes() const;

  // The inverse gets the seed that they were made with.
  void Save(ByteSink& sink) const;
  static KeyCodes Load(ByteSource& source, std::uint64_t seed);

 private:
  // What becomes of keys when they are coded, some or all.
  struct Totals {
    bool usable = true;
    float max_scale = 0;
    double scale_sum = 0;
    double square_scale_sum = 0;
    std::vector<double> errors_4;  // of 4 bits, summed by component
    double max_norm = 0;
    double error_per_scale_4 = 0;
    double error_per_scale_8 = 0;

    void Add(const Totals& others);
  };
  struct Source;

  // Codes keys, until one is not usable; [key] gets what stands for its code.
  void EncodeBlocks(const Source& source, std::int64_t begin, std::int64_t end,
                    Totals& totals, std::uint64_t* hashes);
  // Quantises the rows of a block, [dim, 16], which are rotated; adds what
  // codes of 4 bits are off by to errors_4 [dim, 16].
  void EncodeBlock(const float* rotated, std::int64_t block, Totals& totals,
                   float* errors_4, std::uint64_t* hashes);
  // Sets repeats_; sorts the hashes of each list.
  void CountRepeats(std::span<const std::int64_t> offsets,
                    std::span<std::uint64_t> hashes);

  std::int64_t key_count_ = 0;
  Rotation rotation_{1, 0};
  AlignedBuffer<std::uint8_t> high_plane_;
  AlignedBuffer<std::uint8_t> low_plane_;
  AlignedBuffer<float> scales_;
  std::vector<float> repeats_;  // [lists]; empty: all are 1
  Totals totals_ = {.usable = false, .errors_4 = {}};
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KEYS_KEY_CODES_H_
