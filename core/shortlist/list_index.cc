#include "core/shortlist/list_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "core/attention/log_add.h"
#include "core/base/status.h"
#include "core/kernels/compare.h"
#include "core/kernels/kernels.h"
#include "core/kernels/select.h"
#include "core/shortlist/list_groups.h"
#include "core/shortlist/shared_scan.h"

namespace attendant {
namespace {

// Queries that share the passes of one scan.
constexpr std::size_t kMaxTogether = 64;
// The place of a masked query, which is scanned while the others wait.
constexpr std::size_t kMasked = kMaxTogether;
// Keys that a pass over all codes takes for each that it may keep: with fewer,
// it would score most from floats after all. A pass over a few lists saves the
// ranking of all lists by floats besides.
constexpr std::int64_t kKeysPerKept = 4;
// Keys from which on 4 bits are read first: what they save is then more than
// the keys cost that they leave to score from floats.
constexpr std::int64_t kKeysFor4Bits = 1000;
// Scored from floats where the sum is to be right, beside the k best: what
// attends most, so that its codes' errors don't matter.
constexpr std::int64_t kRescoreCount = 1000;
// Of a sum over all keys, where none is stated.
constexpr double kPrecision = 0.02;

}  // namespace

ListIndex::ListIndex(InvertedLists lists, std::vector<std::int32_t> positions,
                     ScoreKind score_kind, Calibration calibration,
                     UnscoredMass unscored_mass,
                     std::optional<ListValues> values)
    : lists_(std::move(lists)),
      positions_(std::move(positions)),
      keyed_(static_cast<std::int64_t>(positions_.size())),
      cosine_(score_kind == ScoreKind::kCosine),
      calibration_(std::move(calibration)),
      unscored_mass_(std::move(unscored_mass)),
      key_values_(ListValues::OfKeys(lists_, cosine_)),
      values_(std::move(values)) {
  for (const RowIndex row : lists_.rows) keyed_.Set(row);
}

std::span<const float> ListIndex::Key(RowIndex row) const {
  const std::int32_t position = positions_[static_cast<std::size_t>(row)];
  if (position < 0) return {};
  return lists_.key_view().Row(position);
}

std::int64_t ListIndex::memory_bytes() const {
  const std::int64_t n = lists_.key_count();
  constexpr std::int64_t kFloatBytes = sizeof(float);
  return ((lists_.keys.on_disk() ? 0 : n) + list_count()) * lists_.dim *
             kFloatBytes +
         lists_.codes.memory_bytes() + lists_.mean_codes.memory_bytes() +
         unscored_mass_.memory_bytes() + key_values_.memory_bytes() +
         (values_ ? values_->memory_bytes() : 0) +
         n * (kFloatBytes + std::int64_t{sizeof(RowIndex)}) +
         static_cast<std::int64_t>(positions_.size() * sizeof(std::int32_t) +
                                   lists_.offsets.size() *
                                       sizeof(std::int64_t));
}

std::int64_t ListIndex::disk_bytes() const {
  if (!lists_.keys.on_disk()) return 0;
  return lists_.key_count() * lists_.dim * std::int64_t{sizeof(float)};
}

// Passes and lists of the queries of a scan. One a thread: it keeps its memory.
class ListIndex::Scratch {
 public:
  static Scratch& OfThread() {
    thread_local Scratch scratch;
    return scratch;
  }

  CodePass& pass(std::size_t i) {
    while (passes_.size() <= i) passes_.push_back(std::make_unique<CodePass>());
    return *passes_[i];
  }
  ListVisit& visit(std::size_t i) { return visits_[i]; }

 private:
  std::vector<std::unique_ptr<CodePass>> passes_;
  std::array<ListVisit, kMaxTogether + 1> visits_;
};

bool ListIndex::IsMasked(const ScanQuery& query) const {
  return query.excluded != nullptr || query.allowed != nullptr ||
         query.row_end < static_cast<RowIndex>(keyed_.size());
}

const ListValues* ListIndex::ValuesOf(const ScanQuery& query,
                                      const AttentionState& state) const {
  const bool are_keys = query.values == nullptr || query.values->PoolsKeys();
  const ListValues* values =
      are_keys ? &key_values_ : (values_ ? &*values_ : nullptr);
  const bool fits = values != nullptr && values->usable(lists_) &&
                    values->dim() == state.value_dim();
  return fits ? values : nullptr;
}

bool ListIndex::HasCodesFor(const ScanQuery& query) const {
  return lists_.codes.usable() && lists_.mean_codes.usable() &&
         !query.exhaustive && query.bias == nullptr &&
         query.projection == nullptr &&
         query.score_kind != ScoreKind::kAdditive &&
         (query.score_kind == ScoreKind::kCosine) == cosine_;
}

std::int64_t ListIndex::ProbesOf(const ScanGoals& goals) const {
  std::int64_t count = calibration_.probe_count;
  if (goals.probe_count > 0) {
    count = goals.probe_count;
  } else if (goals.recall > 0) {
    count = calibration_.ProbesForRecall(goals.recall);
  }
  return std::min(count, list_count());
}

ListIndex::Route ListIndex::RouteFor(const ScanQuery& query,
                                     const AttentionState& state) const {
  const ScanGoals& goals = query.goals;
  Route route;
  route.probe_count = ProbesOf(goals);
  route.options.certified = goals.certified || goals.recall >= 1;
  route.options.bounds = goals.certified;
  route.complete = query.exhaustive || route.options.certified ||
                   goals.mass_precision > 0 ||
                   route.probe_count >= list_count();
  if (route.complete && !route.options.certified) {
    route.options.rescore_count = kRescoreCount;
    route.options.precision =
        goals.mass_precision > 0 ? goals.mass_precision : kPrecision;
  }
  const std::int64_t taken =
      route.complete ? lists_.key_count()
                     : lists_.key_count() * route.probe_count / list_count();
  const std::int64_t kept =
      std::max(state.top().k(), route.options.rescore_count);
  // Of lists that are not visited, nothing can be pooled.
  const bool pools = state.value_dim() > 0;
  route.by_code = HasCodesFor(query, state) && (route.complete || !pools) &&
                  (route.complete ? kKeysPerKept : 1) * kept <= taken;
  if (route.by_code && pools) route.options.values = ValuesOf(query, state);
  route.options.bits = !route.options.certified && taken >= kKeysFor4Bits
                           ? CodeBits::k4
                           : CodeBits::k8;
  return route;
}

bool ListIndex::StartPass(const ScanQuery& query, std::int64_t k,
                          bool all_eligible, Route& route,
                          CodePass& pass) const {
  if (!route.by_code) return false;
  if (pass.Start(query, lists_, k, all_eligible, route.options)) return true;
  if (route.options.bits == CodeBits::k8) return false;
  route.options.bits = CodeBits::k8;
  return pass.Start(query, lists_, k, all_eligible, route.options);
}

absl::StatusOr<ScanStats> ListIndex::Scan(const ScanQuery& query,
                                          AttentionState& state) const {
  ScanTask task = {.query = &query, .state = &state};
  ScanTogether({&task, 1});
  return std::move(task.stats);
}

void ListIndex::ScanTogether(std::span<ScanTask> tasks) const {
  Scratch& scratch = Scratch::OfThread();
  for (std::size_t first = 0; first < tasks.size(); first += kMaxTogether) {
    const std::span<ScanTask> group =
        tasks.subspan(first, std::min(kMaxTogether, tasks.size() - first));
    std::array<Route, kMaxTogether> routes;
    std::vector<ListVisit*> choosing;  // by lists
    std::vector<std::int64_t> probe_counts;
    // By [complete][4 bits].
    std::vector<ListVisit*> shares[2][2];
    std::vector<ScanTask*> by_floats;  // all lists
    for (std::size_t i = 0; i < group.size(); ++i) {
      ScanTask& task = group[i];
      Route& route = routes[i];
      if (IsMasked(*task.query)) {
        if (!ScanMasked(task)) by_floats.push_back(&task);
        route.by_code = false;
        continue;
      }
      route = RouteFor(*task.query, *task.state);
      CodePass& pass = scratch.pass(i);
      route.by_code =
          StartPass(*task.query, task.state->top().k(), true, route, pass);
      if (!route.by_code) {
        if (route.complete) {
          by_floats.push_back(&task);
        } else {
          task.stats = ScanFloats(*task.query, *task.state, route);
        }
        continue;
      }
      ListVisit& visit = scratch.visit(i);
      visit.pass = &pass;
      visit.lists.clear();
      visit.knows_products = false;
      visit.status = pass.Poll();
      if (!visit.status.ok()) continue;
      if (!route.complete) {
        choosing.push_back(&visit);
        probe_counts.push_back(route.probe_count);
      }
      shares[route.complete ? 1 : 0][pass.bits() == CodeBits::k4 ? 1 : 0]
          .push_back(&visit);
    }
    if (!choosing.empty()) ChooseLists(choosing, probe_counts);
    for (const auto& visits : shares[0]) TakeLists(lists_, visits);
    for (const auto& visits : shares[1]) TakeAllLists(lists_, visits);
    ScanAllFloats(by_floats);
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (!routes[i].by_code) continue;
      ScanStats stats;
      absl::Status status = scratch.visit(i).status;
      if (status.ok()) {
        status =
            scratch.pass(i).Finish(routes[i].complete, *group[i].state, stats);
      }
      if (status.ok() && !routes[i].complete) {
        AddUnscored(scratch.visit(i), nullptr, lists_.key_count(),
                    *group[i].state, stats);
      }
      stats.visited_list_count =
          routes[i].complete ? list_count() : routes[i].probe_count;
      if (status.ok()) {
        group[i].stats = stats;
      } else {
        group[i].stats = status;
      }
    }
  }
}

// Codes of all queries are compared with the means in one pass.
void ListIndex::ChooseLists(std::span<ListVisit* const> visits,
                            std::span<const std::int64_t> probe_counts) const {
  thread_local std::vector<float> scores;
  const std::int64_t stride =
      (list_count() + kCodeRows - 1) / kCodeRows * kCodeRows;
  scores.resize(visits.size() * static_cast<std::size_t>(stride));
  std::array<CodeQuery, kMaxTogether> queries;
  for (std::size_t v = 0; v < visits.size(); ++v) {
    const CodePass& pass = *visits[v]->pass;
    const double norm = Norm(pass.query().query);
    queries[v] = pass.coded().WithFactor(norm > 0 ? 1 / norm : 0);
  }
  lists_.ScoreListsByCode({queries.data(), visits.size()}, CodeBits::k4, stride,
                          scores.data());
  for (std::size_t v = 0; v < visits.size(); ++v) {
    ListVisit& visit = *visits[v];
    visit.scores = {scores.data() + v * static_cast<std::size_t>(stride),
                    static_cast<std::size_t>(list_count())};
    ChooseExactly(scores.data() + v * static_cast<std::size_t>(stride),
                  probe_counts[v], visit);
  }
}

// 4 bits tell which lists may be among the best; floats say which are. The best
// come first: where a query is alone, little is then kept of the others.
void ListIndex::ChooseExactly(float* scores, std::int64_t probe_count,
                              ListVisit& visit) const {
  constexpr std::int64_t kMore = 8;
  thread_local std::vector<std::int32_t> likely;
  thread_local std::vector<float> of_likely;
  const std::int64_t likely_count =
      std::min(list_count(), probe_count + probe_count / 2 + kMore);
  SelectBest(visit.scores, likely_count, likely);
  const ScanQuery& query = visit.pass->query();
  const double norm = Norm(query.query);
  const auto factor = static_cast<float>(norm > 0 ? 1 / norm : 0);
  of_likely.clear();
  for (const std::int32_t list : likely) lists_.PrefetchMean(list);
  for (const std::int32_t list : likely) {
    float product = 0;
    ActiveKernels().DotRows(query.query.data(),
                            lists_.means.data() + list * dim(), 1, dim(),
                            &product);
    const auto l = static_cast<std::size_t>(list);
    scores[l] = factor * product + lists_.reaches[l];
    of_likely.push_back(scores[l]);
    visit.pass->SetListProduct(list, product);
  }
  visit.knows_products = true;
  SelectBest(of_likely, probe_count, visit.lists);
  for (std::int32_t& list : visit.lists) {
    list = likely[static_cast<std::size_t>(list)];
  }
}

void ListIndex::AddUnscored(const ListVisit& visit,
                            const EligibleRows* eligible,
                            std::int64_t eligible_count, AttentionState& state,
                            ScanStats& stats) const {
  const CodePass& pass = *visit.pass;
  AddUnscored({.query = pass.query().query,
               .logit_factor = pass.query().logit_factor,
               .coded = &pass.coded(),
               .scores = visit.scores,
               .lists = visit.lists,
               .log_sum = pass.LogSum(visit.scores,
                                      std::numeric_limits<float>::infinity()),
               .log_farther_sum = pass.LogSum(
                   visit.scores, FartherScore(visit.scores, visit.lists)),
               .eligible = eligible,
               .eligible_rate = static_cast<double>(eligible_count) /
                                static_cast<double>(lists_.key_count()),
               .rest_count = eligible_count - pass.taken_count()},
              state, stats);
}

void ListIndex::AddUnscored(const ScanQuery& query, const FloatVisit& visit,
                            std::span<const float> scores,
                            const EligibleRows* eligible,
                            std::int64_t eligible_count, AttentionState& state,
                            ScanStats& stats) const {
  thread_local CodedQuery coded;
  if (state.value_dim() > 0 || !HasCodesFor(query, state) ||
      !coded.Encode(lists_.codes, query.query, query.logit_factor)) {
    return;
  }
  AddUnscored({.query = query.query,
               .logit_factor = query.logit_factor,
               .coded = &coded,
               .scores = scores,
               .lists = visit.lists(),
               .log_sum = visit.log_sum(),
               .log_farther_sum = visit.log_farther_sum(),
               .eligible = eligible,
               .eligible_rate = static_cast<double>(eligible_count) /
                                static_cast<double>(lists_.key_count()),
               .rest_count = eligible_count - visit.scored_count()},
              state, stats);
}

void ListIndex::AddUnscored(const VisitedMass& visited, AttentionState& state,
                            ScanStats& stats) const {
  UnscoredGuess guess;
  if (!unscored_mass_.Guess(lists_, visited, guess)) return;
  state.AddUnkept(guess.partition);
  stats.knows_mass = true;
  stats.log_variance = LogAdd(stats.log_variance, guess.log_variance);
}

void ListIndex::ScanAllFloats(std::span<ScanTask* const> tasks) const {
  ScanEveryKey({.keys = lists_.keys.runs(),
                .inverse_norms = lists_.inverse_norms.data(),
                .rows = lists_.rows.data(),
                .key_count = lists_.key_count(),
                .dim = lists_.dim,
                .row_end = static_cast<RowIndex>(keyed_.size())},
               tasks);
  for (ScanTask* task : tasks) {
    if (task->stats.ok()) task->stats->visited_list_count = list_count();
  }
}

absl::StatusOr<ScanStats> ListIndex::ScanFloats(const ScanQuery& query,
                                                AttentionState& state,
                                                const Route& route) const {
  thread_local std::vector<float> scores;
  thread_local std::vector<std::int32_t> chosen;
  lists_.ScoreLists(query.query, scores);
  SelectBest(scores, route.probe_count, chosen);
  FloatVisit visit(lists_, query, scores, true, state);
  ATTENDANT_RETURN_IF_ERROR(visit.Visit(chosen));
  ScanStats stats = {.scored_count = visit.scored_count(),
                     .visited_list_count = route.probe_count};
  AddUnscored(query, visit, scores, nullptr, lists_.key_count(), state, stats);
  return stats;
}

// The eligible rows with keys, and how many they are.
std::int64_t ListIndex::FindEligible(const ScanQuery& query,
                                     Bitmap& eligible) const {
  const EligibleRows rows(query);
  const std::span<const std::uint64_t> keyed = keyed_.words();
  const std::span<std::uint64_t> words = eligible.words();
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
  // Reading the keys of a row's list takes less than finding the list.
  constexpr std::int64_t kKeysPerSearch = 16;
  if (fewer * kKeysPerSearch > lists_.key_count()) {
    for (std::size_t l = 0; l < counts.size(); ++l) {
      for (std::int64_t p = lists_.offsets[l]; p < lists_.offsets[l + 1]; ++p) {
        counts[l] +=
            eligible.Test(lists_.rows[static_cast<std::size_t>(p)]) ? 1 : 0;
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
    const ScanQuery& query, std::span<const Candidate> head) const {
  if (!HasCodesFor(query) || !unscored_mass_.usable()) return nullptr;
  ListGroupsInput input = {.lists = &lists_,
                           .unscored_mass = &unscored_mass_,
                           .query = &query,
                           .masked = IsMasked(query),
                           .probe_count = ProbesOf(query.goals),
                           .head = {},
                           .eligible_counts = {}};
  if (input.masked) {
    Bitmap eligible(keyed_.size());
    const std::int64_t eligible_count = FindEligible(query, eligible);
    if (eligible_count == 0) return nullptr;
    const double rate = static_cast<double>(eligible_count) /
                        static_cast<double>(lists_.key_count());
    const double probes = std::min(static_cast<double>(list_count()),
                                   ProbesFor(input.probe_count, rate));
    const double scored =
        probes + static_cast<double>(ListGroups::kMost + ListGroups::kDraws);
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
  for (const Candidate& candidate : head) {
    input.head.push_back(
        {positions_[static_cast<std::size_t>(candidate.row)], candidate.logit});
  }
  std::sort(input.head.begin(), input.head.end(),
            [](const HeadKey& a, const HeadKey& b) {
              return a.position < b.position;
            });
  return ListGroups::Make(std::move(input));
}

// Scores the eligible rows themselves where that is quicker than the lists that
// they are in, or asked for.
bool ListIndex::ScanMasked(ScanTask& task) const {
  const ScanQuery& query = *task.query;
  AttentionState& state = *task.state;
  Bitmap eligible(keyed_.size());
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
  CodePass& pass = Scratch::OfThread().pass(kMasked);
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
  lists_.ScoreLists(query.query, scores);
  lists_.RankLists(scores, ranks);
  FloatVisit visit(lists_, query, scores, false, state);
  ATTENDANT_ASSIGN_OR_RETURN(
      const bool complete,
      VisitUntilEnough(
          ranks, route.probe_count, std::min(state.top().k(), eligible_count),
          [&](std::span<const std::int32_t> chosen) {
            return visit.Visit(chosen);
          },
          [&] { return visit.scored_count(); }));
  ScanStats stats = {
      .scored_count = visit.scored_count(),
      .visited_list_count = static_cast<std::int64_t>(visit.lists().size()),
      .complete = complete,
      .exact = complete,
      .results_exact = complete,
      .knows_mass = complete};
  if (!complete) {
    const EligibleRows eligible(query);
    AddUnscored(query, visit, scores, &eligible, eligible_count, state, stats);
  }
  return stats;
}

absl::StatusOr<ScanStats> ListIndex::ScanMaskedByCode(
    const ScanQuery& query, std::int64_t eligible_count, const Route& route,
    CodePass& pass, AttentionState& state) const {
  Scratch& scratch = Scratch::OfThread();
  ListVisit& visit = scratch.visit(kMasked);
  ListVisit* const visits[] = {&visit};
  visit.pass = &pass;
  visit.knows_products = false;
  visit.status = pass.Poll();
  ATTENDANT_RETURN_IF_ERROR(visit.status);
  bool complete = true;
  std::int64_t visited = list_count();
  if (route.complete) {
    TakeAllLists(lists_, visits);
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
    lists_.ScoreListsByCode({&coded, 1}, CodeBits::k8, stride, scores.data());
    lists_.RankLists({scores.data(), static_cast<std::size_t>(list_count())},
                     ranks);
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
        complete, VisitUntilEnough(ranks, route.probe_count,
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
  const double probes = calibration_.ProbesFor(
      static_cast<double>(calibration_.depths[0].neighbour_count) / rate);
  // Another recall than the index was made for takes as many times the lists.
  return probes * static_cast<double>(probe_count) /
         static_cast<double>(calibration_.probe_count);
}

// Nanoseconds, measured on 1,000,000 keys of 128 floats, which are far more
// than a cache holds (bench/README.md); only the ratios matter. A key that is
// read after its neighbour; then, below, between some that are left out, and
// from anywhere.
double ListIndex::CostOfKey() const {
  return 5 + 0.22 * static_cast<double>(dim());
}

double ListIndex::CostOfRows(std::int64_t row_count) const {
  return static_cast<double>(row_count) * 2.7 * CostOfKey();
}

// Of ranking all lists and visiting `probes` of them, with a share of `rate` of
// their rows eligible. The means are small enough for a cache.
double ListIndex::CostOfLists(double probes, double rate) const {
  constexpr double kCostOfTest = 2.7;
  const double rows_per_list = static_cast<double>(lists_.key_count()) /
                               static_cast<double>(list_count());
  return static_cast<double>(list_count()) * 0.5 * CostOfKey() +
         probes * rows_per_list * (kCostOfTest + rate * 1.6 * CostOfKey());
}

// Of all codes, with a test for each key. Pooling reads them once more, and
// takes out again what is scored from floats.
double ListIndex::CostOfCodes(bool pools) const {
  constexpr double kCostOfTest = 2.7;
  const double of_codes =
      static_cast<double>(lists_.key_count()) * (kCostOfTest + CostOfKey() / 8);
  if (!pools) return of_codes;
  return of_codes + static_cast<double>(lists_.key_count()) * CostOfKey() / 8 +
         2 * CostOfRows(kRescoreCount);
}

// Of codes of 8 bits in so many lists, with a test for each key.
double ListIndex::CostOfListCodes(double lists) const {
  constexpr double kCostOfTest = 2.7;
  const double rows_per_list = static_cast<double>(lists_.key_count()) /
                               static_cast<double>(list_count());
  return lists * rows_per_list * (kCostOfTest + CostOfKey() / 4);
}

template <typename Visit, typename Found>
absl::StatusOr<bool> ListIndex::VisitUntilEnough(std::span<std::uint64_t> ranks,
                                                 std::int64_t probe_count,
                                                 std::int64_t wanted,
                                                 Visit visit,
                                                 Found found) const {
  thread_local std::vector<std::int32_t> chosen;
  std::int64_t visited = 0;
  std::int64_t next = probe_count;
  std::int64_t row_count = 0;
  while (true) {
    next = std::min(next, list_count() - visited);
    // The best of those left come first, and are visited in ascending order.
    const auto end = ranks.begin() + next;
    if (end != ranks.end()) {
      std::nth_element(ranks.begin(), end - 1, ranks.end(), std::greater<>());
    }
    chosen.resize(static_cast<std::size_t>(next));
    std::transform(ranks.begin(), end, chosen.begin(), InvertedLists::ListOf);
    std::sort(chosen.begin(), chosen.end());
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
    // The share of eligible rows in these lists may be another than that of all
    // rows: what is eligible may be near to the query, or far from it.
    const double needed =
        ProbesFor(probe_count, static_cast<double>(found_count) /
                                   static_cast<double>(row_count));
    // A few lists more are not worth another choice among all.
    if (needed <= static_cast<double>(visited + visited / 16)) return false;
    // Part of a list is a list: every turn must visit one.
    next = static_cast<std::int64_t>(
               std::ceil(std::min(needed, static_cast<double>(list_count())))) -
           visited;
  }
}

// Scores the rows themselves, in their order.
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
  for (std::size_t w = 0; w < eligible.words().size(); ++w) {
    for (std::uint64_t word = eligible.words()[w]; word != 0;
         word &= word - 1) {
      const auto row = static_cast<RowIndex>(64 * w) +
                       static_cast<RowIndex>(std::countr_zero(word));
      rows[count] = row;
      positions[count++] = positions_[static_cast<std::size_t>(row)];
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
