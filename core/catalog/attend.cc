#include "core/catalog/attend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "core/attention/sampling.h"
#include "core/base/status.h"
#include "core/catalog/pool.h"
#include "core/catalog/query_plan.h"
#include "core/catalog/scan.h"
#include "core/catalog/weigh.h"

namespace attendant {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

bool DrawsFromCatalog(const QueryPlan& plan) {
  return plan.select_kind == SelectKind::kSample &&
         plan.weight_scope == WeightScope::kCatalog;
}

Mass ExactMass(double value) {
  return {MassMethod::kExact, value, value, value};
}

// The first `count` rows.
ScoredRows Prefix(const ScoredRows& scored, std::size_t count) {
  ScoredRows prefix = scored;
  prefix.rows.resize(count);
  for (auto& logits : prefix.logits) logits.resize(count);
  for (auto& similarities : prefix.similarities) similarities.resize(count);
  return prefix;
}

// The rows at `positions`, in that order.
ScoredRows Pick(const ScoredRows& scored,
                const std::vector<std::size_t>& positions) {
  ScoredRows picked;
  for (const std::size_t i : positions) {
    picked.rows.push_back(scored.rows[i]);
  }
  const auto pick = [&](const std::vector<float>& from) {
    std::vector<float> to;
    for (const std::size_t i : positions) to.push_back(from[i]);
    return to;
  };
  for (const auto& logits : scored.logits) {
    picked.logits.push_back(pick(logits));
  }
  for (const auto& similarities : scored.similarities) {
    picked.similarities.push_back(pick(similarities));
  }
  return picked;
}

// Each row once.
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

// Scans for every head, by the index where the plan allows it; again by every
// key where the index found too few.
absl::StatusOr<std::vector<HeadScan>> ScanHeads(const Snapshot& snapshot,
                                                const AttendQuery& query,
                                                const QueryPlan& plan,
                                                const Interrupt& interrupt) {
  std::vector<HeadScan> scans;
  for (const PlannedHead& planned : plan.heads) {
    const PlannedHead& head =
        plan.shortlist_head ? *plan.shortlist_head : planned;
    const std::int64_t eligible_count = plan.masks.EligibleCount(head.field);
    HeadScanOptions options;
    options.keep_count =
        DrawsFromCatalog(plan) ? eligible_count : plan.shortlist_count;
    options.pools = plan.pool_scope == WeightScope::kCatalog;
    options.exhaustive = plan.exhaustive;
    ATTENDANT_ASSIGN_OR_RETURN(
        HeadScan scan, ScanHead(snapshot, plan, head, options, interrupt));
    const std::int64_t wanted = std::min(options.keep_count, eligible_count);
    if (!scan.complete && query.scan_mode != ScanMode::kIndex &&
        scan.state.partition().count < wanted) {
      options.exhaustive = true;
      ATTENDANT_ASSIGN_OR_RETURN(
          scan, ScanHead(snapshot, plan, head, options, interrupt));
    }
    scans.push_back(std::move(scan));
  }
  return scans;
}

// By (segment, row), so that runs of a segment are scored together.
std::vector<RowAddress> UnionOf(
    const std::vector<std::vector<Candidate>>& shortlists) {
  std::vector<RowAddress> rows;
  for (const std::vector<Candidate>& shortlist : shortlists) {
    for (const Candidate& candidate : shortlist) {
      rows.push_back({candidate.segment, candidate.row});
    }
  }
  const auto key = [](const RowAddress& address) {
    return std::pair(address.segment, address.row);
  };
  std::sort(rows.begin(), rows.end(),
            [&](const RowAddress& a, const RowAddress& b) {
              return key(a) < key(b);
            });
  rows.erase(std::unique(rows.begin(), rows.end(),
                         [&](const RowAddress& a, const RowAddress& b) {
                           return key(a) == key(b);
                         }),
             rows.end());
  return rows;
}

// The candidates of the only head, which are sorted.
ScoredRows FromCandidates(const std::vector<Candidate>& candidates) {
  ScoredRows scored;
  scored.logits.emplace_back();
  scored.similarities.emplace_back();
  for (const Candidate& candidate : candidates) {
    scored.rows.push_back({candidate.segment, candidate.row});
    scored.logits[0].push_back(candidate.logit);
    scored.similarities[0].push_back(candidate.similarity);
  }
  return scored;
}

// Sorts by (rank descending, id ascending).
ScoredRows SortedBy(const std::vector<double>& ranks, const Snapshot& snapshot,
                    const ScoredRows& scored) {
  std::vector<std::size_t> order(scored.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (ranks[a] != ranks[b]) return ranks[a] > ranks[b];
    return snapshot.IdOf(scored.rows[a].segment, scored.rows[a].row) <
           snapshot.IdOf(scored.rows[b].segment, scored.rows[b].row);
  });
  return Pick(scored, order);
}

// What an answer is made of.
class Answerer {
 public:
  Answerer(const Snapshot& snapshot, const QueryPlan& plan,
           std::vector<HeadScan> scans)
      : snapshot_(snapshot), plan_(plan), scans_(std::move(scans)) {
    complete_ = !plan.shortlist_head &&
                std::all_of(scans_.begin(), scans_.end(),
                            [](const HeadScan& scan) { return scan.complete; });
    for (const HeadScan& scan : scans_) {
      catalog_.push_back(
          scan.state.partition().LogPartition().value_or(kNothing));
    }
  }

  absl::StatusOr<AttendAnswer> Answer() {
    ATTENDANT_ASSIGN_OR_RETURN(shortlist_, Shortlist());
    shortlisted_ = PartitionsOf(shortlist_);
    if (plan_.heads.size() > 1 || plan_.shortlist_head) SortShortlist();
    ATTENDANT_RETURN_IF_ERROR(Select());
    FillItems();
    FillMasses();
    FillPools();
    return std::move(answer_);
  }

 private:
  bool softmax() const {
    return plan_.activation_kind == ActivationKind::kSoftmax;
  }

  Weigher WeigherOf(LogPartitions partitions) const {
    return Weigher(plan_.activation_kind, std::move(partitions));
  }

  // The union of the heads' shortlists, in the only head's order if it is one.
  absl::StatusOr<ScoredRows> Shortlist() const {
    std::vector<std::vector<Candidate>> shortlists;
    for (const HeadScan& scan : scans_) {
      if (DrawsFromCatalog(plan_)) {
        TopK top(plan_.shortlist_count, &snapshot_);
        top.Merge(scan.state.top());
        shortlists.push_back(top.Sorted());
      } else {
        shortlists.push_back(scan.state.top().Sorted());
      }
    }
    if (scans_.size() == 1 && !plan_.shortlist_head) {
      return FromCandidates(shortlists.front());
    }
    return ScoreInHeads(snapshot_, plan_, UnionOf(shortlists));
  }

  void SortShortlist() {
    std::vector<double> ranks(shortlist_.size());
    if (scans_.size() == 1) {
      ranks.assign(shortlist_.logits[0].begin(), shortlist_.logits[0].end());
    } else {
      const bool by_catalog =
          plan_.min_mass || plan_.weight_scope == WeightScope::kCatalog;
      const Weigher weigher = WeigherOf(by_catalog ? catalog_ : shortlisted_);
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        // Logs tell weights apart that are 0 to a double.
        ranks[i] = softmax() ? weigher.LogMean(shortlist_, i)
                             : weigher.Mean(shortlist_, i);
      }
    }
    shortlist_ = SortedBy(ranks, snapshot_, shortlist_);
  }

  absl::Status Select() {
    if (plan_.select_kind == SelectKind::kSample) return Sample();
    std::size_t count = std::min(static_cast<std::size_t>(plan_.result_count),
                                 shortlist_.size());
    if (plan_.min_mass) {
      const Weigher weigher = WeigherOf(catalog_);
      double mass = 0;
      std::size_t needed = 0;
      while (needed < count && mass < *plan_.min_mass) {
        mass += weigher.Mean(shortlist_, needed++);
      }
      answer_.result_cap_reached =
          mass < *plan_.min_mass &&
          static_cast<std::int64_t>(needed) == plan_.result_count &&
          plan_.result_count < plan_.eligible_count;
      count = needed;
    }
    returned_ = Prefix(shortlist_, count);
    return absl::OkStatus();
  }

  absl::Status Sample() {
    std::vector<float> logits;
    std::vector<RowAddress> rows;
    if (!DrawsFromCatalog(plan_)) {
      rows = shortlist_.rows;
      logits = MeanLogits(shortlist_, shortlisted_);
    } else if (scans_.size() == 1) {
      for (const Candidate& candidate : scans_[0].state.top().candidates()) {
        rows.push_back({candidate.segment, candidate.row});
        logits.push_back(candidate.logit);
      }
    } else {
      CatalogLogits(rows, logits);
    }
    const auto seed = static_cast<std::uint64_t>(plan_.seed);
    Slate slate;
    if (plan_.with_replacement) {
      slate = SampleWithReplacement(logits, plan_.result_count, seed);
    } else {
      std::vector<std::uint64_t> noise_keys;
      noise_keys.reserve(rows.size());
      for (const RowAddress& address : rows) {
        noise_keys.push_back(
            snapshot_.segments[address.segment].segment->rows->IdHash(
                address.row));
      }
      slate = SampleWithoutReplacement(logits, noise_keys, plan_.result_count,
                                       seed);
    }
    std::vector<RowAddress> drawn;
    for (const Draw& draw : slate.draws) {
      drawn.push_back(rows[static_cast<std::size_t>(draw.index)]);
    }
    ATTENDANT_ASSIGN_OR_RETURN(returned_,
                               ScoreInHeads(snapshot_, plan_, drawn));
    answer_.slate = SlateAnswer{plan_.seed, slate.log_probability, slate.kappa,
                                plan_.weight_scope};
    draws_ = std::move(slate.draws);
    return absl::OkStatus();
  }

  // What a softmax of `scored` has as its mean weights.
  std::vector<float> MeanLogits(const ScoredRows& scored,
                                const LogPartitions& partitions) const {
    if (scans_.size() == 1) return scored.logits[0];
    const Weigher weigher = WeigherOf(partitions);
    std::vector<float> logits(scored.size());
    for (std::size_t i = 0; i < logits.size(); ++i) {
      logits[i] = static_cast<float>(weigher.LogMean(scored, i));
    }
    return logits;
  }

  // The same of all rows that some head scored, one head at a time.
  void CatalogLogits(std::vector<RowAddress>& rows,
                     std::vector<float>& logits) const {
    std::vector<std::size_t> offsets;  // of each segment's rows
    std::size_t row_count = 0;
    for (const SegmentView& view : snapshot_.segments) {
      offsets.push_back(row_count);
      row_count += static_cast<std::size_t>(view.row_end);
    }
    std::vector<double> sums(row_count, kNothing);  // of weights, as logs
    for (std::size_t h = 0; h < scans_.size(); ++h) {
      for (const Candidate& candidate : scans_[h].state.top().candidates()) {
        double& sum = sums[offsets[candidate.segment] +
                           static_cast<std::size_t>(candidate.row)];
        sum = LogAdd(sum, candidate.logit - catalog_[h]);
      }
    }
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      for (RowIndex row = 0; row < snapshot_.segments[i].row_end; ++row) {
        const double sum = sums[offsets[i] + static_cast<std::size_t>(row)];
        if (sum == kNothing) continue;
        rows.push_back({static_cast<std::int32_t>(i), row});
        logits.push_back(static_cast<float>(sum));
      }
    }
  }

  void FillItems() {
    // What is returned twice counts once.
    distinct_ = draws_.empty() ? returned_ : Distinct(returned_);
    returned_partitions_ = PartitionsOf(distinct_);
    const Weigher weigher = WeigherOf(PartitionsIn(plan_.weight_scope));
    const bool hard = plan_.select_kind == SelectKind::kHard;
    const std::size_t head_count = plan_.heads.size();
    answer_.items.reserve(returned_.size());
    std::vector<double> weights(head_count);
    for (std::size_t i = 0; i < returned_.size(); ++i) {
      AttendedItem& item = answer_.items.emplace_back();
      item.address = returned_.rows[i];
      for (std::size_t h = 0; h < head_count; ++h) {
        weights[h] = weigher.InHead(returned_, h, i);
        // A head without the item has no opinion; one with it does, however
        // small its weight.
        const auto best = static_cast<std::size_t>(item.head);
        if (returned_.logits[best][i] == kNothing ||
            weights[h] > weights[best]) {
          item.head = static_cast<int>(h);
        }
      }
      const auto best = static_cast<std::size_t>(item.head);
      item.weight = hard ? 1 : weigher.Mean(returned_, i);
      item.logit = returned_.logits[best][i];
      item.similarity = returned_.similarities[best][i];
      if (plan_.include_head_weights) item.head_weights = weights;
      if (!draws_.empty()) {
        item.log_weight = draws_[i].log_weight;
        item.log_inclusion_given_threshold =
            draws_[i].log_inclusion_given_threshold;
      }
    }
  }

  LogPartitions PartitionsIn(WeightScope scope) const {
    switch (scope) {
      case WeightScope::kShortlist:
        return shortlisted_;
      case WeightScope::kReturned:
        return returned_partitions_;
      case WeightScope::kCatalog:
        return catalog_;
    }
    return {};
  }

  void FillMasses() {
    const bool has_heads = HasHeads();
    const Weigher catalog(ActivationKind::kSoftmax, catalog_);
    for (std::size_t h = 0; has_heads && h < plan_.heads.size(); ++h) {
      HeadAnswer& head = answer_.heads.emplace_back();
      head.key_field = plan_.heads[h].field;
      head.temperature = plan_.heads[h].temperature;
      if (!complete_ || !softmax()) continue;
      const SoftmaxPartition& partition = scans_[h].state.partition();
      head.log_partition = partition.LogPartition();
      head.entropy = partition.Entropy();
      head.effective_item_count = partition.EffectiveCount();
      head.shortlist_mass = ExactMass(catalog.MassInHead(shortlisted_, h));
      head.returned_mass =
          ExactMass(catalog.MassInHead(returned_partitions_, h));
    }
    if (!complete_ || !softmax()) return;
    if (plan_.heads.size() == 1) {
      const SoftmaxPartition& partition = scans_[0].state.partition();
      answer_.log_partition = partition.LogPartition();
      answer_.entropy = partition.Entropy();
      answer_.effective_item_count = partition.EffectiveCount();
    }
    answer_.shortlist_mass = ExactMass(catalog.MassOf(shortlisted_));
    answer_.returned_mass = ExactMass(catalog.MassOf(returned_partitions_));
  }

  bool HasHeads() const {
    return plan_.heads.size() > 1 || Projections() != nullptr;
  }

  const MultiHeadProjections* Projections() const {
    return plan_.model.model != nullptr ? plan_.model.model->multi_head()
                                        : nullptr;
  }

  void FillPools() {
    if (!plan_.pool_scope) return;
    HeadPools pools;
    switch (*plan_.pool_scope) {
      case WeightScope::kCatalog:
        pools = PoolScans(scans_);
        break;
      case WeightScope::kShortlist:
        pools = PoolRows(snapshot_, plan_, shortlist_, WeigherOf(shortlisted_));
        break;
      case WeightScope::kReturned:
        pools = PoolRows(snapshot_, plan_, distinct_,
                         WeigherOf(returned_partitions_));
        break;
    }
    PooledValue pooled;
    pooled.values = pools.Mean(plan_.activation_kind);
    pooled.scope = *plan_.pool_scope;
    pooled.key_as_value_count = pools.key_as_value_count;
    answer_.pooled_value = std::move(pooled);
    if (!HasHeads()) return;
    const MultiHeadProjections* projections = Projections();
    std::vector<std::vector<float>> outputs;
    bool pooled_anything = false;
    for (std::size_t h = 0; h < plan_.heads.size(); ++h) {
      std::vector<float>& output = answer_.heads[h].output;
      if (projections != nullptr) {
        output = HeadOutput(*projections, pools, h);
        outputs.push_back(output);
      } else {
        output.assign(pools.sums[h].begin(), pools.sums[h].end());
      }
      pooled_anything |= pools.weight_sums[h] != 0;
    }
    if (projections == nullptr) return;
    answer_.model_output = ModelOutput(*projections, outputs, pooled_anything);
  }

  const Snapshot& snapshot_;
  const QueryPlan& plan_;
  std::vector<HeadScan> scans_;
  bool complete_ = true;
  LogPartitions catalog_;  // of all that was scored
  ScoredRows shortlist_;
  LogPartitions shortlisted_;
  ScoredRows returned_;
  std::vector<Draw> draws_;  // of SAMPLE, one an item returned
  ScoredRows distinct_;      // of returned_
  LogPartitions returned_partitions_;
  AttendAnswer answer_;
};

}  // namespace

absl::StatusOr<AttendAnswer> Attend(const Snapshot& snapshot,
                                    const AttendQuery& query,
                                    const Interrupt& interrupt) {
  ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
  ATTENDANT_ASSIGN_OR_RETURN(QueryPlan plan,
                             PlanQuery(snapshot, query, interrupt));
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<HeadScan> scans,
                             ScanHeads(snapshot, query, plan, interrupt));
  std::int64_t scored_count = 0;
  std::int64_t projected_key_count = 0;
  bool complete = !plan.shortlist_head;
  IndexKind index_kind = IndexKind::kFlat;
  for (std::size_t h = 0; h < scans.size(); ++h) {
    scored_count += scans[h].scored_count;
    if (plan.heads[h].projection) projected_key_count += scans[h].scored_count;
    complete &= scans[h].complete;
    if (scans[h].index_kind == IndexKind::kIvf) index_kind = IndexKind::kIvf;
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      AttendAnswer answer, Answerer(snapshot, plan, std::move(scans)).Answer());
  answer.weight_scope = plan.weight_scope;
  answer.unknown_example_ids = std::move(plan.unknown_example_ids);
  answer.temperature = plan.heads.front().temperature;
  answer.score_kind = plan.score_kind;
  answer.key_field = plan.field();
  answer.scored_count = scored_count;
  answer.projected_key_count = projected_key_count;
  answer.eligible_count = plan.eligible_count;
  answer.complete = complete;
  answer.index_kind = index_kind;
  if (!plan.biases.empty()) answer.time = plan.time;
  answer.activation_kind = plan.activation_kind;
  answer.model = plan.model.name;
  return answer;
}

}  // namespace attendant
