#include "core/shortlist/kinds/hnsw_index.h"

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/DistanceComputer.h>
#include <faiss/impl/HNSW.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "core/base/aligned_buffer.h"
#include "core/base/status.h"
#include "core/kernels/bfloats.h"
#include "core/shortlist/builds/guard_build.h"
#include "core/shortlist/calibration/recall_curve.h"
#include "core/shortlist/calibration/sample_queries.h"
#include "core/shortlist/keys/key_norms.h"
#include "core/shortlist/kinds/graph_walk.h"
#include "core/shortlist/kinds/key_rows.h"
#include "core/shortlist/kinds/width_index.h"
#include "core/shortlist/scan/scan_costs.h"

namespace attendant {
namespace {

// Range of HnswOptions::link_count.
constexpr int kMinLinks = 2;
constexpr int kMaxLinks = 256;
// The widest walk that calibration tries.
constexpr std::int64_t kMaxWidth = 4096;
// Cost, in addition to reading it, of finding a key on a walk, testing it and
// putting it in its place; in units of reading it.
constexpr double kCostOfStep = 1.1;

// Keys by position, each times its own factor, as bfloats: a build reads them
// all over memory, and its distances need not be exact.
class ScaledKeys {
 public:
  // factors [keys].
  ScaledKeys(MatrixView keys, std::span<const float> factors)
      : dim_(keys.dim),
        bfloats_(static_cast<std::size_t>(keys.row_count * keys.dim)) {
    for (std::int64_t p = 0; p < keys.row_count; ++p) {
      RoundToBfloats(keys.Row(p).data(), dim_, factors[p],
                     bfloats_.data() + p * dim_);
    }
  }

  float Dot(std::int64_t i, std::int64_t j) const {
    return ActiveBfloatKernels().Dot(bfloats_.data() + i * dim_,
                                     bfloats_.data() + j * dim_, dim_);
  }

 private:
  const std::int64_t dim_;
  AlignedBuffer<Bfloat> bfloats_;
};

// The distance 1 - f_i f_j (k_i . k_j), with a factor for each key, plus a
// small pseudo-random number that makes no two distances equal. FAISS follows
// everything that is as near as the farthest candidate; among equal keys, or
// keys at right angles, that would be every key.
class ScaledProducts : public faiss::DistanceComputer {
 public:
  // factors [keys]. `keys` must outlive the object.
  ScaledProducts(MatrixView keys, std::span<const float> factors)
      : keys_(keys), scaled_(keys, factors) {}

  void SetQuery(std::int64_t position) { query_ = position; }
  // Queries are keys: FAISS passes nothing else while it adds.
  void set_query(const float* key) override {
    query_ = (key - keys_.data) / keys_.dim;
  }
  float operator()(std::int64_t i) override { return symmetric_dis(query_, i); }
  float symmetric_dis(std::int64_t i, std::int64_t j) override {
    const float distance = 1 - scaled_.Dot(i, j);
    return distance + Chance(i, j) * (kNear + kFar * std::abs(distance));
  }

 private:
  // Smaller than what distinguishes different keys, and far above a float's
  // rounding.
  static constexpr float kNear = 1e-6f;
  static constexpr float kFar = 1e-4f;

  // Returns a number in [0, 1), different for each j.
  static float Chance(std::int64_t i, std::int64_t j) {
    constexpr std::uint32_t kOdd = 0x9e3779b1;
    std::uint32_t bits = static_cast<std::uint32_t>(i ^ j) * kOdd;
    bits ^= bits >> 15;
    return static_cast<float>(bits * kOdd >> 8) * 0x1p-24f;
  }

  const MatrixView keys_;
  const ScaledKeys scaled_;
  std::int64_t query_ = 0;
};

// FAISS locks each key's links while it changes them.
class Locks {
 public:
  explicit Locks(std::int64_t count) : locks_(static_cast<std::size_t>(count)) {
    for (omp_lock_t& lock : locks_) omp_init_lock(&lock);
  }
  ~Locks() {
    for (omp_lock_t& lock : locks_) omp_destroy_lock(&lock);
  }
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;
  std::vector<omp_lock_t>& get() { return locks_; }

 private:
  std::vector<omp_lock_t> locks_;
};

absl::StatusOr<faiss::HNSW> BuildLinks(const KeyRows& keys,
                                       std::span<const float> factors,
                                       const HnswOptions& options) {
  faiss::HNSW links(options.link_count);
  links.efConstruction = options.build_width;
  links.rng = faiss::RandomGenerator(
      static_cast<std::int64_t>(options.seed & 0x7fffffff));
  links.prepare_level_tab(static_cast<std::size_t>(keys.key_count()));

  // Adds keys of the highest level first, as FAISS does, and otherwise in
  // random order.
  std::vector<std::int32_t> order(static_cast<std::size_t>(keys.key_count()));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(options.seed);
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    std::swap(order[i], order[i + random() % (order.size() - i)]);
  }
  const std::vector<int>& levels = links.levels;
  std::ranges::stable_sort(order, [&levels](std::int32_t a, std::int32_t b) {
    return levels[a] > levels[b];
  });

  ScaledProducts distances(keys.keys(), factors);
  Locks locks(keys.key_count());
  faiss::VisitedTable visited(static_cast<int>(keys.key_count()));
  for (const std::int32_t position : order) {
    if (IsCancelled(options.cancelled)) return BuildCancelled();
    distances.SetQuery(position);
    const int level = levels[position] - 1;
    links.add_with_locks(distances, level, position, locks.get(), visited);
  }
  // FAISS let its arrays grow to up to twice the size needed; a copy has no
  // spare room.
  return faiss::HNSW(links);
}

void SaveLinks(const faiss::HNSW& links, ByteSink& sink) {
  sink.Put(links.nb_neighbors(1));
  sink.Put(links.entry_point);
  sink.PutArray(std::span<const int>(links.levels));
  sink.PutArray(std::span<const std::int32_t>(links.neighbors));
}

// DataLoss if the bytes are no links between key_count keys.
absl::StatusOr<faiss::HNSW> LoadLinks(ByteSource& source,
                                      std::int64_t key_count) {
  const absl::Status none = absl::DataLossError("it has no links of its keys");
  const int link_count = source.Get<int>();
  const auto entry_point = source.Get<std::int32_t>();
  ATTENDANT_RETURN_IF_ERROR(source.status());
  const auto is_key = [key_count](std::int32_t position) {
    return position >= 0 && position < key_count;
  };
  if (link_count < kMinLinks || link_count > kMaxLinks ||
      !is_key(entry_point)) {
    return none;
  }
  faiss::HNSW links(link_count);
  const auto most_levels =
      static_cast<int>(links.cum_nneighbor_per_level.size()) - 1;
  links.entry_point = entry_point;
  links.levels = source.GetArray<std::vector<int>>();
  links.neighbors = source.GetArray<std::vector<std::int32_t>>();
  ATTENDANT_RETURN_IF_ERROR(source.status());
  if (static_cast<std::int64_t>(links.levels.size()) != key_count) return none;
  links.offsets.assign(1, 0);
  links.offsets.reserve(links.levels.size() + 1);
  for (const int level_count : links.levels) {
    if (level_count < 1 || level_count > most_levels) return none;
    links.offsets.push_back(
        links.offsets.back() +
        static_cast<std::size_t>(links.cum_nb_neighbors(level_count)));
  }
  if (links.offsets.back() != links.neighbors.size()) return none;
  links.max_level = links.levels[entry_point] - 1;
  for (std::size_t p = 0; p < links.levels.size(); ++p) {
    for (int level = 0; level < links.levels[p]; ++level) {
      std::size_t begin = 0, end = 0;
      links.neighbor_range(static_cast<std::int64_t>(p), level, &begin, &end);
      for (; begin < end && links.neighbors[begin] >= 0; ++begin) {
        const std::int32_t link = links.neighbors[begin];
        // A key that is linked to on a level must have links on that level.
        if (!is_key(link) || (level > 0 && links.levels[link] <= level)) {
          return none;
        }
      }
    }
  }
  return links;
}

// Returns nullopt if norms are out of the range in which distances can be
// computed.
absl::StatusOr<std::optional<KeyGraph>> BuildGraph(const KeyRows& keys,
                                                   bool cosine,
                                                   const HnswOptions& options) {
  const KeyNorms norms = NormsOf(keys.keys());
  if (!norms.usable()) return std::nullopt;
  KeyGraph graph;
  ATTENDANT_ASSIGN_OR_RETURN(graph.by_angle,
                             BuildLinks(keys, keys.inverse_norms(), options));
  if (!cosine && norms.differ()) {
    const std::vector<float> factors(static_cast<std::size_t>(keys.key_count()),
                                     static_cast<float>(1 / norms.greatest));
    ATTENDANT_ASSIGN_OR_RETURN(graph.by_product,
                               BuildLinks(keys, factors, options));
  }
  return graph;
}

absl::StatusOr<WidthCurve> Calibrate(const KeyGraph& graph, const KeyRows& keys,
                                     ScoreKind score_kind,
                                     const HnswOptions& options) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const SampleQueries sample,
      SampleQueries::Draw(keys.keys(), keys.inverse_norms(),
                          {.score_kind = score_kind,
                           .neighbour_count = options.neighbour_count,
                           .seed = options.seed,
                           .cancelled = options.cancelled}));
  std::vector<std::int64_t> widths;
  // Walks as wide as a sixteenth of the keys score nearly all of them.
  const std::int64_t most = std::min(kMaxWidth, keys.key_count() / 16 + 1);
  for (double width = 8; width <= static_cast<double>(most);
       width *= std::sqrt(2.0)) {
    widths.push_back(static_cast<std::int64_t>(width));
  }
  if (widths.empty()) widths.push_back(8);

  WidthCurve curve = {.recall = RecallCurve(sample), .cost = {}};
  std::vector<double> scored_sums(widths.size());
  std::vector<double> walk_counts(widths.size());
  GraphWalk walk;
  std::vector<std::int64_t> found;
  const Interrupt interrupt = {.cancelled = options.cancelled};
  for (std::int64_t q = 0; q < sample.count(); ++q) {
    ScanQuery query;
    query.query = sample.Query(q);
    query.score_kind = score_kind;
    query.interrupt = &interrupt;
    const std::span<const std::int32_t> neighbours = sample.Neighbours(q);
    found.assign(neighbours.size(), RecallCurve::kNever);
    std::size_t missing = found.size();
    for (std::size_t w = 0; w < widths.size(); ++w) {
      ATTENDANT_RETURN_IF_ERROR(walk.Run(graph, keys, query, widths[w]));
      scored_sums[w] += static_cast<double>(walk.positions().size());
      ++walk_counts[w];
      for (std::size_t i = 0; i < neighbours.size(); ++i) {
        if (found[i] == RecallCurve::kNever && walk.Scored(neighbours[i])) {
          found[i] = widths[w];
          --missing;
        }
      }
      if (missing == 0) break;
    }
    curve.recall.Add(q, found);
  }
  curve.recall.Finish();
  for (std::size_t w = 0; w < widths.size() && walk_counts[w] > 0; ++w) {
    curve.cost.Add(static_cast<double>(widths[w]),
                   scored_sums[w] / walk_counts[w] * kCostOfStep *
                       CostOfKeyAnywhere(keys.dim()));
  }
  return curve;
}

class GraphIndex : public WidthIndex<HnswIndex, IndexKind::kHnsw> {
 public:
  GraphIndex(WidthSearch search, std::optional<KeyGraph> graph)
      : WidthIndex(std::move(search)), graph_(std::move(graph)) {}

 private:
  static std::int64_t BytesOf(const faiss::HNSW& links) {
    return static_cast<std::int64_t>(
        links.neighbors.size() * sizeof(std::int32_t) +
        links.offsets.size() * sizeof(std::size_t) +
        links.levels.size() * sizeof(int));
  }

  absl::Status Find(const ScanQuery& query, const KeyRows::Eligible& eligible,
                    std::int64_t width, FoundKeys& found) const override {
    thread_local GraphWalk walk;
    ATTENDANT_RETURN_IF_ERROR(walk.Run(*graph_, keys(), query, width));
    for (std::size_t i = 0; i < walk.positions().size(); ++i) {
      const std::int32_t position = walk.positions()[i];
      if (!eligible.Has(keys().rows()[position])) {
        continue;
      }
      found.positions.push_back(position);
      found.similarities.push_back(walk.similarities()[i]);
    }
    found.met_count = static_cast<std::int64_t>(walk.positions().size());
    found.exhausted = walk.exhausted();
    return absl::OkStatus();
  }

  MemoryParts finder_memory() const override {
    MemoryParts parts;
    if (graph_) parts.index += BytesOf(graph_->by_angle);
    if (graph_ && graph_->by_product) {
      parts.index += BytesOf(*graph_->by_product);
    }
    return parts;
  }

  void SaveFinder(ByteSink& sink) const override {
    if (!graph_) return;
    SaveLinks(graph_->by_angle, sink);
    sink.Put(graph_->by_product.has_value());
    if (graph_->by_product) SaveLinks(*graph_->by_product, sink);
  }

  const std::optional<KeyGraph> graph_;
};

absl::StatusOr<std::unique_ptr<HnswIndex>> BuildIndex(
    std::span<const std::span<const float>> keys, std::int64_t dim,
    ScoreKind score_kind, const HnswOptions& options) {
  ATTENDANT_ASSIGN_OR_RETURN(
      KeyRows rows, KeyRows::Make(keys, dim, score_kind, options.seed));
  ATTENDANT_ASSIGN_OR_RETURN(
      std::optional<KeyGraph> graph,
      BuildGraph(rows, score_kind == ScoreKind::kCosine, options));
  std::optional<WidthCurve> curve;
  if (graph) {
    ATTENDANT_ASSIGN_OR_RETURN(curve,
                               Calibrate(*graph, rows, score_kind, options));
  }
  return std::make_unique<GraphIndex>(
      WidthSearch(std::move(rows), std::move(curve),
                  {.target_recall = options.target_recall,
                   .neighbour_count = options.neighbour_count}),
      std::move(graph));
}

}  // namespace

absl::StatusOr<std::unique_ptr<HnswIndex>> HnswIndex::Load(
    ByteSource& source, std::int64_t row_count) {
  ATTENDANT_ASSIGN_OR_RETURN(WidthSearch search,
                             WidthSearch::Load(source, row_count));
  std::optional<KeyGraph> graph;
  if (search.finds()) {
    const std::int64_t key_count = search.keys().key_count();
    graph.emplace();
    ATTENDANT_ASSIGN_OR_RETURN(graph->by_angle, LoadLinks(source, key_count));
    if (source.Get<bool>()) {
      ATTENDANT_ASSIGN_OR_RETURN(graph->by_product,
                                 LoadLinks(source, key_count));
    }
    ATTENDANT_RETURN_IF_ERROR(source.status());
  }
  return std::make_unique<GraphIndex>(std::move(search), std::move(graph));
}

absl::StatusOr<std::unique_ptr<HnswIndex>> HnswIndex::Build(
    std::span<const std::span<const float>> keys, std::int64_t dim,
    ScoreKind score_kind, const HnswOptions& options) {
  return GuardBuild([&] { return BuildIndex(keys, dim, score_kind, options); });
}

}  // namespace attendant
