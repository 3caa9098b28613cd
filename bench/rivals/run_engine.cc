#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>
#include <unordered_set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/rivals/engine.h"
#include "core/kernels/kernels.h"

namespace attendant {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

double temperature = 0.1;

constexpr std::int64_t kBatch = 64;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double ProcessorSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec) * 1e-9;
}

// Returns the resident anonymous and shared memory, in bytes.
std::int64_t ResidentBytes() {
  malloc_trim(0);
  std::ifstream file("/proc/self/status");
  std::int64_t kibibytes = 0;
  for (std::string word; file >> word;) {
    if (word != "RssAnon:" && word != "RssShmem:") continue;
    std::int64_t part = 0;
    file >> part;
    kibibytes += part;
  }
  return kibibytes * 1024;
}

double Percentile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  return sorted[std::lround(share * static_cast<double>(sorted.size() - 1))];
}

class Session {
 public:
  Session(Engine& engine, DataSet data, GroundTruth truth,
          std::string directory, std::string engine_name,
          std::int64_t query_count)
      : engine_(engine),
        data_(std::move(data)),
        truth_(std::move(truth)),
        directory_(std::move(directory)),
        engine_name_(std::move(engine_name)),
        query_count_(std::min(query_count, data_.queries.row_count())),
        answers_(static_cast<std::size_t>(query_count_)) {}

  Json Run(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    if (command == "build") {
      std::string configuration;
      std::getline(words >> std::ws, configuration);
      return Build(configuration);
    }
    if (command == "tune") {
      double recall = 0;
      words >> recall;
      return Tune(recall);
    }
    if (command == "version") return {{"version", engine_.version()}};
    std::string mode;
    if (command == "batch" || command == "check-batch") words >> mode;
    std::int64_t effort = 0;
    double seconds = 0;
    words >> effort >> seconds;
    if (command == "check") return Check(effort);
    if (command == "check-batch") return CheckBatch(mode, effort);
    if (command == "single") return Single(effort, seconds);
    if (command == "batch") return Batch(mode, effort, seconds);
    return {{"error", absl::StrCat("no such command: ", line)}};
  }

 private:
  Json Build(const std::string& configuration) {
    const std::int64_t before = ResidentBytes();
    const absl::StatusOr<BuildReport> report = engine_.Build(
        configuration, data_,
        absl::StrCat(directory_, "/", data_.name, ".", engine_name_));
    if (!report.ok()) return {{"error", report.status().ToString()}};
    std::vector<std::string> modes;
    for (const BatchMode& mode : engine_.batch_modes()) {
      modes.push_back(mode.name);
    }
    return {{"build_seconds", report->seconds},
            {"resident_bytes", ResidentBytes() - before},
            {"keys", data_.keys.row_count()},
            {"dim", data_.dim},
            {"modes", modes}};
  }

  void AnswerAll(std::int64_t effort) {
    engine_.Prepare(effort, 1);
    std::atomic<std::int64_t> next = 0;
    const auto work = [&] {
      for (std::int64_t q = next++; q < query_count_; q = next++) {
        engine_.Search(data_.queries.Row(q).data(), 1, &answers_[q]);
      }
    };
    std::thread second(work);
    work();
    second.join();
  }

  // Returns the mean share of the exact rows that the first `count` answers
  // hold.
  double Recall(std::int64_t count) const {
    std::int64_t found = 0;
    for (std::int64_t q = 0; q < count; ++q) {
      const auto exact = truth_.neighbours.Row(q);
      const std::unordered_set<std::int32_t> wanted(exact.begin(), exact.end());
      const Answer& answer = answers_[q];
      for (const std::int32_t row : answer.rows) {
        found += static_cast<std::int64_t>(wanted.count(row));
      }
    }
    return static_cast<double>(found) /
           static_cast<double>(count * kTruthCount);
  }

  double RecallAt(std::int64_t effort) {
    AnswerAll(effort);
    return Recall(query_count_);
  }

  Json Tune(double recall) {
    const auto [least, most] = engine_.efforts();
    std::int64_t below = least - 1;  // does not reach it
    std::int64_t at = least;
    double reached = RecallAt(at);
    while (reached < recall && at < most) {
      below = at;
      at = std::min(2 * at, most);
      reached = RecallAt(at);
    }
    if (reached < recall) {
      return {{"reached", false}, {"effort", at}, {"recall", reached}};
    }
    while (at - below > std::max<std::int64_t>(1, at / 64)) {
      const std::int64_t middle = (below + at) / 2;
      const double here = RecallAt(middle);
      if (here >= recall) {
        at = middle;
        reached = here;
      } else {
        below = middle;
      }
    }
    return {{"reached", true}, {"effort", at}, {"recall", reached}};
  }

  Json Check(std::int64_t effort) {
    const double recall = RecallAt(effort);
    const auto t = static_cast<std::size_t>(
        std::ranges::find(kTemperatures, temperature) - kTemperatures.begin());
    std::vector<double> errors;
    std::vector<double> stated;
    std::int64_t covered = 0;
    for (std::int64_t q = 0; q < query_count_; ++q) {
      const Answer& answer = answers_[q];
      const double truth = truth_.log_partitions.Row(q)[t];
      const double error = std::abs(answer.log_partition - truth);
      errors.push_back(error);
      if (std::isnan(answer.stated_error)) continue;
      stated.push_back(answer.stated_error);
      // 1e-5 covers the rounding to floats in an exact answer.
      if (std::abs(std::expm1(truth - answer.log_partition)) <=
          1.96 * answer.stated_error + 1e-5) {
        ++covered;
      }
    }
    std::ranges::sort(errors);
    std::ranges::sort(stated);
    Json result = {{"recall", recall},
                   {"mass_error_median", Percentile(errors, .5)},
                   {"mass_error_95", Percentile(errors, .95)},
                   {"mass_error_99", Percentile(errors, .99)},
                   {"mass_error_most", errors.back()},
                   {"mass_stated", static_cast<double>(stated.size()) /
                                       static_cast<double>(query_count_)}};
    if (!stated.empty()) {
      result["mass_covered"] =
          static_cast<double>(covered) / static_cast<double>(stated.size());
      result["stated_error_median"] = Percentile(stated, .5);
    }
    return result;
  }

  Json Single(std::int64_t effort, double seconds) {
    engine_.Prepare(effort, 1);
    for (std::int64_t q = 0; q < std::min<std::int64_t>(query_count_, 50);
         ++q) {
      engine_.Search(data_.queries.Row(q).data(), 1, &answers_[q]);
    }
    std::vector<double> latencies;
    latencies.reserve(1 << 20);
    const double processor_start = ProcessorSeconds();
    const Clock::time_point start = Clock::now();
    Clock::time_point before = start;
    for (std::int64_t q = 0; SecondsSince(start) < seconds; ++q) {
      const std::int64_t query = q % query_count_;
      engine_.Search(data_.queries.Row(query).data(), 1, &answers_[query]);
      const Clock::time_point now = Clock::now();
      latencies.push_back(std::chrono::duration<double>(now - before).count());
      before = now;
    }
    const double elapsed = SecondsSince(start);
    const double processor = ProcessorSeconds() - processor_start;
    const auto count = static_cast<double>(latencies.size());
    std::ranges::sort(latencies);
    return {{"queries_per_second", count / elapsed},
            {"queries_per_processor_second", count / processor},
            {"p50_ms", 1e3 * Percentile(latencies, .5)},
            {"p99_ms", 1e3 * Percentile(latencies, .99)}};
  }

  // Returns the mode of that name, adapted to the number of queries.
  std::optional<BatchMode> ModeOf(const std::string& name) const {
    for (BatchMode mode : engine_.batch_modes()) {
      if (mode.name != name) continue;
      mode.at_a_time = std::min(mode.at_a_time, query_count_ / kBatch * kBatch);
      return mode;
    }
    return std::nullopt;
  }

  // Each thread takes batch after batch while `goes_on`, called with the number
  // taken before, returns true. With `kept`, stores the answers at their
  // queries' places. Returns how many queries were answered.
  template <typename GoesOn>
  std::int64_t AnswerBatches(const BatchMode& mode, GoesOn goes_on,
                             Answer* kept) {
    const std::int64_t size = std::max(kBatch, mode.at_a_time);
    const std::int64_t batch_count = query_count_ / size;
    std::atomic<std::int64_t> next = 0;
    std::atomic<std::int64_t> done = 0;
    const auto work = [&] {
      std::vector<Answer> own(static_cast<std::size_t>(size));
      for (std::int64_t taken = next++; goes_on(taken); taken = next++) {
        const std::int64_t first = taken % batch_count * size;
        Answer* const answers = kept == nullptr ? own.data() : kept + first;
        for (std::int64_t q = 0; q < size; q += mode.at_a_time) {
          engine_.Search(data_.queries.Row(first + q).data(), mode.at_a_time,
                         answers + q);
        }
        done += size;
      }
    };
    std::vector<std::thread> threads;
    for (int t = 1; t < mode.caller_threads; ++t) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    return done;
  }

  // Checks as many queries as fill whole batches.
  Json CheckBatch(const std::string& name, std::int64_t effort) {
    const std::optional<BatchMode> mode = ModeOf(name);
    if (!mode) return {{"error", absl::StrCat("no batch mode ", name)}};
    engine_.Prepare(effort, mode->engine_threads);
    const std::int64_t batch_count =
        query_count_ / std::max(kBatch, mode->at_a_time);
    const std::int64_t count = AnswerBatches(
        *mode, [&](std::int64_t taken) { return taken < batch_count; },
        answers_.data());
    return {{"recall", Recall(count)}};
  }

  Json Batch(const std::string& name, std::int64_t effort, double seconds) {
    const std::optional<BatchMode> mode = ModeOf(name);
    if (!mode) return {{"error", absl::StrCat("no batch mode ", name)}};
    engine_.Prepare(effort, mode->engine_threads);
    const double processor_start = ProcessorSeconds();
    const Clock::time_point start = Clock::now();
    const auto count = static_cast<double>(AnswerBatches(
        *mode, [&](std::int64_t) { return SecondsSince(start) < seconds; },
        nullptr));
    const double elapsed = SecondsSince(start);
    const double processor = ProcessorSeconds() - processor_start;
    return {{"queries_per_second", count / elapsed},
            // The rate if both cores were entirely available.
            {"queries_per_processor_second", 2 * count / processor}};
  }

  Engine& engine_;
  const DataSet data_;
  const GroundTruth truth_;
  const std::string directory_;
  const std::string engine_name_;
  const std::int64_t query_count_;
  std::vector<Answer> answers_;
};

}  // namespace

double Temperature() { return temperature; }

void WeighRows(const float* logits, std::int64_t count, Answer& answer) {
  const Kernels& kernels = ActiveKernels();
  const float greatest = kernels.Max(logits, count);
  const double sum =
      kernels.SumExps(logits, count, greatest, answer.weights.data()).sum;
  const auto scale = static_cast<float>(1 / sum);
  for (std::int64_t i = 0; i < count; ++i) {
    answer.weights[i] *= scale;
  }
  answer.log_partition = greatest + std::log(sum);
}

int RunEngine(int argc, char** argv, const std::string& engine_name,
              Engine& engine) {
  std::string directory = kDataDirectory;
  std::string set;
  std::int64_t query_count = 1000;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    const std::string value = argv[i + 1];
    bool known = true;
    if (flag == "--data") {
      directory = value;
    } else if (flag == "--set") {
      set = value;
    } else if (flag == "--queries") {
      known = absl::SimpleAtoi(value, &query_count) && query_count >= kBatch;
    } else if (flag == "--temperature") {
      known = absl::SimpleAtod(value, &temperature);
    } else {
      known = false;
    }
    if (!known) {
      std::cerr << flag << " " << value << ": not understood\n";
      return 1;
    }
  }
  absl::StatusOr<DataSet> data = LoadDataSet(set, directory);
  if (!data.ok()) {
    std::cerr << data.status() << "\n";
    return 1;
  }
  absl::StatusOr<GroundTruth> truth = LoadGroundTruth(*data, directory);
  if (!truth.ok()) {
    std::cerr << truth.status() << "\n";
    return 1;
  }
  Session session(engine, *std::move(data), *std::move(truth), directory,
                  engine_name, query_count);
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << session.Run(line) << std::endl;
  }
  return 0;
}

}  // namespace attendant
