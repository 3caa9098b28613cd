// attendant-load: how many queries a second, how late, and how exact.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/client.h"
#include "client/format/progress.h"
#include "client/load/background_writer.h"
#include "client/load/closed_loop.h"
#include "client/load/open_loop.h"
#include "client/load/prepare.h"
#include "client/load/queries.h"
#include "client/load/report.h"
#include "client/load/verify.h"
#include "client/wire_vector.h"
#include "core/base/clock.h"
#include "core/base/status.h"

namespace attendant {
namespace {

constexpr char kDescription[] =
    R"(Measures attention under load: requests a second, latency, recall.

Without --rate the loop is closed: each of --concurrency callers sends its next
query when its last one is answered. That finds what a server can do for so many
callers. With --rate it is open: queries are sent when their time has come,
whatever became of those before, and a latency counts from that time. That is
what callers wait who take no notice of each other.

  attendant-load prepare --catalog bench --items 100000 --dim 128 --wait-index
  attendant-load --catalog bench --concurrency 16 --duration 10 --verify 500
  attendant-load --catalog bench --rate 2000 --writes-per-second 10000

Exit status: 0 all went well; 1 a request or write failed, or recall is below
--min-recall; 2 the arguments are wrong, or a file is bad; 3 the server can't
be reached.)";

enum ExitStatus { kOk = 0, kFailed = 1, kUsage = 2, kUnreachable = 3 };

struct LoadOptions {
  std::string server = "127.0.0.1:7600";
  bool json = false;
  std::string catalog;
  std::string key_field;
  std::string queries_path;
  double noise = 0.1;
  std::uint64_t seed = 1;
  int result_count = 10;
  int concurrency = 16;
  int connections = 4;
  std::optional<double> rate;
  bool fixed_arrivals = false;
  std::optional<double> writes_per_second;
  double duration_s = 10;
  double warmup_s = 1;
  std::int64_t verify_count = 0;
  std::optional<double> min_recall;
};

int Report(const absl::Status& status) {
  std::cerr << "attendant-load: " << absl::StatusCodeToString(status.code())
            << ": " << status.message() << "\n";
  return absl::IsUnavailable(status) ? kUnreachable : kFailed;
}

// The key field asked for, or the catalog's first.
// What is added to keys of items that are written: so many different ones that
// the sums with SampledQueryOptions::max_count keys are too, and a fifth as
// large as a key.
std::vector<std::vector<float>> Noises(
    const std::vector<std::vector<float>>& keys, std::uint64_t seed) {
  constexpr std::size_t kCount = 1009;  // a prime
  constexpr double kSize = 0.2;
  std::mt19937_64 random(seed);
  std::vector<std::vector<float>> noises;
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::vector<float>& key = keys[i % keys.size()];
    std::vector<float>& noise = noises.emplace_back(key);
    AddNoise(kSize, random, noise);
    std::transform(noise.begin(), noise.end(), key.begin(), noise.begin(),
                   std::minus<>());
  }
  return noises;
}

absl::StatusOr<std::string> ResolveKeyField(Client& client,
                                            const LoadOptions& options) {
  if (!options.key_field.empty()) return options.key_field;
  v1::GetCatalogRequest request;
  request.set_name(options.catalog);
  ATTENDANT_ASSIGN_OR_RETURN(const v1::GetCatalogResponse response,
                             client.GetCatalog(request));
  return response.catalog().schema().key_fields(0).name();
}

std::vector<v1::AttendRequest> ToRequests(
    const LoadOptions& options, const std::string& key_field,
    const std::vector<std::vector<float>>& queries) {
  std::vector<v1::AttendRequest> requests;
  for (const std::vector<float>& query : queries) {
    v1::AttendRequest& request = requests.emplace_back();
    request.set_catalog(options.catalog);
    request.set_key_field(key_field);
    request.set_result_count(options.result_count);
    *request.mutable_query()->mutable_vector() = ToVector(query);
  }
  return requests;
}

// `count` of the requests, evenly spread.
std::vector<v1::AttendRequest> Spread(
    const std::vector<v1::AttendRequest>& requests, std::int64_t count) {
  const auto size = static_cast<std::int64_t>(requests.size());
  count = std::min(count, size);
  std::vector<v1::AttendRequest> spread;
  for (std::int64_t i = 0; i < count; ++i) {
    spread.push_back(requests[i * size / count]);
  }
  return spread;
}

nlohmann::ordered_json Describe(const LoadOptions& options,
                                const std::string& key_field,
                                std::size_t query_count) {
  return {{"loop", options.rate ? "open" : "closed"},
          {"server", options.server},
          {"catalog", options.catalog},
          {"keyField", key_field},
          {"resultCount", options.result_count},
          {"concurrency", options.concurrency},
          {"arrivals", options.fixed_arrivals ? "fixed" : "poisson"},
          {"connections", options.connections},
          {"durationSeconds", options.duration_s},
          {"warmupSeconds", options.warmup_s},
          {"queries", options.queries_path.empty() ? "stored keys with noise"
                                                   : options.queries_path},
          {"queryCount", query_count},
          {"noise", options.noise},
          {"seed", options.seed}};
}

// The clients, one a connection, take turns.
absl::StatusOr<LoadReport> RunLoad(
    const std::vector<std::unique_ptr<Client>>& clients,
    const LoadOptions& options,
    const std::optional<std::vector<std::vector<float>>>& given_queries) {
  Client& client = *clients[0];
  ATTENDANT_ASSIGN_OR_RETURN(const std::string key_field,
                             ResolveKeyField(client, options));
  std::vector<std::vector<float>> queries;
  SampledQueryOptions sampled;
  sampled.catalog = options.catalog;
  sampled.key_field = key_field;
  sampled.noise = options.noise;
  sampled.seed = options.seed;
  if (given_queries) {
    queries = *given_queries;
  } else {
    ATTENDANT_ASSIGN_OR_RETURN(queries, SampleQueries(client, sampled));
  }
  const std::vector<v1::AttendRequest> requests =
      ToRequests(options, key_field, queries);

  std::unique_ptr<Client> writer_client;
  std::unique_ptr<BackgroundWriter> writer;
  if (options.writes_per_second) {
    WriterOptions writes;
    writes.catalog = options.catalog;
    writes.key_field = key_field;
    writes.rate = *options.writes_per_second;
    writes.seed = options.seed;
    // Others than what is asked for: those would gather copies of themselves.
    SampledQueryOptions written = sampled;
    written.seed = options.seed + 1;
    written.noise = 0;
    ATTENDANT_ASSIGN_OR_RETURN(writes.keys, SampleQueries(client, written));
    writes.noises = Noises(writes.keys, options.seed);
    ATTENDANT_ASSIGN_OR_RETURN(writes.existing_ids,
                               ListIds(client, options.catalog));
    ATTENDANT_ASSIGN_OR_RETURN(writer_client,
                               Client::Connect({.server = options.server}));
    writer = std::make_unique<BackgroundWriter>(writer_client.get(),
                                                std::move(writes));
  }
  const SendRequest send = [&](std::int64_t index,
                               std::function<void(const absl::Status&)> done) {
    clients[index % clients.size()]->AttendAsync(
        requests[index % requests.size()],
        [done = std::move(done)](
            const absl::StatusOr<v1::AttendResponse>& response) {
          done(response.status());
        });
  };
  LoadReport report;
  report.options = Describe(options, key_field, queries.size());
  report.rate = options.rate;
  const absl::Duration warmup = absl::Seconds(options.warmup_s);
  const absl::Duration duration = absl::Seconds(options.duration_s);
  if (options.rate) {
    report.result =
        RunOpenLoop({.rate = *options.rate,
                     .arrivals = options.fixed_arrivals ? Arrivals::kFixed
                                                        : Arrivals::kPoisson,
                     .seed = options.seed,
                     .warmup = warmup,
                     .duration = duration},
                    send);
  } else {
    report.result = RunClosedLoop({.concurrency = options.concurrency,
                                   .warmup = warmup,
                                   .duration = duration},
                                  send);
  }
  if (writer != nullptr) report.writes = writer->Stop();
  if (options.verify_count > 0) {
    ATTENDANT_ASSIGN_OR_RETURN(
        report.verify, Verify(client, Spread(requests, options.verify_count)));
  }
  return report;
}

int LoadMain(const LoadOptions& options) {
  std::optional<std::vector<std::vector<float>>> given_queries;
  if (!options.queries_path.empty()) {
    auto queries = ReadQueries(options.queries_path);
    if (!queries.ok()) {
      Report(queries.status());
      return kUsage;
    }
    given_queries = *std::move(queries);
  }
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < options.connections; ++i) {
    auto client = Client::Connect({.server = options.server});
    if (!client.ok()) return Report(client.status());
    clients.push_back(*std::move(client));
  }
  const auto report = RunLoad(clients, options, given_queries);
  if (!report.ok()) return Report(report.status());
  std::cout << (options.json ? JsonReport(*report) : TextReport(*report));

  if (report->result.request_count() == 0) {
    std::cerr << "attendant-load: no request was answered in time\n";
    return kFailed;
  }
  if (report->result.failed_count() > 0) return kFailed;
  if (report->writes && !report->writes->status.ok()) {
    return Report(report->writes->status);
  }
  if (options.min_recall && report->verify->mean_recall < *options.min_recall) {
    std::cerr << "attendant-load: recall " << report->verify->mean_recall
              << " is below --min-recall " << *options.min_recall << "\n";
    return kFailed;
  }
  return kOk;
}

int PrepareMain(const LoadOptions& options, const PrepareOptions& prepare,
                bool wait_index) {
  const auto client = Client::Connect({.server = options.server});
  if (!client.ok()) return Report(client.status());
  Progress progress(stderr, "Importing", prepare.item_count);
  const auto result =
      Prepare(**client, prepare, [&](std::int64_t acknowledged_count) {
        progress.Update(acknowledged_count);
      });
  progress.Clear();
  if (!result.ok()) return Report(result.status());
  const double import_s = absl::ToDoubleSeconds(result->import_time);
  const double items_per_second =
      static_cast<double>(result->item_count) / import_s;
  double index_s = 0;
  if (wait_index) {
    const SteadyTime begin = SteadyNow();
    const absl::Status waited =
        WaitForIndex(**client, prepare.catalog, absl::Minutes(10));
    if (!waited.ok()) return Report(waited);
    index_s = absl::ToDoubleSeconds(TimeSince(begin));
  }
  if (options.json) {
    nlohmann::ordered_json json = {{"items", result->item_count},
                                   {"seconds", import_s},
                                   {"itemsPerSecond", items_per_second}};
    if (wait_index) json["indexSeconds"] = index_s;
    std::cout << json.dump(2) << "\n";
    return kOk;
  }
  std::printf("%lld items in %.2f s, %.0f a second, making them included\n",
              static_cast<long long>(result->item_count), import_s,
              items_per_second);
  if (wait_index) std::printf("index ready %.2f s later\n", index_s);
  return kOk;
}

int Main(int argc, char** argv) {
  LoadOptions options;
  CLI::App app{kDescription, "attendant-load"};
  app.option_defaults()->always_capture_default();
  app.add_option("--server", options.server, "HOST:PORT of attendantd");
  app.add_flag("--json", options.json,
               "Report as JSON, with ghz's keys; times in nanoseconds");
  app.add_option("--catalog", options.catalog, "The catalog to ask");
  app.add_option("--field", options.key_field,
                 "The key field; default: the catalog's first");
  app.add_option("--result-count", options.result_count, "Items an answer")
      ->check(CLI::Range(1, 10000));
  app.add_option("--concurrency", options.concurrency, "Callers")
      ->check(CLI::Range(1, 10000));
  CLI::Option* rate = app.add_option("--rate", options.rate,
                                     "An open loop of so many queries a second")
                          ->check(CLI::Range(0.1, 1e6));
  app.add_flag("--fixed", options.fixed_arrivals,
               "Queries of --rate at equal distances, and not at random")
      ->needs(rate);
  app.add_option("--writes-per-second", options.writes_per_second,
                 "Items written meanwhile, of the catalog and new in turns")
      ->check(CLI::Range(0.1, 1e7));
  app.add_option("--connections", options.connections,
                 "Connections that the callers share")
      ->check(CLI::Range(1, 1000));
  app.add_option("--duration", options.duration_s, "Seconds that count")
      ->check(CLI::Range(0.1, 86400.0));
  app.add_option("--warmup", options.warmup_s, "Seconds before that")
      ->check(CLI::Range(0.0, 3600.0));
  app.add_option("--queries", options.queries_path,
                 ".npy or .fvecs file of query vectors; default: the keys of "
                 "random stored items with noise")
      ->check(CLI::ExistingFile);
  app.add_option("--noise", options.noise,
                 "Norm of the noise as a share of the key's")
      ->check(CLI::Range(0.0, 100.0));
  app.add_option("--seed", options.seed, "Of what is drawn");
  CLI::Option* verify =
      app.add_option("--verify", options.verify_count,
                     "So many queries are asked again exactly, after the load")
          ->check(CLI::Range(1, 1000000));
  app.add_option("--min-recall", options.min_recall,
                 "Fail if the mean recall of --verify is below")
      ->check(CLI::Range(0.0, 1.0))
      ->needs(verify);

  PrepareOptions prepare_options;
  bool wait_index = false;
  CLI::App* prepare = app.add_subcommand(
      "prepare", "Makes a catalog of clustered unit vectors to measure on");
  prepare->fallthrough();
  prepare->add_option("--items", prepare_options.item_count, "Items")
      ->check(CLI::Range(1, 100000000));
  prepare->add_option("--dim", prepare_options.dim, "Components of a key")
      ->check(CLI::Range(1, 8192));
  prepare
      ->add_option("--clusters", prepare_options.cluster_count,
                   "Gaussian clusters")
      ->check(CLI::Range(1, 1000000));
  prepare->add_flag("--replace", prepare_options.replace,
                    "Delete a catalog of that name first");
  prepare->add_flag("--wait-index", wait_index,
                    "Return when the index is trained");

  try {
    app.parse(argc, argv);
    if (options.catalog.empty()) throw CLI::RequiredError("--catalog");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  if (!prepare->parsed()) return LoadMain(options);
  prepare_options.catalog = options.catalog;
  prepare_options.seed = options.seed;
  return PrepareMain(options, prepare_options, wait_index);
}

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) { return attendant::Main(argc, argv); }
