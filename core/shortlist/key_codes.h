// Keys as codes of 8 bits a component, whose high nibbles are codes of 4 bits:
// a quarter and an eighth of their floats to read. Keys are rotated, so that
// components are alike, and each is cut into 255 equal steps of its own scale.
#ifndef ATTENDANT_CORE_SHORTLIST_KEY_CODES_H_
#define ATTENDANT_CORE_SHORTLIST_KEY_CODES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/aligned_buffer.h"
#include "core/base/byte_stream.h"
#include "core/base/views.h"
#include "core/kernels/codes.h"
#include "core/shortlist/rotation.h"

namespace attendant {

// How many bits of a code are read.
enum class CodeBits { k4, k8 };

// How many bits a component of a query has. With 8 many queries take little
// more than half the time, and logits err by the query's rounding too, alike
// for keys that are alike.
enum class QueryBits { k8, k16 };

class CodedQuery;

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
  KeyCodes() = default;
  // Codes of keys[p] x factors[p]; of keys as they are if factors is empty.
  // dim in [1, 8192].
  KeyCodes(MatrixView keys, std::span<const float> factors, std::uint64_t seed)
      : KeyCodes(keys, factors, MatrixView{}, {}, seed) {}
  // The same less the mean of each key's list, list l holding the keys from
  // offsets[l] to offsets[l + 1].
  KeyCodes(MatrixView keys, std::span<const float> factors, MatrixView means,
           std::span<const std::int64_t> offsets, std::uint64_t seed);

  std::int64_t key_count() const { return key_count_; }
  std::int64_t dim() const { return rotation_.dim(); }
  std::int64_t step_count() const { return CodeStepCount(dim()); }
  const Rotation& rotation() const { return rotation_; }
  // False if some key is too large or too small for floats to rotate and cut,
  // or there is none: the codes must then not be used.
  bool usable() const { return usable_; }

  // One a key, and 0 up to the end of the last block.
  std::span<const float> scales() const { return scales_.span(); }
  float max_scale() const { return max_scale_; }
  // Over keys.
  double mean_square_scale() const {
    return square_scale_sum_ / static_cast<double>(key_count_);
  }
  // The greatest norm of what was coded.
  double max_norm() const { return max_norm_; }
  double ErrorPerScale(CodeBits bits) const {
    return bits == CodeBits::k4 ? error_per_scale_4_ : error_per_scale_8_;
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

  // The sum over up to kMaxWeighedBlocks blocks of their keys' weights times
  // what 4 bits say of them over their scales, rotated:
  // sums[d] = sum of weights[16 b + r] x (16 n + 7.5 - 128 + the mean error of
  // all keys' component d), [8 step_count]; overwritten. See WeighCodesKernels.
  // Without their means the errors of the greatest components, which are where
  // the steps end, would add up.
  void Weigh(std::span<const std::uint32_t> weights, int plane_count,
             std::span<const std::int32_t> blocks, double* sums) const;

  // Gives the memory of 8 bits back: only 4 may be read from then on.
  void DropLowPlane() { low_plane_ = {}; }

  // Asks for the codes of a block, or the scales of keys [begin, end).
  void PrefetchBlock(std::int64_t block, CodeBits bits) const;
  void PrefetchScales(std::int64_t begin, std::int64_t end) const;

  std::int64_t memory_bytes() const;

  // The inverse gets the seed that they were made with.
  void Save(ByteSink& sink) const;
  static KeyCodes Load(ByteSource& source, std::uint64_t seed);

 private:
  // Quantises the rows of a block, [dim, 16], which are rotated.
  void EncodeBlock(const float* rotated, std::int64_t block);

  std::int64_t key_count_ = 0;
  Rotation rotation_{1, 0};
  AlignedBuffer<std::uint8_t> high_plane_;
  AlignedBuffer<std::uint8_t> low_plane_;
  AlignedBuffer<float> scales_;
  float max_scale_ = 0;
  double scale_sum_ = 0;
  double square_scale_sum_ = 0;
  std::vector<double> errors_4_;  // of 4 bits, summed by component
  double max_norm_ = 0;
  double error_per_scale_4_ = 0;
  double error_per_scale_8_ = 0;
  bool usable_ = false;
};

// A query as the code kernels take it. Reused from query to query, it does not
// allocate. Not thread-safe.
class CodedQuery {
 public:
  // Codes `query` [dim], whose logits are dot products x logit_factor. False if
  // its logits may be beyond a float, or too small for one. Queries of one call
  // of KeyCodes::Logits have the same bits.
  bool Encode(const KeyCodes& codes, std::span<const float> query,
              double logit_factor, QueryBits bits = QueryBits::k16);
  // The same query for other codes of the same rotation; false as above.
  bool EncodeAs(const CodedQuery& other, const KeyCodes& codes);

  // Those that it was encoded for.
  const KeyCodes& codes() const { return *codes_; }
  // Valid until the next Encode, and while the object lives.
  const CodeQuery& view() const { return view_; }
  // The same with another logit factor, and with its first 8 bits alone.
  CodeQuery WithFactor(double logit_factor,
                       QueryBits bits = QueryBits::k16) const {
    CodeQuery query = view_;
    query.unit = static_cast<float>(scale_ * logit_factor);
    if (bits == QueryBits::k8) query.low = nullptr;
    return query;
  }
  double norm() const { return norm_; }  // of the query

  // The logit of a key of scale s is off by at most
  // LogitErrorPerScale(bits) x s + logit_error().
  double LogitErrorPerScale(CodeBits bits) const;
  double logit_error() const { return logit_error_; }
  // As a random number, it has this variance for a key of scale 1; of scale s
  // s^2 of it.
  double LogitVariancePerSquareScale(CodeBits bits) const;

 private:
  // False if logits of these codes may be beyond a float.
  bool Bind(const KeyCodes& codes);

  const KeyCodes* codes_ = nullptr;
  double logit_factor_ = 1;
  double norm_ = 0;
  double error_norm_ = 0;  // of the rotated query, less its codes
  std::vector<float> rotated_;
  std::vector<std::int8_t> planes_;  // high, then low
  CodeQuery view_;
  double scale_ = 0;       // of the query's codes
  double logit_norm_ = 0;  // of the coded query, x logit_factor
  double logit_error_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KEY_CODES_H_
