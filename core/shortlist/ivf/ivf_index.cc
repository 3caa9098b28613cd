#include "core/shortlist/ivf/ivf_index.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "core/base/spare_time.h"
#include "core/base/status.h"
#include "core/shortlist/builds/for_each_part.h"
#include "core/shortlist/builds/guard_build.h"
#include "core/shortlist/calibration/calibrate.h"
#include "core/shortlist/calibration/choose_lists.h"
#include "core/shortlist/calibration/sample_queries.h"
#include "core/shortlist/ivf/ivf_training.h"
#include "core/shortlist/ivf/list_index.h"
#include "core/shortlist/keys/inverse_norm.h"
#include "core/shortlist/lists/inverted_lists.h"
#include "core/shortlist/lists/learn_centroids.h"
#include "core/shortlist/lists/list_assigner.h"
#include "core/shortlist/lists/list_tree.h"
#include "core/shortlist/lists/list_values.h"
#include "core/shortlist/lists/nearest_centroid.h"
#include "core/shortlist/mass/unscored_mass.h"

namespace attendant {
namespace {

constexpr std::int64_t kTrainingRowsPerList = 64;
constexpr std::int64_t kMinRowsPerList = 16;
constexpr std::uint64_t kScoreKinds = 8;  // more than there are

using Keys = std::span<const std::span<const float>>;

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
    MakeWayAt(static_cast<std::int64_t>(i));
    std::swap(rows[i], rows[i + random() % (rows.size() - i)]);
    const std::span<const float> key = keys[rows[i]];
    const float factor = options.spherical ? InverseNorm(key) : 1;
    std::transform(key.begin(), key.end(),
                   sample.data() + i * static_cast<std::size_t>(dim),
                   [factor](float component) { return component * factor; });
  }
  return LearnCentroids(
      {sample.data(), static_cast<std::int64_t>(sample_count), dim}, options);
}

// Returns the list of each of `rows`.
absl::StatusOr<std::vector<std::int32_t>> AssignToLists(
    Keys keys, std::span<const RowIndex> rows, const ListAssigner& assigner,
    const IvfOptions& options) {
  constexpr std::int64_t kBlockRows = NearestCentroid::kBlockRows;
  std::vector<std::int32_t> lists(rows.size());
  const auto assign = [&](std::int64_t begin, std::int64_t end) {
    ListAssigner::Scratch scratch;
    for (; begin < end && !IsCancelled(options.cancelled);
         begin += kBlockRows) {
      assigner.Assign(
          std::min(kBlockRows, end - begin),
          [&](std::int64_t i) {
            const RowIndex row = rows[begin + i];
            return keys[row];
          },
          lists.data() + begin, scratch);
    }
  };
  ForEachPart(static_cast<std::int64_t>(rows.size()), options.thread_count,
              assign);
  if (IsCancelled(options.cancelled)) return BuildCancelled();
  return lists;
}

// Returns the number of keys by list.
std::vector<std::int64_t> CountKeys(std::span<const std::int32_t> list_of_row,
                                    std::int64_t list_count) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(list_count));
  for (const std::int32_t list : list_of_row) {
    ++counts[list];
  }
  return counts;
}

// list_of_row[i] is the list of rows[i]; `rows` ascend.
absl::StatusOr<InvertedLists> Arrange(Keys keys, std::span<const RowIndex> rows,
                                      std::span<const std::int32_t> list_of_row,
                                      std::int64_t list_count, std::int64_t dim,
                                      ScratchFiles* files) {
  InvertedLists arranged;
  arranged.dim = dim;
  arranged.offsets.resize(static_cast<std::size_t>(list_count) + 1);
  const std::vector<std::int64_t> counts = CountKeys(list_of_row, list_count);
  std::partial_sum(counts.begin(), counts.end(), arranged.offsets.begin() + 1);

  arranged.rows.resize(rows.size());
  arranged.inverse_norms.resize(rows.size());
  std::vector<std::int64_t> next = arranged.offsets;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto list = static_cast<std::size_t>(list_of_row[i]);
    arranged.rows[next[list]++] = rows[i];
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      arranged.keys,
      KeyFloats::Gather(arranged.key_count(), dim, files,
                        [&](std::int64_t position) {
                          const auto p = static_cast<std::size_t>(position);
                          const auto key = keys[arranged.rows[p]];
                          arranged.inverse_norms[p] = InverseNorm(key);
                          return key;
                        }));
  return arranged;
}

// Keys in lists, and what was learned from them.
struct Trained {
  InvertedLists lists;
  std::shared_ptr<const IvfTraining> training;
};

absl::StatusOr<Trained> Train(Keys keys, std::span<const RowIndex> rows,
                              std::int64_t dim, ScoreKind score_kind,
                              const IvfOptions& options) {
  const LearnOptions learn_options = {
      .centroid_count =
          ListCount(options.list_count, static_cast<std::int64_t>(rows.size())),
      .spherical = score_kind == ScoreKind::kCosine,
      .seed = options.seed,
      .thread_count = options.thread_count,
      .cancelled = options.cancelled};
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::vector<float> centroids,
      TrainOnSample(keys, dim, {rows.begin(), rows.end()}, learn_options));
  const MatrixView centroid_view = {centroids.data(),
                                    learn_options.centroid_count, dim};
  const bool normalise = score_kind == ScoreKind::kCosine;
  ATTENDANT_ASSIGN_OR_RETURN(
      std::vector<std::int32_t> list_of_row,
      AssignToLists(keys, rows, ListAssigner(centroid_view, normalise),
                    options));
  std::optional<ListTree> tree;  // if lists may be merged
  if (options.list_count == 0) {
    tree.emplace(centroid_view,
                 CountKeys(list_of_row, centroid_view.row_count));
    for (std::int32_t& list : list_of_row) {
      list = tree->places()[list];
    }
  }
  Trained trained;
  InvertedLists& lists = trained.lists;
  ATTENDANT_ASSIGN_OR_RETURN(
      lists, Arrange(keys, rows, list_of_row, centroid_view.row_count, dim,
                     options.key_files));
  ATTENDANT_ASSIGN_OR_RETURN(
      const SampleQueries sample,
      SampleQueries::Draw(lists.key_runs(), lists.inverse_norms,
                          {.score_kind = score_kind,
                           .neighbour_count = options.neighbour_count,
                           .seed = options.seed,
                           .thread_count = options.thread_count,
                           .cancelled = options.cancelled}));
  const ListSums sums = lists.SumKeys(normalise, options.thread_count);
  if (tree) {
    ChooseLists(*tree, sample, sums, options.seed, options.thread_count, lists);
  } else {
    lists.Summarise(sums, options.seed);
  }
  lists.Encode(normalise, options.seed, options.thread_count);
  auto training = std::make_shared<IvfTraining>();
  training->means = lists.means;
  training->assigner =
      std::make_unique<const ListAssigner>(*lists.means, normalise);
  training->score_kind = score_kind;
  training->seed = options.seed;
  training->id = XXH3_64bits_withSeed(
      lists.means->means.data(), lists.means->means.size() * sizeof(float),
      kScoreKinds * options.seed + static_cast<std::uint64_t>(score_kind));
  training->key_count = lists.key_count();
  training->square_distance = lists.MeanSquareDistance(normalise);
  training->target_recall = options.target_recall;
  training->calibration =
      Calibrate(lists, sample, options.target_recall, options.thread_count);
  UnscoredMassOptions mass_options = MassOptionsOf(*training);
  mass_options.thread_count = options.thread_count;
  mass_options.cancelled = options.cancelled;
  ATTENDANT_ASSIGN_OR_RETURN(UnscoredMass mass,
                             UnscoredMass::Learn(lists, mass_options));
  training->mass = std::make_unique<LearnedMass>(std::move(mass), dim);
  trained.training = std::move(training);
  return trained;
}

// Puts keys in lists by a training that was learned from others.
absl::StatusOr<InvertedLists> ArrangeByTraining(Keys keys,
                                                std::span<const RowIndex> rows,
                                                std::int64_t dim,
                                                const IvfOptions& options) {
  const IvfTraining& training = *options.training;
  const bool normalise = training.score_kind == ScoreKind::kCosine;
  std::vector<std::int32_t> list_of_row(rows.size(), -1);
  std::vector<RowIndex> unknown;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!options.known_lists.empty()) {
      list_of_row[i] = options.known_lists[rows[i]];
    }
    if (list_of_row[i] < 0) unknown.push_back(rows[i]);
  }
  if (!unknown.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        const std::vector<std::int32_t> assigned,
        AssignToLists(keys, unknown, *training.assigner, options));
    std::size_t next = 0;
    for (std::int32_t& list : list_of_row) {
      if (list < 0) list = assigned[next++];
    }
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      InvertedLists lists,
      Arrange(keys, rows, list_of_row, training.means->list_count(), dim,
              options.key_files));
  lists.means = training.means;
  lists.Encode(normalise, training.seed, options.thread_count);
  return lists;
}

absl::StatusOr<std::unique_ptr<IvfIndex>> BuildIndex(
    Keys keys, std::int64_t dim, ScoreKind score_kind,
    const IvfOptions& options) {
  const std::vector<RowIndex> rows = RowsWithKeys(keys);
  if (rows.empty()) {
    return absl::InvalidArgumentError("keys: got none, want at least 1");
  }
  Trained trained;
  if (options.training != nullptr) {
    trained.training = options.training;
    ATTENDANT_ASSIGN_OR_RETURN(trained.lists,
                               ArrangeByTraining(keys, rows, dim, options));
  } else {
    ATTENDANT_ASSIGN_OR_RETURN(trained,
                               Train(keys, rows, dim, score_kind, options));
  }
  std::optional<ListValues> values;
  if (options.values != nullptr) {
    values = ListValues::Of(trained.lists, *options.values, options.value_dim,
                            trained.training->seed, options.thread_count);
  }
  return std::make_unique<ListIndex>(
      std::move(trained.lists), static_cast<std::int64_t>(keys.size()),
      std::move(trained.training), std::move(values));
}

}  // namespace

absl::StatusOr<std::unique_ptr<IvfIndex>> IvfIndex::Build(
    Keys keys, std::int64_t dim, ScoreKind score_kind,
    const IvfOptions& options) {
  return GuardBuild([&] { return BuildIndex(keys, dim, score_kind, options); });
}

}  // namespace attendant
