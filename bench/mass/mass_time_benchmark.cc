// Time to estimate a log partition to within 0.02, relative to an exact scan of
// floats: one query alone on one core, and batches of 64 on two.
//   mass_time_benchmark [--data DIRECTORY] [--queries COUNT] [--rounds COUNT]
//       [--seconds SECONDS] --json FILE SET...
// Both answers are Attend's 100 best items with their weights: from an IVF
// index with mass_precision 0.02, and from a FLAT index, which scores every
// key. Each round measures the two in turn for SECONDS, at each temperature.
// Before that, the errors of the first over all queries are measured against
// sums in double precision. bench/mass_time.py runs it.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/data/data_set.h"
#include "bench/data/ground_truth.h"
#include "bench/mass/mass_cell.h"
#include "bench/mass/one_segment.h"
#include "core/base/status.h"
#include "core/catalog/query/attend.h"
#include "core/shortlist/ivf/ivf_index.h"
#include "core/shortlist/kinds/flat_index.h"

namespace attendant {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

constexpr double kPrecision = 0.02;
constexpr std::int64_t kReturnCount = 100;
constexpr std::int64_t kBatch = 64;
constexpr int kBatchThreads = 2;

struct Options : SetFlags {
  std::int64_t round_count = 5;
  double seconds = 1;
};

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << status << "\n";
  std::exit(1);
}

std::shared_ptr<RowTable> RowsOf(const DataSet& data) {
  const std::int64_t count = data.keys.row_count();
  auto rows = std::make_shared<RowTable>(0, count);
  for (std::int64_t r = 0; r < count; ++r)
    rows->Append(absl::StrCat(r), {}, {});
  return rows;
}

absl::StatusOr<Snapshot> MakeIvf(const DataSet& data) {
  std::vector<std::span<const float>> keys;
  for (std::int64_t r = 0; r < data.keys.row_count(); ++r) {
    keys.push_back(data.keys.Row(r));
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      std::unique_ptr<IvfIndex> index,
      IvfIndex::Build(keys, data.dim, ScoreKind::kDot, {}));
  return MakeSnapshot(RowsOf(data), std::move(index), {});
}

Snapshot MakeFlat(const DataSet& data) {
  auto index = std::make_unique<FlatIndex>(data.dim, data.keys.row_count());
  for (std::int64_t r = 0; r < data.keys.row_count(); ++r) {
    index->Append(data.keys.Row(r));
  }
  return MakeSnapshot(RowsOf(data), std::move(index), {});
}

// A way to answer the queries of a set at one temperature.
class Way {
 public:
  // `snapshot` must outlive the object.
  Way(const Snapshot& snapshot, const DataSet& data, std::int64_t query_count,
      double temperature, std::optional<double> precision)
      : snapshot_(snapshot) {
    for (std::int64_t q = 0; q < query_count; ++q) {
      const std::span<const float> vector = data.queries.Row(q);
      AttendQuery& query = queries_.emplace_back();
      query.query = std::vector<float>(vector.begin(), vector.end());
      query.temperature = temperature;
      query.omit_pooled_value = true;
      query.result_count = kReturnCount;
      query.shortlist_count = kReturnCount;
      query.mass_precision = precision;
    }
  }

  AttendAnswer Answer(std::size_t q) const {
    absl::StatusOr<AttendAnswer> answer =
        Attend(snapshot_, queries_[q], Interrupt());
    Check(answer.status());
    return *std::move(answer);
  }

  // Measures times per query in a round of `seconds`.
  Json Measure(double seconds) const {
    return {{"single_ms", SingleMs(seconds)}, {"batch_ms", BatchMs(seconds)}};
  }

 private:
  double SingleMs(double seconds) const {
    const Clock::time_point start = Clock::now();
    std::size_t count = 0;
    while (SecondsSince(start) < seconds) Answer(count++ % queries_.size());
    return 1e3 * SecondsSince(start) / static_cast<double>(count);
  }

  // Each thread takes the next 64 queries until the time is up.
  double BatchMs(double seconds) const {
    const std::size_t batch_count = queries_.size() / kBatch;
    std::atomic<std::size_t> next = 0;
    const Clock::time_point start = Clock::now();
    const auto work = [&] {
      const Interrupt interrupt;
      std::vector<AttendTask> tasks(kBatch);
      while (SecondsSince(start) < seconds) {
        const std::size_t first = next++ % batch_count * kBatch;
        for (std::size_t i = 0; i < tasks.size(); ++i) {
          tasks[i] = {.query = &queries_[first + i], .interrupt = &interrupt};
        }
        for (const auto& answer : AttendTogether(snapshot_, tasks)) {
          Check(answer.status());
        }
      }
    };
    std::vector<std::thread> threads;
    for (int t = 1; t < kBatchThreads; ++t) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    return 1e3 * SecondsSince(start) / static_cast<double>(next * kBatch);
  }

  const Snapshot& snapshot_;
  std::vector<AttendQuery> queries_;
};

// Errors of the log partitions, and the share of stated intervals that contain
// them.
Json ErrorsOf(const Way& way, std::int64_t query_count,
              const GroundTruth& truth, std::size_t temperature) {
  const double rounding = LogRounding(kTemperatures[temperature]);
  std::vector<double> errors;
  std::int64_t covered = 0;
  for (std::int64_t q = 0; q < query_count; ++q) {
    const AttendAnswer answer = way.Answer(static_cast<std::size_t>(q));
    const double exact = truth.log_partitions.Row(q)[temperature];
    errors.push_back(std::abs(answer.log_partition.value() - exact));
    const Interval& stated = answer.log_partition_interval.value();
    covered += stated.lower_bound - rounding <= exact &&
               exact <= stated.upper_bound + rounding;
  }
  std::ranges::sort(errors);
  const auto last = static_cast<double>(errors.size() - 1);
  return {{"median", errors[static_cast<std::size_t>(.5 * last)]},
          {"95", errors[static_cast<std::size_t>(std::ceil(.95 * last))]},
          {"worst", errors.back()},
          {"covered",
           static_cast<double>(covered) / static_cast<double>(errors.size())}};
}

absl::StatusOr<Json> Run(const std::string& name, const Options& options) {
  ATTENDANT_ASSIGN_OR_RETURN(const DataSet data,
                             LoadDataSet(name, options.directory));
  ATTENDANT_ASSIGN_OR_RETURN(const GroundTruth truth,
                             LoadGroundTruth(data, options.directory));
  const std::int64_t query_count =
      std::min(options.query_count, data.queries.row_count());
  ATTENDANT_ASSIGN_OR_RETURN(const Snapshot ivf, MakeIvf(data));
  const Snapshot flat = MakeFlat(data);
  Json cells = Json::array();
  for (std::size_t t = 0; t < kTemperatures.size(); ++t) {
    const Way stated(ivf, data, query_count, kTemperatures[t], kPrecision);
    const Way exact(flat, data, query_count, kTemperatures[t], std::nullopt);
    Json cell = {{"temperature", kTemperatures[t]},
                 {"error", ErrorsOf(stated, query_count, truth, t)}};
    for (std::int64_t round = 0; round < options.round_count; ++round) {
      cell["rounds"].push_back({{"stated", stated.Measure(options.seconds)},
                                {"exact", exact.Measure(options.seconds)}});
    }
    std::cerr << name << " " << cell << std::endl;
    cells.push_back(std::move(cell));
  }
  return Json{{"keys", data.keys.row_count()},
              {"dimension", data.dim},
              {"queries", query_count},
              {"cells", cells}};
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("The time of a stated precision beside that of an exact scan",
               "mass_time_benchmark");
  AddSetFlags(app, /*least_queries=*/kBatch, options);
  app.get_option("--json")->required();
  app.add_option("--rounds", options.round_count)
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32));
  app.add_option("--seconds", options.seconds, "Of each measurement")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  Json json;
  for (const std::string& name : options.sets) {
    absl::StatusOr<Json> found = Run(name, options);
    if (!found.ok()) {
      std::cerr << found.status() << "\n";
      return 1;
    }
    json[name] = *std::move(found);
  }
  std::ofstream(options.json_path) << json.dump(1) << "\n";
  return 0;
}

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) { return attendant::Main(argc, argv); }
