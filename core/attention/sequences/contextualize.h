// Self- and cross-attention over a sequence.
#ifndef ATTENDANT_CORE_ATTENTION_SEQUENCES_CONTEXTUALIZE_H_
#define ATTENDANT_CORE_ATTENTION_SEQUENCES_CONTEXTUALIZE_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/attention/approximations/approximation.h"
#include "core/attention/models/model.h"
#include "core/attention/sequences/positions.h"
#include "core/attention/softmax/score.h"
#include "core/base/interrupt.h"
#include "core/base/views.h"

namespace attendant {

inline constexpr std::int64_t kMaxLayers = 32;
// The most tokens of a sequence or a memory for which weights are available.
inline constexpr std::int64_t kMaxWeightTokens = 512;

// A view: what it points to must outlive the call.
struct ContextualizeInput {
  // The source of queries [m, dim], m >= 1.
  MatrixView sequence;
  // The source of keys and values [n, memory_dim], n >= 1; unset: the sequence.
  // The same for all layers.
  std::optional<MatrixView> memory;
  // Multi-head models. A layer's outputs are the next layer's sequence. Empty:
  // one layer of one head that uses the vectors unprojected.
  std::span<const AttentionModel* const> layers;
  ScoreKind score_kind = ScoreKind::kScaledDot;  // or kDot, kCosine
  double temperature = 1;                        // finite, > 0
  // Token i attends only to tokens 0 to i, of the memory if there is one.
  bool causal = false;
  // Positions that no token attends to, of the memory if there is one: the true
  // entries of PyTorch's key_padding_mask. In [0, n); may repeat. Padded rows
  // of a memory need not be finite; without a memory, padded tokens are still
  // queries and must be finite.
  std::span<const std::int32_t> padding_positions;
  // Position encodings are added once, to the sequence and to the memory.
  PositionKind positions = PositionKind::kNone;
  // Applies to every layer. LinformerOptions exclude `causal` and
  // include_weights.
  Approximation approximation;
  // Requests the last layer's weights.
  bool include_weights = false;
  // Limit on the outputs of a layer before the last, m x output_dim floats: no
  // reply holds them, so no other limit applies.
  std::int64_t max_hidden_bytes = std::numeric_limits<std::int64_t>::max();
  Interrupt interrupt;
};

// The shape of the result for a valid input.
struct ContextShape {
  std::int64_t output_dim = 0;
  std::int64_t head_count = 1;  // of the last layer
};

struct SequenceContext {
  Matrix outputs;                    // [m, the last layer's output_dim]
  std::vector<Matrix> head_weights;  // [m, n] by head, or empty
  // Pairs that are not masked, counted per layer and head.
  std::int64_t scored_count = 0;
};

// Returns the shape of Contextualize(input) at no cost, or the error that it
// would return. Not every error is found.
absl::StatusOr<ContextShape> ContextShapeOf(const ContextualizeInput& input);

// Computes each token's weighted mean of what it attends to; zeros for a token
// that attends to nothing. See AttendMultiHead for the method, and
// approximation.h for approximations.
//
// Without `causal` and positions, permuting the tokens permutes the outputs bit
// for bit, because weights are added up in an order that depends only on the
// tokens' floats. Two layers in one call give the same bytes as two calls.
//
// Thread-safe: holds no state. Memory beyond input and outputs: that of
// AttendApproximately and 6 bytes per token; with positions, a copy of the
// sequence and the memory; between layers, one layer's outputs.
//
// InvalidArgument naming a field of the wire's ContextualizeRequest: shapes
// disagree, a layer is not a multi-head model, a position is out of range, or
// AttendApproximately refuses the input. ResourceExhausted: AttendApproximately
// refuses the input, weights of more than kMaxWeightTokens tokens, more than
// kMaxLayers layers, or a hidden layer over max_hidden_bytes. Cancelled and
// DeadlineExceeded from the interrupt.
absl::StatusOr<SequenceContext> Contextualize(const ContextualizeInput& input);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_SEQUENCES_CONTEXTUALIZE_H_
