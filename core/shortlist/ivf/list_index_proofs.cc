// Proofs of the best keys: which lists are read with 8 bits, and which need not
// be read.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

#include "core/attention/softmax/log_add.h"
#include "core/base/normal_deviations.h"
#include "core/shortlist/ivf/list_index.h"
#include "core/shortlist/mass/far_lists.h"

namespace attendant {
namespace {

// A proof over at least kKeysForTwoReadings keys reads the lists that hold most
// of the keys near the best with 8 bits, and the others with 4. The near lists
// are at least kNearShare of all lists, and enough for kNearKeysPerBest times
// the wanted number of keys. If they would be more than kMaxNearShare, all
// lists are read with 8 bits.
constexpr std::int64_t kKeysForTwoReadings = 20000;
constexpr double kNearShare = 1.0 / 32;
constexpr std::int64_t kNearKeysPerBest = 4;
constexpr double kMaxNearShare = 1.0 / 4;

// A stated precision is left to the errors of codes.
double FarShareOf(const ScanGoals& goals) {
  constexpr double kPartOfPrecision = 1.0 / 4;
  return goals.mass_precision > 0
             ? std::min(kMaxFarShare, kPartOfPrecision * goals.mass_precision)
             : kMaxFarShare;
}

}  // namespace

std::int64_t ListIndex::NearListsFor(std::int64_t k) const {
  if (lists_.key_count() < kKeysForTwoReadings) return 0;
  const double share =
      std::max(kNearShare, static_cast<double>(kNearKeysPerBest * k) /
                               static_cast<double>(lists_.key_count()));
  if (share > kMaxNearShare) return 0;
  return static_cast<std::int64_t>(
      std::ceil(share * static_cast<double>(list_count())));
}

void ListIndex::FindFar(ListVisit& visit) const {
  CodePass& pass = *visit.pass;
  const ScanQuery& query = pass.query();
  const EligibleRows eligible(query);
  const ListPart part = {&lists_, IsMasked(query) ? &eligible : nullptr,
                         query.dead};
  // The same as a score of ListMeans is multiplied by to get a logit.
  const double per_norm = query.logit_factor * pass.coded().norm();
  if (part.masked() || per_norm <= 0) return;
  // ListMeans::ScoreLists, from the logits of the means.
  thread_local std::vector<float> scores;
  scores.resize(static_cast<std::size_t>(list_count()));
  const auto inverse = static_cast<float>(1 / per_norm);
  for (std::size_t l = 0; l < scores.size(); ++l) {
    scores[l] = pass.list_logits()[l] * inverse + lists_.means->reaches[l];
  }
  const VisitedMass visited = {.query = query.query,
                               .logit_factor = query.logit_factor,
                               .coded = &pass.coded(),
                               .scores = scores,
                               .lists = visit.lists,
                               .log_sum = pass.LogTaken(),
                               .square_distance = square_distance_};
  const LogitReach reach = {.of_means = pass.list_logits(),
                            .per_norm = per_norm,
                            .rounding = pass.LogitRounding(),
                            .least_of_best = pass.LeastOfBest(),
                            .max_share = FarShareOf(query.goals)};
  FindFarLists(*training_->mass->Load(query.known_masses), part, visited, reach,
               visit.far);
  const auto middle = static_cast<std::ptrdiff_t>(visit.lists.size());
  visit.lists.insert(visit.lists.end(), visit.far.lists.begin(),
                     visit.far.lists.end());
  std::inplace_merge(visit.lists.begin(), visit.lists.begin() + middle,
                     visit.lists.end());
}

void ListIndex::AddFar(const FarLists& far, AttentionState& state,
                       ScanStats& stats) const {
  state.AddUnkept(far.guess.partition());
  stats.log_variance = LogAdd(stats.log_variance, far.guess.log_variance);
  stats.far = {
      .count = far.guess.count,
      .log_most = LogAdd(far.guess.log_sum, std::log(kNormalDeviations) +
                                                far.guess.log_variance / 2)};
  stats.visited_list_count -= static_cast<std::int64_t>(far.lists.size());
  stats.complete = false;
  stats.exact = false;
}

}  // namespace attendant
