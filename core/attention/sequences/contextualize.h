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
// Tokens of a sequence or a memory whose weights can be had.
inline constexpr std::int64_t kMaxWeightTokens = 512;

// A view: what it points to must outlive the call.
struct ContextualizeInput {
  // What queries come from [m, dim], m >= 1.
  MatrixView sequence;
  // What keys and values come from [n, memory_dim], n >= 1; unset: the
  // sequence. All layers have the same.
  std::optional<MatrixView> memory;
  // Multi-head models. A layer's outputs are the sequence of the next. Empty:
  // one layer of one head that takes the vectors as they are.
  std::span<const AttentionModel* const> layers;
  ScoreKind score_kind = ScoreKind::kScaledDot;  // or kDot, kCosine
  double temperature = 1;                        // finite, > 0
  // Token i attends to tokens 0 to i, of the memory if there is one.
  bool causal = false;
  // Positions that nothing attends to, of the memory if there is one: the true
  // entries of PyTorch's key_padding_mask. In [0, n); may repeat. What stands
  // there in the memory need not be finite; without one, padded tokens are
  // queries all the same, and must be.
  std::span<const std::int32_t> padding_positions;
  // Encodings are added once, to the sequence and to the memory.
  PositionKind positions = PositionKind::kNone;
  // Of every layer. LinformerOptions exclude `causal` and include_weights.
  Approximation approximation;
  // Asks for the last layer's weights.
  bool include_weights = false;
  // What the outputs of a layer before the last may take, m x output_dim
  // floats: no reply holds them, so none bounds them.
  std::int64_t max_hidden_bytes = std::numeric_limits<std::int64_t>::max();
  Interrupt interrupt;
};

// What comes of a valid input.
struct ContextShape {
  std::int64_t output_dim = 0;
  std::int64_t head_count = 1;  // of the last layer
};

struct SequenceContext {
  Matrix outputs;                    // [m, the last layer's output_dim]
  std::vector<Matrix> head_weights;  // [m, n] by head, or empty
  // Pairs that are not masked, by layer and head.
  std::int64_t scored_count = 0;
};

// The shape of what Contextualize makes of `input`, at no cost, or why it
// refuses it. Not all that it refuses is found.
absl::StatusOr<ContextShape> ContextShapeOf(const ContextualizeInput& input);

// Each token's weighted mean of what it attends to; zeros for a token that
// attends to nothing. See AttendMultiHead for the method, and approximation.h
// for others.
//
// Without `causal` and positions, permuting the tokens permutes the outputs, to
// the bit: weights are added up in an order that only the tokens' floats
// decide. Two layers give the bytes of two calls.
//
// Thread-safe: holds no state. Memory beyond input and outputs:
// AttendApproximately's, and 6 bytes a token; with positions, a copy of the
// sequence and the memory; between layers, one layer's outputs.
//
// InvalidArgument naming a field of the wire's ContextualizeRequest: shapes
// disagree, a layer is not a multi-head model, a position is out of range, and
// what AttendApproximately refuses. ResourceExhausted: that too, weights of
// more than kMaxWeightTokens tokens, more than kMaxLayers layers, or a hidden
// layer over max_hidden_bytes. Cancelled and DeadlineExceeded from the
// interrupt.
absl::StatusOr<SequenceContext> Contextualize(const ContextualizeInput& input);

}  // namespace attendant

#endif  // ATTENDANT_CORE_ATTENTION_SEQUENCES_CONTEXTUALIZE_H_
