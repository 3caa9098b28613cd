// Multi-head attention of many queries over many keys, exact and in tiles.
//
// Vaswani et al. 2017, sec. 3.2, computed as in FlashAttention (Dao et al.
// 2022; Milakov, Gimelshein 2018): keys are processed in tiles, each query
// keeps an online softmax and the sum of e x value, and no [m, n] matrix of
// logits is ever held. The sums within a tile are floats and those over tiles
// are doubles, so that a million keys add up as accurately as a hundred.
#ifndef ATTENDANT_CORE_ATTENTION_HEADS_MULTI_HEAD_H_
#define ATTENDANT_CORE_ATTENTION_HEADS_MULTI_HEAD_H_

#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/attention/models/model.h"
#include "core/attention/softmax/score.h"
#include "core/base/interrupt.h"
#include "core/base/views.h"

namespace attendant {

// Which of n keys each of m queries may attend to: the keys that no member
// forbids. A masked pair has weight exactly 0. A query without any key gets
// zeros.
struct AttentionMask {
  // Query i attends to keys 0 to i.
  bool causal = false;
  // The keys that may be attended to at all, each at most once, in the order in
  // which their weights are added up. Unset: all keys, by position.
  std::optional<std::span<const std::int32_t>> attended;
  // [m, n], row-major: not 0 where the query may not attend to the key. This is
  // the convention of attn_mask in PyTorch's nn.MultiheadAttention, and the
  // opposite of that in its scaled_dot_product_attention. Empty: forbids
  // nothing.
  std::span<const std::uint8_t> forbidden;
  // [n], or empty: a key whose time is after query_time is masked. A key at
  // absl::InfinitePast() never is.
  std::span<const absl::Time> key_times;
  absl::Time query_time = absl::InfiniteFuture();
};

// The keys that one query may attend to, among those that `attended` and times
// allow. A view of the mask.
struct AllowedKeys {
  std::int64_t last = 0;                    // the greatest position
  const std::uint8_t* forbidden = nullptr;  // [n]; null: none

  bool Has(std::int64_t key) const {
    return key <= last && (forbidden == nullptr || forbidden[key] == 0);
  }
};

// The names of the three inputs in errors.
struct AttentionInputNames {
  absl::string_view queries = "queries";
  absl::string_view keys = "keys";
  absl::string_view values = "values";
};

// The input of an attention call. A view: what it points to must outlive the
// call.
struct MultiHeadInput {
  // Null: one head that uses queries, keys and values unprojected.
  const MultiHeadProjections* heads = nullptr;
  MatrixView queries;                            // [m, query_dim], m >= 0
  MatrixView keys;                               // [n, key_dim], 0 <= n < 2^31
  MatrixView values;                             // [n, value_dim]
  ScoreKind score_kind = ScoreKind::kScaledDot;  // or kDot, kCosine
  double temperature = 1;                        // finite, > 0
  ActivationKind activation_kind = ActivationKind::kSoftmax;
  AttentionMask mask;
  Interrupt interrupt;
  AttentionInputNames names;

  std::int64_t head_count() const { return heads ? heads->head_count : 1; }
  // Returns the components of a query or key in one head.
  std::int64_t head_key_dim() const {
    return heads ? heads->head_key_dim() : queries.dim;
  }
  std::int64_t head_value_dim() const {
    return heads ? heads->head_value_dim(values.dim) : values.dim;
  }
  std::int64_t output_dim() const {
    return heads ? heads->output_dim(values.dim) : values.dim;
  }
  bool projects_values() const { return heads != nullptr && heads->value; }
  AllowedKeys AllowedFor(std::int64_t query) const {
    return {mask.causal ? query : keys.row_count,
            mask.forbidden.empty()
                ? nullptr
                : mask.forbidden.data() + query * keys.row_count};
  }
};

// OK if shapes agree and options are in range, else InvalidArgument. Does not
// check the floats.
absl::Status ValidateMultiHead(const MultiHeadInput& input);

// Overwrites outputs [m, output_dim]: each query's weighted sums of values,
// joined over heads, through W_O. A query without a key gets zeros, without any
// bias. `weights`, if not null, is [head_count, m, n] and receives the weights;
// the activation must then be SOFTMAX.
//
// Returns the number of pairs of query and key that were scored, counted once
// per head.
//
// Under COSINE a query or key of norm 0 in a head has similarity 0 with all
// others in it.
//
// Thread-safe: holds no state. Memory beyond the arguments does not grow with m
// or n: at most 2,048 queries (8 MiB in all, if more than one) and 128 keys are
// held projected at a time.
//
// InvalidArgument: shapes disagree; an option is out of range; a query, or a
// key or value that neither `attended` nor its time leaves out, is not finite;
// a logit that is not masked, or an output, overflows. Cancelled and
// DeadlineExceeded from the interrupt, which is checked every few thousand
// pairs. After an error the outputs are unspecified.
absl::StatusOr<std::int64_t> AttendMultiHead(const MultiHeadInput& input,
                                             float* outputs,
                                             float* weights = nullptr);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_HEADS_MULTI_HEAD_H_
