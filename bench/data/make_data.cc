// Makes data sets and their exact answers before a benchmark needs them:
//   make_data [--data DIRECTORY] NAME...
#include <iostream>
#include <string>

#include "bench/data/data_set.h"
#include "bench/data/ground_truth.h"

namespace attendant {
namespace {

int Main(int argc, char** argv) {
  std::string directory = kDataDirectory;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--data" && i + 1 < argc) {
      directory = argv[++i];
      continue;
    }
    const absl::StatusOr<DataSet> data = LoadDataSet(argument, directory);
    if (!data.ok()) {
      std::cerr << data.status() << "\n";
      return 1;
    }
    const absl::StatusOr<GroundTruth> truth = LoadGroundTruth(*data, directory);
    if (!truth.ok()) {
      std::cerr << truth.status() << "\n";
      return 1;
    }
    double best = 0;
    double worst = 0;
    for (std::int64_t q = 0; q < data->queries.row_count(); ++q) {
      best += truth->similarities.Row(q)[0];
      worst += truth->similarities.Row(q)[kTruthCount - 1];
    }
    const auto count = static_cast<double>(data->queries.row_count());
    std::cout << argument << ": " << data->keys.row_count() << " keys, "
              << data->queries.row_count() << " queries of " << data->dim
              << " dimensions; mean similarity of the best key " << best / count
              << ", of the " << kTruthCount << "th " << worst / count
              << "; log partitions of the first query";
    for (const double log : truth->log_partitions.Row(0)) {
      std::cout << " " << log;
    }
    std::cout << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) { return attendant::Main(argc, argv); }
