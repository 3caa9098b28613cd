// State shared by all handlers.
#ifndef ATTENDANT_SERVICE_CALLS_BACKEND_H_
#define ATTENDANT_SERVICE_CALLS_BACKEND_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/mutex.h"
#include "core/catalog/live/catalog_set.h"
#include "service/calls/attention_warning.h"
#include "service/calls/call_count.h"
#include "service/calls/call_record.h"
#include "service/calls/methods.h"
#include "service/calls/request_limits.h"
#include "service/connections/poller_reserve.h"
#include "service/connections/transport_limits.h"
#include "service/security/authenticator.h"
#include "service/security/refusal_log.h"
#include "service/watches/reset_watch.h"
#include "service/watches/stall_watch.h"

namespace attendant {

// Shared by all requests of a server. Thread-safe.
struct Backend {
  CatalogSet* const catalogs;
  const std::int64_t max_message_bytes;
  const RequestLimits limits;
  // True once shutdown has begun; new calls are then refused.
  std::atomic<bool> draining = false;
  // Held while an update reads a catalog's defaults and stores the changed
  // ones.
  Mutex update_mutex;
  AttentionWarnings attention_warnings;
  CallCount calls;
  CallRecords records{AllMethods()};
  ServerMetrics& metrics = records.metrics;
  // Null: no tokens are required.
  Authenticator* const authenticator;
  // Null only if `authenticator` is null.
  RefusalLog* const refusal_log;

  // These watch all calls.
  StallWatch stall_watch;
  ArrivalWatch arrival_watch;
  ResetWatch reset_watch;
  const std::shared_ptr<PollerReserve> poller_reserve =
      PollerReserve::OfProcess();

  Backend(CatalogSet* catalog_set, std::int64_t message_bytes,
          Authenticator* token_authenticator = nullptr,
          RefusalLog* log_of_refusals = nullptr,
          const TransportLimits& transport = {},
          const RequestLimits& request_limits = {})
      : catalogs(catalog_set),
        max_message_bytes(message_bytes),
        limits(request_limits),
        authenticator(token_authenticator),
        refusal_log(log_of_refusals),
        stall_watch({.stall_time = absl::Seconds(transport.stall_seconds),
                     .idle_time = absl::Seconds(transport.idle_seconds),
                     .reply_memory_bytes = transport.reply_memory_bytes}),
        arrival_watch(transport.max_stream_count),
        reset_watch(transport.max_stream_count, &arrival_watch) {}
};

// OK unless `text` is empty; then InvalidArgument naming `field` and saying
// what is wanted.
absl::Status CheckGiven(absl::string_view text, absl::string_view field,
                        absl::string_view want);

// Returns the catalog `name`. InvalidArgument naming `field` if the name is
// empty; NotFound if there is no such catalog.
absl::StatusOr<std::shared_ptr<LiveCatalog>> FindCatalog(
    const Backend& backend, absl::string_view name, absl::string_view field);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_BACKEND_H_
