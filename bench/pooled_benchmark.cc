// Values pooled over a whole catalog without scoring every key from its floats,
// compared with exact sums in doubles:
//   pooled_benchmark [--data DIRECTORY] [--queries COUNT] SET...
// Keys are their own values. Prints one row for each data set, filter and
// temperature. See docs/mass.md.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "bench/data/data_set.h"
#include "bench/data/ground_truth.h"
#include "core/attention/softmax/log_add.h"
#include "core/base/bitmap.h"
#include "core/catalog/query/pooled_deviation.h"
#include "core/shortlist/ivf/ivf_index.h"

namespace attendant {
namespace {

constexpr std::int64_t kResultCount = 100;
constexpr double kPrecision = 0.02;

class NoIds : public IdResolver {
 public:
  absl::string_view IdOf(std::int32_t, RowIndex) const override { return {}; }
};

struct Filter {
  const char* name;
  double share;  // of rows that pass the filter
};
constexpr Filter kFilters[] = {
    {"all", 1}, {"0.1", 0.1}, {"0.001", 0.001}, {"20 % deleted", 0.8}};

// Results of one query; errors are relative to the norm of the exact value.
struct Answer {
  double error = 0;
  double stated = 0;
  double truncated_error = 0;  // of the value pooled over the best 100
  bool exact = false;
  double seconds = 0;
  double mass_seconds = 0;   // the same pass without pooling
  double exact_seconds = 0;  // of a scan of every key
};

double Percentile(std::vector<double> numbers, double share) {
  const auto nth = static_cast<std::ptrdiff_t>(
      share * static_cast<double>(numbers.size() - 1));
  std::nth_element(numbers.begin(), numbers.begin() + nth, numbers.end());
  return numbers[nth];
}

void Report(const std::string& set, const Filter& filter, double temperature,
            const std::vector<Answer>& answers) {
  std::vector<double> errors;
  std::vector<double> stated;
  std::vector<double> truncated;
  std::vector<double> seconds;
  std::vector<double> mass_seconds;
  std::vector<double> exact_seconds;
  double held = 0;
  double exact = 0;
  for (const Answer& answer : answers) {
    errors.push_back(answer.error);
    stated.push_back(answer.stated);
    truncated.push_back(answer.truncated_error);
    seconds.push_back(answer.seconds);
    mass_seconds.push_back(answer.mass_seconds);
    exact_seconds.push_back(answer.exact_seconds);
    // The slack is for logits, which are floats.
    if (answer.error <= answer.stated + 0x1p-18 / temperature) ++held;
    if (answer.exact) ++exact;
  }
  const auto count = static_cast<double>(answers.size());
  std::printf(
      "| %s | %s | %g | %.5f | %.5f | %.5f | %.5f | %.4f | %.3f | %.0f %% | "
      "%.0f | %.3f | %.3f |\n",
      set.c_str(), filter.name, temperature, Percentile(errors, 0.5),
      Percentile(errors, 0.95), *std::ranges::max_element(errors),
      Percentile(stated, 0.5), held / count, Percentile(truncated, 0.5),
      100 * exact / count, 1e6 * Percentile(seconds, 0.5),
      Percentile(seconds, 0.5) / Percentile(exact_seconds, 0.5),
      Percentile(mass_seconds, 0.5) / Percentile(exact_seconds, 0.5));
  std::fflush(stdout);
}

// Returns query . key for all keys, in doubles.
void ScoreAll(std::span<const float> query, MatrixView keys,
              std::vector<double>& similarities) {
  constexpr std::size_t kLanes = 16;
  similarities.resize(static_cast<std::size_t>(keys.row_count));
  for (std::int64_t r = 0; r < keys.row_count; ++r) {
    const std::span<const float> key = keys.Row(r);
    double sums[kLanes] = {};
    std::size_t d = 0;
    for (; d + kLanes <= key.size(); d += kLanes) {
      for (std::size_t i = 0; i < kLanes; ++i) {
        sums[i] += double{query[d + i]} * key[d + i];
      }
    }
    double sum = std::accumulate(std::begin(sums), std::end(sums), 0.0);
    for (; d < key.size(); ++d) sum += double{query[d]} * key[d];
    similarities[r] = sum;
  }
}

// Returns the softmax-weighted mean of `rows`, which must not be empty.
std::vector<double> Pool(const std::vector<double>& similarities,
                         const std::vector<RowIndex>& rows, MatrixView keys,
                         double temperature) {
  double max = -std::numeric_limits<double>::infinity();
  for (const RowIndex row : rows) {
    max = std::max(max, similarities[row]);
  }
  std::vector<double> pooled(static_cast<std::size_t>(keys.dim));
  double sum = 0;
  for (const RowIndex row : rows) {
    const double e = std::exp((similarities[row] - max) / temperature);
    sum += e;
    const std::span<const float> key = keys.Row(row);
    for (std::size_t d = 0; d < pooled.size(); ++d) pooled[d] += e * key[d];
  }
  for (double& component : pooled) component /= sum;
  return pooled;
}

template <typename T>
double RelativeDistance(const std::vector<T>& value,
                        const std::vector<double>& truth) {
  double square = 0;
  double square_norm = 0;
  for (std::size_t d = 0; d < truth.size(); ++d) {
    square += (value[d] - truth[d]) * (value[d] - truth[d]);
    square_norm += truth[d] * truth[d];
  }
  return std::sqrt(square / square_norm);
}

// Returns this thread's processor time, which other load on the machine hardly
// changes.
double ProcessorSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

double Ask(const KeyIndex& index, const ScanQuery& scan, AttentionState& state,
           ScanStats& stats) {
  const double start = ProcessorSeconds();
  absl::StatusOr<ScanStats> scanned = index.Scan(scan, state);
  const double elapsed = ProcessorSeconds() - start;
  if (!scanned.ok()) {
    std::cerr << scanned.status() << "\n";
    std::exit(1);
  }
  stats = *std::move(scanned);
  return elapsed;
}

Answer AnswerOf(const KeyIndex& index, MatrixView keys,
                std::span<const float> query, const Bitmap* allowed,
                double temperature, const std::vector<double>& similarities,
                const std::vector<RowIndex>& rows) {
  const NoIds no_ids;
  ScanQuery scan = {.query = query,
                    .output_weight = {},
                    .logit_factor = 1 / temperature,
                    .row_end = static_cast<RowIndex>(keys.row_count),
                    .allowed = allowed,
                    .goals = {.mass_precision = kPrecision}};
  Answer answer;
  ScanStats stats;
  AttentionState state(kResultCount, &no_ids, keys.dim);
  answer.seconds = Ask(index, scan, state, stats);
  ScanStats ignored;
  AttentionState massive(kResultCount, &no_ids);
  answer.mass_seconds = Ask(index, scan, massive, ignored);
  // The baseline: every key, without pooling.
  scan.exhaustive = true;
  AttentionState exhaustive(kResultCount, &no_ids);
  answer.exact_seconds = Ask(index, scan, exhaustive, ignored);

  const std::vector<double> truth = Pool(similarities, rows, keys, temperature);
  const std::vector<float> value = state.PooledValue();
  answer.exact = !stats.pooled_error;
  answer.error = RelativeDistance(value, truth);
  if (stats.pooled_error) {
    const PooledPart part = {
        *stats.pooled_error,
        LogAdd(stats.log_variance, stats.log_drawn_variance)};
    answer.stated = RelativeError(
        PooledDeviation({&part, 1}, state.partition(), value), value);
  }
  std::vector<RowIndex> best;
  for (const Candidate& candidate : state.top().Sorted()) {
    best.push_back(candidate.row);
  }
  answer.truncated_error =
      RelativeDistance(Pool(similarities, best, keys, temperature), truth);
  return answer;
}

absl::Status Run(const std::string& name, const std::string& directory,
                 std::int64_t query_count) {
  const absl::StatusOr<DataSet> data = LoadDataSet(name, directory);
  if (!data.ok()) return data.status();
  const MatrixView keys = data->key_view();
  std::vector<std::span<const float>> views;
  for (std::int64_t r = 0; r < keys.row_count; ++r) {
    views.push_back(keys.Row(r));
  }
  absl::StatusOr<std::unique_ptr<IvfIndex>> index =
      IvfIndex::Build(views, data->dim, ScoreKind::kDot, {});
  if (!index.ok()) return index.status();

  std::vector<std::unique_ptr<Bitmap>> masks;
  std::vector<std::vector<RowIndex>> rows;
  std::mt19937_64 random(7);
  for (const Filter& filter : kFilters) {
    masks.push_back(nullptr);
    if (filter.share < 1) {
      masks.back() = std::make_unique<Bitmap>(keys.row_count);
    }
    rows.emplace_back();
    for (std::int64_t r = 0; r < keys.row_count; ++r) {
      if (filter.share < 1) {
        if (std::uniform_real_distribution<double>()(random) >= filter.share) {
          continue;
        }
        masks.back()->Set(r);
      }
      rows.back().push_back(static_cast<RowIndex>(r));
    }
  }
  query_count = std::min(query_count, data->queries.row_count());
  // [filter][temperature]
  std::vector<Answer> answers[std::size(kFilters)][kTemperatures.size()];
  std::vector<double> similarities;
  for (std::int64_t q = 0; q < query_count; ++q) {
    const std::span<const float> query =
        data->queries.Row(q * data->queries.row_count() / query_count);
    ScoreAll(query, keys, similarities);
    for (std::size_t f = 0; f < masks.size(); ++f) {
      for (std::size_t t = 0; t < kTemperatures.size(); ++t) {
        answers[f][t].push_back(AnswerOf(**index, keys, query, masks[f].get(),
                                         kTemperatures[t], similarities,
                                         rows[f]));
      }
    }
  }
  for (std::size_t f = 0; f < masks.size(); ++f) {
    for (std::size_t t = 0; t < kTemperatures.size(); ++t) {
      Report(name, kFilters[f], kTemperatures[t], answers[f][t]);
    }
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  std::string directory = kDataDirectory;
  std::int64_t query_count = 2000;
  std::printf(
      "| keys | filter | temperature | error, median | p95 | worst | stated | "
      "covered | best 100 alone | exact | us | time / exact scan | mass alone "
      "/ "
      "exact scan |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--data" && i + 1 < argc) {
      directory = argv[++i];
    } else if (argument == "--queries" && i + 1 < argc) {
      if (!absl::SimpleAtoi(argv[++i], &query_count) || query_count < 20) {
        std::cerr << "--queries: want a number, at least 20\n";
        return 1;
      }
    } else if (const absl::Status status =
                   Run(argument, directory, query_count);
               !status.ok()) {
      std::cerr << status << "\n";
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) { return attendant::Main(argc, argv); }
