// The gRPC server: what `attendantd` runs, and tests run in their own process.
#ifndef ATTENDANT_SERVICE_SERVER_H_
#define ATTENDANT_SERVICE_SERVER_H_

#include <grpcpp/impl/service_type.h>
#include <grpcpp/server.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/catalog/live/catalog_set.h"
#include "service/background_log.h"
#include "service/calls/backend.h"
#include "service/calls/request_limits.h"
#include "service/connections/listener.h"
#include "service/connections/transport_limits.h"
#include "service/disk_watch.h"
#include "service/metrics/metric_page.h"
#include "service/queue/worker_pool.h"
#include "service/readiness.h"
#include "service/security/security.h"

namespace attendant {

// Serves the catalogs of a CatalogSet, with grpc.health.v1 (the whole server
// as "", and each service by name) and reflection. Thread-safe.
//
//   auto server = Server::Start({.listen = "127.0.0.1:0"}, catalogs.get());
//   ... (*server)->port() ...
//   (*server)->Shutdown(absl::Seconds(30));
class Server {
 public:
  struct Options {
    // HOST:PORT; port 0 takes a free one.
    std::string listen = "127.0.0.1:7600";
    // Threads that answer queries; 0: one for each core.
    int worker_count = 0;
    // Largest message, either way, in bytes; at least 64 KiB.
    std::int64_t max_message_bytes = 16 << 20;
    // Requests that may wait for a worker, for each kind of work; more are
    // RESOURCE_EXHAUSTED at once. At least 1.
    std::size_t max_waiting_count = 1024;
    // Queries that take so long, or longer, are logged with their plan;
    // InfiniteDuration: none.
    absl::Duration slow_query_time = absl::Seconds(1);
    // TLS and tokens; by default neither.
    SecurityOptions security = {};
    TransportLimits transport = {};
    RequestLimits limits = {};
  };

  // Listens and serves. `catalogs` must outlive the server. `security` is what
  // options.security opens, shared with other ports; null: one of its own.
  // InvalidArgument naming an option; errors of reading the files of
  // options.security; Unavailable if the address can't be bound.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const Options& options, CatalogSet* catalogs,
      std::shared_ptr<Security> security = nullptr);

  // Shuts down without grace.
  ~Server();

  // The port that the server listens on.
  int port() const { return port_; }

  // Turns health to NOT_SERVING, a moment later refuses new calls with
  // UNAVAILABLE, waits up to `grace` for those under way and hangs up, which
  // is UNAVAILABLE for those that are left; then cancels the rest, and returns
  // when all have ended. Further calls return when the first has.
  void Shutdown(absl::Duration grace);

  // Whether it should be sent requests. Takes no time to speak of.
  Readiness readiness() const;

  // All that this server and its catalogs tell Prometheus.
  void WriteMetrics(MetricPage& page) const;

 private:
  Server(const Options& options, CatalogSet* catalogs,
         std::shared_ptr<Security> security);

  const std::shared_ptr<Security> security_;
  Backend backend_;
  BackgroundLog background_log_;
  DiskWatch disk_watch_;
  WorkerPool attend_pool_;
  WorkerPool write_pool_;
  WorkerPool read_pool_;
  WorkerPool long_work_pool_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<Listener> listener_;
  // gRPC uses what they own until the server is gone.
  std::vector<std::shared_ptr<grpc::ServerCredentials>> credentials_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  std::atomic<bool> ready_ = true;  // until a Shutdown begins

  Mutex mutex_;
  CondVar stopped_changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SERVER_H_
