#include "core/shortlist/kinds/pq_index.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "core/attention/softmax/score.h"
#include "core/base/status.h"
#include "core/kernels/select.h"
#include "core/shortlist/builds/guard_build.h"
#include "core/shortlist/calibration/sample_queries.h"
#include "core/shortlist/keys/key_norms.h"
#include "core/shortlist/kinds/key_rows.h"
#include "core/shortlist/kinds/product_codes.h"
#include "core/shortlist/kinds/width_index.h"
#include "core/shortlist/scan/scan_costs.h"

namespace attendant {
namespace {

constexpr std::int64_t kComponentsPerPart = 4;
constexpr std::int64_t kCodesPerCheck = 4096;
// Nanoseconds to add one number of the table, and for the rest of a key.
constexpr double kCostOfPart = 0.35;
constexpr double kCostOfCode = 2;

// Returns the places of keys in the descending order of their products: for
// each position, how many keys have at least as great a product.
std::vector<std::int64_t> PlacesOf(std::span<const std::int32_t> positions,
                                   std::span<const float> products) {
  std::vector<float> wanted;
  wanted.reserve(positions.size());
  for (const std::int32_t p : positions) {
    wanted.push_back(products[p]);
  }
  std::vector<float> sorted = wanted;
  std::ranges::sort(sorted);
  // counts[i]: products >= sorted[i - 1] and < sorted[i].
  std::vector<std::int64_t> counts(sorted.size() + 1);
  for (const float product : products) {
    ++counts[std::upper_bound(sorted.begin(), sorted.end(), product) -
             sorted.begin()];
  }
  for (std::size_t i = counts.size() - 1; i > 0; --i) {
    counts[i - 1] += counts[i];
  }
  std::vector<std::int64_t> places;
  places.reserve(wanted.size());
  for (const float product : wanted) {
    places.push_back(
        counts[std::upper_bound(sorted.begin(), sorted.end(), product) -
               sorted.begin()]);
  }
  return places;
}

absl::StatusOr<WidthCurve> Calibrate(const ProductCodes& codes,
                                     const KeyRows& keys, ScoreKind score_kind,
                                     const PqOptions& options) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const SampleQueries sample,
      SampleQueries::Draw(keys.key_runs(), keys.inverse_norms(),
                          {.score_kind = score_kind,
                           .neighbour_count = options.neighbour_count,
                           .seed = options.seed,
                           .cancelled = options.cancelled}));
  WidthCurve curve = {.recall = RecallCurve(sample), .cost = {}};
  std::vector<float> unit, table;
  std::vector<float> products(static_cast<std::size_t>(keys.key_count()));
  for (std::int64_t q = 0; q < sample.count(); ++q) {
    if (IsCancelled(options.cancelled)) return BuildCancelled();
    DirectionOf(sample.Query(q), unit);
    codes.MakeTable(unit, table);
    for (std::size_t p = 0; p < products.size(); ++p) {
      products[p] = codes.Product(table, static_cast<std::int64_t>(p));
    }
    curve.recall.Add(q, PlacesOf(sample.Neighbours(q), products));
  }
  curve.recall.Finish();
  const auto n = static_cast<double>(keys.key_count());
  const double pass =
      n * (static_cast<double>(codes.part_count()) * kCostOfPart + kCostOfCode);
  curve.cost.Add(1, pass);
  curve.cost.Add(n + 1, pass + n * CostOfKeyAnywhere(keys.dim()));
  return curve;
}

class ProductIndex : public WidthIndex<PqIndex, IndexKind::kPq> {
 public:
  ProductIndex(WidthSearch search, ProductCodes codes)
      : WidthIndex(std::move(search)), codes_(std::move(codes)) {}

 private:
  // Finds the best eligible keys by their codes.
  absl::Status Find(const ScanQuery& query, const KeyRows::Eligible& eligible,
                    std::int64_t width, FoundKeys& found) const override {
    thread_local std::vector<float> unit, table, products;
    thread_local std::vector<std::int32_t> positions, best;
    DirectionOf(query.query, unit);
    codes_.MakeTable(unit, table);
    products.clear();
    positions.clear();
    const std::int64_t key_count = keys().key_count();
    for (std::int64_t begin = 0; begin < key_count; begin += kCodesPerCheck) {
      if (query.interrupt != nullptr) {
        ATTENDANT_RETURN_IF_ERROR(query.interrupt->Check());
      }
      const std::int64_t end = std::min(begin + kCodesPerCheck, key_count);
      for (std::int64_t p = begin; p < end; ++p) {
        if (!eligible.Has(keys().rows()[p])) {
          continue;
        }
        products.push_back(codes_.Product(table, p));
        positions.push_back(static_cast<std::int32_t>(p));
      }
    }
    found.met_count = static_cast<std::int64_t>(positions.size());
    found.exhausted = width >= found.met_count;
    SelectBest(products, std::min(width, found.met_count), best);
    for (const std::int32_t i : best) {
      found.positions.push_back(positions[i]);
    }
    return absl::OkStatus();
  }

  MemoryParts finder_memory() const override {
    return {.codes = codes_.memory_bytes()};
  }

  void SaveFinder(ByteSink& sink) const override {
    if (finds()) codes_.Save(sink);
  }

  const ProductCodes codes_;
};

absl::StatusOr<std::unique_ptr<PqIndex>> BuildIndex(
    std::span<const std::span<const float>> keys, std::int64_t dim,
    ScoreKind score_kind, const PqOptions& options) {
  ATTENDANT_ASSIGN_OR_RETURN(
      KeyRows rows,
      KeyRows::Make(keys, dim, score_kind, options.seed, options.key_files));
  const KeyNorms norms = NormsOf(rows.key_runs());
  ProductCodes codes;
  std::optional<WidthCurve> curve;
  if (norms.usable()) {
    const bool cosine = score_kind == ScoreKind::kCosine;
    const std::vector<float> equal_factors(
        cosine ? 0 : static_cast<std::size_t>(rows.key_count()),
        static_cast<float>(1 / norms.greatest));
    const std::int64_t by_dim =
        std::max<std::int64_t>(1, dim / kComponentsPerPart);
    ATTENDANT_RETURN_IF_ERROR(codes.Build(
        rows.key_runs(), cosine ? rows.inverse_norms() : equal_factors,
        {.part_count = options.part_count > 0 ? options.part_count : by_dim,
         .seed = options.seed,
         .cancelled = options.cancelled}));
    ATTENDANT_ASSIGN_OR_RETURN(curve,
                               Calibrate(codes, rows, score_kind, options));
  }
  return std::make_unique<ProductIndex>(
      WidthSearch(std::move(rows), std::move(curve),
                  {.target_recall = options.target_recall,
                   .neighbour_count = options.neighbour_count,
                   .masks_first = true}),
      std::move(codes));
}

}  // namespace

absl::StatusOr<std::unique_ptr<PqIndex>> PqIndex::Load(
    ByteSource& source, std::int64_t row_count, ScratchFiles* key_files) {
  ATTENDANT_ASSIGN_OR_RETURN(WidthSearch search,
                             WidthSearch::Load(source, row_count, key_files));
  ProductCodes codes;
  if (search.finds()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        codes, ProductCodes::Load(source, search.keys().key_count(),
                                  search.keys().dim()));
  }
  return std::make_unique<ProductIndex>(std::move(search), std::move(codes));
}

absl::StatusOr<std::unique_ptr<PqIndex>> PqIndex::Build(
    std::span<const std::span<const float>> keys, std::int64_t dim,
    ScoreKind score_kind, const PqOptions& options) {
  return GuardBuild([&] { return BuildIndex(keys, dim, score_kind, options); });
}

}  // namespace attendant
