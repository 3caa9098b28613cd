#include "core/attention/sequences/contextualize.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/attention/approximations/lsh_buckets.h"
#include "core/attention/heads/multi_head.h"
#include "core/base/status.h"

namespace attendant {
namespace {

absl::Status CheckDim(std::int64_t got, std::int64_t want,
                      absl::string_view field, absl::string_view of) {
  if (got == want) return absl::OkStatus();
  return InvalidField(field, absl::StrCat("a model of ", of, " of ", want),
                      absl::StrCat(got));
}

// Checks that the dimensions of the layers fit, from the sequence to the
// outputs.
absl::StatusOr<ContextShape> ShapeOfLayers(const ContextualizeInput& input) {
  ATTENDANT_RETURN_IF_ERROR(CheckCount(
      static_cast<std::int64_t>(input.layers.size()), 0, kMaxLayers, "layers"));
  std::int64_t dim = input.sequence.dim;
  if (input.layers.empty()) {
    return ContextShape{input.memory.value_or(input.sequence).dim, 1};
  }
  for (std::size_t i = 0; i < input.layers.size(); ++i) {
    const std::string field = absl::StrCat("layers[", i, "]");
    const AttentionModel& model = *input.layers[i];
    if (model.multi_head() == nullptr) {
      return InvalidField(field, "a model of another kind",
                          "a multi-head model");
    }
    const std::int64_t attended_dim = input.memory ? input.memory->dim : dim;
    ATTENDANT_RETURN_IF_ERROR(
        CheckDim(dim, model.query_dim(), field, "queries"));
    ATTENDANT_RETURN_IF_ERROR(
        CheckDim(attended_dim, model.key_dim(), field, "keys"));
    if (model.value_dim() != 0) {
      ATTENDANT_RETURN_IF_ERROR(
          CheckDim(attended_dim, model.value_dim(), field, "values"));
    }
    dim = model.multi_head()->output_dim(attended_dim);
    const std::int64_t bytes =
        input.sequence.row_count * dim * std::int64_t{sizeof(float)};
    if (i + 1 < input.layers.size() && bytes > input.max_hidden_bytes) {
      return OverLimit(field, absl::StrCat("outputs of ", bytes, " bytes"),
                       absl::StrCat("at most ", input.max_hidden_bytes,
                                    " bytes before the last layer"));
    }
  }
  return ContextShape{dim, input.layers.back()->head_count()};
}

}  // namespace

absl::StatusOr<ContextShape> ContextShapeOf(const ContextualizeInput& input) {
  const MatrixView attended = input.memory.value_or(input.sequence);
  const absl::string_view attended_name = input.memory ? "memory" : "sequence";
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(input.sequence.row_count, 1, kMost, "sequence", " tokens"));
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(attended.row_count, 1, kMost, attended_name, " tokens"));
  for (std::size_t i = 0; i < input.padding_positions.size(); ++i) {
    const std::int32_t position = input.padding_positions[i];
    if (position >= 0 && position < attended.row_count) continue;
    return InvalidField(absl::StrCat("padding_positions[", i, "]"),
                        absl::StrCat(position),
                        absl::StrCat("a position in the ", attended_name,
                                     ", in [0, ", attended.row_count - 1, "]"));
  }
  if (input.include_weights) {
    for (const std::int64_t count :
         {input.sequence.row_count, attended.row_count}) {
      if (count <= kMaxWeightTokens) continue;
      return OverLimit("include_weights",
                       absl::StrCat("true with ", count, " tokens"),
                       absl::StrCat("at most ", kMaxWeightTokens, " tokens"));
    }
  }
  if (std::holds_alternative<LinformerOptions>(input.approximation) &&
      input.include_weights) {
    return InvalidField("include_weights", "true",
                        "false: reduced rows are no tokens");
  }
  return ShapeOfLayers(input);
}

namespace {

absl::StatusOr<Matrix> WithSinusoids(MatrixView rows,
                                     const Interrupt& interrupt) {
  Matrix matrix = {
      rows.row_count, rows.dim,
      std::vector<float>(rows.data, rows.data + rows.row_count * rows.dim)};
  ATTENDANT_RETURN_IF_ERROR(
      AddSinusoids(rows.row_count, rows.dim, interrupt, matrix.data.data()));
  return matrix;
}

// Returns the positions that may be attended to.
std::vector<std::int32_t> Unpadded(const ContextualizeInput& input,
                                   std::int64_t count) {
  std::vector<bool> padding(static_cast<std::size_t>(count));
  for (const std::int32_t position : input.padding_positions) {
    padding[position] = true;
  }
  std::vector<std::int32_t> positions;
  positions.reserve(padding.size());
  for (std::size_t i = 0; i < padding.size(); ++i) {
    if (!padding[i]) positions.push_back(static_cast<std::int32_t>(i));
  }
  return positions;
}

// Sorts rows in an order that does not depend on their positions. Rows that
// compare equal have the same bytes, so their order does not matter. Merges
// runs, because equal rows are compared in full and the interrupt must be
// checked in between.
absl::Status SortByContent(MatrixView rows, const Interrupt& interrupt,
                           std::vector<std::int32_t>& positions) {
  const auto row_bytes = static_cast<std::size_t>(rows.dim) * sizeof(float);
  const auto is_before = [&](std::int32_t a, std::int32_t b) {
    return std::memcmp(rows.Row(a).data(), rows.Row(b).data(), row_bytes) < 0;
  };
  const auto at = [&](std::size_t i) {
    return positions.begin() + static_cast<std::ptrdiff_t>(i);
  };
  const std::size_t n = positions.size();
  for (std::size_t width = 1; width < n; width *= 2) {
    for (std::size_t first = 0; first + width < n; first += 2 * width) {
      ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
      std::inplace_merge(at(first), at(first + width),
                         at(std::min(first + 2 * width, n)), is_before);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SequenceContext> Contextualize(const ContextualizeInput& input) {
  ATTENDANT_RETURN_IF_ERROR(ContextShapeOf(input).status());
  MatrixView sequence = input.sequence;
  std::optional<MatrixView> memory = input.memory;
  Matrix encoded_sequence;
  Matrix encoded_memory;
  if (input.positions == PositionKind::kSinusoidal) {
    ATTENDANT_ASSIGN_OR_RETURN(encoded_sequence,
                               WithSinusoids(sequence, input.interrupt));
    sequence = encoded_sequence.view();
    if (memory) {
      ATTENDANT_ASSIGN_OR_RETURN(encoded_memory,
                                 WithSinusoids(*memory, input.interrupt));
      memory = encoded_memory.view();
    }
  }
  std::vector<std::int32_t> attended_positions =
      Unpadded(input, memory.value_or(sequence).row_count);
  // Linformer's segments depend on the order of the sequence.
  const bool sorts = !input.causal && !std::holds_alternative<LinformerOptions>(
                                          input.approximation);

  LastLshBuckets buckets;
  SequenceContext context;
  const std::size_t layer_count = std::max<std::size_t>(input.layers.size(), 1);
  for (std::size_t layer = 0; layer < layer_count; ++layer) {
    const MatrixView attended = memory.value_or(sequence);
    // The memory is the same for all layers, so it is sorted once.
    if (sorts && (layer == 0 || !memory)) {
      ATTENDANT_RETURN_IF_ERROR(
          SortByContent(attended, input.interrupt, attended_positions));
    }
    MultiHeadInput problem;
    if (!input.layers.empty()) {
      problem.heads = input.layers[layer]->multi_head();
    }
    problem.queries = sequence;
    problem.keys = attended;
    problem.values = attended;
    problem.score_kind = input.score_kind;
    problem.temperature = input.temperature;
    problem.mask.causal = input.causal;
    problem.mask.attended = attended_positions;
    problem.interrupt = input.interrupt;
    const absl::string_view name = memory ? "memory" : "sequence";
    problem.names = {.queries = "sequence", .keys = name, .values = name};

    Matrix outputs = {sequence.row_count, problem.output_dim(), {}};
    outputs.data.resize(
        static_cast<std::size_t>(outputs.row_count * outputs.column_count));
    std::vector<float> weights;
    const std::int64_t pairs = sequence.row_count * attended.row_count;
    if (input.include_weights && layer + 1 == layer_count) {
      weights.resize(static_cast<std::size_t>(problem.head_count() * pairs));
    }
    ATTENDANT_ASSIGN_OR_RETURN(
        const std::int64_t scored_count,
        AttendApproximately(problem, input.approximation, buckets,
                            outputs.data.data(),
                            weights.empty() ? nullptr : weights.data()));
    context.scored_count += scored_count;
    context.outputs = std::move(outputs);
    sequence = context.outputs.view();
    for (auto head = weights.begin(); head != weights.end(); head += pairs) {
      context.head_weights.push_back({sequence.row_count, attended.row_count,
                                      std::vector<float>(head, head + pairs)});
    }
  }
  return context;
}

}  // namespace attendant
