#include "bench/data/ground_truth.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <queue>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/attention/softmax/score.h"
#include "core/base/status.h"

namespace attendant {
namespace {

constexpr std::int64_t kBlockKeys = 1024;
constexpr std::int64_t kBlockQueries = 250;

struct Best {
  double similarity = 0;
  std::int32_t row = 0;
  // Puts the worst on top of a priority queue.
  bool operator<(const Best& other) const {
    return similarity != other.similarity ? similarity > other.similarity
                                          : row < other.row;
  }
};

struct Tables {
  std::vector<std::int32_t> neighbours;
  std::vector<double> similarities;
  std::vector<double> log_partitions;
};

// State of one query's scan.
struct Scan {
  double shift = 0;  // no similarity is greater
  std::priority_queue<Best> best;
  std::array<double, kTemperatures.size()> sums = {};

  void Add(const double* similarities, std::int64_t n, std::int32_t row) {
    for (std::int64_t i = 0; i < n; ++i) {
      const Best key = {similarities[i], row + static_cast<std::int32_t>(i)};
      if (best.size() < kTruthCount) {
        best.push(key);
      } else if (key < best.top()) {
        best.pop();
        best.push(key);
      }
      // The temperatures are 0.2 divided by 1, 2, 4 and 10, so that one
      // exponential serves all.
      const double e = std::exp((similarities[i] - shift) / kTemperatures[0]);
      const double e2 = e * e;
      const double e4 = e2 * e2;
      sums[0] += e;
      sums[1] += e2;
      sums[2] += e4;
      sums[3] += e4 * e4 * e2;
    }
  }
};

void Compute(const DataSet& data, double greatest_norm, std::int64_t begin,
             std::int64_t end, Tables& tables) {
  const auto dim = static_cast<blasint>(data.dim);
  const float* query_floats = data.queries.data();
  const std::vector<double> queries(query_floats + begin * dim,
                                    query_floats + end * dim);
  std::vector<Scan> scans(static_cast<std::size_t>(end - begin));
  for (std::int64_t q = begin; q < end; ++q) {
    scans[q - begin].shift = Norm(data.queries.Row(q)) * greatest_norm;
  }
  std::vector<double> products(kBlockQueries * kBlockKeys);
  for (std::int64_t row = 0; row < data.keys.row_count(); row += kBlockKeys) {
    const auto n = std::min(kBlockKeys, data.keys.row_count() - row);
    const std::vector<double> keys(data.keys.data() + row * dim,
                                   data.keys.data() + (row + n) * dim);
    for (std::int64_t q = 0; q < end - begin; q += kBlockQueries) {
      const auto m = std::min(kBlockQueries, end - begin - q);
      cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans,
                  static_cast<blasint>(m), static_cast<blasint>(n), dim, 1,
                  queries.data() + q * dim, dim, keys.data(), dim, 0,
                  products.data(), kBlockKeys);
      for (std::int64_t i = 0; i < m; ++i) {
        scans[q + i].Add(products.data() + i * kBlockKeys, n,
                         static_cast<std::int32_t>(row));
      }
    }
  }
  for (std::int64_t q = begin; q < end; ++q) {
    Scan& scan = scans[q - begin];
    for (std::int64_t i = kTruthCount - 1; i >= 0; --i) {
      const auto at = static_cast<std::size_t>(q * kTruthCount + i);
      tables.neighbours[at] = scan.best.top().row;
      tables.similarities[at] = scan.best.top().similarity;
      scan.best.pop();
    }
    for (std::size_t t = 0; t < kTemperatures.size(); ++t) {
      tables.log_partitions[static_cast<std::size_t>(q) * kTemperatures.size() +
                            t] =
          std::log(scan.sums[t]) + scan.shift / kTemperatures[t];
    }
  }
}

Tables ComputeAll(const DataSet& data) {
  const std::int64_t query_count = data.queries.row_count();
  Tables tables;
  tables.neighbours.resize(static_cast<std::size_t>(query_count) * kTruthCount);
  tables.similarities.resize(tables.neighbours.size());
  tables.log_partitions.resize(static_cast<std::size_t>(query_count) *
                               kTemperatures.size());
  double greatest_norm = 0;
  for (std::int64_t row = 0; row < data.keys.row_count(); ++row) {
    greatest_norm = std::max(greatest_norm, Norm(data.keys.Row(row)));
  }
  openblas_set_num_threads(1);
  const std::int64_t thread_count =
      std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < thread_count; ++t) {
    threads.emplace_back([&, t] {
      Compute(data, greatest_norm, query_count * t / thread_count,
              query_count * (t + 1) / thread_count, tables);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return tables;
}

}  // namespace

absl::StatusOr<GroundTruth> LoadGroundTruth(const DataSet& data,
                                            const std::string& directory) {
  const std::string base = absl::StrCat(directory, "/", data.name);
  const std::string neighbours_path = base + ".neighbours";
  const std::string similarities_path = base + ".similarities";
  const std::string log_partitions_path = base + ".log_partitions";
  if (!std::filesystem::exists(neighbours_path) ||
      !std::filesystem::exists(similarities_path) ||
      !std::filesystem::exists(log_partitions_path)) {
    if (data.keys.row_count() < kTruthCount) {
      return absl::InvalidArgumentError(
          absl::StrCat(data.name, " has fewer than ", kTruthCount, " keys"));
    }
    const Tables tables = ComputeAll(data);
    ATTENDANT_RETURN_IF_ERROR(MatrixFile<std::int32_t>::Write(
        neighbours_path, kTruthCount, tables.neighbours));
    ATTENDANT_RETURN_IF_ERROR(MatrixFile<double>::Write(
        similarities_path, kTruthCount, tables.similarities));
    ATTENDANT_RETURN_IF_ERROR(MatrixFile<double>::Write(
        log_partitions_path, kTemperatures.size(), tables.log_partitions));
  }
  GroundTruth truth;
  ATTENDANT_ASSIGN_OR_RETURN(truth.neighbours,
                             MatrixFile<std::int32_t>::Open(neighbours_path));
  ATTENDANT_ASSIGN_OR_RETURN(truth.similarities,
                             MatrixFile<double>::Open(similarities_path));
  ATTENDANT_ASSIGN_OR_RETURN(truth.log_partitions,
                             MatrixFile<double>::Open(log_partitions_path));
  return truth;
}

}  // namespace attendant
