#include "core/shortlist/ivf/list_index.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "core/attention/softmax/log_add.h"
#include "core/base/status.h"
#include "core/kernels/kernels.h"
#include "core/kernels/select.h"
#include "core/shortlist/builds/guard_build.h"
#include "core/shortlist/passes/list_scratch.h"
#include "core/shortlist/scan/scan_costs.h"
#include "core/shortlist/scan/shared_scan.h"

namespace attendant {
namespace {

// One item for each query of a scan; a single query, the common case, needs no
// allocation.
template <typename T>
using Few = absl::InlinedVector<T, 1>;

template <typename T>
std::span<const T> AllOf(const Few<T>& few) {
  return {few.data(), few.size()};
}

// More lists are visited if the share of eligible keys in the visited lists is
// below this part of their share in all lists.
constexpr double kLocalShare = 0.75;

// Passes share their reads if they read the same bits of keys and queries: 8
// and 16, 4 and 16, or 4 and 8.
constexpr std::size_t kReadings = 3;
std::size_t ReadingOf(bool by_4, const CodePass& pass) {
  if (!by_4) return 0;
  return pass.coded().view().low == nullptr ? 2 : 1;
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
    positions_[lists_.rows[p]] = static_cast<std::int32_t>(p);
  }
}

std::int32_t ListIndex::ListOf(RowIndex row) const {
  const std::int32_t position = positions_[row];
  return position < 0 ? -1 : static_cast<std::int32_t>(lists_.ListAt(position));
}

std::unique_ptr<DeadKeys> ListIndex::NoneDead() const {
  auto none = std::make_unique<DeadKeys>();
  none->positions = Bitmap(lists_.key_count());
  none->live_counts = lists_.counts;
  return none;
}

void ListIndex::Kill(RowIndex row, DeadKeys& dead) const {
  const std::int32_t position = positions_[row];
  if (position < 0) return;
  dead.positions.Set(position);
  --dead.live_counts[lists_.ListAt(position)];
}

std::span<const float> ListIndex::Key(RowIndex row) const {
  const std::int32_t position = positions_[row];
  if (position < 0) return {};
  return lists_.key_view().Row(position);
}

// Learning needs about as many keys as the training had, since what it says of
// masses applies to that many.
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
      // Each owner that shares the training accounts for an equal part of it.
      training_->memory_bytes() / training_.use_count() +
      key_values_.memory_bytes() + keyed_.memory_bytes() +
      n * (kFloatBytes + std::int64_t{sizeof(RowIndex)}) +
      static_cast<std::int64_t>(positions_.size() * sizeof(std::int32_t) +
                                lists_.offsets.size() * sizeof(std::int64_t));
  return parts;
}

bool ListIndex::IsMasked(const ScanQuery& query) const {
  if (query.row_end < static_cast<RowIndex>(keyed_.size())) return true;
  // Rows that a mask leaves out may have no key here.
  return (query.excluded != nullptr || query.allowed != nullptr) &&
         query.eligible_count != lists_.key_count();
}

const ListValues* ListIndex::ValuesOf(const ScanQuery& query,
                                      const AttentionState& state) const {
  // Errors of equal keys, and of keys in few directions, are alike and would
  // not average out, unless subtracting lists' means removes what the keys have
  // in common.
  if (list_count() == 1) return nullptr;
  const bool are_keys = query.values == nullptr || query.values->PoolsKeys();
  const ListValues* values =
      are_keys ? &key_values_ : (values_ ? &*values_ : nullptr);
  const bool fits = values != nullptr && values->usable(lists_) &&
                    values->dim() == state.value_dim();
  return fits ? values : nullptr;
}

bool ListIndex::HasCodesFor(const ScanQuery& query) const {
  return dim() >= kMinCodedDim && lists_.codes.usable() &&
         lists_.means->codes.usable() && !query.exhaustive &&
         query.bias == nullptr && query.projection == nullptr &&
         query.score_kind != ScoreKind::kAdditive &&
         (query.score_kind == ScoreKind::kCosine) == cosine_;
}

// If a mask makes the query want many more lists here than it visits in other
// indexes, it chooses lists for itself.
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

// Queries of a scan, grouped by what is done for several of them at once.
struct ListIndex::Group {
  // Queries that visit few lists have few lists in common. With more queries
  // than this, their kept keys would leave the second-level cache between
  // steps.
  static constexpr std::size_t kVisitTogether = 16;

  // Queries that take all lists may be joined by as many others as there are.
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
  Few<ListVisit*> proving;  // the near lists first
  Few<std::int64_t> near_list_counts;
  // [complete][reading], see kReadings.
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
  visit.far.Clear();
  visit.status = pass.Poll();
  if (!visit.status.ok()) return;
  if (route.carry != nullptr && route.carry->has_choice()) {
    route.carry->ChooseFor(visit);
  } else if (!route.complete) {
    group.choosing.push_back(&visit);
    group.choices.push_back(ChoiceOf(route, task.state->top().k()));
  }
  bool by_4 = pass.bits() == CodeBits::k4;
  if (route.near_list_count > 0) {
    group.proving.push_back(&visit);
    group.near_list_counts.push_back(route.near_list_count);
    by_4 |= pass.MayRead(CodeBits::k4);
  }
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
  for (ListVisit* visit : visits) {
    if (visit->status.ok()) FindFar(*visit);
    if (visit->pass->MayRead(CodeBits::k4)) visit->pass->Read(CodeBits::k4);
  }
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
  // This index's share of what all segments of the training are to find.
  const auto wanted = std::min(
      eligible_count, static_cast<std::int64_t>(
                          std::ceil(static_cast<double>(k) * key_share_)));
  if (found < wanted) return false;
  std::int64_t row_count = 0;
  for (const std::int32_t list : visit.lists) row_count += RowCountOf(list);
  // A share among few rows says little.
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
  if (!visit.far.empty()) AddFar(visit.far, state, stats);
  if (route.complete || (complete && route.carry == nullptr)) return stats;
  if (route.carry != nullptr) {
    route.carry->Add(
        lists_, visit, route.masked(),
        route.masked() ? *query.eligible_count : lists_.key_count(),
        square_distance_);
    stats.knows_mass = true;  // after the carry is finished
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
       .eligible_rate = key_share_ * static_cast<double>(eligible_count) /
                        static_cast<double>(lists_.key_count()),
       .rest_count = eligible_count - visit.scored_count(),
       .square_distance = square_distance_},
      state, stats);
  return stats;
}

void ListIndex::AddUnscored(const ScanQuery& query,
                            const EligibleRows* eligible, VisitedMass visited,
                            AttentionState& state, ScanStats& stats) const {
  const ListPart part = {&lists_, eligible,
                         eligible != nullptr ? query.dead : nullptr};
  visited.masked = part.masked();
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
  ChooseByScores(scores, ChoiceOf(route, state.top().k()), chosen);
  FloatVisit visit(lists_, query, scores, true, state);
  ATTENDANT_RETURN_IF_ERROR(visit.Visit(chosen));
  const bool complete =
      static_cast<std::int64_t>(chosen.size()) == list_count();
  return FinishFloats(query, visit, complete, scores, nullptr,
                      lists_.key_count(), state);
}

}  // namespace attendant
