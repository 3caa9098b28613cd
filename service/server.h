// The gRPC server: `attendantd` runs it, and tests run it in-process.
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

// Serves the catalogs of a CatalogSet, with grpc.health.v1 (the whole server as
// "", and each service by name) and reflection. Thread-safe.
//
//   auto server = Server::Start({.listen = "127.0.0.1:0"}, catalogs.get());
//   ... (*server)->port() ...
//   (*server)->Shutdown(absl::Seconds(30));
class Server {
 public:
  struct Options {
    // HOST:PORT; port 0 picks a free port.
    std::string listen = "127.0.0.1:7600";
    // Threads that answer queries; 0: one per core.
    int worker_count = 0;
    // Maximum size of a request or a reply in bytes; at least 64 KiB.
    std::int64_t max_message_bytes = 16 << 20;
    // Maximum number of requests waiting for a worker, for each kind of work;
    // further ones get RESOURCE_EXHAUSTED at once. At least 1.
    std::size_t max_waiting_count = 1024;
    // Queries that take at least this long are logged with their plan;
    // InfiniteDuration: none.
    absl::Duration slow_query_time = absl::Seconds(1);
    // TLS and tokens; by default neither.
    SecurityOptions security = {};
    TransportLimits transport = {};
    RequestLimits limits = {};
  };

  // Starts to listen and serve. `catalogs` must outlive the server. `security`
  // was opened with options.security and may be shared with other ports; null:
  // opens its own. InvalidArgument naming an option; errors of reading the
  // files of options.security; Unavailable if the address can't be bound.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const Options& options, CatalogSet* catalogs,
      std::shared_ptr<Security> security = nullptr);

  // Shuts down with zero grace.
  ~Server();

  // Port that the server listens on.
  int port() const { return port_; }

  // Sets health to NOT_SERVING and, a moment later, refuses new calls with
  // UNAVAILABLE. Waits up to `grace` for calls in progress and closes
  // connections, which is UNAVAILABLE to the remaining calls; then cancels the
  // rest, and returns when all have ended. Further calls return when the first
  // one has.
  void Shutdown(absl::Duration grace);

  // Whether the server should receive requests. Takes negligible time.
  Readiness readiness() const;

  // Writes all metrics of this server and its catalogs.
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
  WorkerPool sweep_pool_;
  WorkerPool read_pool_;
  WorkerPool long_work_pool_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<Listener> listener_;
  // gRPC uses what these own until server_ is destroyed.
  std::vector<std::shared_ptr<grpc::ServerCredentials>> credentials_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  std::atomic<bool> ready_ = true;  // until Shutdown begins

  Mutex mutex_;
  CondVar stopped_changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

// Returns the number of threads that answer queries.
int WorkerCount(const Server::Options& options);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SERVER_H_
