#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/attention/contextualize.h"
#include "core/base/status.h"
#include "core/catalog/rank_items.h"
#include "service/convert_enum.h"
#include "service/convert_sequence.h"
#include "service/convert_time.h"
#include "service/handlers.h"
#include "service/model_reference.h"

namespace attendant {
namespace {

class Stopwatch {
 public:
  absl::Duration elapsed() const {
    return absl::FromChrono(std::chrono::steady_clock::now() - start_);
  }

 private:
  const std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
};

}  // namespace

absl::Status Contextualize(Backend& backend,
                           const v1::ContextualizeRequest& request,
                           const Interrupt& interrupt,
                           v1::ContextualizeResponse* response) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const Matrix sequence,
      TokensFromProto(backend, request.sequence(), "sequence"));
  ContextualizeInput input;
  input.sequence = sequence.view();
  Matrix memory;
  if (request.has_memory()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        memory, TokensFromProto(backend, request.memory(), "memory"));
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
  input.interrupt = interrupt;
  const Stopwatch stopwatch;
  ATTENDANT_ASSIGN_OR_RETURN(const SequenceContext context,
                             Contextualize(input));
  const absl::Duration compute_time = stopwatch.elapsed();
  ATTENDANT_RETURN_IF_ERROR(
      ContextToProto(context, backend.max_message_bytes, response));
  DurationToProto(compute_time, response->mutable_compute_time());
  return absl::OkStatus();
}

absl::Status RankCandidates(Backend& backend,
                            const v1::RankCandidatesRequest& request,
                            const Interrupt& interrupt,
                            v1::RankCandidatesResponse* response) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto catalog, FindCatalog(backend, request.catalog(), "catalog"));
  ATTENDANT_ASSIGN_OR_RETURN(RankQuery query, RankQueryFromProto(request));
  NamedModel named;
  if (request.has_model()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        named, FindModel(backend.catalogs->models(), request.model(), "model"));
    query.model = named.model.get();
  }
  const auto snapshot = catalog->snapshot();
  const Stopwatch stopwatch;
  ATTENDANT_ASSIGN_OR_RETURN(const RankAnswer answer,
                             RankItems(*snapshot, query, interrupt));
  const absl::Duration compute_time = stopwatch.elapsed();
  ATTENDANT_RETURN_IF_ERROR(RankAnswerToProto(
      answer, *snapshot, backend.max_message_bytes, response));
  DurationToProto(compute_time, response->mutable_compute_time());
  return absl::OkStatus();
}

}  // namespace attendant
