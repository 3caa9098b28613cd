// The results of a load.
#ifndef ATTENDANT_CLIENT_LOAD_RESULTS_LOAD_RESULT_H_
#define ATTENDANT_CLIENT_LOAD_RESULTS_LOAD_RESULT_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/load/results/latency_histogram.h"

namespace attendant {

// Counts requests by outcome, with their latencies. Not thread-safe.
class Tally {
 public:
  // Adds a request. latency_ns counts if the code is OK or a refusal.
  void Add(absl::StatusCode code, std::int64_t latency_ns);
  void Merge(const Tally& other);
  void Clear();

  // Latencies of the requests that succeeded.
  const LatencyHistogram& latencies() const { return latencies_; }
  // Latencies of the refusals.
  const LatencyHistogram& refusals() const { return refusals_; }
  std::int64_t CountOf(absl::StatusCode code) const;
  // Counts by code, without codes that did not occur.
  std::map<absl::StatusCode, std::int64_t> status_counts() const;

  // All requests: answered, refused or failed otherwise.
  std::int64_t request_count() const;
  std::int64_t answered_count() const { return latencies_.count(); }
  std::int64_t failed_count() const {
    return request_count() - answered_count();
  }
  // Requests with RESOURCE_EXHAUSTED or UNAVAILABLE: the server had no
  // capacity.
  std::int64_t refused_count() const { return refusals_.count(); }

 private:
  static constexpr std::size_t kCodeCount = 17;  // OK to UNAUTHENTICATED

  LatencyHistogram latencies_;
  LatencyHistogram refusals_;
  std::array<std::int64_t, kCodeCount> counts_ = {};
};

// A part of an open loop: a constant rate, a step, or a piece of a ramp.
struct SliceResult {
  double rate = 0;          // mean of requests due each second
  absl::Duration duration;  // as planned, or until the load was stopped
  Tally tally;              // requests that were due in it
  // Answers that arrived in it, whenever they were due, even in the warm-up, so
  // that a slow answer does not make a slice longer.
  std::int64_t answer_count = 0;

  double answers_per_second() const;
};

// The answers of a short interval.
struct Moment {
  absl::Duration end;  // since the start of the load
  absl::Duration duration;
  std::int64_t answered_count = 0;
  std::int64_t failed_count = 0;
  // Latencies of the answers; 0 if there are none.
  std::int64_t p50_ns = 0;
  std::int64_t p90_ns = 0;
  std::int64_t p99_ns = 0;
  std::int64_t max_ns = 0;
};

// The requests that count. Moments include the warm-up.
struct LoadResult {
  // From the end of the warm-up to the end of the load or to the last answer,
  // whichever is later, so that rates are those that were reached.
  absl::Duration duration;
  Tally total;
  // By kind of request, in the order of Traffic::kinds.
  std::vector<std::pair<std::string, Tally>> kinds;
  std::vector<SliceResult> slices;  // empty for a closed loop
  std::vector<Moment> moments;
  // Failures by message, with numbers and retry times removed from refusals. At
  // most kMaxMessages; further messages are counted together.
  std::map<std::string, std::int64_t> error_counts;

  // For an open loop: how late each request was sent, which is the generator's
  // share of the latency, and how many were over kLate late.
  LatencyHistogram lateness;
  std::int64_t late_count = 0;
  // Requests due but not sent, since kMaxWaiting were waiting for answers.
  std::int64_t unsent_count = 0;

  static constexpr absl::Duration kLate = absl::Milliseconds(1);
  static constexpr std::size_t kMaxMessages = 50;
  static constexpr std::int64_t kMaxWaiting = 50000;

  double requests_per_second() const;
  // For an open loop, the mean of requests due each second; 0 without slices.
  double due_per_second() const;
  // Returns the answers each second of a part of the requests.
  double AnswersPerSecond(const Tally& part) const;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_RESULTS_LOAD_RESULT_H_
