// SAMPLE of 10 items from a catalog, by groups and exactly: how the time grows
// with the catalog, and the distance between the distribution drawn from and
// the softmax.
//   sample_benchmark [--data DIRECTORY] [--queries COUNT] [--deleted SHARE]
//       SET...
// Prints one row for each data set and temperature; at the end, over all sets,
// the exponent of time against keys. The true distance is computed in double
// precision over all keys. See docs/mass.md.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/data/data_set.h"
#include "bench/data/ground_truth.h"
#include "bench/mass/exact_mass.h"
#include "core/attention/softmax/log_add.h"
#include "core/base/bitmap.h"
#include "core/catalog/query/attend.h"
#include "core/catalog/segments/dead_rows.h"
#include "core/shortlist/ivf/ivf_index.h"

namespace attendant {
namespace {

constexpr std::int64_t kDrawCount = 10;
constexpr std::int64_t kShortlistCount = 100;
// Exact draws are slow and vary little.
constexpr std::int64_t kExactQueries = 20;

// Results of one query.
struct Answer {
  double seconds = 0;
  double scored = 0;
  double stated = 0;  // distance
  double truth = 0;
};

struct Row {
  double key_count = 0;
  double temperature = 0;
  double seconds = 0;
  double exact_seconds = 0;
};

double Percentile(std::vector<double> numbers, double share) {
  const auto nth = static_cast<std::ptrdiff_t>(
      share * static_cast<double>(numbers.size() - 1));
  std::nth_element(numbers.begin(), numbers.begin() + nth, numbers.end());
  return numbers[nth];
}

[[noreturn]] void Fail(const absl::Status& status) {
  std::cerr << status << "\n";
  std::exit(1);
}

// A catalog of one segment in which `dead` rows are deleted; null for none.
Snapshot SnapshotOf(const DataSet& data, std::shared_ptr<const IvfIndex> index,
                    std::shared_ptr<const Bitmap> dead) {
  const std::int64_t n = data.key_view().row_count;
  auto rows = std::make_shared<RowTable>(0, n);
  for (std::int64_t r = 0; r < n; ++r) {
    rows->Append(absl::StrCat("item", r), {}, {});
  }
  auto segment = std::make_shared<Segment>();
  segment->rows = std::move(rows);
  segment->indexes.push_back(std::move(index));
  segment->head_indexes.resize(1);
  auto schema = std::make_shared<CatalogSchema>();
  schema->key_fields.resize(1);
  schema->key_fields[0].name = "key";
  schema->key_fields[0].dim = data.dim;
  schema->key_fields[0].score_kind = ScoreKind::kDot;
  Snapshot snapshot;
  snapshot.schema = std::move(schema);
  snapshot.encoders.resize(1);
  snapshot.models.resize(1);
  snapshot.wanted_indexes = {IndexKind::kIvf};
  SegmentView view;
  view.segment = std::move(segment);
  view.row_end = static_cast<RowIndex>(n);
  view.live_count = n;
  for (std::int64_t r = 0; dead != nullptr && r < n; ++r) {
    if (dead->Test(r)) --view.live_count;
  }
  view.live_key_counts = {view.live_count};
  SetDead(view, std::move(dead));
  snapshot.segments.push_back(std::move(view));
  return snapshot;
}

AttendQuery QueryOf(std::span<const float> vector, double temperature,
                    std::int64_t seed) {
  AttendQuery query;
  query.query = std::vector<float>(vector.begin(), vector.end());
  query.select_kind = SelectKind::kSample;
  query.temperature = temperature;
  query.result_count = kDrawCount;
  query.shortlist_count = kShortlistCount;
  query.omit_pooled_value = true;
  query.seed = seed;
  return query;
}

Answer Ask(const Snapshot& snapshot, const AttendQuery& query) {
  const auto start = std::chrono::steady_clock::now();
  const absl::StatusOr<AttendAnswer> answer =
      Attend(snapshot, query, Interrupt());
  const std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start;
  if (!answer.ok()) Fail(answer.status());
  return {.seconds = elapsed.count(),
          .scored = static_cast<double>(answer->scored_count),
          .stated = answer->slate->distance};
}

// Returns half the sum of |q - p| over all keys, by opening every group.
double TrueDistance(const Snapshot& snapshot, const KeyIndex& index,
                    std::span<const float> vector, double temperature,
                    const ExactMass& exact) {
  ScanQuery scan;
  scan.query = vector;
  scan.logit_factor = 1 / temperature;
  scan.row_end = snapshot.segments[0].row_end;
  scan.excluded = snapshot.segments[0].dead.get();
  AttentionState state(kShortlistCount, &snapshot);
  const absl::StatusOr<ScanStats> stats = index.Scan(scan, state);
  if (!stats.ok()) Fail(stats.status());
  const std::vector<Candidate> head = state.top().Sorted();
  const std::unique_ptr<KeyGroups> groups = index.GroupKeys(scan, head);
  if (groups == nullptr) return 0;
  double log_sum = -std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : head) {
    log_sum = LogAdd(log_sum, candidate.logit);
  }
  for (const KeyGroup& group : groups->groups()) {
    log_sum = LogAdd(log_sum, group.log_mass);
  }
  double distance = 0;
  for (const Candidate& candidate : head) {
    distance += std::abs(std::exp(candidate.logit - log_sum) -
                         exact.WeightOf(candidate.row));
  }
  std::vector<RowIndex> rows;
  std::vector<float> log_shares;
  for (std::size_t g = 0; g < groups->groups().size(); ++g) {
    groups->Open(g, rows, log_shares);
    const double max = *std::ranges::max_element(log_shares);
    double sum = 0;
    for (const float log_share : log_shares) sum += std::exp(log_share - max);
    const double share = std::exp(groups->groups()[g].log_mass - log_sum) / sum;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      distance += std::abs(share * std::exp(log_shares[i] - max) -
                           exact.WeightOf(rows[i]));
    }
  }
  return distance / 2;
}

Row Report(const std::string& set, std::int64_t key_count, double temperature,
           const std::vector<Answer>& answers,
           const std::vector<double>& exact_seconds) {
  std::vector<double> seconds;
  std::vector<double> scored;
  std::vector<double> stated;
  std::vector<double> truth;
  double held = 0;
  for (const Answer& answer : answers) {
    seconds.push_back(answer.seconds);
    scored.push_back(answer.scored);
    stated.push_back(answer.stated);
    truth.push_back(answer.truth);
    // The slack is for logits, which are floats.
    if (answer.truth <= answer.stated + 0x1p-22 / temperature) ++held;
  }
  const Row row = {.key_count = static_cast<double>(key_count),
                   .temperature = temperature,
                   .seconds = Percentile(seconds, 0.5),
                   .exact_seconds = Percentile(exact_seconds, 0.5)};
  std::printf(
      "| %s | %g | %.0f | %.0f | %.1f | %.0f | %.4f | %.4f | %.4f | %.3f |\n",
      set.c_str(), temperature, 1e6 * row.seconds, 1e6 * row.exact_seconds,
      row.exact_seconds / row.seconds, Percentile(scored, 0.5),
      Percentile(truth, 0.5), Percentile(truth, 0.95), Percentile(stated, 0.5),
      held / static_cast<double>(answers.size()));
  std::fflush(stdout);
  return row;
}

struct Options {
  std::string directory = kDataDirectory;
  std::int64_t query_count = 200;
  double deleted = 0;  // share of rows
};

// The deleted rows, and the others; both null if none is deleted.
struct DeletedRows {
  std::shared_ptr<Bitmap> dead;
  std::shared_ptr<Bitmap> live;
};

DeletedRows DeleteSome(std::int64_t row_count, double share) {
  if (share == 0) return {};
  DeletedRows rows = {std::make_shared<Bitmap>(row_count),
                      std::make_shared<Bitmap>(row_count)};
  std::mt19937_64 random(7);
  for (std::int64_t r = 0; r < row_count; ++r) {
    const bool dies = std::uniform_real_distribution<double>()(random) < share;
    (dies ? rows.dead : rows.live)->Set(r);
  }
  return rows;
}

absl::Status Run(const std::string& name, const Options& options,
                 std::vector<Row>& rows) {
  const absl::StatusOr<DataSet> data = LoadDataSet(name, options.directory);
  if (!data.ok()) return data.status();
  const MatrixView keys = data->key_view();
  std::vector<std::span<const float>> spans;
  for (std::int64_t r = 0; r < keys.row_count; ++r)
    spans.push_back(keys.Row(r));
  absl::StatusOr<std::unique_ptr<IvfIndex>> built =
      IvfIndex::Build(spans, data->dim, ScoreKind::kDot, {.thread_count = 2});
  if (!built.ok()) return built.status();
  const std::shared_ptr<const IvfIndex> index = *std::move(built);
  const DeletedRows rows_left = DeleteSome(keys.row_count, options.deleted);
  const Snapshot snapshot = SnapshotOf(*data, index, rows_left.dead);
  const std::int64_t query_count =
      std::min(options.query_count, data->queries.row_count());
  std::vector<Answer> answers[kTemperatures.size()];
  std::vector<double> exact_seconds[kTemperatures.size()];
  for (std::size_t t = 0; t < kTemperatures.size(); ++t) {
    // Warms up first: the first queries would pay for cold caches.
    for (std::int64_t q = -5; q < query_count; ++q) {
      const std::span<const float> vector =
          data->queries.Row(std::max<std::int64_t>(0, q));
      const Answer answer =
          Ask(snapshot, QueryOf(vector, kTemperatures[t], q + 5));
      if (q >= 0) answers[t].push_back(answer);
    }
    for (std::int64_t q = -1; q < kExactQueries; ++q) {
      AttendQuery query =
          QueryOf(data->queries.Row(std::max<std::int64_t>(0, q)),
                  kTemperatures[t], q + 1);
      query.scan_mode = ScanMode::kExact;
      const Answer answer = Ask(snapshot, query);
      if (q >= 0) exact_seconds[t].push_back(answer.seconds);
    }
  }
  for (std::int64_t q = 0; q < query_count; ++q) {
    const std::span<const float> vector = data->queries.Row(q);
    const std::vector<double> similarities = ScoreAll(vector, keys);
    ExactMass exact(similarities, rows_left.live.get(), 1);
    for (std::size_t t = 0; t < kTemperatures.size(); ++t) {
      exact.SetTemperature(kTemperatures[t]);
      answers[t][q].truth =
          TrueDistance(snapshot, *index, vector, kTemperatures[t], exact);
    }
  }
  for (std::size_t t = 0; t < kTemperatures.size(); ++t) {
    rows.push_back(Report(name, keys.row_count, kTemperatures[t], answers[t],
                          exact_seconds[t]));
  }
  return absl::OkStatus();
}

// Returns the slope of a line fitted to log(seconds) over log(keys) by least
// squares.
double Exponent(const std::vector<Row>& rows, double temperature,
                const std::function<double(const Row&)>& seconds) {
  double n = 0;
  double x = 0;
  double y = 0;
  double xx = 0;
  double xy = 0;
  for (const Row& row : rows) {
    if (row.temperature != temperature) continue;
    const double log_keys = std::log(row.key_count);
    const double log_seconds = std::log(seconds(row));
    n += 1;
    x += log_keys;
    y += log_seconds;
    xx += log_keys * log_keys;
    xy += log_keys * log_seconds;
  }
  return (n * xy - x * y) / (n * xx - x * x);
}

int Main(int argc, char** argv) {
  Options options;
  std::vector<Row> rows;
  std::printf(
      "| keys | temperature | us | us, exact | times | scored | true distance "
      "| 95th percentile | stated | held |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n");
  std::int64_t set_count = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--data" && i + 1 < argc) {
      options.directory = argv[++i];
    } else if (argument == "--queries" && i + 1 < argc) {
      if (!absl::SimpleAtoi(argv[++i], &options.query_count) ||
          options.query_count < kExactQueries) {
        std::cerr << "--queries: want a number, at least " << kExactQueries
                  << "\n";
        return 1;
      }
    } else if (argument == "--deleted" && i + 1 < argc) {
      if (!absl::SimpleAtod(argv[++i], &options.deleted) ||
          options.deleted < 0 || options.deleted >= 1) {
        std::cerr << "--deleted: want a share, at least 0 and below 1\n";
        return 1;
      }
    } else if (const absl::Status status = Run(argument, options, rows);
               !status.ok()) {
      std::cerr << status << "\n";
      return 1;
    } else {
      ++set_count;
    }
  }
  for (const double temperature : kTemperatures) {
    if (set_count < 2) break;
    std::printf(
        "temperature %g: time grows with the %.2f-th power of keys, exact with "
        "the %.2f-th\n",
        temperature,
        Exponent(rows, temperature, [](const Row& row) { return row.seconds; }),
        Exponent(rows, temperature,
                 [](const Row& row) { return row.exact_seconds; }));
  }
  return 0;
}

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) { return attendant::Main(argc, argv); }
