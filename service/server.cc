#include "service/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "core/base/clock.h"
#include "core/base/host_port.h"
#include "core/base/status.h"
#include "service/calls/call.h"
#include "service/calls/methods.h"
#include "service/catalog_metrics.h"
#include "service/connections/listen_address.h"
#include "service/queue/light_queries.h"
#include "service/queue/pool_metrics.h"
#include "service/security/port_credentials.h"
#include "service/services.h"

namespace attendant {
namespace {

constexpr std::int64_t kMinMessageBytes = 64 << 10;
// Write threads mostly wait for a sync, which writes of the same catalog share.
// Neither one catalog nor one caller may use all of them, so that those whose
// writes wait for each other do not block others.
constexpr int kWriteThreadCount = 24;
constexpr int kMaxWritesOfCatalog = 8;
constexpr int kMaxWritesOfCaller = 16;
// Deletes by filter read all items, which may take seconds.
constexpr int kSweepThreadCount = 4;
constexpr int kMaxSweepsOfCatalog = 2;
constexpr int kMaxSweepsOfCaller = 3;
// A listing with a filter looks at all items too.
constexpr int kReadThreadCount = 4;
constexpr int kMaxReadsOfCaller = 3;
constexpr int kLongWorkThreadCount = 2;
// Number of catalogs named in a warning about several.
constexpr std::size_t kNamedCatalogs = 3;
constexpr absl::Duration kNoticeTime = absl::Milliseconds(100);
constexpr absl::Duration kLeaveTime = absl::Milliseconds(500);

absl::Status ValidateOptions(const Server::Options& options) {
  ATTENDANT_RETURN_IF_ERROR(ValidateListen(options.listen));
  if (options.worker_count < 0) {
    return InvalidField("worker_count", absl::StrCat(options.worker_count),
                        "0 or more");
  }
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (options.max_message_bytes < kMinMessageBytes ||
      options.max_message_bytes > kMost) {
    return InvalidField("max_message_bytes",
                        absl::StrCat(options.max_message_bytes),
                        absl::StrCat(kMinMessageBytes, " to ", kMost));
  }
  if (options.max_waiting_count < 1) {
    return InvalidField("max_waiting_count", "0", "1 or more");
  }
  ATTENDANT_RETURN_IF_ERROR(
      ValidateTransportLimits(options.transport, options.max_message_bytes));
  return ValidateSecurity(options.security, HostOf(options.listen));
}

}  // namespace

int WorkerCount(const Server::Options& options) {
  if (options.worker_count > 0) return options.worker_count;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

Server::Server(const Options& options, CatalogSet* catalogs,
               std::shared_ptr<Security> security)
    : security_(std::move(security)),
      backend_(catalogs, options.max_message_bytes, security_->authenticator(),
               &security_->refusal_log(), options.transport, options.limits),
      background_log_(*catalogs, *security_),
      disk_watch_(*catalogs,
                  static_cast<std::uint64_t>(options.max_message_bytes)),
      attend_pool_({.thread_count = WorkerCount(options),
                    .max_waiting_count = options.max_waiting_count,
                    .refuses_late = true,
                    .limits_wait = true},
                   {.name = "attend",
                    .have_own_cores = true,
                    .are_let_go_on = true,
                    .most_elsewhere = LightQueries::MostAtOnce(static_cast<int>(
                        std::thread::hardware_concurrency()))}),
      // Low share: writes that wait a little longer need fewer syncs, whereas
      // queries would suffer.
      write_pool_({.thread_count = kWriteThreadCount,
                   .max_waiting_count = options.max_waiting_count,
                   .refuses_late = true,
                   .max_turns_of_catalog = kMaxWritesOfCatalog,
                   .max_turns_of_caller = kMaxWritesOfCaller},
                  {.name = "write", .share = Share::kLow}),
      sweep_pool_({.thread_count = kSweepThreadCount,
                   .max_waiting_count = options.max_waiting_count,
                   .refuses_late = true,
                   .max_turns_of_catalog = kMaxSweepsOfCatalog,
                   .max_turns_of_caller = kMaxSweepsOfCaller},
                  {.name = "sweep", .share = Share::kLow}),
      read_pool_({.thread_count = kReadThreadCount,
                  .max_waiting_count = options.max_waiting_count,
                  .refuses_late = true,
                  .max_turns_of_caller = kMaxReadsOfCaller},
                 {.name = "read"}),
      // No lateness check: works take from milliseconds to minutes, so a mean
      // predicts nothing.
      long_work_pool_({.thread_count = kLongWorkThreadCount,
                       .max_waiting_count = options.max_waiting_count},
                      {.name = "long_work"}),
      services_(MakeServices(backend_, {.attend = &attend_pool_,
                                        .write = &write_pool_,
                                        .sweep = &sweep_pool_,
                                        .read = &read_pool_,
                                        .long_work = &long_work_pool_})) {
  backend_.records.slow_query_time = options.slow_query_time;
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(
    const Options& options, CatalogSet* catalogs,
    std::shared_ptr<Security> security) {
  ATTENDANT_RETURN_IF_ERROR(ValidateOptions(options));
  // Both affect only servers built afterwards.
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();

  if (security == nullptr) {
    ATTENDANT_ASSIGN_OR_RETURN(security, Security::Open(options.security));
  }
  std::unique_ptr<Server> server(new Server(options, catalogs, security));
  ResetWatch& resets = server->backend_.reset_watch;
  ArrivalWatch& arrivals = server->backend_.arrival_watch;
  ATTENDANT_ASSIGN_OR_RETURN(
      server->listener_,
      Listener::Bind(
          {.address = options.listen,
           .max_connection_count = ConnectionsWithinReach(options.transport),
           .holds = [&resets] { return resets.is_flooded(); },
           .memory = [catalogs] { return catalogs->memory_use().budget; },
           .call_watch = {.stall_time =
                              absl::Seconds(options.transport.stall_seconds),
                          .max_message_bytes = options.max_message_bytes,
                          .max_stream_count =
                              options.transport.max_stream_count},
           .call_count =
               [&resets, &arrivals] {
                 return resets.call_count() + arrivals.waiting_count();
               },
           .known_calls =
               [&resets] { return resets.known_calls().Counts(); }}));
  server->port_ = server->listener_->port();
  grpc::ServerBuilder builder;
  std::vector<std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>>
      acceptors;
  const CallAdmission admit = [&arrivals](grpc_auth_context* connection) {
    return arrivals.Begin(connection);
  };
  for (int i = 0; i < Listener::kAcceptors; ++i) {
    // gRPC notifies only one acceptor per credentials object of a new
    // certificate.
    server->credentials_.push_back(MakePortCredentials(security, admit));
    acceptors.push_back(builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        server->credentials_.back()));
  }
  SetTransportLimits(options.transport, builder);
  resets.OnFlood([listener = server->listener_.get()](absl::string_view peer) {
    listener->Drop(peer);
  });
  resets.Attach(builder);
  const int max_bytes = static_cast<int>(options.max_message_bytes);
  builder.SetMaxReceiveMessageSize(max_bytes);
  builder.SetMaxSendMessageSize(max_bytes);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  for (const auto& service : server->services_) {
    builder.RegisterService(service.get());
  }
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr) {
    return absl::InternalError("the gRPC server failed to start");
  }
  grpc::HealthCheckServiceInterface* health =
      server->server_->GetHealthCheckService();
  for (const Method& method : AllMethods()) {
    health->SetServingStatus(method.service, true);
  }
  server->listener_->Start(std::move(acceptors));
  return server;
}

Server::~Server() { Shutdown(absl::ZeroDuration()); }

void Server::Shutdown(absl::Duration grace) {
  {
    MutexLock lock(&mutex_);
    if (stopping_) {
      while (!stopped_) stopped_changed_.Wait(&mutex_);
      return;
    }
    stopping_ = true;
  }
  ready_.store(false);
  if (server_ != nullptr) {
    server_->GetHealthCheckService()->SetServingStatus(false);
    // Gives clients that watch health time to switch before they are refused.
    absl::SleepFor(std::min(grace, kNoticeTime));
  }
  backend_.draining.store(true);
  if (server_ != nullptr) {
    // The server's calls have the whole grace; connections without calls, for
    // which gRPC would wait as long, only kLeaveTime. Connections that arrive
    // in the meantime are closed at once, and so are those whose calls took
    // longer: gRPC would cancel these.
    backend_.calls.AwaitNone(SteadyAfter(grace));
    listener_->HangUp(kLeaveTime);
    listener_->Stop();
    listener_->HangUp(absl::ZeroDuration());
    server_->Shutdown(ToGrpcTime(SteadyNow()));
    server_->Wait();
    // gRPC may finish calls after that.
    backend_.calls.AwaitNone(SteadyTime::max());
  }
  attend_pool_.Stop();
  write_pool_.Stop();
  sweep_pool_.Stop();
  read_pool_.Stop();
  long_work_pool_.Stop();
  MutexLock lock(&mutex_);
  stopped_ = true;
  stopped_changed_.NotifyAll();
}

Readiness Server::readiness() const {
  Readiness readiness;
  if (!ready_.load()) {
    readiness.reasons.push_back("draining: the server is shutting down");
  }
  for (const auto& [name, status] : backend_.catalogs->damages()) {
    readiness.warnings.push_back(
        absl::StrCat("catalog '", name, "': ", status.message()));
  }
  const MemoryBudget::Use memory = backend_.catalogs->memory_use().budget;
  if (memory.limit_bytes > 0 && memory.used_bytes > memory.limit_bytes) {
    readiness.warnings.push_back(
        absl::StrCat("memory: ", memory.used_bytes, " bytes are used of ",
                     memory.limit_bytes, "; writes are refused"));
  }
  const auto disk = disk_watch_.state();
  if (!disk->any_write.ok()) {
    readiness.warnings.push_back(
        absl::StrCat("disk: ", disk->any_write.message()));
  } else if (!disk->largest_write.ok()) {
    readiness.warnings.push_back(absl::StrCat(
        "disk: large writes are refused, and soon all writes will be: ",
        disk->largest_write.message()));
  }
  // Usually they have the same cause, such as a full disk, so only the first
  // error is reported.
  std::vector<std::string> unsaved;
  absl::Status first;
  for (const auto& catalog : backend_.catalogs->List("", kMaxCatalogs)) {
    const absl::Status saved = catalog->save_status();
    if (saved.ok()) continue;
    first.Update(saved);
    unsaved.push_back(absl::StrCat("'", catalog->name(), "'"));
  }
  if (!unsaved.empty()) {
    const std::size_t more =
        unsaved.size() - std::min(unsaved.size(), kNamedCatalogs);
    unsaved.resize(unsaved.size() - more);
    readiness.warnings.push_back(
        absl::StrCat("the index of ", absl::StrJoin(unsaved, ", "),
                     more > 0 ? absl::StrCat(" and ", more, " more") : "",
                     " could not be written to its files: ", first.message()));
  }
  return readiness;
}

void Server::WriteMetrics(MetricPage& page) const {
  backend_.metrics.Write(page);
  for (const WorkerPool* pool : {&attend_pool_, &write_pool_, &sweep_pool_,
                                 &read_pool_, &long_work_pool_}) {
    AddPoolMetrics(pool->name(), pool->counts(), page);
  }
  page.AddGauge("attendant_connections", "Open connections.",
                static_cast<double>(listener_->connection_count()));
  const auto add_refused = [&](const char* reason, std::int64_t count) {
    page.AddCounter("attendant_connections_refused_total",
                    "Connections refused because the limit was reached or "
                    "resources were exhausted.",
                    static_cast<double>(count), {{"reason", reason}});
  };
  add_refused("limit", listener_->refused_at_limit_count());
  add_refused("resources", listener_->refused_without_resources_count());
  page.AddCounter("attendant_calls_stalled_total",
                  "Calls cancelled because their clients did not read the "
                  "replies or sent nothing.",
                  static_cast<double>(backend_.stall_watch.stalled_count()));
  page.AddCounter(
      "attendant_connections_dropped_total",
      "Connections closed because their clients reset calls faster than they "
      "can be ended, had far more calls than allowed at once, sent the most "
      "while memory was full, kept others from being read, held the most "
      "connections while others had no place, had the most of too many calls, "
      "or did not send their calls.",
      static_cast<double>(backend_.reset_watch.dropped_count() +
                          listener_->dropped_count()));
  page.AddGauge("attendant_open_calls",
                "Calls in progress, as reported by gRPC.",
                static_cast<double>(backend_.reset_watch.call_count()));
  page.AddCounter("attendant_reading_paused_total",
                  "Calls whose reading was delayed by 0.2 ms because many "
                  "reset calls had not ended yet.",
                  static_cast<double>(backend_.reset_watch.pause_count()));
  page.AddCounter(
      "attendant_calls_not_sent_total",
      "Calls refused because their connection had started far more calls than "
      "it may have at once without sending their messages.",
      static_cast<double>(backend_.arrival_watch.refused_count()));
  AddCatalogMetrics(*backend_.catalogs, disk_watch_.state()->free_bytes, page);
}

}  // namespace attendant
