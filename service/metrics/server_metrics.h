// All that a server counts while it answers. To add a number: an instrument
// here, its line in Write, and its row in docs/operations.md.
#ifndef ATTENDANT_SERVICE_METRICS_SERVER_METRICS_H_
#define ATTENDANT_SERVICE_METRICS_SERVER_METRICS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "service/metrics/instruments.h"
#include "service/metrics/metric_page.h"

namespace attendant {

// An RPC.
struct Method {
  std::string service;    // as attendant.v1.AttentionService
  std::string name;       // as Attend; no two RPCs share one
  std::string type;       // unary, client_stream, server_stream or bidi_stream
  bool is_query = false;  // of the attention and sequence services, unary
  std::size_t index = 0;  // among all of them
};

// The calls of one RPC.
class CallMetrics {
 public:
  CallMetrics();
  ~CallMetrics();
  CallMetrics(const CallMetrics&) = delete;
  CallMetrics& operator=(const CallMetrics&) = delete;

  Counter started;
  // Messages of streams. Else a call has one request, and one reply if it
  // succeeds: those are counted already.
  Counter read;
  Counter written;

  // Counts a call that ended. Allocates for the first of a code.
  void Handled(absl::StatusCode code, absl::Duration time);

  void Write(const Method& method, MetricPage& page) const;

 private:
  static constexpr std::size_t kCodeCount = 17;

  Histogram& Seconds(std::size_t code);

  // By code; null: none ended so. The counts of calls are those of seconds.
  std::array<std::atomic<Histogram*>, kCodeCount> seconds_ = {};
};

// Why a request was refused that would have been answered at another time.
enum class ShedReason { kQueueFull, kWouldBeLate, kDraining, kCount };

// How the mass of an answer is known: see core's MassMethod.
enum class KnownMass { kExact, kBound, kEstimate, kUnknown, kCount };

// Thread-safe.
class ServerMetrics {
 public:
  // Each method's index is its position; they must outlive the object.
  explicit ServerMetrics(std::span<const Method> methods);

  CallMetrics& calls(const Method& method) { return calls_[method.index]; }

  CounterFor<ShedReason> shed;
  Counter slow_queries;
  // Queries that a worker answered over one state of a catalog.
  Histogram batch_queries{CountBounds()};
  Counter rows_scored;
  Counter lists_visited;
  // Of answers that know them.
  Histogram returned_mass{ShareBounds()};
  Histogram shortlist_mass{ShareBounds()};
  Histogram mass_width{ShareBounds()};  // of the shortlist's interval
  CounterFor<KnownMass> masses;         // of shortlists

  void Write(MetricPage& page) const;

 private:
  const std::span<const Method> methods_;
  const std::unique_ptr<CallMetrics[]> calls_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_METRICS_SERVER_METRICS_H_
