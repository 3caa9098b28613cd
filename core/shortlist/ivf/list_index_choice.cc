// The choice of the lists that a query visits: those whose scores say that keys
// near the best are in them.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/attention/softmax/score.h"
#include "core/base/minus_infinity.h"
#include "core/kernels/kernels.h"
#include "core/kernels/select.h"
#include "core/shortlist/ivf/list_index.h"
#include "core/shortlist/passes/list_scratch.h"

namespace attendant {
namespace {

// Sets `positions` to those of the numbers >= `least`, and to more of the
// greatest numbers until they are at least least_count and enough(positions) is
// true. least_count is at most the number of numbers.
template <typename Enough>
void SelectFrom(std::span<const float> numbers, float least,
                std::int64_t least_count, Enough enough,
                std::vector<std::int32_t>& positions) {
  const auto size = static_cast<std::int64_t>(numbers.size());
  positions.resize(numbers.size());
  std::int64_t found = ActiveKernels().SelectAtLeast(numbers.data(), size,
                                                     least, positions.data());
  positions.resize(static_cast<std::size_t>(found));
  if (found < least_count) {
    found = least_count;
    SelectBest(numbers, found, positions);
  }
  while (found < size && !enough(positions)) {
    found = std::min(size, found + found / 2 + 1);
    SelectBest(numbers, found, positions);
  }
}

float PeakOf(std::span<const float> scores) {
  return ActiveKernels().Max(scores.data(),
                             static_cast<std::int64_t>(scores.size()));
}

// Moves the positions of the greatest numbers to the front; the others keep
// their order, which is that of the lists in memory.
void BestFirst(std::span<const float> numbers,
               std::vector<std::int32_t>& positions) {
  constexpr std::size_t kFirst = 16;
  thread_local std::vector<float> chosen;
  thread_local std::vector<std::int32_t> best;
  thread_local std::vector<std::int32_t> others;
  chosen.clear();
  for (const std::int32_t position : positions) {
    chosen.push_back(numbers[position]);
  }
  SelectBest(chosen, static_cast<std::int64_t>(std::min(kFirst, chosen.size())),
             best);
  others.swap(positions);
  positions.clear();
  for (std::int32_t& at : best) {
    positions.push_back(std::exchange(others[at], -1));
  }
  for (const std::int32_t position : others) {
    if (position >= 0) positions.push_back(position);
  }
}

}  // namespace

// Compares codes of all queries with the means in one pass. The error of 8 bits
// of a query is small compared with that of 4 bits of a mean.
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
  // The number of eligible keys among a given number is random: allows for
  // three deviations.
  constexpr double kDeviations = 3;
  const double rate = route.eligible_rate;
  const double wanted = std::max(1.0, static_cast<double>(k));
  return {.margin = route.deep ? DeepMarginOf(route) : route.margin,
          .sought_count = route.deep ? wanted / rate
                                     : training_->calibration.SoughtCount(rate),
          .key_count =
              (wanted + kDeviations * std::sqrt(wanted * (1 - rate))) / rate,
          .probe_count = route.probe_count,
          .deep = route.deep};
}

// Many keys are expected in more lists than a few are.
float ListIndex::ExpectedScore(std::span<const float> scores,
                               const ListChoice& choice) const {
  constexpr double kKeysPerSought = 4;
  const double share = choice.deep
                           ? kKeysPerSought * choice.sought_count /
                                 static_cast<double>(training_->key_count)
                           : 0;
  return lists_.means->ExpectedScore(
      scores, choice.sought_count,
      static_cast<std::int64_t>(std::min(1.0, share) *
                                static_cast<double>(list_count())));
}

float ListIndex::LeastScore(std::span<const float> scores,
                            const ListChoice& choice, float peak) const {
  return ExpectedScore(scores, choice) - choice.margin->At(peak);
}

// The farther keys of any query lie in many lists, as all those of a far query
// do. If the number of lists is learned for the wanted recall, it already
// allows for this where queries are near keys.
std::optional<QueryMargin> ListIndex::DeepMarginOf(const Route& route) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::optional<QueryMargin> margin = route.margin;
  if (margin && route.above_target) {
    margin->far_peak = kInfinity;
    margin->near_peak = kInfinity;
  }
  return margin;
}

double ListIndex::ProbesByMargin(std::span<const float> scores,
                                 const Route& route, std::int64_t k,
                                 double rate) const {
  ListChoice choice = {.margin = DeepMarginOf(route), .deep = true};
  if (!choice.margin) return 0;
  const float peak = PeakOf(scores);
  if (choice.margin->FarnessOf(peak) == 0) return 0;
  choice.sought_count =
      std::max(training_->calibration.SoughtCount(1), static_cast<double>(k)) /
      rate;
  return static_cast<double>(ActiveKernels().CountAtLeast(
      scores.data(), list_count(), LeastScore(scores, choice, peak)));
}

void ListIndex::SelectByMargin(std::span<const float> scores, float least,
                               const ListChoice& choice,
                               std::int64_t least_count,
                               std::vector<std::int32_t>& lists) const {
  SelectFrom(
      scores, least, choice.deep ? std::min(least_count, list_count()) : 0,
      [&](const std::vector<std::int32_t>& selected) {
        double sum = 0;
        for (const std::int32_t list : selected) sum += TrainedCount(list);
        return sum >= choice.key_count;
      },
      lists);
}

// Finds the lists that may be wanted from 4 bits, and decides by floats. Puts
// the best lists first: if the query is alone, few keys of the other lists are
// then kept.
void ListIndex::ChooseExactly(float* scores, const ListChoice& choice,
                              ListVisit& visit) const {
  constexpr std::int64_t kMore = 8;
  constexpr float kDeviations = 1.5;
  thread_local std::vector<std::int32_t> likely;
  thread_local std::vector<float> products;
  thread_local std::vector<float> of_likely;
  const std::int64_t more_probes =
      choice.probe_count + choice.probe_count / 2 + kMore;
  const float peak = PeakOf(visit.scores);
  const bool is_far = choice.margin && choice.margin->FarnessOf(peak) > 0;
  // It is for queries near keys that one list may find more than is wanted.
  if (is_far) visit.pass->KeepAll();
  const bool by_margin = choice.margin && (is_far || !choice.deep);
  float least = kMinusInfinityF;
  if (by_margin) {
    least = LeastScore(visit.scores, choice, peak);
    SelectByMargin(visit.scores, least - kDeviations * ScoreDeviation(), choice,
                   more_probes, likely);
  } else {
    SelectBest(visit.scores, std::min(list_count(), more_probes), likely);
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
  if (by_margin) {
    SelectFrom(
        of_likely, least, choice.deep ? choice.probe_count : 0,
        [&](const std::vector<std::int32_t>& chosen) {
          double sum = 0;
          for (const std::int32_t i : chosen) {
            sum += TrainedCount(likely[i]);
          }
          return sum >= choice.key_count;
        },
        visit.lists);
    BestFirst(of_likely, visit.lists);
  } else {
    SelectBest(of_likely, choice.probe_count, visit.lists);
  }
  for (std::int32_t& list : visit.lists) {
    list = likely[list];
  }
}

void ListIndex::ChooseByScores(std::span<const float> scores,
                               const ListChoice& choice,
                               std::vector<std::int32_t>& lists) const {
  const float peak = PeakOf(scores);
  if (choice.margin && (!choice.deep || choice.margin->FarnessOf(peak) > 0)) {
    SelectByMargin(scores, LeastScore(scores, choice, peak), choice,
                   choice.probe_count, lists);
    BestFirst(scores, lists);
  } else {
    SelectBest(scores, choice.probe_count, lists);
  }
}

}  // namespace attendant
