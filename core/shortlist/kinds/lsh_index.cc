#include "core/shortlist/kinds/lsh_index.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/kernels/select.h"
#include "core/shortlist/builds/guard_build.h"
#include "core/shortlist/calibration/sample_queries.h"
#include "core/shortlist/keys/key_norms.h"
#include "core/shortlist/kinds/angular_buckets.h"
#include "core/shortlist/kinds/key_rows.h"
#include "core/shortlist/kinds/width_index.h"
#include "core/shortlist/scan/scan_costs.h"
#include "core/shortlist/scan/visited_keys.h"

namespace attendant {
namespace {

// Number of ranges if norms differ.
constexpr std::int64_t kNormRanges = 4;
// Number of sample queries from which the cost of widths is learned.
constexpr std::int64_t kCostQueries = 20;
// Nanoseconds to meet a key in a bucket; and to score and choose a bucket, in
// addition to scoring its direction.
constexpr double kCostOfMeeting = 3;
constexpr double kCostOfBucket = 2;

AngularOptions OptionsFor(const LshOptions& options, std::int64_t key_count,
                          bool norms_differ) {
  AngularOptions angular;
  angular.round_count = options.round_count;
  angular.norm_range_count = norms_differ ? kNormRanges : 1;
  const auto by_root =
      static_cast<std::int64_t>(2 * std::sqrt(static_cast<double>(key_count)));
  const std::int64_t buckets =
      options.bucket_count > 0 ? options.bucket_count : by_root;
  angular.direction_count =
      std::max<std::int64_t>(1, buckets / (2 * angular.norm_range_count));
  angular.seed = options.seed;
  angular.cancelled = options.cancelled;
  return angular;
}

// Adds the cost of a query that meets the buckets in `order`: costs[i] is that
// of the first 2^i of them.
absl::Status AddCosts(const AngularBuckets& buckets,
                      std::span<const std::int32_t> order, const KeyRows& keys,
                      double fixed_cost, const LshOptions& options,
                      VisitedKeys& visited, std::vector<double>& costs) {
  visited.Reset(keys.key_count());
  double met = 0;
  std::size_t step = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (IsCancelled(options.cancelled)) return BuildCancelled();
    const auto of_bucket = buckets.KeysOf(order[i]);
    met += static_cast<double>(of_bucket.size());
    for (const std::int32_t position : of_bucket) visited.Add(position);
    if (i + 1 != std::size_t{1} << step) continue;
    if (costs.size() == step) costs.push_back(0);
    costs[step++] += fixed_cost + met * kCostOfMeeting +
                     static_cast<double>(visited.positions().size()) *
                         CostOfKeyAnywhere(keys.dim());
  }
  return absl::OkStatus();
}

// bucket_of is that of AngularBuckets::Build.
absl::StatusOr<WidthCurve> Calibrate(const AngularBuckets& buckets,
                                     std::span<const std::int32_t> bucket_of,
                                     const KeyRows& keys, ScoreKind score_kind,
                                     double fixed_cost,
                                     const LshOptions& options) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const SampleQueries sample,
      SampleQueries::Draw(keys.keys(), keys.inverse_norms(),
                          {.score_kind = score_kind,
                           .neighbour_count = options.neighbour_count,
                           .seed = options.seed,
                           .cancelled = options.cancelled}));
  WidthCurve curve = {.recall = RecallCurve(sample), .cost = {}};
  std::vector<float> scores;
  std::vector<std::int32_t> order(
      static_cast<std::size_t>(buckets.bucket_count()));
  std::vector<std::int64_t> place(order.size());
  std::vector<std::int64_t> widths;
  VisitedKeys visited;
  std::vector<double> costs;
  const std::int64_t cost_queries = std::min(kCostQueries, sample.count());
  for (std::int64_t q = 0; q < sample.count(); ++q) {
    if (IsCancelled(options.cancelled)) return BuildCancelled();
    buckets.Score(sample.Query(q), scores);
    for (std::size_t b = 0; b < order.size(); ++b) {
      order[b] = static_cast<std::int32_t>(b);
    }
    std::ranges::sort(order, [&scores](std::int32_t a, std::int32_t b) {
      const float sa = scores[a];
      const float sb = scores[b];
      return sa > sb || (sa == sb && a < b);
    });
    for (std::size_t i = 0; i < order.size(); ++i) {
      place[order[i]] = static_cast<std::int64_t>(i) + 1;
    }
    widths.clear();
    for (const std::int32_t position : sample.Neighbours(q)) {
      std::int64_t least = RecallCurve::kNever;
      for (std::int64_t r = 0; r < buckets.round_count(); ++r) {
        const std::int32_t bucket = bucket_of[r * keys.key_count() + position];
        least = std::min(least, place[bucket]);
      }
      widths.push_back(least);
    }
    curve.recall.Add(q, widths);

    if (q >= cost_queries) continue;
    ATTENDANT_RETURN_IF_ERROR(
        AddCosts(buckets, order, keys, fixed_cost, options, visited, costs));
  }
  curve.recall.Finish();
  for (std::size_t step = 0; step < costs.size(); ++step) {
    curve.cost.Add(static_cast<double>(std::size_t{1} << step),
                   costs[step] / static_cast<double>(cost_queries));
  }
  return curve;
}

class BucketIndex : public WidthIndex<LshIndex, IndexKind::kLsh> {
 public:
  BucketIndex(WidthSearch search, AngularBuckets buckets)
      : WidthIndex(std::move(search)), buckets_(std::move(buckets)) {}

 private:
  absl::Status Find(const ScanQuery& query, const KeyRows::Eligible& eligible,
                    std::int64_t width, FoundKeys& found) const override {
    if (query.interrupt != nullptr) {
      ATTENDANT_RETURN_IF_ERROR(query.interrupt->Check());
    }
    thread_local std::vector<float> scores;
    thread_local std::vector<std::int32_t> best;
    thread_local VisitedKeys visited;
    buckets_.Score(query.query, scores);
    width = std::clamp(width, buckets_.own_count(), buckets_.bucket_count());
    SelectBest(scores, width, best);
    visited.Reset(keys().key_count());
    for (const std::int32_t bucket : best) {
      for (const std::int32_t position : buckets_.KeysOf(bucket)) {
        if (!visited.Add(position)) continue;
        if (eligible.Has(keys().rows()[position])) {
          found.positions.push_back(position);
        }
      }
    }
    found.met_count = static_cast<std::int64_t>(visited.positions().size());
    found.exhausted = width == buckets_.bucket_count();
    return absl::OkStatus();
  }

  MemoryParts finder_memory() const override {
    return {.index = buckets_.memory_bytes()};
  }

  void SaveFinder(ByteSink& sink) const override {
    if (finds()) buckets_.Save(sink);
  }

  const AngularBuckets buckets_;
};

absl::StatusOr<std::unique_ptr<LshIndex>> BuildIndex(
    std::span<const std::span<const float>> keys, std::int64_t dim,
    ScoreKind score_kind, const LshOptions& options) {
  ATTENDANT_ASSIGN_OR_RETURN(
      KeyRows rows, KeyRows::Make(keys, dim, score_kind, options.seed));
  const KeyNorms norms = NormsOf(rows.keys());
  AngularBuckets buckets;
  std::optional<WidthCurve> curve;
  if (norms.usable()) {
    const bool cosine = score_kind == ScoreKind::kCosine;
    const AngularOptions angular =
        OptionsFor(options, rows.key_count(), !cosine && norms.differ());
    const std::vector<float> equal_factors(
        cosine ? 0 : static_cast<std::size_t>(rows.key_count()),
        static_cast<float>(1 / norms.greatest));
    std::vector<std::int32_t> bucket_of;
    if (!buckets.Build(rows.keys(),
                       cosine ? rows.inverse_norms() : equal_factors, angular,
                       bucket_of)) {
      return BuildCancelled();
    }
    // A direction is read directly after its neighbour, and scores two buckets
    // per range of norms.
    const double fixed_cost =
        static_cast<double>(angular.round_count * angular.direction_count) *
        (CostOfKeyAnywhere(rows.dim()) / 4 +
         static_cast<double>(2 * angular.norm_range_count) * kCostOfBucket);
    ATTENDANT_ASSIGN_OR_RETURN(
        curve,
        Calibrate(buckets, bucket_of, rows, score_kind, fixed_cost, options));
  }
  const std::int64_t least_width = curve ? buckets.own_count() : 1;
  return std::make_unique<BucketIndex>(
      WidthSearch(std::move(rows), std::move(curve),
                  {.target_recall = options.target_recall,
                   .neighbour_count = options.neighbour_count,
                   .least_width = least_width}),
      std::move(buckets));
}

}  // namespace

absl::StatusOr<std::unique_ptr<LshIndex>> LshIndex::Load(
    ByteSource& source, std::int64_t row_count) {
  ATTENDANT_ASSIGN_OR_RETURN(WidthSearch search,
                             WidthSearch::Load(source, row_count));
  AngularBuckets buckets;
  if (search.finds()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        buckets, AngularBuckets::Load(source, search.keys().key_count(),
                                      search.keys().dim()));
  }
  return std::make_unique<BucketIndex>(std::move(search), std::move(buckets));
}

absl::StatusOr<std::unique_ptr<LshIndex>> LshIndex::Build(
    std::span<const std::span<const float>> keys, std::int64_t dim,
    ScoreKind score_kind, const LshOptions& options) {
  return GuardBuild([&] { return BuildIndex(keys, dim, score_kind, options); });
}

}  // namespace attendant
