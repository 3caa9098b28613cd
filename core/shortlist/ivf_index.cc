#include "core/shortlist/ivf_index.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <exception>
#include <functional>
#include <new>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/bitmap.h"
#include "core/base/status.h"
#include "core/kernels/compare.h"
#include "core/shortlist/calibrate.h"
#include "core/shortlist/inverse_norm.h"
#include "core/shortlist/inverted_lists.h"
#include "core/shortlist/learn_centroids.h"
#include "core/shortlist/nearest_centroid.h"
#include "core/shortlist/row_scan.h"

namespace attendant {
namespace {

constexpr std::int64_t kTrainingRowsPerList = 64;
constexpr std::int64_t kMinRowsPerList = 16;

using Keys = std::span<const std::span<const float>>;

class ListIndex : public IvfIndex {
 public:
  ListIndex(InvertedLists lists, std::vector<std::int32_t> positions,
            Calibration calibration)
      : lists_(std::move(lists)),
        positions_(std::move(positions)),
        keyed_(static_cast<std::int64_t>(positions_.size())),
        calibration_(std::move(calibration)) {
    for (const RowIndex row : lists_.rows) keyed_.Set(row);
  }

  IndexKind kind() const override { return IndexKind::kIvf; }
  std::int64_t dim() const override { return lists_.dim; }
  std::int64_t list_count() const override { return lists_.list_count(); }
  std::int64_t probe_count() const override { return calibration_.probe_count; }
  double measured_recall() const override { return calibration_.recall; }

  std::span<const float> Key(RowIndex row) const override {
    const std::int32_t position = positions_[static_cast<std::size_t>(row)];
    if (position < 0) return {};
    return lists_.key_view().Row(position);
  }

  absl::StatusOr<ScanStats> Scan(const ScanQuery& query,
                                 AttentionState& state) const override {
    const bool masked = query.excluded != nullptr || query.allowed != nullptr ||
                        query.row_end < static_cast<RowIndex>(keyed_.size());
    if (masked) return ScanMasked(query, state);
    const bool all_lists =
        query.exhaustive || calibration_.probe_count >= list_count();
    RowScan scan(query, state);
    ATTENDANT_RETURN_IF_ERROR(scan.Start());
    if (all_lists) {
      ATTENDANT_RETURN_IF_ERROR(ScanAllLists(true, scan));
    } else {
      thread_local std::vector<std::uint64_t> ranks;
      lists_.RankLists(query.query, ranks);
      ATTENDANT_RETURN_IF_ERROR(
          ScanBestLists(ranks, calibration_.probe_count, true, scan));
    }
    ATTENDANT_RETURN_IF_ERROR(scan.Finish());
    return ScanStats{.scored_count = scan.scored_count(),
                     .complete = all_lists};
  }

  std::int64_t memory_bytes() const override {
    const std::int64_t n = lists_.key_count();
    constexpr std::int64_t kFloatBytes = sizeof(float);
    return (n + list_count()) * lists_.dim * kFloatBytes +
           n * (kFloatBytes + std::int64_t{sizeof(RowIndex)}) +
           static_cast<std::int64_t>(positions_.size() * sizeof(std::int32_t) +
                                     lists_.offsets.size() *
                                         sizeof(std::int64_t));
  }

 private:
  // The eligible rows with keys, and how many they are.
  std::int64_t FindEligible(const ScanQuery& query, Bitmap& eligible) const {
    const auto words_of = [](const Bitmap* bitmap) {
      return bitmap == nullptr ? std::span<const std::uint64_t>()
                               : bitmap->words();
    };
    const auto allowed = words_of(query.allowed);
    const auto excluded = words_of(query.excluded);
    const std::span<const std::uint64_t> keyed = keyed_.words();
    const std::span<std::uint64_t> words = eligible.words();
    for (std::size_t w = 0; w < words.size(); ++w) {
      const std::int64_t visible =
          query.row_end - 64 * static_cast<std::int64_t>(w);
      if (visible <= 0) break;
      std::uint64_t word = keyed[w];
      if (query.allowed != nullptr) word &= w < allowed.size() ? allowed[w] : 0;
      if (w < excluded.size()) word &= ~excluded[w];
      if (visible < 64) word &= (std::uint64_t{1} << visible) - 1;
      words[w] = word;
    }
    return ActiveCompareKernels().CountBits(
        words.data(), nullptr, static_cast<std::int64_t>(words.size()));
  }

  // Scores the eligible rows themselves where that is quicker than the lists
  // that they are in, or asked for.
  absl::StatusOr<ScanStats> ScanMasked(const ScanQuery& query,
                                       AttentionState& state) const {
    Bitmap eligible(keyed_.size());
    const std::int64_t eligible_count = FindEligible(query, eligible);
    ScanQuery narrowed = query;
    narrowed.excluded = nullptr;
    narrowed.allowed = &eligible;
    RowScan scan(narrowed, state);
    ATTENDANT_RETURN_IF_ERROR(scan.Start());
    const double rate = static_cast<double>(eligible_count) /
                        static_cast<double>(lists_.key_count());
    const double probes =
        query.exhaustive || eligible_count == 0
            ? static_cast<double>(list_count())
            : std::min(static_cast<double>(list_count()), ProbesFor(rate));
    bool complete = true;
    if (CostOfRows(eligible_count) <= CostOfLists(probes, rate)) {
      ATTENDANT_RETURN_IF_ERROR(ScanRows(eligible, scan));
    } else if (query.exhaustive) {
      ATTENDANT_RETURN_IF_ERROR(ScanAllLists(false, scan));
    } else {
      const std::int64_t wanted = std::min(state.top().k(), eligible_count);
      ATTENDANT_ASSIGN_OR_RETURN(complete,
                                 ScanUntilEnough(query.query, wanted, scan));
    }
    ATTENDANT_RETURN_IF_ERROR(scan.Finish());
    return ScanStats{.scored_count = scan.scored_count(), .complete = complete};
  }

  // Lists that find the best rows of which a share of `rate` is eligible.
  double ProbesFor(double rate) const {
    return calibration_.ProbesFor(
        static_cast<double>(calibration_.depths[0].neighbour_count) / rate);
  }

  // Nanoseconds, measured on 1,000,000 keys of 128 floats, which are far more
  // than a cache holds (bench/README.md); only the ratios matter. A key that is
  // read after its neighbour; between some that are left out; from anywhere.
  double CostOfKey() const { return 5 + 0.22 * static_cast<double>(dim()); }
  double CostOfKeyInList() const { return 1.6 * CostOfKey(); }
  double CostOfKeyAnywhere() const { return 2.7 * CostOfKey(); }

  double CostOfRows(std::int64_t row_count) const {
    return static_cast<double>(row_count) * CostOfKeyAnywhere();
  }
  // Of ranking all lists and visiting `probes` of them, with a share of `rate`
  // of their rows eligible. The means are small enough for a cache.
  double CostOfLists(double probes, double rate) const {
    constexpr double kCostOfTest = 2.7;
    const double rows_per_list = static_cast<double>(lists_.key_count()) /
                                 static_cast<double>(list_count());
    return static_cast<double>(list_count()) * 0.5 * CostOfKey() +
           probes * rows_per_list * (kCostOfTest + rate * CostOfKeyInList());
  }

  // Visits lists in the order of their ranks until at least `wanted` eligible
  // rows are found and as many lists are visited as the share of eligible rows
  // in them calls for. That share may be another than that of all rows: what is
  // eligible may be near to the query, or far from it. True: all were visited.
  absl::StatusOr<bool> ScanUntilEnough(std::span<const float> query,
                                       std::int64_t wanted,
                                       RowScan& scan) const {
    thread_local std::vector<std::uint64_t> ranks;
    lists_.RankLists(query, ranks);
    std::span<std::uint64_t> left = ranks;
    std::int64_t visited = 0;
    std::int64_t next = calibration_.probe_count;
    std::int64_t row_count = 0;
    while (true) {
      next = std::min(next, list_count() - visited);
      ATTENDANT_RETURN_IF_ERROR(ScanBestLists(left, next, false, scan));
      for (std::int64_t i = 0; i < next; ++i) {
        row_count +=
            RowsOf(InvertedLists::ListOf(left[static_cast<std::size_t>(i)]))
                .size();
      }
      left = left.subspan(static_cast<std::size_t>(next));
      visited += next;
      if (left.empty()) return true;
      const std::int64_t found = scan.scored_count();
      if (found < wanted || found == 0) {
        next = visited;
        continue;
      }
      const double needed = ProbesFor(static_cast<double>(found) /
                                      static_cast<double>(row_count));
      // A few lists more are not worth another choice among all.
      if (needed <= static_cast<double>(visited + visited / 16)) return false;
      // Part of a list is a list: every turn must visit one.
      next = static_cast<std::int64_t>(std::ceil(
                 std::min(needed, static_cast<double>(list_count())))) -
             visited;
    }
  }

  // Scores the rows themselves, in their order.
  absl::Status ScanRows(const Bitmap& eligible, RowScan& scan) const {
    constexpr std::size_t kBatch = 1024;
    RowIndex rows[kBatch];
    std::int32_t positions[kBatch];
    std::size_t count = 0;
    const auto score = [&] {
      const absl::Status status =
          scan.ScanScattered(lists_.keys.data(), lists_.inverse_norms.data(),
                             {rows, count}, {positions, count});
      count = 0;
      return status;
    };
    for (std::size_t w = 0; w < eligible.words().size(); ++w) {
      for (std::uint64_t word = eligible.words()[w]; word != 0;
           word &= word - 1) {
        const auto row = static_cast<RowIndex>(64 * w) +
                         static_cast<RowIndex>(std::countr_zero(word));
        rows[count] = row;
        positions[count++] = positions_[static_cast<std::size_t>(row)];
        if (count == kBatch) ATTENDANT_RETURN_IF_ERROR(score());
      }
    }
    return score();
  }

  // Scans the `count` best of the ranked lists, which come first among `ranks`
  // then, in ascending order, so that rows are added in one order.
  absl::Status ScanBestLists(std::span<std::uint64_t> ranks, std::int64_t count,
                             bool all_eligible, RowScan& scan) const {
    thread_local std::vector<std::int32_t> chosen;
    const auto end = ranks.begin() + count;
    if (end != ranks.end()) {
      std::nth_element(ranks.begin(), end - 1, ranks.end(), std::greater<>());
    }
    chosen.resize(static_cast<std::size_t>(count));
    std::transform(ranks.begin(), end, chosen.begin(), InvertedLists::ListOf);
    std::sort(chosen.begin(), chosen.end());
    for (const std::int32_t l : chosen) {
      ATTENDANT_RETURN_IF_ERROR(ScanList(l, all_eligible, scan));
    }
    return absl::OkStatus();
  }

  absl::Status ScanAllLists(bool all_eligible, RowScan& scan) const {
    for (std::int64_t l = 0; l < list_count(); ++l) {
      ATTENDANT_RETURN_IF_ERROR(ScanList(l, all_eligible, scan));
    }
    return absl::OkStatus();
  }

  std::span<const RowIndex> RowsOf(std::int64_t list) const {
    const std::int64_t begin = lists_.offsets[static_cast<std::size_t>(list)];
    const std::int64_t end = lists_.offsets[static_cast<std::size_t>(list) + 1];
    return std::span(lists_.rows)
        .subspan(static_cast<std::size_t>(begin),
                 static_cast<std::size_t>(end - begin));
  }

  absl::Status ScanList(std::int64_t list, bool all_eligible,
                        RowScan& scan) const {
    const std::int64_t begin = lists_.offsets[static_cast<std::size_t>(list)];
    return scan.Scan(lists_.keys.data() + begin * lists_.dim,
                     lists_.inverse_norms.data() + begin, RowsOf(list),
                     all_eligible);
  }

  const InvertedLists lists_;
  const std::vector<std::int32_t> positions_;  // by row; -1: no key
  Bitmap keyed_;                               // rows with keys
  const Calibration calibration_;
};

std::vector<RowIndex> RowsWithKeys(Keys keys) {
  std::vector<RowIndex> rows;
  for (std::size_t r = 0; r < keys.size(); ++r) {
    if (!keys[r].empty()) rows.push_back(static_cast<RowIndex>(r));
  }
  return rows;
}

std::int64_t ListCount(std::int64_t asked, std::int64_t key_count) {
  if (asked > 0) return std::min(asked, key_count);
  const auto by_root =
      static_cast<std::int64_t>(4 * std::sqrt(static_cast<double>(key_count)));
  return std::max<std::int64_t>(1,
                                std::min(by_root, key_count / kMinRowsPerList));
}

absl::StatusOr<std::vector<float>> TrainOnSample(Keys keys, std::int64_t dim,
                                                 std::vector<RowIndex> rows,
                                                 const LearnOptions& options) {
  const auto sample_count = std::min<std::size_t>(
      rows.size(),
      static_cast<std::size_t>(options.centroid_count * kTrainingRowsPerList));
  std::mt19937_64 random(options.seed);
  AlignedBuffer<float> sample(sample_count * static_cast<std::size_t>(dim));
  for (std::size_t i = 0; i < sample_count; ++i) {
    std::swap(rows[i], rows[i + random() % (rows.size() - i)]);
    const std::span<const float> key = keys[static_cast<std::size_t>(rows[i])];
    const float factor = options.spherical ? InverseNorm(key) : 1;
    std::transform(key.begin(), key.end(),
                   sample.data() + i * static_cast<std::size_t>(dim),
                   [factor](float component) { return component * factor; });
  }
  return LearnCentroids(
      {sample.data(), static_cast<std::int64_t>(sample_count), dim}, options);
}

// The list of each of `rows`. Centroids of norm 1 need no keys of norm 1.
absl::StatusOr<std::vector<std::int32_t>> AssignToLists(
    Keys keys, std::span<const RowIndex> rows, MatrixView centroids,
    const std::atomic<bool>* cancelled) {
  NearestCentroid nearest(centroids);
  std::vector<std::int32_t> lists(rows.size());
  AlignedBuffer<float> block(
      static_cast<std::size_t>(NearestCentroid::kBlockRows * centroids.dim));
  for (std::size_t begin = 0; begin < rows.size();
       begin += NearestCentroid::kBlockRows) {
    if (cancelled != nullptr && cancelled->load(std::memory_order_relaxed)) {
      return absl::CancelledError("the build was cancelled");
    }
    const std::size_t count =
        std::min<std::size_t>(NearestCentroid::kBlockRows, rows.size() - begin);
    float* to = block.data();
    for (std::size_t i = 0; i < count; ++i) {
      const auto key = keys[static_cast<std::size_t>(rows[begin + i])];
      to = std::copy(key.begin(), key.end(), to);
    }
    nearest.Find(
        {block.data(), static_cast<std::int64_t>(count), centroids.dim},
        lists.data() + begin, nullptr);
  }
  return lists;
}

// Asks for pages of 2 MiB: a scan jumps from list to list, and would else wait
// for the address of every eighth key of 128 floats. Before the first touch; no
// more than a hint.
void PreferHugePages(const AlignedBuffer<float>& keys) {
  constexpr std::uintptr_t kHugePage = std::uintptr_t{2} << 20;
  const auto begin = reinterpret_cast<std::uintptr_t>(keys.data());
  const std::uintptr_t end = begin + keys.size() * sizeof(float);
  const std::uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t last = end / kHugePage * kHugePage;
  if (first < last) {
    madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
  }
}

// `lists[i]` is the list of rows[i]; rows are ascending.
InvertedLists Arrange(Keys keys, std::span<const RowIndex> rows,
                      std::span<const std::int32_t> lists,
                      std::int64_t list_count, std::int64_t key_dim) {
  const auto dim = static_cast<std::size_t>(key_dim);
  InvertedLists arranged;
  arranged.dim = key_dim;
  arranged.offsets.resize(static_cast<std::size_t>(list_count) + 1);
  for (const std::int32_t list : lists) {
    ++arranged.offsets[static_cast<std::size_t>(list) + 1];
  }
  for (std::size_t l = 1; l < arranged.offsets.size(); ++l) {
    arranged.offsets[l] += arranged.offsets[l - 1];
  }

  arranged.rows.resize(rows.size());
  arranged.inverse_norms.resize(rows.size());
  arranged.keys = AlignedBuffer<float>(rows.size() * dim);
  PreferHugePages(arranged.keys);
  std::vector<std::int64_t> next = arranged.offsets;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto position =
        static_cast<std::size_t>(next[static_cast<std::size_t>(lists[i])]++);
    const auto key = keys[static_cast<std::size_t>(rows[i])];
    arranged.rows[position] = rows[i];
    arranged.inverse_norms[position] = InverseNorm(key);
    std::copy(key.begin(), key.end(), arranged.keys.data() + position * dim);
  }
  return arranged;
}

absl::StatusOr<std::unique_ptr<IvfIndex>> BuildIndex(
    Keys keys, std::int64_t dim, ScoreKind score_kind,
    const IvfOptions& options) {
  const std::vector<RowIndex> rows = RowsWithKeys(keys);
  if (rows.empty()) {
    return absl::InvalidArgumentError("keys: got none, want at least 1");
  }
  const LearnOptions learn_options = {
      .centroid_count =
          ListCount(options.list_count, static_cast<std::int64_t>(rows.size())),
      .spherical = score_kind == ScoreKind::kCosine,
      .seed = options.seed,
      .cancelled = options.cancelled};
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<float> centroids,
                             TrainOnSample(keys, dim, rows, learn_options));
  const MatrixView centroid_view = {centroids.data(),
                                    learn_options.centroid_count, dim};
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::vector<std::int32_t> list_of_row,
      AssignToLists(keys, rows, centroid_view, options.cancelled));
  InvertedLists lists =
      Arrange(keys, rows, list_of_row, learn_options.centroid_count, dim);
  lists.Summarise(score_kind == ScoreKind::kCosine);

  const CalibrateOptions calibrate_options = {
      .score_kind = score_kind,
      .target_recall = options.target_recall,
      .neighbour_count = options.neighbour_count,
      .seed = options.seed,
      .cancelled = options.cancelled};
  ATTENDANT_ASSIGN_OR_RETURN(const Calibration calibration,
                             Calibrate(lists, calibrate_options));

  std::vector<std::int32_t> positions(keys.size(), -1);
  for (std::size_t p = 0; p < lists.rows.size(); ++p) {
    positions[static_cast<std::size_t>(lists.rows[p])] =
        static_cast<std::int32_t>(p);
  }
  return std::make_unique<ListIndex>(std::move(lists), std::move(positions),
                                     std::move(calibration));
}

}  // namespace

absl::StatusOr<std::unique_ptr<IvfIndex>> IvfIndex::Build(
    Keys keys, std::int64_t dim, ScoreKind score_kind,
    const IvfOptions& options) {
  try {
    return BuildIndex(keys, dim, score_kind, options);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "out of memory while building an index");
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("building an index: ", e.what()));
  }
}

}  // namespace attendant
