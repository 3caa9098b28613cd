// Requests per second that attendantd answers, as a share of an echo server's
// rate with the same messages: 200,000 items of 128 dimensions, the ten best
// items with a recall of 0.95, 16 callers. Otherwise requests use the defaults:
// a shortlist of 100, and the value pooled over it. A request's recall is only
// an aim, so the benchmark asks for the lowest one with which the ten best are
// found that reliably. Both servers, the callers and the engine share this
// process and its cores; the two are measured in turn, so that disturbances
// affect both.
//
//   served_benchmark [--json FILE] [DATA_SET [ROUNDS [SECONDS]]]
//
// DATA_SET is one of bench/data, by default mixture-200k, with five rounds of
// three seconds each. bench/served.py runs it too.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/data/data_set.h"
#include "bench/served/echo_server.h"
#include "client/api/client.h"
#include "client/api/wire_vector.h"
#include "client/load/send/closed_loop.h"
#include "core/base/status.h"
#include "service/server.h"

namespace attendant {
namespace {

constexpr int kCallers = 16;
constexpr int kResultCount = 10;
constexpr int kShortlistCount = 10 * kResultCount;  // the default of requests
constexpr double kWantedRecall = 0.95;
constexpr int kVerifiedCount = 200;

struct Options {
  std::string data_set = "mixture-200k";
  int round_count = 5;
  int seconds = 3;
  std::string json_path;  // empty: none
};

// A directory that is removed with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory()
      : path_(std::filesystem::temp_directory_path() /
              absl::StrCat("served_benchmark_", getpid())) {
    std::filesystem::create_directory(path_);
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

absl::Status Fill(CatalogSet& catalogs, const DataSet& data) {
  CatalogSchema schema;
  schema.key_fields.push_back({.name = "vec", .dim = data.dim});
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  ATTENDANT_ASSIGN_OR_RETURN(const auto created,
                             catalogs.Create("bench", schema, {}));
  constexpr std::int64_t kBatch = 1000;
  std::vector<Item> items;
  for (std::int64_t i = 0; i < data.keys.row_count(); ++i) {
    Item& item = items.emplace_back();
    item.id = absl::StrCat("item", i);
    const std::span<const float> key = data.key_view().Row(i);
    item.keys.emplace_back(key.begin(), key.end());
    if (items.size() < kBatch && i + 1 < data.keys.row_count()) continue;
    const auto written = created.catalog->Upsert(items, "");
    ATTENDANT_RETURN_IF_ERROR(written.status());
    items.clear();
  }
  created.catalog->AwaitIndexes();
  return created.catalog->merge_status();
}

std::vector<v1::AttendRequest> Requests(const DataSet& data, double recall) {
  std::vector<v1::AttendRequest> requests;
  for (std::int64_t q = 0; q < data.queries.row_count(); ++q) {
    v1::AttendRequest& request = requests.emplace_back();
    request.set_catalog("bench");
    request.set_result_count(kResultCount);
    request.set_recall(recall);
    *request.mutable_query()->mutable_vector() =
        ToVector(data.query_view().Row(q));
  }
  return requests;
}

// Returns the share of the exact answer's items that an answer has.
absl::StatusOr<double> MeanRecall(
    Client& client, const std::vector<v1::AttendRequest>& requests) {
  int found = 0;
  for (int i = 0; i < kVerifiedCount; ++i) {
    v1::AttendRequest request = requests[i];
    ATTENDANT_ASSIGN_OR_RETURN(const auto quick, client.Attend(request));
    request.set_scan_mode(v1::SCAN_MODE_EXACT);
    ATTENDANT_ASSIGN_OR_RETURN(const auto exact, client.Attend(request));
    std::set<std::string> ids;
    for (const auto& item : exact.items()) ids.insert(item.id());
    for (const auto& item : quick.items()) found += ids.contains(item.id());
  }
  return static_cast<double>(found) / (kVerifiedCount * kResultCount);
}

struct Rate {
  double requests_per_second = 0;
  double p50_ms = 0;
  double p99_ms = 0;
  double shared_query_count = 0;  // mean
};

absl::StatusOr<Rate> Measure(Client& client,
                             const std::vector<v1::AttendRequest>& requests,
                             int seconds) {
  ClosedLoopOptions loop;
  loop.concurrency = kCallers;
  loop.warmup = absl::Milliseconds(500);
  loop.duration = absl::Seconds(seconds);
  std::atomic<std::int64_t> answered = 0;
  std::atomic<std::int64_t> shared = 0;
  const auto send = [&](std::int64_t index, Traffic::Done done) {
    client.AttendAsync(
        requests[static_cast<std::size_t>(index) % requests.size()],
        [&, done = std::move(done)](
            const absl::StatusOr<v1::AttendResponse>& response) {
          if (response.ok()) {
            ++answered;
            shared += response->stats().shared_query_count();
          }
          done(response.status());
        });
  };
  const LoadResult result = RunClosedLoop(loop, {.send = send});
  const LatencyHistogram& latencies = result.total.latencies();
  if (result.total.failed_count() > 0) {
    return absl::InternalError(result.error_counts.begin()->first);
  }
  return Rate{result.requests_per_second(),
              static_cast<double>(latencies.AtPercentile(50)) / 1e6,
              static_cast<double>(latencies.AtPercentile(99)) / 1e6,
              static_cast<double>(shared) / static_cast<double>(answered)};
}

nlohmann::json ToJson(const Rate& rate) {
  return {{"per_second", rate.requests_per_second},
          {"p50_us", 1e3 * rate.p50_ms},
          {"p99_us", 1e3 * rate.p99_ms}};
}

void Print(const char* name, const Rate& rate) {
  std::printf("  %-8s %9.0f requests/s   p50 %6.2f ms   p99 %6.2f ms", name,
              rate.requests_per_second, rate.p50_ms, rate.p99_ms);
}

absl::Status Run(const Options& options) {
  ATTENDANT_ASSIGN_OR_RETURN(const DataSet data,
                             LoadDataSet(options.data_set, kDataDirectory));
  const TemporaryDirectory directory;
  ATTENDANT_ASSIGN_OR_RETURN(const auto catalogs,
                             CatalogSet::Open(directory.path(), {}));
  ATTENDANT_RETURN_IF_ERROR(Fill(*catalogs, data));
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto server,
      Server::Start({.listen = "127.0.0.1:0"}, catalogs.get()));
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto client,
      Client::Connect({.server = absl::StrCat("127.0.0.1:", server->port())}));
  double asked = 0.45;
  double recall = 0;
  std::vector<v1::AttendRequest> requests;
  while (recall < kWantedRecall && asked < 1) {
    asked += 0.05;
    requests = Requests(data, asked);
    ATTENDANT_ASSIGN_OR_RETURN(recall, MeanRecall(*client, requests));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const v1::AttendResponse sample,
                             client->Attend(requests[0]));
  const auto echo = EchoServer::Start(sample);
  if (echo == nullptr) return absl::UnavailableError("no port for the echo");
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto echo_client,
      Client::Connect({.server = absl::StrCat("127.0.0.1:", echo->port())}));
  std::printf(
      "%s, %lld x %lld, top-%d, %d callers: recall %.3f (asked %.2f)\n",
      options.data_set.c_str(), static_cast<long long>(data.keys.row_count()),
      static_cast<long long>(data.dim), kResultCount, kCallers, recall, asked);

  nlohmann::json json = {{"set", options.data_set},
                         {"items", data.keys.row_count()},
                         {"dimension", data.dim},
                         {"callers", kCallers},
                         {"asked", asked},
                         {"recall", recall},
                         {"shortlist", kShortlistCount}};
  std::vector<double> ratios;
  for (int round = 0; round < options.round_count; ++round) {
    ATTENDANT_ASSIGN_OR_RETURN(
        const Rate empty, Measure(*echo_client, requests, options.seconds));
    ATTENDANT_ASSIGN_OR_RETURN(const Rate attend,
                               Measure(*client, requests, options.seconds));
    ratios.push_back(attend.requests_per_second / empty.requests_per_second);
    json["rounds"].push_back(
        {{"echo", ToJson(empty)},
         {"attend", ToJson(attend)},
         {"shared_query_count", attend.shared_query_count}});
    Print("echo", empty);
    std::printf("\n");
    Print("attend", attend);
    std::printf("   %.1f share a pass   %.1f %% of the echo\n",
                attend.shared_query_count, 100 * ratios.back());
    std::fflush(stdout);
  }
  std::ranges::sort(ratios);
  std::printf("median %.1f %% of the echo, from %.1f to %.1f\n",
              100 * ratios[ratios.size() / 2], 100 * ratios.front(),
              100 * ratios.back());
  if (!options.json_path.empty()) {
    std::ofstream(options.json_path) << json.dump(1) << "\n";
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) {
  attendant::Options options;
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() >= 2 && arguments[0] == "--json") {
    options.json_path = arguments[1];
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  if (!arguments.empty()) options.data_set = arguments[0];
  if (arguments.size() > 1) {
    options.round_count = std::max(1, std::atoi(arguments[1].c_str()));
  }
  if (arguments.size() > 2) {
    options.seconds = std::max(1, std::atoi(arguments[2].c_str()));
  }
  const absl::Status status = attendant::Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "served_benchmark: %s\n", status.ToString().c_str());
  return 1;
}
