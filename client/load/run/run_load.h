// Runs a load test.
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
  Client::Options client;  // the server, its certificates and the token
  // `client` as flags (ShellFlags), for commands in advice.
  std::string connection_flags;
  RequestOptions requests;  // an empty key_field is the catalog's first
  std::string queries_path;
  int concurrency = 16;  // callers of a closed loop
  // At least one for each thread is opened, and more if these are full.
  int connections = 4;
  int threads = 1;
  double timeout_s = 10;  // of each request of the load
  // At most one of these is set, and makes an open loop.
  std::optional<double> rate;
  std::vector<double> steps;
  std::string ramp;
  bool fixed_arrivals = false;
  std::optional<double> writes_per_second;
  double duration_s = 10;
  double warmup_s = 1;
  std::int64_t verify_count = 0;  // answers to check
  // True ends the load early. Thread-safe.
  std::function<bool()> is_stopped = [] { return false; };
};

// Parses "FROM:TO", rates in (0, 1e6], as a ramp. InvalidArgument for another
// text.
absl::StatusOr<RateProfile> ParseRamp(absl::string_view text,
                                      absl::Duration duration);

// Returns the profile of an open loop, or nothing for a closed one.
absl::StatusOr<std::optional<RateProfile>> ProfileOf(
    const LoadOptions& options);

// Runs the load, shows it on standard error, and deletes the items that it
// wrote. Returns errors of the options, and the server's errors before the
// load; failures during the load are part of the report.
absl::StatusOr<LoadReport> RunLoad(LoadOptions options);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_RUN_RUN_LOAD_H_
