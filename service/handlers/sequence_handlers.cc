#include <algorithm>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/attention/sequences/contextualize.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/catalog/query/rank_items.h"
#include "service/calls/read_after_write.h"
#include "service/convert/approximation.h"
#include "service/convert/enum.h"
#include "service/convert/filter.h"
#include "service/convert/sequence.h"
#include "service/convert/time.h"
#include "service/convert/wire.h"
#include "service/handlers/handlers.h"
#include "service/handlers/model_reference.h"
#include "service/handlers/token_sequence.h"

namespace attendant {
namespace {

// Vectors given in the request and compared unchanged must have a direction.
// Vectors of norm 0 that result from an item's key, a position or a layer have
// similarity 0.
absl::Status CheckDirections(const v1::TokenSequence& wire, MatrixView rows,
                             absl::string_view path,
                             const std::vector<bool>& is_padding) {
  if (!wire.has_vectors()) return absl::OkStatus();
  for (std::int64_t i = 0; i < rows.row_count; ++i) {
    if (is_padding[i] || Norm(rows.Row(i)) > 0) {
      continue;
    }
    return InvalidField(absl::StrCat(path, ".vectors.vectors[", i, "]"),
                        "a vector of norm 0", "a norm above 0 for COSINE");
  }
  return absl::OkStatus();
}

absl::Status CheckDirections(const v1::ContextualizeRequest& request,
                             const ContextualizeInput& input) {
  if (input.score_kind != ScoreKind::kCosine || !input.layers.empty() ||
      input.positions != PositionKind::kNone) {
    return absl::OkStatus();
  }
  const auto none_of = [](MatrixView rows) {
    return std::vector<bool>(static_cast<std::size_t>(rows.row_count));
  };
  // Padding tokens of the sequence are queries, too.
  ATTENDANT_RETURN_IF_ERROR(CheckDirections(
      request.sequence(), input.sequence, "sequence", none_of(input.sequence)));
  if (!input.memory) return absl::OkStatus();
  std::vector<bool> is_padding = none_of(*input.memory);
  for (const std::int32_t position : input.padding_positions) {
    is_padding[position] = true;
  }
  return CheckDirections(request.memory(), *input.memory, "memory", is_padding);
}

// ReplyTooLarge if this many floats alone exceed max_bytes.
absl::Status CheckReply(std::int64_t floats, std::int64_t max_bytes) {
  if (floats <= max_bytes / std::int64_t{sizeof(float)}) {
    return absl::OkStatus();
  }
  return ReplyTooLarge(max_bytes);
}

absl::Status CheckReply(const ContextualizeInput& input,
                        const ContextShape& shape, std::int64_t max_bytes) {
  std::int64_t floats = input.sequence.row_count * shape.output_dim;
  if (input.include_weights) {
    floats += shape.head_count * input.sequence.row_count *
              input.memory.value_or(input.sequence).row_count;
  }
  return CheckReply(floats, max_bytes);
}

absl::Status SetFilter(const Backend& backend, const Snapshot& snapshot,
                       const v1::RankCandidatesRequest& request,
                       RankQuery& query) {
  auto* asked = std::get_if<CandidateQuery>(&query.candidates);
  if (asked == nullptr) return absl::OkStatus();
  auto filter = FilterOfRequest(request.candidates().query(), *snapshot.schema,
                                backend.limits.filter_depth);
  if (!filter.ok()) return PrefixField(filter.status(), "candidates.query.");
  asked->filter = *std::move(filter);
  return absl::OkStatus();
}

// The number of results of a query is not known before it is answered.
absl::Status CheckReply(const Snapshot& snapshot, const RankQuery& query,
                        std::int64_t max_bytes) {
  const auto* ids = std::get_if<std::vector<ItemId>>(&query.candidates);
  if (ids == nullptr) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const std::int64_t dim,
                             InterestDim(snapshot, query));
  const auto count = static_cast<std::int64_t>(ids->size());
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(count, 1, kMaxSequenceCount, "candidates.items.ids"));
  return CheckReply(std::min(query.result_count.value_or(count), count) * dim,
                    max_bytes);
}

}  // namespace

absl::Status Contextualize(Backend& backend,
                           const v1::ContextualizeRequest& request,
                           const Interrupt& interrupt,
                           v1::ContextualizeResponse* response) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const Matrix sequence,
      TokensFromProto(backend, request.sequence(), "sequence", interrupt));
  ContextualizeInput input;
  input.sequence = sequence.view();
  Matrix memory;
  if (request.has_memory()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        memory,
        TokensFromProto(backend, request.memory(), "memory", interrupt));
    input.memory = memory.view();
  }
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(request.layers_size(), 0, kMaxLayers, "layers"));
  std::vector<std::shared_ptr<const AttentionModel>> models;
  std::vector<const AttentionModel*> layers;
  for (int i = 0; i < request.layers_size(); ++i) {
    ATTENDANT_ASSIGN_OR_RETURN(
        NamedModel found,
        FindModel(backend.catalogs->models(), request.layers(i),
                  absl::StrCat("layers[", i, "]")));
    layers.push_back(found.model.get());
    models.push_back(std::move(found.model));
  }
  input.layers = layers;
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto score_kind,
      OptionalEnumFromProto<ScoreKind>(request.score_kind(), "score_kind"));
  input.score_kind = score_kind.value_or(ScoreKind::kScaledDot);
  if (request.has_temperature()) input.temperature = request.temperature();
  input.causal = request.causal();
  input.padding_positions = {
      request.padding_positions().data(),
      static_cast<std::size_t>(request.padding_positions_size())};
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto positions,
      OptionalEnumFromProto<PositionKind>(request.positions(), "positions"));
  input.positions = positions.value_or(PositionKind::kNone);
  input.include_weights = request.include_weights();
  if (request.has_approximation()) {
    ATTENDANT_ASSIGN_OR_RETURN(input.approximation,
                               ApproximationFromProto(request.approximation()));
  }
  input.max_hidden_bytes = backend.max_message_bytes;
  input.interrupt = interrupt;
  // Checked before the work, which may take long and much memory.
  ATTENDANT_ASSIGN_OR_RETURN(const ContextShape shape, ContextShapeOf(input));
  ATTENDANT_RETURN_IF_ERROR(CheckDirections(request, input));
  ATTENDANT_RETURN_IF_ERROR(
      CheckReply(input, shape, backend.max_message_bytes));
  const SteadyTime begin = SteadyNow();
  ATTENDANT_ASSIGN_OR_RETURN(const SequenceContext context,
                             Contextualize(input));
  const absl::Duration compute_duration = TimeSince(begin);
  ATTENDANT_RETURN_IF_ERROR(
      ContextToProto(context, backend.max_message_bytes, response));
  response->set_method(MethodToProto(input.approximation));
  DurationToProto(compute_duration, response->mutable_compute_duration());
  return absl::OkStatus();
}

absl::Status RankCandidates(Backend& backend,
                            const v1::RankCandidatesRequest& request,
                            const Interrupt& interrupt,
                            v1::RankCandidatesResponse* response) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto catalog, FindCatalogShowing(backend, request.catalog(),
                                             "catalog", request.state_token()));
  ATTENDANT_ASSIGN_OR_RETURN(RankQuery query, RankQueryFromProto(request));
  NamedModel named;
  if (request.has_model()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        named, FindModel(backend.catalogs->models(), request.model(), "model"));
    query.model = named.model.get();
  }
  const auto snapshot = catalog->snapshot();
  ATTENDANT_RETURN_IF_ERROR(SetFilter(backend, *snapshot, request, query));
  ATTENDANT_RETURN_IF_ERROR(
      CheckReply(*snapshot, query, backend.max_message_bytes));
  const SteadyTime begin = SteadyNow();
  ATTENDANT_ASSIGN_OR_RETURN(const RankAnswer answer,
                             RankItems(*snapshot, query, interrupt));
  const absl::Duration compute_duration = TimeSince(begin);
  ATTENDANT_RETURN_IF_ERROR(RankAnswerToProto(
      answer, *snapshot, backend.max_message_bytes, response));
  response->set_method(MethodToProto(query.approximation));
  DurationToProto(compute_duration, response->mutable_compute_duration());
  return absl::OkStatus();
}

}  // namespace attendant
