#include "core/shortlist/ivf/list_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "core/attention/log_add.h"
#include "core/attention/score.h"
#include "core/base/minus_infinity.h"
#include "core/base/status.h"
#include "core/kernels/kernels.h"
#include "core/kernels/select.h"
#include "core/shortlist/builds/guard_build.h"
#include "core/shortlist/passes/list_scratch.h"
#include "core/shortlist/scan/key_scorer.h"
#include "core/shortlist/scan/scan_costs.h"
#include "core/shortlist/scan/shared_scan.h"

namespace attendant {
namespace {

// Of the queries of a scan, of which there is often one, and then nothing to
// allocate.
template <typename T>
using Few = absl::InlinedVector<T, 1>;

template <typename T>
std::span<const T> AllOf(const Few<T>& few) {
  return {few.data(), few.size()};
}

// Keys from which on 4 bits are read first: what they save is then more than
// the keys cost that they leave to score from floats.
constexpr std::int64_t kKeysFor4Bits = 1000;
// Of the share of eligible keys in all lists, those visited have at least this,
// or more lists are visited after all.
constexpr double kLocalShare = 0.75;
// Of a proof of many keys, the lists that have most of those near the best are
// read by 8 bits, and the others by 4: this share of the lists, which hold at
// least so many times the keys that are wanted.
constexpr std::int64_t kKeysForTwoReadings = 20000;
constexpr double kNearShare = 1.0 / 32;
constexpr std::int64_t kNearKeysPerBest = 4;
constexpr double kMaxNearShare = 1.0 / 4;

// Passes share their reads if they read the same bits: 8 of keys and 16 of
// queries, 4 and 16, or 4 and 8.
constexpr std::size_t kReadings = 3;
std::size_t ReadingOf(bool by_4, const CodePass& pass) {
  if (!by_4) return 0;
  return pass.coded().view().low == nullptr ? 2 : 1;
}

// Sets `positions` to those of the numbers that are at least this; or to more
// of the greatest, until enough(positions).
template <typename Enough>
void SelectFrom(std::span<const float> numbers, float least, Enough enough,
                std::vector<std::int32_t>& positions) {
  const auto size = static_cast<std::int64_t>(numbers.size());
  positions.resize(numbers.size());
  std::int64_t found = ActiveKernels().SelectAtLeast(numbers.data(), size,
                                                     least, positions.data());
  positions.resize(static_cast<std::size_t>(found));
  while (found < size && !enough(positions)) {
    found = std::min(size, found + found / 2 + 1);
    SelectBest(numbers, found, positions);
  }
}

// Brings the positions of the greatest numbers to the front; the others stay in
// their order, in which lists lie.
void BestFirst(std::span<const float> numbers,
               std::vector<std::int32_t>& positions) {
  constexpr std::size_t kFirst = 16;
  thread_local std::vector<float> chosen;
  thread_local std::vector<std::int32_t> best;
  thread_local std::vector<std::int32_t> others;
  chosen.clear();
  for (const std::int32_t position : positions) {
    chosen.push_back(numbers[static_cast<std::size_t>(position)]);
  }
  SelectBest(chosen, static_cast<std::int64_t>(std::min(kFirst, chosen.size())),
             best);
  others.swap(positions);
  positions.clear();
  for (std::int32_t& at : best) {
    positions.push_back(
        std::exchange(others[static_cast<std::size_t>(at)], -1));
  }
  for (const std::int32_t position : others) {
    if (position >= 0) positions.push_back(position);
  }
}

}  // namespace

ListIndex::ListIndex(InvertedLists lists, std::int64_t row_count,
                     std::shared_ptr<const IvfTraining> training,
                     std::optional<ListValues> values)
    : lists_(std::move(lists)),
      positions_(static_cast<std::size_t>(row_count), -1),
      keyed_(row_count),
      cosine_(training->score_kind == ScoreKind::kCosine),
      training_(std::move(training)),
      key_share_(std::min(1.0, static_cast<double>(lists_.key_count()) /
                                   static_cast<double>(training_->key_count))),
      square_distance_(lists_.MeanSquareDistance(cosine_)),
      key_values_(ListValues::OfKeys(lists_, cosine_)),
      values_(std::move(values)) {
  for (std::size_t p = 0; p < lists_.rows.size(); ++p) {
    keyed_.Set(lists_.rows[p]);
    positions_[static_cast<std::size_t>(lists_.rows[p])] =
        static_cast<std::int32_t>(p);
  }
}

std::int32_t ListIndex::ListOf(RowIndex row) const {
  const std::int32_t position = positions_[static_cast<std::size_t>(row)];
  return position < 0 ? -1 : static_cast<std::int32_t>(lists_.ListAt(position));
}

std::span<const float> ListIndex::Key(RowIndex row) const {
  const std::int32_t position = positions_[static_cast<std::size_t>(row)];
  if (position < 0) return {};
  return lists_.key_view().Row(position);
}

// What is said of masses is of as many keys as the training had.
std::int64_t ListIndex::learning_bytes() const {
  constexpr double kEnoughKeys = 0.9;
  const bool learns =
      training_->mass->is_due() &&
      static_cast<double>(lists_.key_count()) >=
          kEnoughKeys * static_cast<double>(training_->key_count);
  return learns ? UnscoredMass::LearningBytes(list_count(),
                                              LearnedMass::kKeptQueries)
                : 0;
}

absl::StatusOr<bool> ListIndex::Learn(
    const std::atomic<bool>& cancelled) const {
  return GuardBuild([&]() -> absl::StatusOr<bool> {
    bool learned = false;
    const std::vector<float> asked = training_->mass->KeptQueries();
    if (!asked.empty()) {
      const auto known = training_->mass->Load();
      UnscoredMassOptions options = MassOptionsOf(*training_);
      options.square_distance = square_distance_;
      options.asked = asked;
      if (known->usable()) options.lists_known = known.get();
      options.cancelled = &cancelled;
      ATTENDANT_ASSIGN_OR_RETURN(UnscoredMass mass,
                                 UnscoredMass::Learn(lists_, options));
      learned = mass.usable();
      training_->mass->Store(std::move(mass));
    }
    training_->mass->KeepOthers();
    return learned;
  });
}

MemoryParts ListIndex::memory() const {
  const std::int64_t n = lists_.key_count();
  constexpr std::int64_t kFloatBytes = sizeof(float);
  MemoryParts parts;
  (lists_.keys.on_disk() ? parts.mapped : parts.keys) =
      n * lists_.dim * kFloatBytes;
  parts.codes =
      lists_.codes.memory_bytes() + (values_ ? values_->memory_bytes() : 0);
  parts.index =
      // Each of those that share it has its part.
      training_->memory_bytes() / training_.use_count() +
      key_values_.memory_bytes() + keyed_.memory_bytes() +
      n * (kFloatBytes + std::int64_t{sizeof(RowIndex)}) +
      static_cast<std::int64_t>(positions_.size() * sizeof(std::int32_t) +
                                lists_.offsets.size() * sizeof(std::int64_t));
  return parts;
}

bool ListIndex::IsMasked(const ScanQuery& query) const {
  if (query.row_end < static_cast<RowIndex>(keyed_.size())) return true;
  // What is left out may have no key here.
  return (query.excluded != nullptr || query.allowed != nullptr) &&
         query.eligible_count != lists_.key_count();
}

const ListValues* ListIndex::ValuesOf(const ScanQuery& query,
                                      const AttentionState& state) const {
  // Equal keys err alike, and so do keys in few directions, unless lists' means
  // take out what they have in common: their errors would not average out.
  if (list_count() == 1) return nullptr;
  const bool are_keys = query.values == nullptr || query.values->PoolsKeys();
  const ListValues* values =
      are_keys ? &key_values_ : (values_ ? &*values_ : nullptr);
  const bool fits = values != nullptr && values->usable(lists_) &&
                    values->dim() == state.value_dim();
  return fits ? values : nullptr;
}

bool ListIndex::HasCodesFor(const ScanQuery& query) const {
  return dim() >= kLeastCodedDim && lists_.codes.usable() &&
         lists_.means->codes.usable() && !query.exhaustive &&
         query.bias == nullptr && query.projection == nullptr &&
         query.score_kind != ScoreKind::kAdditive &&
         (query.score_kind == ScoreKind::kCosine) == cosine_;
}

std::int64_t ListIndex::ProbesOf(const ScanGoals& goals) const {
  std::int64_t count = training_->calibration.probe_count;
  if (goals.probe_count > 0) {
    count = goals.probe_count;
  } else if (goals.recall > 0) {
    count = training_->calibration.ProbesForRecall(goals.recall);
  }
  return std::min(count, list_count());
}

// Of keys in a cache (bench/README.md, Small catalogs): small lists cost more
// to visit than their keys do. Of the training's keys, so that all indexes of
// it do alike.
bool ListIndex::ProofCostsLess(std::int64_t probe_count) const {
  const double cost_of_code = 2 + static_cast<double>(dim()) / 32;
  const auto list_count = static_cast<double>(this->list_count());
  const auto key_count = static_cast<double>(training_->key_count);
  const auto probes = static_cast<double>(probe_count);
  return key_count * cost_of_code <
         list_count * kCostOfList +
             probes * (kCostOfVisit + key_count / list_count * cost_of_code);
}

std::int64_t ListIndex::NearListsFor(std::int64_t k) const {
  if (lists_.key_count() < kKeysForTwoReadings) return 0;
  const double share =
      std::max(kNearShare, static_cast<double>(kNearKeysPerBest * k) /
                               static_cast<double>(lists_.key_count()));
  if (share > kMaxNearShare) return 0;
  return static_cast<std::int64_t>(
      std::ceil(share * static_cast<double>(list_count())));
}

ListIndex::Route ListIndex::RouteFor(const ScanQuery& query,
                                     const AttentionState& state) const {
  const ScanGoals& goals = query.goals;
  Route route;
  route.probe_count = ProbesOf(goals);
  const Calibration& calibration = training_->calibration;
  const std::int64_t learned_count = calibration.depths.front().neighbour_count;
  if (goals.probe_count == 0 && state.top().k() > learned_count) {
    // Margins are of fewer: the best k of all keys are as far away as the best
    // learned_count where as small a share is eligible. How many lists less a
    // lower recall takes there is not known.
    const double rate = static_cast<double>(learned_count) /
                        static_cast<double>(state.top().k());
    route.probe_count = std::min(
        list_count(),
        static_cast<std::int64_t>(std::ceil(ProbesFor(
            std::max(route.probe_count, calibration.probe_count), rate))));
  } else if (goals.probe_count == 0) {
    route.margin = calibration.MarginFor(
        goals.recall > 0 ? goals.recall : training_->target_recall);
  }
  // Who states a recall and nothing else may have more of it for less, where
  // codes tell most keys apart.
  const bool may_prove = goals.recall > 0 && goals.probe_count == 0 &&
                         goals.mass_precision == 0 && !IsMasked(query) &&
                         HasCodesFor(query, state) &&
                         kKeysPerKept * state.top().k() <= lists_.key_count();
  route.options.certified = goals.certified || goals.recall >= 1 ||
                            (may_prove && ProofCostsLess(route.probe_count));
  route.options.bounds = goals.certified;
  route.complete = query.exhaustive || route.options.certified ||
                   goals.mass_precision > 0 ||
                   (dim() < kLeastCodedDim && goals.probe_count == 0) ||
                   route.probe_count >= list_count();
  if (route.complete && !route.options.certified) {
    route.options.rescore_count = kRescoreCount;
    route.options.precision =
        goals.mass_precision > 0 ? goals.mass_precision : kUnstatedPrecision;
    route.options.few_codes =
        lists_.key_count() * dim() <=
        (state.value_dim() > 0 ? kFewPooledCodes : kFewCodes);
    route.options.key_share = key_share_;
  }
  // What one list finds beyond what was asked for need not be told by floats.
  // It is known of all keys, not of those that a mask leaves.
  if (!route.complete && route.margin && goals.recall > 0 && !IsMasked(query)) {
    route.options.lost_count = calibration.SpareRecall(goals.recall) *
                               static_cast<double>(state.top().k());
  }
  const std::int64_t kept =
      std::max(state.top().k(), route.options.rescore_count);
  // Of lists that are not visited, nothing can be pooled.
  const bool pools = state.value_dim() > 0;
  // The keys of a pass over a few lists are those of all segments of the
  // training together, however few are here.
  route.by_code =
      HasCodesFor(query, state) &&
      (route.complete ? kKeysPerKept * kept <= lists_.key_count() &&
                            (route.options.certified ||
                             lists_.key_count() * dim() > kCachedFloats)
                      : !pools);
  if (route.by_code && pools) route.options.values = ValuesOf(query, state);
  const std::int64_t taken =
      route.complete ? lists_.key_count()
                     : training_->key_count * route.probe_count / list_count();
  route.options.bits = !route.options.certified && taken >= kKeysFor4Bits
                           ? CodeBits::k4
                           : CodeBits::k8;
  if (route.options.certified && !route.options.bounds &&
      route.options.values == nullptr) {
    route.near_list_count = NearListsFor(state.top().k());
  }
  return route;
}

// Where a mask makes a query want many more lists than it visits elsewhere, it
// chooses for itself.
ListCarry* ListIndex::CarryOf(const ScanTask& task, const Route& route) const {
  constexpr double kMoreLists = 1.25;
  if (!route.by_code || route.complete) return nullptr;
  ListCarry* carry = ListCarry::Of(task.carry, *training_);
  if (carry == nullptr || !carry->has_choice()) return carry;
  return static_cast<double>(route.probe_count) <=
                 kMoreLists * static_cast<double>(carry->probe_count())
             ? carry
             : nullptr;
}

bool ListIndex::StartPass(const ScanQuery& query, std::int64_t k,
                          bool all_eligible, Route& route,
                          CodePass& pass) const {
  if (!route.by_code) return false;
  const CodedQuery* coded =
      route.carry != nullptr ? route.carry->coded() : nullptr;
  if (pass.Start(query, lists_, k, all_eligible, route.options, coded)) {
    return true;
  }
  if (route.options.bits == CodeBits::k8) return false;
  route.options.bits = CodeBits::k8;
  return pass.Start(query, lists_, k, all_eligible, route.options, coded);
}

absl::StatusOr<ScanStats> ListIndex::Scan(const ScanQuery& query,
                                          AttentionState& state) const {
  return ScanAlone(*this, query, state);
}

// Queries of a scan, by what is done with several of them at once.
struct ListIndex::Group {
  // Queries that visit few lists have few in common, and what is kept for more
  // of them than this would leave the second cache from one step to the next.
  static constexpr std::size_t kVisitTogether = 16;

  // A query that takes all lists goes with as many others as there may be.
  bool IsFull() const {
    const auto count = [](const auto& visits) {
      std::size_t sum = 0;
      for (const auto& share : visits) sum += share.size();
      return sum;
    };
    return count(shares[0]) == kVisitTogether && count(shares[1]) == 0;
  }

  Few<Route> routes;
  Few<ListVisit*> choosing;  // by lists
  Few<ListChoice> choices;
  Few<ListVisit*> proving;  // by 8 bits, then 4
  Few<std::int64_t> near_list_counts;
  // By [complete][what is read of keys and queries].
  Few<ListVisit*> shares[2][kReadings];
  Few<ScanTask*> by_floats;  // all lists
};

void ListIndex::ScanTogether(std::span<ScanTask> tasks) const {
  ListScratch& scratch = ListScratch::OfThread();
  while (!tasks.empty()) {
    Group group;
    group.routes.resize(std::min(ListScratch::kMaxTogether, tasks.size()));
    std::size_t count = 0;
    while (count < group.routes.size() && !group.IsFull()) {
      AddToGroup(tasks[count], count, scratch, group);
      ++count;
    }
    const std::span<ScanTask> together = tasks.first(count);
    tasks = tasks.subspan(count);
    if (!group.choosing.empty()) {
      ChooseLists(AllOf(group.choosing), AllOf(group.choices));
    }
    for (std::size_t i = 0; i < together.size(); ++i) {
      const Route& route = group.routes[i];
      if (!route.by_code || route.carry == nullptr) continue;
      if (!route.carry->has_choice() && scratch.visit(i).status.ok()) {
        route.carry->Keep(scratch.visit(i), route.probe_count);
      }
    }
    for (const auto& visits : group.shares[0]) TakeLists(lists_, AllOf(visits));
    TakeNearLists(AllOf(group.proving), AllOf(group.near_list_counts));
    for (const auto& visits : group.shares[1]) {
      TakeOtherLists(lists_, AllOf(visits));
    }
    for (std::size_t i = 0; i < together.size(); ++i) {
      if (group.routes[i].by_code) {
        FinishInGroup(together[i], i, scratch, group);
      }
    }
    ScanAllFloats(AllOf(group.by_floats));
  }
  scratch.GiveBack();
}

void ListIndex::AddToGroup(ScanTask& task, std::size_t i, ListScratch& scratch,
                           Group& group) const {
  Route& route = group.routes[i];
  const bool masked = IsMasked(*task.query);
  const std::optional<double> rate =
      masked ? GreatRate(*task.query) : std::optional<double>(1);
  route = RouteFor(*task.query, *task.state);
  if (masked && rate) {
    route.eligible_rate = *rate;
    route.probe_count = static_cast<std::int64_t>(
        std::ceil(ProbesFor(route.probe_count, *rate)));
  }
  route.carry = CarryOf(task, route);
  if (!rate ||
      (masked && !route.complete && route.probe_count >= list_count())) {
    route.by_code = false;
    if (!ScanMasked(task)) group.by_floats.push_back(&task);
    return;
  }
  CodePass& pass = scratch.pass(i);
  route.by_code =
      StartPass(*task.query, task.state->top().k(), !masked, route, pass);
  if (!route.by_code) {
    if (masked) {
      if (!ScanMasked(task)) group.by_floats.push_back(&task);
    } else if (route.complete) {
      group.by_floats.push_back(&task);
    } else {
      task.stats = ScanFloats(*task.query, *task.state, route);
    }
    return;
  }
  ListVisit& visit = scratch.visit(i);
  visit.pass = &pass;
  visit.lists.clear();
  visit.knows_products = false;
  visit.status = pass.Poll();
  if (!visit.status.ok()) return;
  if (route.carry != nullptr && route.carry->has_choice()) {
    route.carry->ChooseFor(visit);
  } else if (!route.complete) {
    group.choosing.push_back(&visit);
    group.choices.push_back(ChoiceOf(route, task.state->top().k()));
  }
  const bool proves_by_4 =
      route.near_list_count > 0 && pass.MayRead(CodeBits::k4);
  if (proves_by_4) {
    group.proving.push_back(&visit);
    group.near_list_counts.push_back(route.near_list_count);
  }
  const bool by_4 = proves_by_4 || pass.bits() == CodeBits::k4;
  group.shares[route.complete ? 1 : 0][ReadingOf(by_4, pass)].push_back(&visit);
}

void ListIndex::FinishInGroup(ScanTask& task, std::size_t i,
                              ListScratch& scratch, Group& group) const {
  const Route& route = group.routes[i];
  const ListVisit& visit = scratch.visit(i);
  if (route.masked() && !route.complete && visit.status.ok() &&
      !FoundEnough(route, visit, task.state->top().k())) {
    if (!ScanMasked(task)) group.by_floats.push_back(&task);
    return;
  }
  task.stats =
      FinishPass(route, visit, scratch.pass(i), *task.query, *task.state);
}

void ListIndex::TakeNearLists(std::span<ListVisit* const> visits,
                              std::span<const std::int64_t> list_counts) const {
  Few<CodePass*> passes;
  for (ListVisit* visit : visits) passes.push_back(visit->pass);
  CodePass::ScoreAllLists(AllOf(passes));
  for (std::size_t i = 0; i < visits.size(); ++i) {
    ListVisit& visit = *visits[i];
    visit.knows_products = true;
    const std::span<const float> logits = visit.pass->list_logits();
    const float least = KthGreatest(logits, list_counts[i]);
    visit.lists.resize(logits.size());
    visit.lists.resize(static_cast<std::size_t>(ActiveKernels().SelectAtLeast(
        logits.data(), list_count(), least, visit.lists.data())));
  }
  TakeLists(lists_, visits);
  for (ListVisit* visit : visits) visit->pass->Read(CodeBits::k4);
}

std::optional<double> ListIndex::GreatRate(const ScanQuery& query) const {
  if (!query.eligible_count ||
      query.row_end < static_cast<RowIndex>(keyed_.size())) {
    return std::nullopt;
  }
  const double rate = static_cast<double>(*query.eligible_count) /
                      static_cast<double>(lists_.key_count());
  if (rate < kMostlyEligible || rate >= 1) return std::nullopt;
  return rate;
}

bool ListIndex::FoundEnough(const Route& route, const ListVisit& visit,
                            std::int64_t k) const {
  const std::int64_t found = visit.pass->taken_count();
  const auto eligible_count = *visit.pass->query().eligible_count;
  // Of what all segments of the training are to find, this one's share.
  const auto wanted = std::min(
      eligible_count, static_cast<std::int64_t>(
                          std::ceil(static_cast<double>(k) * key_share_)));
  if (found < wanted) return false;
  std::int64_t row_count = 0;
  for (const std::int32_t list : visit.lists) row_count += RowCountOf(list);
  // Few rows say little of a share.
  constexpr std::int64_t kFewRows = 64;
  if (row_count < kFewRows) return true;
  const double rate =
      static_cast<double>(found) / static_cast<double>(row_count);
  return rate >= kLocalShare * route.eligible_rate;
}

absl::StatusOr<ScanStats> ListIndex::FinishPass(const Route& route,
                                                const ListVisit& visit,
                                                CodePass& pass,
                                                const ScanQuery& query,
                                                AttentionState& state) const {
  ATTENDANT_RETURN_IF_ERROR(visit.status);
  const auto visited_count = static_cast<std::int64_t>(visit.lists.size());
  const bool complete = route.complete || visited_count == list_count();
  ScanStats stats;
  ATTENDANT_RETURN_IF_ERROR(pass.Finish(complete, state, stats));
  stats.visited_list_count = complete ? list_count() : visited_count;
  if (route.complete || (complete && route.carry == nullptr)) return stats;
  if (route.carry != nullptr) {
    route.carry->Add(
        lists_, visit, route.masked(),
        route.masked() ? *query.eligible_count : lists_.key_count(),
        square_distance_);
    stats.knows_mass = true;  // once the carry is finished
    return stats;
  }
  if (route.masked()) {
    const EligibleRows eligible(query);
    AddUnscored(visit, &eligible, *query.eligible_count, state, stats);
  } else {
    AddUnscored(visit, nullptr, lists_.key_count(), state, stats);
  }
  return stats;
}

// Codes of all queries are compared with the means in one pass. 8 bits of a
// query err little beside 4 bits of a mean.
void ListIndex::ChooseLists(std::span<ListVisit* const> visits,
                            std::span<const ListChoice> choices) const {
  thread_local std::vector<float> scores;
  const std::int64_t stride =
      (list_count() + kCodeRows - 1) / kCodeRows * kCodeRows;
  scores.resize(visits.size() * static_cast<std::size_t>(stride));
  std::array<CodeQuery, ListScratch::kMaxTogether> queries;
  for (std::size_t v = 0; v < visits.size(); ++v) {
    const CodedQuery& coded = visits[v]->pass->coded();
    queries[v] = coded.WithFactor(coded.norm() > 0 ? 1 / coded.norm() : 0,
                                  QueryBits::k8);
  }
  lists_.means->ScoreListsByCode({queries.data(), visits.size()}, CodeBits::k4,
                                 stride, scores.data());
  for (std::size_t v = 0; v < visits.size(); ++v) {
    ListVisit& visit = *visits[v];
    visit.scores = {scores.data() + v * static_cast<std::size_t>(stride),
                    static_cast<std::size_t>(list_count())};
    ChooseExactly(scores.data() + v * static_cast<std::size_t>(stride),
                  choices[v], visit);
  }
}

ListIndex::ListChoice ListIndex::ChoiceOf(const Route& route,
                                          std::int64_t k) const {
  // How many of so many keys are eligible is a matter of chance: three
  // deviations more.
  constexpr double kDeviations = 3;
  const double rate = route.eligible_rate;
  const double wanted = std::max(1.0, static_cast<double>(k));
  return {.margin = route.margin,
          .sought_count = training_->calibration.SoughtCount(rate),
          .key_count =
              (wanted + kDeviations * std::sqrt(wanted * (1 - rate))) / rate,
          .probe_count = route.probe_count};
}

float ListIndex::LeastScore(std::span<const float> scores,
                            const ListChoice& choice) const {
  return lists_.means->ExpectedScore(scores, choice.sought_count) -
         *choice.margin;
}

void ListIndex::SelectByMargin(std::span<const float> scores, float least,
                               const ListChoice& choice,
                               std::vector<std::int32_t>& lists) const {
  SelectFrom(
      scores, least,
      [&](const std::vector<std::int32_t>& selected) {
        double sum = 0;
        for (const std::int32_t list : selected) sum += TrainedCount(list);
        return sum >= choice.key_count;
      },
      lists);
}

// 4 bits tell which lists may be wanted; floats say which are. The best come
// first: where a query is alone, little is then kept of the others.
void ListIndex::ChooseExactly(float* scores, const ListChoice& choice,
                              ListVisit& visit) const {
  constexpr std::int64_t kMore = 8;
  constexpr float kDeviations = 1.5;
  thread_local std::vector<std::int32_t> likely;
  thread_local std::vector<float> products;
  thread_local std::vector<float> of_likely;
  float least = kMinusInfinityF;
  if (choice.margin) {
    least = LeastScore(visit.scores, choice);
    SelectByMargin(visit.scores, least - kDeviations * ScoreDeviation(), choice,
                   likely);
  } else {
    SelectBest(visit.scores,
               std::min(list_count(),
                        choice.probe_count + choice.probe_count / 2 + kMore),
               likely);
  }
  const ScanQuery& query = visit.pass->query();
  const double norm = visit.pass->coded().norm();
  const auto factor = static_cast<float>(norm > 0 ? 1 / norm : 0);
  for (const std::int32_t list : likely) lists_.PrefetchMean(list);
  products.resize(likely.size());
  of_likely.resize(likely.size());
  ActiveKernels().DotRowsAt(
      query.query.data(), lists_.means->means.data(), likely.data(),
      static_cast<std::int64_t>(likely.size()), dim(), products.data());
  if (!AllFinite(products)) visit.status = LogitOverflows("query");
  for (std::size_t i = 0; i < likely.size(); ++i) {
    const auto l = static_cast<std::size_t>(likely[i]);
    of_likely[i] = scores[l] = factor * products[i] + lists_.means->reaches[l];
    visit.pass->SetListProduct(likely[i], products[i]);
  }
  visit.knows_products = true;
  if (choice.margin) {
    SelectFrom(
        of_likely, least,
        [&](const std::vector<std::int32_t>& chosen) {
          double sum = 0;
          for (const std::int32_t i : chosen) {
            sum += TrainedCount(likely[static_cast<std::size_t>(i)]);
          }
          return sum >= choice.key_count;
        },
        visit.lists);
    BestFirst(of_likely, visit.lists);
  } else {
    SelectBest(of_likely, choice.probe_count, visit.lists);
  }
  for (std::int32_t& list : visit.lists) {
    list = likely[static_cast<std::size_t>(list)];
  }
}

void ListIndex::AddUnscored(const ListVisit& visit,
                            const EligibleRows* eligible,
                            std::int64_t eligible_count, AttentionState& state,
                            ScanStats& stats) const {
  const CodePass& pass = *visit.pass;
  AddUnscored(
      pass.query(), eligible,
      {.query = pass.query().query,
       .logit_factor = pass.query().logit_factor,
       .coded = &pass.coded(),
       .scores = visit.scores,
       .lists = visit.lists,
       .log_sum =
           pass.LogSum(visit.scores, std::numeric_limits<float>::infinity()),
       .log_farther_sum =
           pass.LogSum(visit.scores, FartherScore(visit.scores, visit.lists)),
       .masked = eligible != nullptr,
       .eligible_rate = key_share_ * static_cast<double>(eligible_count) /
                        static_cast<double>(lists_.key_count()),
       .rest_count = eligible_count - pass.taken_count(),
       .square_distance = square_distance_},
      state, stats);
}

ScanStats ListIndex::FinishFloats(const ScanQuery& query,
                                  const FloatVisit& visit, bool complete,
                                  std::span<const float> scores,
                                  const EligibleRows* eligible,
                                  std::int64_t eligible_count,
                                  AttentionState& state) const {
  thread_local CodedQuery coded;
  ScanStats stats = {
      .scored_count = visit.scored_count(),
      .visited_list_count = static_cast<std::int64_t>(visit.lists().size()),
      .complete = complete,
      .exact = complete,
      .results_exact = complete,
      .knows_mass = complete};
  if (complete || state.value_dim() > 0 || !HasCodesFor(query, state) ||
      !coded.Encode(lists_.codes, query.query, query.logit_factor)) {
    return stats;
  }
  AddUnscored(
      query, eligible,
      {.query = query.query,
       .logit_factor = query.logit_factor,
       .coded = &coded,
       .scores = scores,
       .lists = visit.lists(),
       .log_sum = visit.log_sum(),
       .log_farther_sum = visit.log_farther_sum(),
       .masked = eligible != nullptr,
       .eligible_rate = key_share_ * static_cast<double>(eligible_count) /
                        static_cast<double>(lists_.key_count()),
       .rest_count = eligible_count - visit.scored_count(),
       .square_distance = square_distance_},
      state, stats);
  return stats;
}

void ListIndex::AddUnscored(const ScanQuery& query,
                            const EligibleRows* eligible,
                            const VisitedMass& visited, AttentionState& state,
                            ScanStats& stats) const {
  const ListPart part = {&lists_, eligible};
  UnscoredGuess guess;
  if (!training_->mass->Guess(query.known_masses, {&part, 1}, visited, guess)) {
    return;
  }
  state.AddUnkept(guess.partition());
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
  lists_.means->ScoreLists(query.query, scores);
  const ListChoice choice = ChoiceOf(route, state.top().k());
  if (choice.margin) {
    SelectByMargin(scores, LeastScore(scores, choice), choice, chosen);
    BestFirst(scores, chosen);
  } else {
    SelectBest(scores, choice.probe_count, chosen);
  }
  FloatVisit visit(lists_, query, scores, true, state);
  ATTENDANT_RETURN_IF_ERROR(visit.Visit(chosen));
  const bool complete =
      static_cast<std::int64_t>(chosen.size()) == list_count();
  return FinishFloats(query, visit, complete, scores, nullptr,
                      lists_.key_count(), state);
}

}  // namespace attendant
