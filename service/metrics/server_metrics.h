// All metrics that a server counts. To add one: add an instrument here, a line
// in Write, and a row in docs/operations.md.
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
  std::string service;    // such as attendant.v1.AttentionService
  std::string name;       // such as Attend; unique among RPCs
  std::string type;       // unary, client_stream, server_stream or bidi_stream
  bool is_query = false;  // unary, in the attention or sequence service
  std::size_t index = 0;  // among all RPCs
};

// Metrics of the calls of one RPC.
class CallMetrics {
 public:
  CallMetrics();
  ~CallMetrics();
  CallMetrics(const CallMetrics&) = delete;
  CallMetrics& operator=(const CallMetrics&) = delete;

  Counter started;
  // Messages of streams. Other calls have one request, and one reply if they
  // succeed, which are already counted.
  Counter read;
  Counter written;

  // Counts a completed call. Allocates on the first call with a code.
  void Handled(absl::StatusCode code, absl::Duration time);

  void Write(const Method& method, MetricPage& page) const;

 private:
  static constexpr std::size_t kCodeCount = 17;

  Histogram& Seconds(std::size_t code);

  // By code; null: no call has ended with it. The sample counts are the numbers
  // of calls.
  std::array<std::atomic<Histogram*>, kCodeCount> seconds_ = {};
};

// Why a request was refused that would have been served at another time.
enum class ShedReason { kQueueFull, kWouldBeLate, kDraining, kCount };

// How precisely the mass of an answer is known; see core's MassMethod.
enum class KnownMass { kExact, kBound, kEstimate, kUnknown, kCount };

// Thread-safe.
class ServerMetrics {
 public:
  // The index of each method must be its position; they must outlive the
  // object.
  explicit ServerMetrics(std::span<const Method> methods);

  CallMetrics& calls(const Method& method) { return calls_[method.index]; }

  CounterFor<ShedReason> shed;
  Counter slow_queries;
  // Number of queries that a worker answered over one state of a catalog.
  Histogram batch_queries{CountBounds()};
  Counter rows_scored;
  Counter lists_visited;
  // For answers where they are known.
  Histogram returned_mass{ShareBounds()};
  Histogram shortlist_mass{ShareBounds()};
  Histogram mass_width{
      ShareBounds()};            // of the interval of the shortlist's mass
  CounterFor<KnownMass> masses;  // of the masses of shortlists

  void Write(MetricPage& page) const;

 private:
  const std::span<const Method> methods_;
  const std::unique_ptr<CallMetrics[]> calls_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_METRICS_SERVER_METRICS_H_
