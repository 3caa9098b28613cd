#include "core/shortlist/kinds/key_rows.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/kernels/compare.h"
#include "core/shortlist/keys/inverse_norm.h"
#include "core/shortlist/scan/scan_costs.h"

namespace attendant {

absl::StatusOr<KeyRows> KeyRows::Make(
    std::span<const std::span<const float>> keys, std::int64_t dim,
    ScoreKind score_kind, std::uint64_t seed, ScratchFiles* files) {
  InvertedLists lists;
  lists.dim = dim;
  for (std::size_t r = 0; r < keys.size(); ++r) {
    if (keys[r].empty()) continue;
    lists.rows.push_back(static_cast<RowIndex>(r));
    lists.inverse_norms.push_back(InverseNorm(keys[r]));
  }
  if (lists.rows.empty()) {
    return absl::InvalidArgumentError("keys: got none, want at least 1");
  }
  lists.rows.shrink_to_fit();
  lists.inverse_norms.shrink_to_fit();
  ATTENDANT_ASSIGN_OR_RETURN(
      lists.keys,
      KeyFloats::Gather(lists.key_count(), dim, files,
                        [&](std::int64_t p) { return keys[lists.rows[p]]; }));
  lists.offsets = {0, lists.key_count()};
  const bool normalise = score_kind == ScoreKind::kCosine;
  lists.Summarise(lists.SumKeys(normalise, /*thread_count=*/1), seed);
  lists.Encode(normalise, seed, /*thread_count=*/1);
  return KeyRows(std::move(lists), static_cast<std::int64_t>(keys.size()),
                 score_kind, seed);
}

KeyRows::KeyRows(InvertedLists lists, std::int64_t row_count,
                 ScoreKind score_kind, std::uint64_t seed) {
  auto training = std::make_shared<IvfTraining>();
  training->means = lists.means;
  training->calibration = {
      .probe_count = 1, .recall = 1, .recalls = {1}, .depths = {{1, 1}}};
  training->score_kind = score_kind;
  training->seed = seed;
  training->key_count = lists.key_count();
  training->mass = std::make_unique<LearnedMass>(UnscoredMass(), /*dim=*/0);
  list_ = std::make_unique<ListIndex>(std::move(lists), row_count,
                                      std::move(training));
}

void KeyRows::Save(ByteSink& sink) const {
  const IvfTraining& training = *list_->training();
  sink.Put(training.score_kind);
  sink.Put(training.seed);
  training.means->Save(sink);
  lists().Save(sink);
}

absl::StatusOr<KeyRows> KeyRows::Load(ByteSource& source,
                                      std::int64_t row_count,
                                      ScratchFiles* files) {
  const auto score_kind = source.Get<ScoreKind>();
  const auto seed = source.Get<std::uint64_t>();
  ATTENDANT_ASSIGN_OR_RETURN(auto means, ListMeans::Load(source, seed));
  ATTENDANT_ASSIGN_OR_RETURN(
      InvertedLists lists,
      InvertedLists::Load(source, std::move(means), seed, files));
  if (lists.list_count() != 1 || lists.key_count() == 0 ||
      !std::ranges::is_sorted(lists.rows)) {
    return absl::DataLossError("it has no keys in the order of their rows");
  }
  ATTENDANT_RETURN_IF_ERROR(lists.CheckRows(row_count));
  return KeyRows(std::move(lists), row_count, score_kind, seed);
}

KeyRows::Eligible KeyRows::FindEligible(const ScanQuery& query) const {
  Eligible eligible = {.all = query.excluded == nullptr &&
                              query.allowed == nullptr &&
                              query.row_end >= list_->row_count(),
                       .rows = EligibleRows(query),
                       .count = key_count()};
  if (eligible.all) return eligible;
  eligible.count =
      query.eligible_count ? *query.eligible_count : Count(eligible.rows);
  return eligible;
}

std::int64_t KeyRows::Count(const EligibleRows& eligible) const {
  constexpr std::int64_t kWords = 256;
  std::uint64_t words[kWords];
  const std::int64_t word_count = (list_->row_count() + 63) / 64;
  std::int64_t count = 0;
  for (std::int64_t begin = 0; begin < word_count; begin += kWords) {
    const std::int64_t n = std::min(kWords, word_count - begin);
    for (std::int64_t w = 0; w < n; ++w) {
      words[w] = list_->Keyed(begin + w, eligible.Word(begin + w));
    }
    count += ActiveCompareKernels().CountBits(words, nullptr, n);
  }
  return count;
}

bool KeyRows::WantsAll(const ScanQuery& query) {
  const ScanGoals& goals = query.goals;
  return query.exhaustive || query.projection != nullptr || goals.recall >= 1 ||
         goals.mass_precision > 0 || goals.certified;
}

absl::StatusOr<ScanStats> KeyRows::ScanAll(const ScanQuery& query,
                                           AttentionState& state) const {
  absl::StatusOr<ScanStats> stats = list_->Scan(query, state);
  if (stats.ok()) stats->visited_list_count = 0;
  return stats;
}

double KeyRows::CostOfFloats(const Eligible& eligible) const {
  const auto n = static_cast<double>(key_count());
  if (eligible.all) return n * CostOfKey(dim());
  const auto count = static_cast<double>(eligible.count);
  return std::min(count * CostOfKeyAnywhere(dim()),
                  n * kCostOfTest + count * CostOfEligibleKey(dim()));
}

double KeyRows::CostOfAll(const ScanQuery& query, const AttentionState& state,
                          const Eligible& eligible) const {
  const double floats = CostOfFloats(eligible);
  if (!list_->HasCodesFor(query, state)) return floats;
  return std::min(
      floats, static_cast<double>(key_count()) *
                  ((eligible.all ? 0 : kCostOfTest) + CostOfKey(dim()) / 6));
}

absl::Status KeyRows::ScanPositions(std::span<const std::int32_t> positions,
                                    RowScan& scan) const {
  constexpr std::size_t kBatch = 1024;
  RowIndex batch_rows[kBatch];
  for (std::size_t begin = 0; begin < positions.size(); begin += kBatch) {
    const auto batch =
        positions.subspan(begin, std::min(kBatch, positions.size() - begin));
    for (std::size_t i = 0; i < batch.size(); ++i) {
      batch_rows[i] = rows()[batch[i]];
    }
    lists().keys.Await(batch, dim());
    ATTENDANT_RETURN_IF_ERROR(
        scan.ScanScattered(lists().keys.data(), lists().inverse_norms.data(),
                           {batch_rows, batch.size()}, batch));
  }
  return absl::OkStatus();
}

}  // namespace attendant
