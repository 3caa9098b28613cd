// Memory of a catalog at rest, by kind of index: the process's resident memory
// that is not file-backed (RssAnon and RssShmem), in excess of that of a server
// without catalogs, including RocksDB's buffers. Items have a short id and a
// key, but neither value nor attributes. Also reports recall@100 and the time
// of one query on one core, with its pages in memory.
//
//   memory_benchmark [--data DIRECTORY] [SET, default mixture-1m] [KIND...]
//
// KIND is flat, ivf, hnsw, lsh or pq, with "-disk" for keys on disk; the
// default is flat, ivf, ivf-disk, pq and pq-disk. One process fills each
// catalog and a second one measures it, as after a restart.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "bench/data/data_set.h"
#include "bench/data/ground_truth.h"
#include "core/catalog/live/catalog_set.h"
#include "core/catalog/query/attend.h"

namespace attendant {
namespace {

constexpr std::int64_t kQueryCount = 500;
constexpr double kTemperature = 0.05;

struct Resident {
  double anonymous = 0;  // and shared memory
  double file = 0;
};

Resident ResidentBytes() {
  std::ifstream file("/proc/self/status");
  Resident resident;
  for (std::string word; file >> word;) {
    if (word != "RssAnon:" && word != "RssShmem:" && word != "RssFile:") {
      continue;
    }
    double kibibytes = 0;
    file >> kibibytes;
    (word == "RssFile:" ? resident.file : resident.anonymous) +=
        1024 * kibibytes;
  }
  return resident;
}

template <typename T>
T Must(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
  std::exit(1);
}

IndexKind KindOf(absl::string_view name) {
  absl::ConsumeSuffix(&name, "-disk");
  for (const IndexKind kind :
       {IndexKind::kFlat, IndexKind::kIvf, IndexKind::kHnsw, IndexKind::kLsh}) {
    if (absl::AsciiStrToLower(Name(kind)) == name) return kind;
  }
  return IndexKind::kPq;
}

CatalogSchema SchemaOf(const std::string& kind, std::int64_t dim) {
  CatalogSchema schema;
  KeyFieldSchema& field = schema.key_fields.emplace_back();
  field.name = "vec";
  field.dim = dim;
  field.index_kind = KindOf(kind);
  field.temperature = kTemperature;
  field.keys_on_disk = absl::EndsWith(kind, "-disk");
  return schema;
}

CatalogSet::Options Options() {
  CatalogSet::Options options;
  // One index over all items.
  options.catalog.settle_time = absl::Hours(1);
  return options;
}

void Fill(const std::string& kind, const DataSet& data,
          const std::string& directory) {
  const auto catalogs = Must(CatalogSet::Open(directory, Options()));
  const auto catalog =
      Must(catalogs->Create("items", SchemaOf(kind, data.dim), {})).catalog;
  std::vector<Item> items;
  for (std::int64_t row = 0; row < data.keys.row_count(); ++row) {
    const auto key = data.keys.Row(row);
    Item& item = items.emplace_back();
    item.id = absl::StrCat("i", row);
    item.keys.emplace_back(key.begin(), key.end());
    if (items.size() < 1000 && row + 1 < data.keys.row_count()) continue;
    Must(catalog->Import(items));
    items.clear();
  }
}

struct Asked {
  double recall = 0;
  double microseconds = 0;
};

Asked Ask(const LiveCatalog& catalog, const DataSet& data,
          const GroundTruth& truth, std::optional<double> recall) {
  const auto snapshot = catalog.snapshot();
  std::int64_t found = 0;
  std::vector<double> microseconds;
  // The first pass warms up pages and caches and does not count.
  for (const bool counts : {false, true}) {
    for (std::int64_t q = 0; q < kQueryCount; ++q) {
      const auto vector = data.queries.Row(q);
      AttendQuery query;
      query.query = std::vector<float>(vector.begin(), vector.end());
      query.result_count = kTruthCount;
      query.shortlist_count = kTruthCount;
      query.omit_pooled_value = true;
      query.recall = recall;
      const auto start = std::chrono::steady_clock::now();
      const AttendAnswer answer = Must(Attend(*snapshot, query, Interrupt()));
      microseconds.push_back(std::chrono::duration<double, std::micro>(
                                 std::chrono::steady_clock::now() - start)
                                 .count());
      if (!counts) continue;
      const auto best = truth.neighbours.Row(q);
      for (const AttendedItem& item : answer.items) {
        std::int32_t row = -1;
        if (!absl::SimpleAtoi(
                snapshot->IdOf(item.address.segment, item.address.row)
                    .substr(1),
                &row)) {
          std::abort();
        }
        found += std::ranges::find(best, row) != best.end();
      }
    }
    if (!counts) microseconds.clear();
  }
  std::nth_element(microseconds.begin(), microseconds.begin() + kQueryCount / 2,
                   microseconds.end());
  return {static_cast<double>(found) / (kQueryCount * kTruthCount),
          microseconds[kQueryCount / 2]};
}

void Measure(const std::string& kind, const DataSet& data,
             const std::string& data_directory, const std::string& directory) {
  const GroundTruth truth = Must(LoadGroundTruth(data, data_directory));
  // The baseline is measured without catalogs; their own share is the
  // difference.
  const std::string empty = directory + ".empty";
  const double before = [&] {
    const auto catalogs = Must(CatalogSet::Open(empty, Options()));
    return ResidentBytes().anonymous;
  }();
  const auto catalogs = Must(CatalogSet::Open(directory, Options()));
  const auto catalog = Must(catalogs->Get("items"));
  const auto start = std::chrono::steady_clock::now();
  catalog->AwaitIndexes();
  const double build_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  if (!catalog->merge_status().ok()) Must<int>(catalog->merge_status());
  // Freed memory returns to the system shortly afterwards.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const double anonymous = ResidentBytes().anonymous - before;
  const auto count = static_cast<double>(data.keys.row_count());
  const double float_bytes = static_cast<double>(data.dim) * sizeof(float);
  const Asked asked = Ask(*catalog, data, truth, std::nullopt);
  const Asked precise = Ask(*catalog, data, truth, 0.95);
  const IndexState state = catalog->index_states()[0];
  std::printf(
      "| %s | %.0f | %.3f | %.0f | %.0f | %.0f | %.3f, %.0f | %.3f, %.0f | "
      "%.0f |\n",
      kind.c_str(), anonymous / count, anonymous / count / float_bytes,
      static_cast<double>(state.memory_bytes) / count,
      static_cast<double>(catalog->memory_bytes()) / count,
      static_cast<double>(state.disk_bytes) / count, asked.recall,
      asked.microseconds, precise.recall, precise.microseconds, build_seconds);
  std::fflush(stdout);
}

// Runs `work` in a child process; returns false if it fails.
template <typename Work>
bool Apart(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    std::_Exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
}

int Run(std::vector<std::string> arguments) {
  std::string data_directory = kDataDirectory;
  if (arguments.size() >= 2 && arguments[0] == "--data") {
    data_directory = arguments[1];
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  std::string set = "mixture-1m";
  if (!arguments.empty()) {
    set = arguments[0];
    arguments.erase(arguments.begin());
  }
  if (arguments.empty()) {
    arguments = {"flat", "ivf", "ivf-disk", "pq", "pq-disk"};
  }
  const DataSet data = Must(LoadDataSet(set, data_directory));
  std::printf(
      "| %s | resident bytes an item | of its floats | the index | and rows | "
      "on disk | as built: recall, us | 0.95: recall, us | build s |\n"
      "|---|---|---|---|---|---|---|---|---|\n",
      set.c_str());
  std::fflush(stdout);
  bool all = true;
  for (const std::string& kind : arguments) {
    const std::string directory =
        absl::StrCat(data_directory, "/memory-", getpid(), "-", kind);
    all &= Apart([&] { Fill(kind, data, directory); }) &&
           Apart([&] { Measure(kind, data, data_directory, directory); });
    std::filesystem::remove_all(directory);
    std::filesystem::remove_all(directory + ".empty");
  }
  return all ? 0 : 1;
}

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) {
  return attendant::Run({argv + 1, argv + argc});
}
