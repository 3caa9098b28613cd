// Cheaper, inexact attention that the caller may choose.
#ifndef ATTENDANT_CORE_ATTENTION_APPROXIMATIONS_APPROXIMATION_H_
#define ATTENDANT_CORE_ATTENTION_APPROXIMATIONS_APPROXIMATION_H_

#include <cstdint>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/attention/heads/multi_head.h"

namespace attendant {

class LastLshBuckets;

// The name of reduced rows of keys and values in errors.
inline constexpr absl::string_view kReducedRows = "approximation.linformer";

inline constexpr std::int64_t kMaxLshBuckets = 4096;
inline constexpr std::int64_t kMaxLshRounds = 16;
// Limit on the components of all directions that a request hashes by: in each
// round there are half as many directions as buckets.
inline constexpr std::int64_t kMaxLshComponents = std::int64_t{1} << 23;
// Limit on the bytes that a request hashes: the keys of one head, and its
// values where a model projects them.
inline constexpr std::int64_t kMaxLshBytes = std::int64_t{256} << 20;
inline constexpr std::int64_t kMaxReducedRows = 4096;

// Locality-sensitive hashing (Reformer, Kitaev et al. 2020): a query attends to
// the keys that share a bucket with it in some round. Buckets depend on
// direction only, which suits COSINE and keys of equal norm. DOT and SCALED_DOT
// miss long keys at a wide angle, however much they weigh. See lsh_attention.h.
struct LshAttentionOptions {
  // Buckets per round: even, in [2, kMaxLshBuckets], at most MostLshBuckets.
  // More buckets are faster and miss more. The number used never exceeds the
  // number of keys, rounded up to even. 0: one bucket per 64 keys, within that
  // range.
  std::int64_t bucket_count = 0;
  // In [1, kMaxLshRounds]. More rounds are slower and miss less.
  std::int64_t round_count = 4;
  std::uint64_t seed = 1;
};

// Returns the most buckets per round, an even number, that kMaxLshComponents
// allows for keys of `dim` components.
inline std::int64_t MostLshBuckets(std::int64_t round_count, std::int64_t dim) {
  return kMaxLshComponents / (round_count * dim) * 2;
}

enum class ReductionKind {
  kSegmentMeans = 1,  // row i is the mean of the i-th part of the sequence
  kRandom = 2,        // entries drawn from N(0, 1 / row_count)
};

// Linformer (Wang et al. 2020): one fixed matrix reduces keys and values along
// the sequence to `row_count` rows each, and attention to these rows is exact.
// The reduced rows have no order and no single tokens, so there is no causal
// mask and there are no weights of tokens.
//
// The paper's eq. 7 has two matrices, E for keys and F for values, and applies
// them after W_K and W_V. Here F = E (the paper's "key-value sharing"), and E
// is applied before the projections, once for all heads. For kSegmentMeans the
// result is the same, as the factors of a mean sum to 1. For kRandom it is the
// same only without biases in W_K and W_V.
struct LinformerOptions {
  std::int64_t row_count = 256;  // in [1, kMaxReducedRows]
  ReductionKind kind = ReductionKind::kSegmentMeans;
  std::uint64_t seed = 1;  // for kRandom
};

// monostate: exact attention.
using Approximation =
    std::variant<std::monostate, LshAttentionOptions, LinformerOptions>;

inline bool IsExact(const Approximation& approximation) {
  return std::holds_alternative<std::monostate>(approximation);
}

// OK if the options are in range and can serve the input. Otherwise
// InvalidArgument, or ResourceExhausted above a limit, naming a field of the
// wire's requests, or mask.forbidden, which is not on the wire.
absl::Status ValidateApproximation(const Approximation& approximation,
                                   const MultiHeadInput& input);

// Computes AttendMultiHead exactly or by the approximation. `weights` is as for
// AttendMultiHead, with 0 for a key that the query did not meet; it must be
// null under LinformerOptions. `buckets` keeps the last buckets drawn, for the
// next layer. Memory: that of LshAttention and HeadJoin, or the reduced rows.
//
// Errors are those of AttendMultiHead. An error in reduced row r, which is no
// single token, names approximation.linformer[r].
absl::StatusOr<std::int64_t> AttendApproximately(
    const MultiHeadInput& input, const Approximation& approximation,
    LastLshBuckets& buckets, float* outputs, float* weights = nullptr);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_APPROXIMATIONS_APPROXIMATION_H_
