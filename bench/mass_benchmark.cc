// What scans say of the mass of what they did not score, against exact sums in
// double precision:
//   mass_benchmark [--data DIRECTORY] [--queries COUNT] SET...
// One row for each data set, filter, temperature and way to ask. See
// docs/mass.md.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "bench/data/data_set.h"
#include "bench/data/ground_truth.h"
#include "core/base/bitmap.h"
#include "core/catalog/mass.h"
#include "core/shortlist/ivf_index.h"

namespace attendant {
namespace {

constexpr std::int64_t kResultCount = 100;
// The interval score of Gneiting and Raftery (2007) for 95 %.
constexpr double kAlpha = 0.05;

class NoIds : public IdResolver {
 public:
  absl::string_view IdOf(std::int32_t, RowIndex) const override { return {}; }
};

struct Filter {
  const char* name;
  double share;  // of rows that stay
};
constexpr Filter kFilters[] = {
    {"all", 1}, {"0.1", 0.1}, {"0.001", 0.001}, {"20 % deleted", 0.8}};

struct Way {
  const char* name;
  ScanGoals goals;
};
const Way kWays[] = {{"unstated", {}},
                     {"0.02", {.mass_precision = 0.02}},
                     {"bound", {.certified = true}}};

// What was said of one query's log partition, less the truth.
struct Answer {
  MassMethod method = MassMethod::kUnknown;
  double error = 0;
  double lower = 0;
  double upper = 0;
  double seconds = 0;
  double scored = 0;
};

double Percentile(std::vector<double> numbers, double share) {
  const auto nth = static_cast<std::ptrdiff_t>(
      share * static_cast<double>(numbers.size() - 1));
  std::nth_element(numbers.begin(), numbers.begin() + nth, numbers.end());
  return numbers[static_cast<std::size_t>(nth)];
}

void Report(const std::string& set, const Filter& filter, double temperature,
            const Way& way, const std::vector<Answer>& answers) {
  std::vector<double> errors;
  std::vector<double> widths;
  std::vector<double> seconds;
  double scored = 0;
  double held = 0;
  double score = 0;
  std::int64_t exact = 0;
  std::int64_t unknown = 0;
  for (const Answer& answer : answers) {
    seconds.push_back(answer.seconds);
    scored += answer.scored;
    if (answer.method == MassMethod::kExact) ++exact;
    if (answer.method == MassMethod::kUnknown) {
      ++unknown;
      continue;
    }
    errors.push_back(std::abs(answer.error));
    widths.push_back(answer.upper - answer.lower);
    // Logits are floats.
    const double rounding = 0x1p-20 / temperature;
    if (answer.lower <= rounding && -rounding <= answer.upper) ++held;
    score += answer.upper - answer.lower +
             2 / kAlpha * std::max(0.0, answer.lower) +
             2 / kAlpha * std::max(0.0, -answer.upper);
  }
  std::printf("| %s | %s | %g | %s | ", set.c_str(), filter.name, temperature,
              way.name);
  const auto count = static_cast<double>(errors.size());
  if (errors.empty()) {
    std::printf("unknown |||||||");
  } else {
    const double p95 = Percentile(errors, 0.95);
    const double width = Percentile(widths, 0.5);
    std::printf("%.5f | %.5f | %.4f | %.5f | ", p95,
                *std::max_element(errors.begin(), errors.end()), held / count,
                width);
    if (p95 > 0) {
      std::printf("%.2f", width / p95);
    }
    std::printf(
        " | %.4f | %.0f %% | ", score / count,
        100 * static_cast<double>(exact) / static_cast<double>(answers.size()));
  }
  std::printf(
      "%.0f %% | %.0f | %.1f |\n",
      100 * static_cast<double>(unknown) / static_cast<double>(answers.size()),
      scored / static_cast<double>(answers.size()),
      1e6 * Percentile(seconds, 0.5));
  std::fflush(stdout);
}

// query . key for all keys, in doubles.
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
    double sum = 0;
    for (const double lane : sums) sum += lane;
    for (; d < key.size(); ++d) sum += double{query[d]} * key[d];
    similarities[static_cast<std::size_t>(r)] = sum;
  }
}

double LogPartitionOf(const std::vector<double>& similarities,
                      const Bitmap* allowed, double temperature) {
  double max = -std::numeric_limits<double>::infinity();
  for (std::size_t r = 0; r < similarities.size(); ++r) {
    if (allowed != nullptr && !allowed->Test(static_cast<std::int64_t>(r))) {
      continue;
    }
    max = std::max(max, similarities[r]);
  }
  double sum = 0;
  for (std::size_t r = 0; r < similarities.size(); ++r) {
    if (allowed != nullptr && !allowed->Test(static_cast<std::int64_t>(r))) {
      continue;
    }
    sum += std::exp((similarities[r] - max) / temperature);
  }
  return max / temperature + std::log(sum);
}

Answer Ask(const KeyIndex& index, std::span<const float> query,
           const Bitmap* allowed, RowIndex row_end, double temperature,
           const ScanGoals& goals, double truth) {
  const NoIds no_ids;
  const ScanQuery scan = {.query = query,
                          .output_weight = {},
                          .logit_factor = 1 / temperature,
                          .row_end = row_end,
                          .allowed = allowed,
                          .goals = goals};
  AttentionState state(kResultCount, &no_ids);
  const auto start = std::chrono::steady_clock::now();
  const absl::StatusOr<ScanStats> stats = index.Scan(scan, state);
  const std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start;
  if (!stats.ok()) {
    std::cerr << stats.status() << "\n";
    std::exit(1);
  }
  HeadScan head;
  head.partition = state.partition();
  head.complete = stats->complete;
  head.exact = stats->exact;
  head.knows_mass = stats->knows_mass;
  head.log_variance = stats->log_variance;
  head.certified = stats->certified;
  head.log_lower = stats->log_lower;
  head.log_upper = stats->log_upper;
  const PartitionError error = ErrorOf(head, goals.certified);
  const double off = state.partition().LogPartition().value_or(truth) - truth;
  return {.method = error.method,
          .error = off,
          .lower = off + error.below,
          .upper = off + error.above,
          .seconds = elapsed.count(),
          .scored = static_cast<double>(stats->scored_count)};
}

absl::Status Run(const std::string& name, const std::string& directory,
                 std::int64_t query_count) {
  const absl::StatusOr<DataSet> data = LoadDataSet(name, directory);
  if (!data.ok()) return data.status();
  const MatrixView keys = data->key_view();
  std::vector<std::span<const float>> rows;
  for (std::int64_t r = 0; r < keys.row_count; ++r) rows.push_back(keys.Row(r));
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<std::unique_ptr<IvfIndex>> index =
      IvfIndex::Build(rows, data->dim, ScoreKind::kDot, {});
  if (!index.ok()) return index.status();
  const std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start;
  std::cerr << name << ": " << keys.row_count << " keys, "
            << (*index)->list_count() << " lists, " << (*index)->probe_count()
            << " visited, built in " << elapsed.count() << " s" << std::endl;

  std::vector<std::unique_ptr<Bitmap>> masks;
  std::mt19937_64 random(7);
  for (const Filter& filter : kFilters) {
    masks.push_back(nullptr);
    if (filter.share == 1) continue;
    masks.back() = std::make_unique<Bitmap>(keys.row_count);
    for (std::int64_t r = 0; r < keys.row_count; ++r) {
      if (std::uniform_real_distribution<double>()(random) < filter.share) {
        masks.back()->Set(r);
      }
    }
  }
  query_count = std::min(query_count, data->queries.row_count());
  // [filter][temperature][way]
  std::vector<Answer> answers[std::size(kFilters)][kTemperatures.size()]
                             [std::size(kWays)];
  std::vector<double> similarities;
  for (std::int64_t q = 0; q < query_count; ++q) {
    const std::span<const float> query = data->queries.Row(q);
    ScoreAll(query, keys, similarities);
    for (std::size_t f = 0; f < masks.size(); ++f) {
      for (std::size_t t = 0; t < kTemperatures.size(); ++t) {
        const double truth =
            LogPartitionOf(similarities, masks[f].get(), kTemperatures[t]);
        for (std::size_t w = 0; w < std::size(kWays); ++w) {
          answers[f][t][w].push_back(Ask(**index, query, masks[f].get(),
                                         static_cast<RowIndex>(keys.row_count),
                                         kTemperatures[t], kWays[w].goals,
                                         truth));
        }
      }
    }
  }
  for (std::size_t f = 0; f < masks.size(); ++f) {
    for (std::size_t w = 0; w < std::size(kWays); ++w) {
      for (std::size_t t = 0; t < kTemperatures.size(); ++t) {
        Report(name, kFilters[f], kTemperatures[t], kWays[w], answers[f][t][w]);
      }
    }
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  std::string directory = kDataDirectory;
  std::int64_t query_count = 2000;
  std::printf(
      "| keys | filter | temperature | asked | error p95 | worst | covered | "
      "median width | width / p95 | interval score | exact | unknown | scored "
      "| us |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
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
