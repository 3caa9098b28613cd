// A load test from what was asked for to its report.
#ifndef ATTENDANT_CLIENT_LOAD_RUN_RUN_LOAD_H_
#define ATTENDANT_CLIENT_LOAD_RUN_RUN_LOAD_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/api/client.h"
#include "client/load/report/report.h"
#include "client/load/requests/requests.h"
#include "client/load/send/rate_profile.h"

namespace attendant {

struct LoadOptions {
  Client::Options client;  // the server, and what it wants to see
  // The same as ShellFlags has it, for a command that is advised.
  std::string connection_flags;
  RequestOptions requests;  // an empty key_field: the catalog's first
  std::string queries_path;
  int concurrency = 16;  // callers of a closed loop
  // At least one a thread is opened, and more where those have no room.
  int connections = 4;
  int threads = 1;
  double timeout_s = 10;  // of each request of the load
  // An open loop, by one of them.
  std::optional<double> rate;
  std::vector<double> steps;
  std::string ramp;
  bool fixed_arrivals = false;
  std::optional<double> writes_per_second;
  double duration_s = 10;
  double warmup_s = 1;
  std::int64_t verify_count = 0;  // answers that are checked; 0: none
  // True ends the load early. Thread-safe.
  std::function<bool()> is_stopped = [] { return false; };
};

// Reads "FROM:TO", rates > 0, as a ramp.
absl::StatusOr<RateProfile> ParseRamp(absl::string_view text,
                                      absl::Duration duration);

// The profile of an open loop; nothing of a closed one.
absl::StatusOr<std::optional<RateProfile>> ProfileOf(
    const LoadOptions& options);

// Runs the load, shown on standard error, and deletes the items that it wrote.
// Errors: those of the options and the server's before the load; under it,
// failures are part of the report.
absl::StatusOr<LoadReport> RunLoad(LoadOptions options);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_RUN_RUN_LOAD_H_
