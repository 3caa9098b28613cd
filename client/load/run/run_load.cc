#include "client/load/run/run_load.h"

#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/api/client.h"
#include "client/api/error_json.h"
#include "client/load/report/live_view.h"
#include "client/load/requests/queries.h"
#include "client/load/send/background_writer.h"
#include "client/load/send/closed_loop.h"
#include "client/load/send/open_loop.h"
#include "client/load/send/wire_sender.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Returns vectors to add to the keys of items that are written, each a fifth as
// long as a key. Their number has no factor in common with
// SampledQueryOptions::max_count keys, so that the sums differ.
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

absl::StatusOr<std::string> FirstKeyField(Client& client,
                                          const std::string& catalog) {
  v1::GetCatalogRequest request;
  request.set_name(catalog);
  ATTENDANT_ASSIGN_OR_RETURN(const v1::GetCatalogResponse response,
                             client.GetCatalog(request));
  return response.catalog().schema().key_fields(0).name();
}

absl::StatusOr<WriterOptions> BackgroundWrites(Client& client,
                                               const LoadOptions& options) {
  WriterOptions writes;
  writes.catalog = options.requests.catalog;
  writes.key_field = options.requests.key_field;
  writes.rate = *options.writes_per_second;
  writes.seed = options.requests.seed;
  // Keys other than those queried, which would gather copies of themselves.
  ATTENDANT_ASSIGN_OR_RETURN(
      writes.keys, SampleQueries(client, {.catalog = writes.catalog,
                                          .key_field = writes.key_field,
                                          .noise = 0,
                                          .seed = writes.seed + 1}));
  writes.noises = Noises(writes.keys, writes.seed);
  ATTENDANT_ASSIGN_OR_RETURN(writes.existing_ids,
                             ListIds(client, writes.catalog));
  return writes;
}

bool HasKind(const RequestOptions& requests, absl::string_view kind) {
  return std::ranges::any_of(
      requests.mix, [kind](const MixShare& part) { return part.kind == kind; });
}

absl::Status CheckMayVerify(const RequestOptions& requests) {
  if (std::ranges::all_of(requests.mix, [](const MixShare& part) {
        return part.kind == kWriteKind;
      })) {
    return UsageError("--verify needs queries in --mix");
  }
  for (const v1::AttendRequest& query : requests.queries) {
    if (query.select_kind() != v1::SELECT_KIND_SAMPLE) continue;
    return UsageError(
        "--verify: --queries has one of SELECT_KIND_SAMPLE, whose draws differ "
        "from those of any other answer; want none");
  }
  return absl::OkStatus();
}

// Returns the first query of the mix from number `index` on, and sets `index`
// to the number after it.
v1::AttendRequest NextQuery(const RequestMix& mix, std::int64_t& index) {
  const std::vector<std::string> kinds = mix.kinds();
  while (true) {
    const int kind = mix.KindOf(index);
    grpc::ByteBuffer bytes = mix.Bytes(kind, index++);
    if (kinds[kind] == kWriteKind) continue;
    v1::AttendRequest query;
    grpc::GenericDeserialize<grpc::ProtoBufferReader, v1::AttendRequest>(
        &bytes, &query);
    return query;
  }
}

// Deletes the items 0 to count - 1 that the load wrote.
CleanupResult CleanUp(Client& client, const LoadOptions& options,
                      std::int64_t count) {
  const RequestOptions& requests = options.requests;
  CleanupResult result;
  result.command = absl::StrFormat(
      "seq -f load-%d-%%.0f 0 %d | xargs -n 256 attendant%s items delete %s",
      requests.seed, count - 1, options.connection_flags, requests.catalog);
  const absl::StatusOr<std::int64_t> deleted =
      DeleteWrittenItems(client, requests, count);
  if (deleted.ok()) result.deleted_count = *deleted;
  result.status = deleted.status();
  return result;
}

nlohmann::ordered_json Describe(const LoadOptions& options) {
  const RequestOptions& requests = options.requests;
  nlohmann::ordered_json mix = nlohmann::ordered_json::object();
  for (const MixShare& part : requests.mix) mix[part.kind] = part.share;
  const bool open =
      options.rate || !options.steps.empty() || !options.ramp.empty();
  nlohmann::ordered_json json = {
      {"loop", open ? "open" : "closed"},
      {"server", options.client.server},
      {"catalog", requests.catalog},
      {"keyField", requests.key_field},
      {"resultCount", requests.result_count},
      {"mix", mix},
      {"concurrency", options.concurrency},
      {"arrivals", options.fixed_arrivals ? "fixed" : "poisson"},
      {"connections", options.connections},
      {"threads", options.threads},
      {"durationSeconds", options.duration_s},
      {"warmupSeconds", options.warmup_s},
      {"queries", options.queries_path.empty() ? "stored keys with noise"
                                               : options.queries_path},
      {"noise", requests.noise},
      {"seed", requests.seed}};
  if (!options.steps.empty()) json["steps"] = options.steps;
  if (!options.ramp.empty()) json["ramp"] = options.ramp;
  return json;
}

// Returns traffic that sends the requests of the mix.
Traffic TrafficOf(const RequestMix& mix, WireSender& sender,
                  AnswerChecker* checker, LiveView& view) {
  Traffic traffic;
  traffic.cancel = [&sender] { sender.Cancel(); };
  traffic.kinds = mix.kinds();
  traffic.kind_of = [&mix](std::int64_t index) { return mix.KindOf(index); };
  traffic.watch = [&view](const LoadView& seen, absl::Duration elapsed) {
    view.Show(seen, elapsed);
  };
  std::vector<bool> writes;
  for (const std::string& kind : traffic.kinds) {
    writes.push_back(kind == kWriteKind);
  }
  traffic.send = [&mix, &sender, checker, writes = std::move(writes)](
                     std::int64_t index, Traffic::Done done) {
    const int kind = mix.KindOf(index);
    grpc::ByteBuffer request = mix.Bytes(kind, index);
    if (writes[kind] || checker == nullptr) {
      sender.Send(
          mix.MethodOf(kind), request,
          [done = std::move(done)](const absl::Status& status,
                                   const grpc::ByteBuffer&) { done(status); });
      return;
    }
    sender.Send(mix.MethodOf(kind), request,
                [done = std::move(done), request, checker](
                    const absl::Status& status, const grpc::ByteBuffer& reply) {
                  if (status.ok()) checker->Offer(request, reply);
                  done(status);
                });
  };
  return traffic;
}

// Runs an open loop by `profile`, or a closed one without it.
LoadResult RunLoop(const LoadOptions& options,
                   const std::optional<RateProfile>& profile,
                   const Traffic& traffic) {
  const absl::Duration warmup = absl::Seconds(options.warmup_s);
  if (!profile) {
    return RunClosedLoop({.concurrency = options.concurrency,
                          .warmup = warmup,
                          .duration = absl::Seconds(options.duration_s)},
                         traffic);
  }
  return RunOpenLoop({.profile = *profile,
                      .arrivals = options.fixed_arrivals ? Arrivals::kFixed
                                                         : Arrivals::kPoisson,
                      .seed = options.requests.seed,
                      .warmup = warmup},
                     traffic);
}

}  // namespace

absl::StatusOr<RateProfile> ParseRamp(absl::string_view text,
                                      absl::Duration duration) {
  const std::pair<absl::string_view, absl::string_view> rates =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  double first = 0;
  double last = 0;
  if (!absl::SimpleAtod(rates.first, &first) ||
      !absl::SimpleAtod(rates.second, &last) || !(first > 0 && last > 0) ||
      !(first <= 1e6 && last <= 1e6)) {
    return InvalidField("ramp", absl::StrCat("\"", text, "\""),
                        "FROM:TO, rates above 0 and up to 1,000,000");
  }
  return RateProfile::Ramp(first, last, duration);
}

absl::StatusOr<std::optional<RateProfile>> ProfileOf(
    const LoadOptions& options) {
  const absl::Duration duration = absl::Seconds(options.duration_s);
  std::optional<RateProfile> profile;
  if (options.rate) profile = RateProfile::Constant(*options.rate, duration);
  if (!options.steps.empty()) {
    profile = RateProfile::Steps(options.steps, duration);
  }
  if (!options.ramp.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(profile, ParseRamp(options.ramp, duration));
  }
  return profile;
}

absl::StatusOr<LoadReport> RunLoad(LoadOptions options) {
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<RateProfile> profile,
                             ProfileOf(options));
  if (options.verify_count > 0) {
    ATTENDANT_RETURN_IF_ERROR(CheckMayVerify(options.requests));
  }
  const absl::Duration timeout = absl::Seconds(options.timeout_s);
  const absl::Duration warmup = absl::Seconds(options.warmup_s);
  const absl::Duration duration = absl::Seconds(options.duration_s);
  options.connections = std::max(options.connections, options.threads);
  // Calls before, after and during the load that are not part of it may take
  // longer than --timeout, which can be a few milliseconds.
  Client::Options beside_load = options.client;
  beside_load.deadline = std::max(beside_load.deadline, timeout);
  ATTENDANT_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client,
                             Client::Connect(beside_load));
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::unique_ptr<WireSender> sender,
      WireSender::Connect({.server = options.client.server,
                           .security = options.client.security,
                           .connection_count = options.connections,
                           .thread_count = options.threads,
                           .connect_deadline = beside_load.deadline,
                           .deadline = timeout}));
  if (options.requests.key_field.empty()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        options.requests.key_field,
        FirstKeyField(*client, options.requests.catalog));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const RequestMix mix,
                             MakeRequests(*client, options.requests));

  LoadReport report;
  report.date = absl::Now();
  report.options = Describe(options);
  std::unique_ptr<AnswerChecker> checker;
  if (options.verify_count > 0) {
    checker = std::make_unique<AnswerChecker>(
        client.get(), options.verify_count,
        (warmup + duration) / options.verify_count);
  }
  std::unique_ptr<Client> writer_client;
  std::unique_ptr<BackgroundWriter> writer;
  if (options.writes_per_second) {
    ATTENDANT_ASSIGN_OR_RETURN(WriterOptions writes,
                               BackgroundWrites(*client, options));
    writes.timeout = beside_load.deadline;
    ATTENDANT_ASSIGN_OR_RETURN(writer_client, Client::Connect(options.client));
    writer = std::make_unique<BackgroundWriter>(writer_client.get(),
                                                std::move(writes));
  }
  {
    LiveView view(stderr, {.warmup = warmup, .total = warmup + duration});
    Traffic traffic = TrafficOf(mix, *sender, checker.get(), view);
    traffic.is_stopped = options.is_stopped;
    report.result = RunLoop(options, profile, traffic);
  }
  if (profile) report.rate = report.result.due_per_second();
  report.more_connection_count =
      sender->connection_count() - options.connections;
  if (writer != nullptr) report.writes = writer->Stop();
  if (checker != nullptr) {
    std::int64_t index = 0;
    VerifyResult result =
        checker->Finish([&]() -> std::optional<v1::AttendRequest> {
          if (options.is_stopped()) return std::nullopt;
          return NextQuery(mix, index);
        });
    // An interrupted load may have checked none.
    if (result.query_count + result.failed_count > 0) {
      report.verify = std::move(result);
    }
  }
  // After the checks of answers, which deletions would change. An earlier load
  // that was killed may have left any of the mix's items.
  const std::int64_t sent_count = report.writes ? report.writes->sent_count : 0;
  if (sent_count > 0 || HasKind(options.requests, kWriteKind)) {
    report.cleanup =
        CleanUp(*client, options, std::max(kWrittenItemCount, sent_count));
  }
  return report;
}

}  // namespace attendant
