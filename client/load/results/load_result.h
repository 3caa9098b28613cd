// What came of a load.
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

// What became of some requests.
class Tally {
 public:
  // latency_ns counts where the code is OK or a refusal's.
  void Add(absl::StatusCode code, std::int64_t latency_ns);
  void Merge(const Tally& other);
  void Clear();

  // Of those that succeeded.
  const LatencyHistogram& latencies() const { return latencies_; }
  // Of those that were refused: how soon the server said no.
  const LatencyHistogram& refusals() const { return refusals_; }
  std::int64_t CountOf(absl::StatusCode code) const;
  // Those that were met.
  std::map<absl::StatusCode, std::int64_t> status_counts() const;

  // All: answered, refused or failed.
  std::int64_t request_count() const;
  std::int64_t answered_count() const { return latencies_.count(); }
  std::int64_t failed_count() const {
    return request_count() - answered_count();
  }
  // RESOURCE_EXHAUSTED or UNAVAILABLE: the server said that it has no room.
  std::int64_t refused_count() const { return refusals_.count(); }

 private:
  static constexpr std::size_t kCodeCount = 17;  // OK to UNAUTHENTICATED

  LatencyHistogram latencies_;
  LatencyHistogram refusals_;
  std::array<std::int64_t, kCodeCount> counts_ = {};
};

// A part of an open loop: its one rate, a step, or a piece of a ramp.
struct SliceResult {
  double rate = 0;          // requests due a second, the mean
  absl::Duration duration;  // as planned, or until the load was stopped
  Tally tally;              // of what was due in it
  // Answers that came in it, whenever they were due, in the warm-up too: so a
  // slow one makes no slice longer than it was.
  std::int64_t answer_count = 0;

  double answers_per_second() const;
};

// What was answered in a short while.
struct Moment {
  absl::Duration end;  // since the first request
  absl::Duration duration;
  std::int64_t answered_count = 0;
  std::int64_t failed_count = 0;
  // Of those answered; 0 if there are none.
  std::int64_t p50_ns = 0;
  std::int64_t p90_ns = 0;
  std::int64_t p99_ns = 0;
  std::int64_t max_ns = 0;
};

// Of the requests that count; moments are also of the warm-up.
struct LoadResult {
  // From the end of the warm-up to that of the load, or the last answer if that
  // came later: rates are those that were reached.
  absl::Duration duration;
  Tally total;
  // By kind of request, in the order of Traffic::kinds.
  std::vector<std::pair<std::string, Tally>> kinds;
  std::vector<SliceResult> slices;  // of an open loop
  std::vector<Moment> moments;
  // Failures by message, of refusals without when to try again and numbers; at
  // most kMaxMessages, and what is beyond as one.
  std::map<std::string, std::int64_t> error_counts;

  // Of an open loop: how long after its time each was sent, which is the
  // generator's own part of the latency, and those of over kLate.
  LatencyHistogram lateness;
  std::int64_t late_count = 0;
  // Due, but not sent: kMaxWaiting were waiting for their answers already.
  std::int64_t unsent_count = 0;

  static constexpr absl::Duration kLate = absl::Milliseconds(1);
  static constexpr std::size_t kMaxMessages = 50;
  static constexpr std::int64_t kMaxWaiting = 50000;

  double requests_per_second() const;
  // Of an open loop: requests due, the mean of its slices; 0 without any.
  double due_per_second() const;
  // Of a part of the requests.
  double AnswersPerSecond(const Tally& part) const;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_RESULTS_LOAD_RESULT_H_
