#include "core/catalog/query/answer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/attention/sampling/sampling.h"
#include "core/base/minus_infinity.h"
#include "core/base/status.h"
#include "core/catalog/query/by_head.h"
#include "core/catalog/query/crowding.h"
#include "core/catalog/query/draw_rows.h"
#include "core/catalog/query/mass.h"
#include "core/catalog/query/pool.h"
#include "core/catalog/query/pooled_deviation.h"
#include "core/catalog/query/scored_rows.h"
#include "core/catalog/query/spread.h"
#include "core/catalog/query/weigh.h"

namespace attendant {
namespace {

// A few hundred items take about ten microseconds.
constexpr std::size_t kItemsBetweenChecks = 256;

// Returns the shortlists of all heads ordered by (segment, row), so that runs
// of one segment are scored together.
std::vector<RowAddress> UnionOf(const ByHead<HeadScan>& scans) {
  std::vector<RowAddress> rows;
  for (const HeadScan& scan : scans) {
    for (const Candidate& candidate : scan.shortlist) {
      rows.push_back({candidate.segment, candidate.row});
    }
  }
  const auto key = [](const RowAddress& address) {
    return std::pair(address.segment, address.row);
  };
  std::ranges::sort(rows, [&](const RowAddress& a, const RowAddress& b) {
    return key(a) < key(b);
  });
  rows.erase(std::unique(rows.begin(), rows.end(),
                         [&](const RowAddress& a, const RowAddress& b) {
                           return key(a) == key(b);
                         }),
             rows.end());
  return rows;
}

// Builds an answer.
class Answerer {
 public:
  Answerer(const Snapshot& snapshot, const QueryPlan& plan, HeadScans scans,
           const Interrupt& interrupt)
      : snapshot_(snapshot),
        plan_(plan),
        interrupt_(interrupt),
        scans_(std::move(scans.heads)),
        population_(std::move(scans.catalog)) {
    answer_.scored_count = scans.scored_count;
    answer_.visited_list_count = scans.visited_list_count;
    answer_.shared_query_count = scans.shared_query_count;
    answer_.trace = std::move(scans.trace);
    complete_ = ScansAreOfHeads() &&
                std::ranges::all_of(
                    scans_, [](const HeadScan& scan) { return scan.complete; });
    for (const HeadScan& scan : scans_) {
      catalog_.push_back(LogPartitionOf(scan.partition));
    }
  }

  absl::StatusOr<AttendAnswer> Answer() {
    ATTENDANT_ASSIGN_OR_RETURN(shortlist_, Shortlist());
    shortlisted_ = PartitionsOf(shortlist_);
    if (IsAllThereIs()) catalog_ = shortlisted_;
    answer_.trace.candidate_count =
        static_cast<std::int64_t>(shortlist_.size());
    masses_.emplace(catalog_, Errors(), plan_.head_weights());
    if (plan_.heads.size() > 1 || plan_.shortlist_head) {
      ATTENDANT_ASSIGN_OR_RETURN(shortlist_,
                                 SortedByWeight(shortlist_, SelectingScope()));
    }
    ATTENDANT_RETURN_IF_ERROR(interrupt_.Check());
    ATTENDANT_RETURN_IF_ERROR(Select());
    ATTENDANT_RETURN_IF_ERROR(FillItems());
    FillWhatWasDone();
    FillMasses();
    ATTENDANT_RETURN_IF_ERROR(FillPools());
    ATTENDANT_RETURN_IF_ERROR(CheckPools());
    return std::move(answer_);
  }

 private:
  // True if the shortlist is all there is. It then holds the whole attention of
  // the catalog, even if float rounding in the scan's sums suggests otherwise.
  bool IsAllThereIs() const {
    return scans_.size() == 1 && ScansAreOfHeads() && scans_.front().exact &&
           scans_.front().partition.count ==
               static_cast<std::int64_t>(shortlist_.size());
  }

  // False if another head was scanned to find the shortlist. Its scan says
  // nothing about the attention of the plan's head, unless there is nothing to
  // attend to.
  bool ScansAreOfHeads() const {
    return !plan_.shortlist_head || plan_.eligible_count == 0;
  }

  bool softmax() const {
    return plan_.activation_kind == ActivationKind::kSoftmax;
  }

  // The returned rows without duplicates.
  const ScoredRows& distinct() const {
    return draws_.empty() ? returned_ : distinct_;
  }

  Weigher WeigherOf(LogPartitions partitions) const {
    return Weigher(plan_.activation_kind, std::move(partitions),
                   plan_.head_weights());
  }

  // Returns the union of the heads' shortlists; with one head, in its order.
  absl::StatusOr<ScoredRows> Shortlist() const {
    if (scans_.size() == 1 && !plan_.shortlist_head) {
      return FromCandidates(scans_.front().shortlist);
    }
    return ScoreInHeads(snapshot_, plan_, UnionOf(scans_), interrupt_);
  }

  // Returns the errors of the heads' partitions, which are unknown if another
  // head was scanned.
  ByHead<PartitionError> Errors() const {
    ByHead<PartitionError> errors(scans_.size());
    for (std::size_t h = 0; ScansAreOfHeads() && h < errors.size(); ++h) {
      errors[h] = NotBelow(ErrorOf(scans_[h], plan_.goals.certified),
                           catalog_[h], shortlisted_[h]);
    }
    return errors;
  }

  // Sorts by weight in the scope with several heads, by logit with one.
  absl::StatusOr<ScoredRows> SortedByWeight(const ScoredRows& scored,
                                            const LogPartitions& scope) const {
    std::vector<double> ranks(scored.size());
    if (scans_.size() == 1) {
      ranks.assign(scored.logits[0].begin(), scored.logits[0].end());
    } else {
      const Weigher weigher = WeigherOf(scope);
      ATTENDANT_RETURN_IF_ERROR(
          VisitEach(ranks.size(), interrupt_, [&](std::size_t i) {
            ranks[i] = weigher.Mean(scored, i);
            // Logs, which are below 0, distinguish weights that underflow to 0.
            // Other weights are ranked as they are returned: their logs may
            // differ where they do not.
            if (softmax() && ranks[i] == 0) {
              ranks[i] = weigher.LogMean(scored, i);
            }
          }));
    }
    return SortedBy(ranks, snapshot_, scored);
  }

  // Returns the partitions whose weights select the returned items: those of
  // the catalog if the request asks about it, otherwise those of the shortlist.
  const LogPartitions& SelectingScope() const {
    const bool by_catalog =
        plan_.min_mass || plan_.weight_scope == WeightScope::kCatalog;
    return by_catalog ? catalog_ : shortlisted_;
  }

  absl::Status Select() {
    if (plan_.select_kind == SelectKind::kSample) return Sample();
    const auto wanted = static_cast<std::size_t>(plan_.result_count);
    // Crowded items are weighed, but not returned.
    std::optional<ScoredRows> uncrowded;
    if (!plan_.crowding_limits.empty()) {
      ATTENDANT_ASSIGN_OR_RETURN(
          const std::vector<std::size_t> positions,
          WithoutCrowds(snapshot_, plan_.crowding_limits, shortlist_.rows,
                        wanted, interrupt_));
      uncrowded = Pick(shortlist_, positions);
    }
    const ScoredRows& ranked = uncrowded ? *uncrowded : shortlist_;
    std::size_t count = std::min(wanted, ranked.size());
    bool holds_min_mass = false;
    if (plan_.min_mass) {
      // For an estimated catalog, uses the upper end of its partition: the
      // items then hold the mass whatever the estimate's error.
      const Weigher weigher = WeigherOf(masses_->Greatest());
      double mass = 0;
      std::size_t needed = 0;
      while (needed < count && mass < *plan_.min_mass) {
        mass += weigher.Mean(ranked, needed++);
      }
      holds_min_mass = mass >= *plan_.min_mass;
      if (!holds_min_mass && needed == wanted &&
          plan_.result_count < plan_.eligible_count) {
        answer_.limit_reason = LimitReason::kResultCap;
      }
      count = needed;
    }
    if (!holds_min_mass && count < wanted) {
      if (count < shortlist_.size()) {
        answer_.limit_reason = LimitReason::kCrowding;
      } else if (static_cast<std::int64_t>(count) < plan_.eligible_count) {
        answer_.limit_reason = LimitReason::kIndex;
      }
    }
    returned_ = Prefix(ranked, count);
    if (plan_.heads.size() > 1 && softmax()) {
      // Weights may rank differently in their own scope.
      returned_partitions_ = PartitionsOf(returned_);
      ATTENDANT_ASSIGN_OR_RETURN(
          returned_,
          SortedByWeight(returned_, PartitionsIn(plan_.weight_scope)));
    }
    return absl::OkStatus();
  }

  absl::Status Sample() {
    if (plan_.draws_from_catalog() && !plan_.draws_from_all_logits()) {
      ATTENDANT_ASSIGN_OR_RETURN(
          DrawnRows drawn,
          DrawRows(snapshot_, plan_, scans_.front().shortlist, interrupt_));
      answer_.scored_count += drawn.scored_count;
      return FillSlate(std::move(drawn.rows), std::move(drawn.slate),
                       drawn.distance);
    }
    if (!plan_.draws_from_catalog()) {
      population_.rows = shortlist_.rows;
      ATTENDANT_ASSIGN_OR_RETURN(population_.logits,
                                 MeanLogits(shortlist_, shortlisted_));
    }
    const std::vector<RowAddress>& rows = population_.rows;
    const std::vector<float>& logits = population_.logits;
    const auto seed = static_cast<std::uint64_t>(plan_.seed);
    Slate slate;
    if (plan_.with_replacement) {
      ATTENDANT_ASSIGN_OR_RETURN(
          slate,
          SampleWithReplacement(logits, plan_.result_count, seed, interrupt_));
    } else {
      std::vector<std::uint64_t> noise_keys(rows.size());
      ATTENDANT_RETURN_IF_ERROR(
          VisitEach(rows.size(), interrupt_, [&](std::size_t i) {
            const Segment& segment =
                *snapshot_.segments[rows[i].segment].segment;
            noise_keys[i] = segment.rows->IdHash(rows[i].row);
          }));
      ATTENDANT_ASSIGN_OR_RETURN(
          slate, SampleWithoutReplacement(
                     logits, noise_keys, plan_.result_count, seed, interrupt_));
    }
    std::vector<RowAddress> drawn;
    for (const Draw& draw : slate.draws) {
      drawn.push_back(rows[draw.index]);
    }
    return FillSlate(std::move(drawn), std::move(slate), 0);
  }

  absl::Status FillSlate(std::vector<RowAddress> drawn, Slate slate,
                         double distance) {
    ATTENDANT_ASSIGN_OR_RETURN(
        returned_,
        ScoreInHeads(snapshot_, plan_, std::move(drawn), interrupt_));
    answer_.slate = SlateAnswer{plan_.seed, slate.log_probability, slate.kappa,
                                plan_.weight_scope, distance};
    draws_ = std::move(slate.draws);
    return absl::OkStatus();
  }

  // Returns logits whose softmax is the mean weights of `scored`.
  absl::StatusOr<std::vector<float>> MeanLogits(
      const ScoredRows& scored, const LogPartitions& partitions) const {
    if (scans_.size() == 1) return scored.logits[0];
    const Weigher weigher = WeigherOf(partitions);
    std::vector<float> logits(scored.size());
    ATTENDANT_RETURN_IF_ERROR(
        VisitEach(logits.size(), interrupt_, [&](std::size_t i) {
          logits[i] = AsLogit(weigher.LogMean(scored, i));
        }));
    return logits;
  }

  absl::Status FillItems() {
    // An item drawn more than once counts once.
    if (!draws_.empty()) distinct_ = Distinct(returned_);
    // If the partitions are set already, rows are now sorted by them. Sums in
    // the new order might differ in the last digit, and so might weights.
    if (returned_partitions_.empty()) {
      returned_partitions_ = PartitionsOf(distinct());
    }
    const Weigher weigher = WeigherOf(PartitionsIn(plan_.weight_scope));
    const bool hard = plan_.select_kind == SelectKind::kHard;
    // The one item weighs 1 in each head that has it, so heads are compared by
    // the weights it was chosen by.
    std::optional<Weigher> chooser;
    if (hard) chooser.emplace(WeigherOf(SelectingScope()));
    const std::size_t head_count = plan_.heads.size();
    answer_.items.reserve(returned_.size());
    ByHead<double> weights(head_count);
    for (std::size_t i = 0; i < returned_.size(); ++i) {
      if (i % kItemsBetweenChecks == 0) {
        ATTENDANT_RETURN_IF_ERROR(interrupt_.Check());
      }
      AttendedItem& item = answer_.items.emplace_back();
      item.address = returned_.rows[i];
      double best_weight = kMinusInfinity;
      double sum = 0;
      for (std::size_t h = 0; h < head_count; ++h) {
        weights[h] = weigher.InHead(returned_, h, i);
        const double term = weigher.TermOf(weights[h], h);
        sum += term;
        // A head without a key of the item is skipped; one with a key counts,
        // however small its weight.
        if (returned_.logits[h][i] == kMinusInfinity) continue;
        const double weight =
            chooser ? chooser->TermOf(chooser->InHead(returned_, h, i), h)
                    : term;
        const auto best = static_cast<std::size_t>(item.head);
        if (returned_.logits[best][i] == kMinusInfinity ||
            weight > best_weight) {
          item.head = static_cast<int>(h);
          best_weight = weight;
        }
      }
      const auto best = static_cast<std::size_t>(item.head);
      item.weight = hard ? 1 : weigher.MeanOfSum(sum);
      item.logit = returned_.logits[best][i];
      item.similarity = returned_.similarities[best][i];
      if (plan_.include_head_weights)
        item.head_weights.assign(weights.begin(), weights.end());
      if (!draws_.empty()) {
        item.log_weight = draws_[i].log_weight;
        item.log_inclusion_given_threshold =
            draws_[i].log_inclusion_given_threshold;
      }
    }
    return absl::OkStatus();
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

  // Records the plan as executed, and its cost.
  void FillWhatWasDone() {
    answer_.weight_scope = plan_.weight_scope;
    answer_.unknown_example_ids = plan_.unknown_example_ids;
    answer_.temperature = plan_.heads.front().temperature;
    answer_.score_kind = plan_.score_kind;
    answer_.key_field = plan_.field();
    answer_.activation_kind = plan_.activation_kind;
    answer_.model = plan_.model.name;
    if (!plan_.biases.empty()) answer_.time = plan_.time;
    answer_.projected_query_count = plan_.projected_query_count;
    answer_.eligible_count = plan_.eligible_count;
    answer_.complete = complete_;
    answer_.results_exact =
        ScansAreOfHeads() &&
        std::ranges::all_of(
            scans_, [](const HeadScan& scan) { return scan.results_exact; });
    for (std::size_t h = 0; h < scans_.size(); ++h) {
      if (plan_.heads[h].projection) {
        answer_.projected_key_count = answer_.scored_count;
      }
      if (scans_[h].index_kind != IndexKind::kFlat) {
        answer_.index_kind = scans_[h].index_kind;
      }
    }
  }

  void FillMasses() {
    const bool has_heads = HasHeads();
    double weight_sum = 0;
    for (const PlannedHead& head : plan_.heads) weight_sum += head.weight;
    for (std::size_t h = 0; has_heads && h < plan_.heads.size(); ++h) {
      HeadAnswer& head = answer_.heads.emplace_back();
      head.key_field = plan_.heads[h].field;
      head.temperature = plan_.heads[h].temperature;
      head.score_kind = plan_.heads[h].score_kind;
      head.share = plan_.heads[h].weight / weight_sum;
      if (softmax()) FillAttention(h, head);
    }
    if (!softmax()) return;
    if (plan_.heads.size() == 1) {
      FillAttention(0, answer_);
    } else {
      answer_.shortlist_mass = masses_->MeanOf(shortlisted_);
      answer_.returned_mass = masses_->MeanOf(returned_partitions_);
    }
  }

  // Fills in the attention of one head, as far as it is known.
  void FillAttention(std::size_t head, AttentionAnswer& attention) const {
    const PartitionError& error = masses_->error(head);
    if (error.method == MassMethod::kUnknown) return;
    const SoftmaxPartition& partition = scans_[head].partition;
    attention.log_partition = partition.LogPartition();
    if (attention.log_partition) {
      attention.log_partition_interval = {
          error.method, *attention.log_partition + error.below,
          *attention.log_partition + error.above};
    }
    const AttentionSpread spread = SpreadOf(scans_[head], error);
    attention.entropy = spread.entropy;
    attention.entropy_interval = spread.entropy_interval;
    attention.effective_item_count = spread.effective_count;
    attention.effective_item_count_interval = spread.effective_count_interval;
    attention.shortlist_mass = masses_->InHead(shortlisted_, head);
    attention.returned_mass = masses_->InHead(returned_partitions_, head);
  }

  bool HasHeads() const {
    return plan_.heads.size() > 1 || plan_.names_heads ||
           Projections() != nullptr;
  }

  const MultiHeadProjections* Projections() const {
    return plan_.model.model != nullptr ? plan_.model.model->multi_head()
                                        : nullptr;
  }

  absl::Status PoolIn(WeightScope scope, HeadPools& pools) const {
    switch (scope) {
      case WeightScope::kCatalog:
        pools = PoolScans(scans_);
        break;
      case WeightScope::kShortlist:
        return PoolRows(snapshot_, plan_, shortlist_, WeigherOf(shortlisted_),
                        interrupt_, pools);
      case WeightScope::kReturned:
        return PoolRows(snapshot_, plan_, distinct(),
                        WeigherOf(returned_partitions_), interrupt_, pools);
    }
    return absl::OkStatus();
  }

  absl::Status FillPools() {
    if (!plan_.pool_scope) return absl::OkStatus();
    HeadPools pools;
    ATTENDANT_RETURN_IF_ERROR(PoolIn(*plan_.pool_scope, pools));
    PooledValue pooled;
    const ByHead<double> head_weights = plan_.head_weights();
    pooled.values = pools.Mean(plan_.activation_kind, head_weights);
    pooled.scope = *plan_.pool_scope;
    pooled.key_as_value_count = pools.key_as_value_count;
    if (!pools.exact) {
      pooled.method = MassMethod::kEstimate;
      pooled.relative_error =
          RelativeError(pools.MeanDeviation(head_weights), pooled.values);
    }
    answer_.pooled_value = std::move(pooled);
    if (!HasHeads()) return absl::OkStatus();
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
      pooled_anything |= pools.row_counts[h] > 0;
    }
    if (projections == nullptr) return absl::OkStatus();
    answer_.model_output = ModelOutput(*projections, outputs, pooled_anything);
    return absl::OkStatus();
  }

  // Pooled values and projections may overflow a float in rare cases.
  absl::Status CheckPools() const {
    const auto finite = [](const std::vector<float>& values) {
      return std::ranges::all_of(
          values, [](float value) { return std::isfinite(value); });
    };
    bool all_finite = finite(answer_.model_output);
    if (answer_.pooled_value)
      all_finite &= finite(answer_.pooled_value->values);
    for (const HeadAnswer& head : answer_.heads) {
      all_finite &= finite(head.output);
    }
    if (all_finite) return absl::OkStatus();
    return FieldError(absl::StatusCode::kInvalidArgument,
                      "POOLED_VALUE_OVERFLOW", "omit_pooled_value",
                      "false and a pooled value that overflows",
                      "true, or items of smaller values");
  }

  const Snapshot& snapshot_;
  const QueryPlan& plan_;
  const Interrupt& interrupt_;
  ByHead<HeadScan> scans_;
  Population population_;  // for SAMPLE
  bool complete_ = true;
  LogPartitions catalog_;  // of everything scored
  ScoredRows shortlist_;
  LogPartitions shortlisted_;
  std::optional<MassReader> masses_;
  ScoredRows returned_;
  std::vector<Draw> draws_;  // for SAMPLE, one for each returned item
  ScoredRows distinct_;      // for SAMPLE: returned_ without duplicates
  LogPartitions returned_partitions_;
  AttendAnswer answer_;
};

}  // namespace

absl::StatusOr<AttendAnswer> MakeAnswer(const Snapshot& snapshot,
                                        const QueryPlan& plan, HeadScans scans,
                                        const Interrupt& interrupt) {
  return Answerer(snapshot, plan, std::move(scans), interrupt).Answer();
}

}  // namespace attendant
