// Scans in which some keys are not eligible: if the eligible keys are few, of
// these keys themselves; otherwise of as many lists as their share calls for.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>

#include "core/base/status.h"
#include "core/kernels/compare.h"
#include "core/shortlist/ivf/list_index.h"
#include "core/shortlist/mass/list_groups.h"
#include "core/shortlist/passes/list_scratch.h"
#include "core/shortlist/scan/scan_costs.h"

namespace attendant {

std::int64_t ListIndex::FindEligible(const ScanQuery& query,
                                     Bitmap& eligible) const {
  const EligibleRows rows(query);
  const std::span<const std::uint64_t> keyed = keyed_.words();
  const std::span<std::uint64_t> words = eligible.words().first(keyed.size());
  for (std::size_t w = 0; w < words.size(); ++w) {
    words[w] = keyed[w] & rows.Word(static_cast<std::int64_t>(w));
  }
  return ActiveCompareKernels().CountBits(
      words.data(), nullptr, static_cast<std::int64_t>(words.size()));
}

std::vector<std::int64_t> ListIndex::CountEligible(
    const Bitmap& eligible, std::int64_t eligible_count) const {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(list_count()));
  const std::int64_t masked_count = lists_.key_count() - eligible_count;
  const std::int64_t fewer = std::min(eligible_count, masked_count);
  // Reading this many keys takes less than finding the list of one row.
  constexpr std::int64_t kKeysPerSearch = 16;
  if (fewer * kKeysPerSearch > lists_.key_count()) {
    for (std::size_t l = 0; l < counts.size(); ++l) {
      for (std::int64_t p = lists_.offsets[l]; p < lists_.offsets[l + 1]; ++p) {
        counts[l] += eligible.Test(lists_.rows[p]) ? 1 : 0;
      }
    }
    return counts;
  }
  const bool masks_fewer = masked_count == fewer;
  for (std::size_t l = 0; masks_fewer && l < counts.size(); ++l) {
    counts[l] = lists_.offsets[l + 1] - lists_.offsets[l];
  }
  const std::span<const std::uint64_t> keyed = keyed_.words();
  for (std::size_t w = 0; w < keyed.size(); ++w) {
    std::uint64_t word = eligible.words()[w];
    if (masks_fewer) word = keyed[w] & ~word;
    for (; word != 0; word &= word - 1) {
      const auto row =
          64 * w + static_cast<std::size_t>(std::countr_zero(word));
      const auto list =
          static_cast<std::size_t>(lists_.ListAt(positions_[row]));
      counts[list] += masks_fewer ? -1 : 1;
    }
  }
  return counts;
}

std::unique_ptr<KeyGroups> ListIndex::GroupKeys(
    const ScanQuery& query, std::span<const Candidate> known) const {
  const auto unscored_mass = training_->mass->Load(query.known_masses);
  if (!HasCodesFor(query) || !unscored_mass->usable()) return nullptr;
  ListGroupsInput input = {.lists = &lists_,
                           .unscored_mass = unscored_mass,
                           .query = &query,
                           .masked = IsMasked(query),
                           .probe_count = ProbesOf(query.goals),
                           .key_share = key_share_,
                           .known = {},
                           .eligible_counts = {}};
  if (input.masked) {
    Bitmap& eligible = ListScratch::OfThread().rows(row_count());
    const std::int64_t eligible_count = FindEligible(query, eligible);
    if (eligible_count == 0) return nullptr;
    const double rate = static_cast<double>(eligible_count) /
                        static_cast<double>(lists_.key_count());
    const double probes = std::min(static_cast<double>(list_count()),
                                   ProbesFor(input.probe_count, rate));
    const double scored =
        std::min(static_cast<double>(list_count()),
                 probes + static_cast<double>(ListGroups::MostOf(list_count()) +
                                              ListGroups::kDraws));
    if (CostOfRows(eligible_count) <=
        CostOfLists(probes, rate) + CostOfListCodes(scored)) {
      return nullptr;
    }
    input.probe_count = static_cast<std::int64_t>(std::ceil(probes));
    input.eligible_counts = CountEligible(eligible, eligible_count);
  } else {
    input.eligible_counts.resize(static_cast<std::size_t>(list_count()));
    for (std::size_t l = 0; l < input.eligible_counts.size(); ++l) {
      input.eligible_counts[l] = lists_.offsets[l + 1] - lists_.offsets[l];
    }
  }
  for (const Candidate& candidate : known) {
    input.known.push_back({positions_[candidate.row], candidate.logit});
  }
  std::ranges::sort(input.known, [](const KnownKey& a, const KnownKey& b) {
    return a.position < b.position;
  });
  return ListGroups::Make(std::move(input));
}

// Scores the eligible rows themselves if that is quicker than scanning their
// lists, or if it is asked for.
bool ListIndex::ScanMasked(ScanTask& task) const {
  const ScanQuery& query = *task.query;
  AttentionState& state = *task.state;
  Bitmap& eligible = ListScratch::OfThread().rows(row_count());
  const std::int64_t eligible_count = FindEligible(query, eligible);
  ScanQuery narrowed = query;
  narrowed.excluded = nullptr;
  narrowed.allowed = &eligible;
  Route route = RouteFor(narrowed, state);
  route.by_code &=
      kKeysPerKept * std::max(state.top().k(), route.options.rescore_count) <=
      eligible_count;
  const double rate = static_cast<double>(eligible_count) /
                      static_cast<double>(lists_.key_count());
  const double probes = route.complete || eligible_count == 0
                            ? static_cast<double>(list_count())
                            : std::min(static_cast<double>(list_count()),
                                       ProbesFor(route.probe_count, rate));
  const double cost_of_lists = route.by_code && route.complete
                                   ? CostOfCodes(state.value_dim() > 0)
                                   : CostOfLists(probes, rate);
  const bool by_rows = CostOfRows(eligible_count) <= cost_of_lists;
  CodePass& pass = ListScratch::OfThread().pass(ListScratch::kMasked);
  if (by_rows) {
    task.stats = ScanMaskedRows(narrowed, eligible, state);
  } else if (StartPass(narrowed, state.top().k(), false, route, pass)) {
    task.stats = ScanMaskedByCode(narrowed, eligible_count, route, pass, state);
  } else if (!route.complete) {
    task.stats = ScanMaskedFloats(narrowed, eligible_count, route, state);
  } else {
    return false;
  }
  return true;
}

absl::StatusOr<ScanStats> ListIndex::ScanMaskedRows(
    const ScanQuery& query, const Bitmap& eligible,
    AttentionState& state) const {
  RowScan scan(query, state);
  ATTENDANT_RETURN_IF_ERROR(scan.Start());
  ATTENDANT_RETURN_IF_ERROR(ScanRows(eligible, scan));
  ATTENDANT_RETURN_IF_ERROR(scan.Finish());
  return ScanStats{.scored_count = scan.scored_count(),
                   .complete = true,
                   .exact = true,
                   .results_exact = true,
                   .knows_mass = true};
}

absl::StatusOr<ScanStats> ListIndex::ScanMaskedFloats(
    const ScanQuery& query, std::int64_t eligible_count, const Route& route,
    AttentionState& state) const {
  thread_local std::vector<float> scores;
  thread_local std::vector<std::uint64_t> ranks;
  lists_.means->ScoreLists(query.query, scores);
  ListMeans::RankLists(scores, ranks);
  FloatVisit visit(lists_, query, scores, false, state);
  ATTENDANT_ASSIGN_OR_RETURN(const bool complete,
                             VisitUntilEnough(
                                 ranks, scores, route, state.top().k(),
                                 std::min(state.top().k(), eligible_count),
                                 [&](std::span<const std::int32_t> chosen) {
                                   return visit.Visit(chosen);
                                 },
                                 [&] { return visit.scored_count(); }));
  const EligibleRows eligible(query);
  return FinishFloats(query, visit, complete, scores, &eligible, eligible_count,
                      state);
}

absl::StatusOr<ScanStats> ListIndex::ScanMaskedByCode(
    const ScanQuery& query, std::int64_t eligible_count, const Route& route,
    CodePass& pass, AttentionState& state) const {
  ListScratch& scratch = ListScratch::OfThread();
  ListVisit& visit = scratch.visit(ListScratch::kMasked);
  ListVisit* const visits[] = {&visit};
  visit.pass = &pass;
  visit.knows_products = false;
  visit.status = pass.Poll();
  ATTENDANT_RETURN_IF_ERROR(visit.status);
  bool complete = true;
  std::int64_t visited = list_count();
  if (route.complete) {
    visit.lists.clear();
    TakeOtherLists(lists_, visits);
    ATTENDANT_RETURN_IF_ERROR(visit.status);
  } else {
    visited = 0;
    thread_local std::vector<float> scores;
    thread_local std::vector<std::uint64_t> ranks;
    const std::int64_t stride =
        (list_count() + kCodeRows - 1) / kCodeRows * kCodeRows;
    scores.resize(static_cast<std::size_t>(stride));
    const double norm = Norm(query.query);
    const CodeQuery coded = pass.coded().WithFactor(norm > 0 ? 1 / norm : 0);
    lists_.means->ScoreListsByCode({&coded, 1}, CodeBits::k8, stride,
                                   scores.data());
    ListMeans::RankLists(
        {scores.data(), static_cast<std::size_t>(list_count())}, ranks);
    visit.scores = {scores.data(), static_cast<std::size_t>(list_count())};
    thread_local std::vector<std::int32_t> taken;
    taken.clear();
    const auto take = [&](std::span<const std::int32_t> chosen) {
      visited += static_cast<std::int64_t>(chosen.size());
      taken.insert(taken.end(), chosen.begin(), chosen.end());
      visit.lists.assign(chosen.begin(), chosen.end());
      TakeLists(lists_, visits);
      return visit.status;
    };
    ATTENDANT_ASSIGN_OR_RETURN(
        complete, VisitUntilEnough(ranks, visit.scores, route, state.top().k(),
                                   std::min(state.top().k(), eligible_count),
                                   take, [&] { return pass.taken_count(); }));
    visit.lists.swap(taken);
  }
  ScanStats stats;
  ATTENDANT_RETURN_IF_ERROR(pass.Finish(complete, state, stats));
  if (!complete) {
    const EligibleRows eligible(query);
    AddUnscored(visit, &eligible, eligible_count, state, stats);
  }
  stats.visited_list_count = visited;
  return stats;
}

double ListIndex::ProbesFor(std::int64_t probe_count, double rate) const {
  const Calibration& calibration = training_->calibration;
  const double probes = calibration.ProbesFor(
      static_cast<double>(calibration.depths[0].neighbour_count) / rate);
  // For another recall than the index was built for, scales the number of lists
  // in proportion.
  return probes * static_cast<double>(probe_count) /
         static_cast<double>(calibration.probe_count);
}

double ListIndex::CostOfRows(std::int64_t row_count) const {
  return static_cast<double>(row_count) * CostOfKeyAnywhere(dim());
}

// Returns the cost of ranking all lists and visiting `probes` of them, with a
// share `rate` of their rows eligible. The means are small enough for a cache.
double ListIndex::CostOfLists(double probes, double rate) const {
  const double rows_per_list = static_cast<double>(lists_.key_count()) /
                               static_cast<double>(list_count());
  return static_cast<double>(list_count()) * 0.5 * CostOfKey(dim()) +
         probes * rows_per_list *
             (kCostOfTest + rate * CostOfEligibleKey(dim()));
}

// Returns the cost of all codes, with a test for each key. Pooling reads the
// codes once more, and removes again what is scored from floats.
double ListIndex::CostOfCodes(bool pools) const {
  const double of_codes = static_cast<double>(lists_.key_count()) *
                          (kCostOfTest + CostOfKey(dim()) / 8);
  if (!pools) return of_codes;
  return of_codes +
         static_cast<double>(lists_.key_count()) * CostOfKey(dim()) / 8 +
         2 * CostOfRows(kRescoreCount);
}

// Returns the cost of codes of 8 bits in this many lists, with a test for each
// key.
double ListIndex::CostOfListCodes(double lists) const {
  const double rows_per_list = static_cast<double>(lists_.key_count()) /
                               static_cast<double>(list_count());
  return lists * rows_per_list * (kCostOfTest + CostOfKey(dim()) / 4);
}

template <typename Visit, typename Found>
absl::StatusOr<bool> ListIndex::VisitUntilEnough(
    std::span<std::uint64_t> ranks, std::span<const float> scores,
    const Route& route, std::int64_t k, std::int64_t wanted, Visit visit,
    Found found) const {
  thread_local std::vector<std::int32_t> chosen;
  std::int64_t visited = 0;
  std::int64_t next = route.probe_count;
  std::int64_t row_count = 0;
  while (true) {
    next = std::min(next, list_count() - visited);
    // Takes the best of the remaining lists, and visits them in ascending
    // order.
    const auto end = ranks.begin() + next;
    if (end != ranks.end()) {
      std::nth_element(ranks.begin(), end - 1, ranks.end(), std::greater<>());
    }
    chosen.resize(static_cast<std::size_t>(next));
    std::transform(ranks.begin(), end, chosen.begin(), ListMeans::ListOf);
    std::ranges::sort(chosen);
    ATTENDANT_RETURN_IF_ERROR(visit(std::span<const std::int32_t>(chosen)));
    for (const std::int32_t list : chosen) row_count += RowCountOf(list);
    ranks = ranks.subspan(static_cast<std::size_t>(next));
    visited += next;
    if (ranks.empty()) return true;
    const std::int64_t found_count = found();
    if (found_count < wanted || found_count == 0) {
      next = visited;
      continue;
    }
    // The share of eligible rows in these lists may differ from that in all
    // lists: eligible rows may be nearer to the query than others, or farther.
    const double rate =
        static_cast<double>(found_count) / static_cast<double>(row_count);
    const double needed = std::max(ProbesFor(route.probe_count, rate),
                                   ProbesByMargin(scores, route, k, rate));
    // A few more lists are not worth another selection among all.
    if (needed <= static_cast<double>(visited + visited / 16)) return false;
    // Rounds up, so that every turn visits at least one list.
    next = static_cast<std::int64_t>(
               std::ceil(std::min(needed, static_cast<double>(list_count())))) -
           visited;
  }
}

// Scores the eligible rows themselves, in their order.
absl::Status ListIndex::ScanRows(const Bitmap& eligible, RowScan& scan) const {
  constexpr std::size_t kBatch = 1024;
  RowIndex rows[kBatch];
  std::int32_t positions[kBatch];
  std::size_t count = 0;
  const auto score = [&] {
    lists_.keys.Await({positions, count}, lists_.dim);
    const absl::Status status =
        scan.ScanScattered(lists_.keys.data(), lists_.inverse_norms.data(),
                           {rows, count}, {positions, count});
    count = 0;
    return status;
  };
  for (std::size_t w = 0; w < keyed_.words().size(); ++w) {
    for (std::uint64_t word = eligible.words()[w]; word != 0;
         word &= word - 1) {
      const auto row = static_cast<RowIndex>(64 * w) +
                       static_cast<RowIndex>(std::countr_zero(word));
      rows[count] = row;
      positions[count++] = positions_[row];
      if (count == kBatch) ATTENDANT_RETURN_IF_ERROR(score());
    }
  }
  return score();
}

std::int64_t ListIndex::RowCountOf(std::int32_t list) const {
  const auto l = static_cast<std::size_t>(list);
  return lists_.offsets[l + 1] - lists_.offsets[l];
}

}  // namespace attendant
