#include "core/shortlist/ivf/list_carry.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "core/attention/softmax/log_add.h"

namespace attendant {

ListCarry* ListCarry::Of(std::unique_ptr<ScanCarry>* carry,
                         const IvfTraining& training) {
  if (carry == nullptr) return nullptr;
  if (*carry == nullptr) *carry = std::make_unique<ListCarry>(training);
  return Find(*carry, training);
}

ListCarry* ListCarry::Find(const std::unique_ptr<ScanCarry>& carry,
                           const IvfTraining& training) {
  auto* of_lists = dynamic_cast<ListCarry*>(carry.get());
  return of_lists != nullptr && &of_lists->training_ == &training ? of_lists
                                                                  : nullptr;
}

void ListCarry::Keep(const ListVisit& visit, std::int64_t probe_count) {
  probe_count_ = probe_count;
  const CodePass& pass = *visit.pass;
  keeps_all_ = pass.keeps_all();
  coded_.EncodeAs(pass.coded(), pass.coded().codes());
  query_ = pass.query().query;
  known_masses_ = pass.query().known_masses;
  logit_factor_ = pass.query().logit_factor;
  lists_ = visit.lists;
  list_logits_.clear();
  for (const std::int32_t list : lists_) {
    list_logits_.push_back(pass.ListLogit(list));
  }
  scores_.assign(visit.scores.begin(), visit.scores.end());
  farther_score_ = FartherScore(scores_, lists_);
}

void ListCarry::ChooseFor(ListVisit& visit) const {
  visit.lists = lists_;
  visit.scores = scores_;
  if (keeps_all_) visit.pass->KeepAll();
  for (std::size_t i = 0; i < lists_.size(); ++i) {
    visit.pass->SetListLogit(lists_[i], list_logits_[i]);
  }
  visit.knows_products = true;
}

void ListCarry::Add(const InvertedLists& lists, const ListVisit& visit,
                    bool masked, std::int64_t eligible_count,
                    double square_distance) {
  const CodePass& pass = *visit.pass;
  Part part = {.lists = &lists, .eligible = std::nullopt};
  if (masked) {
    part.eligible.emplace(pass.query());
    part.dead = pass.query().dead;
  }
  parts_.push_back(part);
  key_count_ += lists.key_count();
  square_distance_sum_ +=
      static_cast<double>(lists.key_count()) * square_distance;
  eligible_count_ += eligible_count;
  taken_count_ += pass.taken_count();
  log_sum_ = LogAdd(
      log_sum_, pass.LogSum(scores_, std::numeric_limits<float>::infinity()));
  log_farther_sum_ =
      LogAdd(log_farther_sum_, pass.LogSum(scores_, farther_score_));
}

void ListCarry::AddGrowing(std::span<const std::int32_t> list_of,
                           const ScanQuery& query, std::int64_t eligible_count,
                           std::int64_t taken_count) {
  growing_count_ += eligible_count;
  growing_.push_back({.list_of = list_of,
                      .eligible = EligibleRows(query),
                      .rest_count = eligible_count - taken_count});
}

void ListCarry::Finish(AttentionState& state, ScanStats& stats) {
  if (parts_.empty()) return;
  std::vector<ListPart> parts;
  bool masked = false;
  for (const Part& part : parts_) {
    parts.push_back(
        {part.lists, part.eligible ? &*part.eligible : nullptr, part.dead});
    masked |= parts.back().masked();
  }
  const VisitedMass visited = {
      .query = query_,
      .logit_factor = logit_factor_,
      .coded = &coded_,
      .scores = scores_,
      .lists = lists_,
      .log_sum = log_sum_,
      .log_farther_sum = log_farther_sum_,
      .masked = masked,
      .eligible_rate =
          static_cast<double>(eligible_count_) /
          static_cast<double>(std::max(key_count_, training_.key_count)),
      .rest_count = eligible_count_ - taken_count_,
      .square_distance = square_distance_sum_ / static_cast<double>(key_count_),
      .growing = growing_};
  UnscoredGuess guess;
  if (!training_.mass->Guess(known_masses_, parts, visited, guess)) {
    stats.knows_mass = false;
    return;
  }
  state.AddUnkept(guess.partition());
  stats.log_variance = LogAdd(stats.log_variance, guess.log_variance);
}

}  // namespace attendant
