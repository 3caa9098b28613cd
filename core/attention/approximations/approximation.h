// Cheaper attention that is not exact, by choice of whoever asks.
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

// What errors call reduced rows of keys and values.
inline constexpr absl::string_view kReducedRows = "approximation.linformer";

inline constexpr std::int64_t kMaxLshBuckets = 4096;
inline constexpr std::int64_t kMaxLshRounds = 16;
// Of the directions that a request hashes by, half as many as buckets in each
// round.
inline constexpr std::int64_t kMaxLshComponents = std::int64_t{1} << 23;
// Of the keys of one head, and of its values where a model projects them, that
// a request hashes.
inline constexpr std::int64_t kMaxLshBytes = std::int64_t{256} << 20;
inline constexpr std::int64_t kMaxReducedRows = 4096;

// Locality-sensitive hashing (Reformer, Kitaev et al. 2020): a query attends to
// the keys that share a bucket with it in some round. Buckets are of
// directions: right for COSINE, or keys of one norm. DOT and SCALED_DOT miss
// long keys at a wide angle, however much they weigh. See lsh_attention.h.
struct LshAttentionOptions {
  // Of a round, even, in [2, kMaxLshBuckets] and at most MostLshBuckets; more
  // are faster and miss more. There are never more than keys, or than the even
  // number that follows. 0: one for 64 keys, in that range.
  std::int64_t bucket_count = 0;
  // In [1, kMaxLshRounds]; more are slower and miss less.
  std::int64_t round_count = 4;
  std::uint64_t seed = 1;
};

// Buckets, an even number, that kMaxLshComponents allow for keys of a
// dimension.
inline std::int64_t MostLshBuckets(std::int64_t round_count, std::int64_t dim) {
  return kMaxLshComponents / (round_count * dim) * 2;
}

enum class ReductionKind {
  kSegmentMeans = 1,  // row i is the mean of the i-th part of the sequence
  kRandom = 2,        // entries drawn from N(0, 1 / row_count)
};

// Linformer (Wang et al. 2020): keys and values are reduced along the sequence
// to `row_count` rows each by one fixed matrix, and then attended to exactly.
// That knows no order, hence no causal mask, and no single token's weight.
//
// The paper's eq. 7 has two matrices, E for keys and F for values, and applies
// them after W_K and W_V. Here F = E (its "key-value sharing"), and E comes
// before, once for all heads. For means that is the same: their factors' sum is
// 1. For kRandom it is the same only without biases in W_K and W_V.
struct LinformerOptions {
  std::int64_t row_count = 256;  // in [1, kMaxReducedRows]
  ReductionKind kind = ReductionKind::kSegmentMeans;
  std::uint64_t seed = 1;  // of kRandom
};

// Nothing: exact.
using Approximation =
    std::variant<std::monostate, LshAttentionOptions, LinformerOptions>;

inline bool IsExact(const Approximation& approximation) {
  return std::holds_alternative<std::monostate>(approximation);
}

// OK if the options are in range and the input is one that they can serve, else
// InvalidArgument, or ResourceExhausted above a greatest number, naming a field
// of the wire's requests, or mask.forbidden, which those do not have.
absl::Status ValidateApproximation(const Approximation& approximation,
                                   const MultiHeadInput& input);

// AttendMultiHead, or what stands in for it; weights as there. A weight that a
// query has on a key that it did not meet is 0. Under LinformerOptions weights
// must be null. `buckets` are kept from layer to layer. Memory: LshAttention's
// and HeadJoin's, or the reduced rows.
//
// Errors as AttendMultiHead's; what is wrong with reduced row r, and with no
// one token, is said of approximation.linformer[r].
absl::StatusOr<std::int64_t> AttendApproximately(
    const MultiHeadInput& input, const Approximation& approximation,
    LastLshBuckets& buckets, float* outputs, float* weights = nullptr);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_APPROXIMATIONS_APPROXIMATION_H_
