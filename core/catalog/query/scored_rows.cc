#include "core/catalog/query/scored_rows.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "core/base/status.h"
#include "core/catalog/query/segment_query.h"
#include "core/shortlist/scan/key_scorer.h"

namespace attendant {

absl::StatusOr<ScoredRows> ScoreInHeads(const Snapshot& snapshot,
                                        const QueryPlan& plan,
                                        std::vector<RowAddress> rows,
                                        const Interrupt& interrupt) {
  ScoredRows scored;
  scored.rows = std::move(rows);
  std::vector<RowIndex> run;
  for (const PlannedHead& head : plan.heads) {
    std::vector<float>& similarities =
        scored.similarities.emplace_back(scored.size());
    std::vector<float>& logits = scored.logits.emplace_back(scored.size());
    // Runs of rows in one segment share its query.
    for (std::size_t begin = 0; begin < scored.size();) {
      const std::int32_t segment = scored.rows[begin].segment;
      run.clear();
      std::size_t end = begin;
      while (end < scored.size() && scored.rows[end].segment == segment) {
        run.push_back(scored.rows[end++].row);
      }
      const SegmentQuery query(snapshot, plan, head,
                               static_cast<std::size_t>(segment), interrupt);
      const KeyIndex& index = snapshot.segments[segment].segment->IndexOf(
          head.field, head.stored_head);
      const std::size_t count = end - begin;
      ATTENDANT_RETURN_IF_ERROR(InQueryOf(
          head, ScoreRows(index, query.scan, run,
                          std::span(similarities).subspan(begin, count),
                          std::span(logits).subspan(begin, count))));
      begin = end;
    }
  }
  return scored;
}

ScoredRows FromCandidates(const std::vector<Candidate>& candidates) {
  ScoredRows scored;
  std::vector<float>& logits = scored.logits.emplace_back();
  std::vector<float>& similarities = scored.similarities.emplace_back();
  scored.rows.reserve(candidates.size());
  logits.reserve(candidates.size());
  similarities.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    scored.rows.push_back({candidate.segment, candidate.row});
    logits.push_back(candidate.logit);
    similarities.push_back(candidate.similarity);
  }
  return scored;
}

ScoredRows Prefix(const ScoredRows& scored, std::size_t count) {
  const auto first = [count](const auto& from) {
    const auto end = from.begin() + static_cast<std::ptrdiff_t>(count);
    return std::decay_t<decltype(from)>(from.begin(), end);
  };
  ScoredRows prefix;
  prefix.rows = first(scored.rows);
  for (std::size_t h = 0; h < scored.logits.size(); ++h) {
    prefix.logits.push_back(first(scored.logits[h]));
    prefix.similarities.push_back(first(scored.similarities[h]));
  }
  return prefix;
}

ScoredRows Pick(const ScoredRows& scored,
                const std::vector<std::size_t>& positions) {
  const auto pick = [&](const auto& from) {
    std::decay_t<decltype(from)> to;
    to.reserve(positions.size());
    for (const std::size_t i : positions) to.push_back(from[i]);
    return to;
  };
  ScoredRows picked;
  picked.rows = pick(scored.rows);
  for (const auto& logits : scored.logits) {
    picked.logits.push_back(pick(logits));
  }
  for (const auto& similarities : scored.similarities) {
    picked.similarities.push_back(pick(similarities));
  }
  return picked;
}

ScoredRows Distinct(const ScoredRows& scored) {
  absl::flat_hash_set<std::pair<std::int32_t, RowIndex>> seen;
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < scored.size(); ++i) {
    if (seen.insert({scored.rows[i].segment, scored.rows[i].row}).second) {
      positions.push_back(i);
    }
  }
  return positions.size() == scored.size() ? scored : Pick(scored, positions);
}

ScoredRows SortedBy(const std::vector<double>& ranks, const Snapshot& snapshot,
                    const ScoredRows& scored) {
  std::vector<std::size_t> order(scored.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    if (ranks[a] != ranks[b]) return ranks[a] > ranks[b];
    return snapshot.IdOf(scored.rows[a].segment, scored.rows[a].row) <
           snapshot.IdOf(scored.rows[b].segment, scored.rows[b].row);
  });
  return Pick(scored, order);
}

}  // namespace attendant
