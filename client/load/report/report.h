// Reports the results of a load test, for people and for programs.
#ifndef ATTENDANT_CLIENT_LOAD_REPORT_REPORT_H_
#define ATTENDANT_CLIENT_LOAD_REPORT_REPORT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/load/results/load_result.h"
#include "client/load/send/background_writer.h"
#include "client/load/send/verify.h"

namespace attendant {

// The percentiles in the table of a report.
inline constexpr double kReportedPercentiles[] = {10, 25, 50,   75,   90,
                                                  95, 99, 99.9, 99.99};

// The deletion of the items that the load wrote, "load-SEED-NUMBER".
struct CleanupResult {
  std::int64_t deleted_count = 0;
  absl::Status status;  // why some are left, or OK
  std::string command;  // a command that deletes them
};

struct LoadReport {
  absl::Time date;  // when the load began
  LoadResult result;
  // The mean of requests due each second in an open loop; nothing for a closed
  // one.
  std::optional<double> rate;
  // Connections opened in addition to those requested, because those were full.
  int more_connection_count = 0;
  std::optional<WriterResult> writes;
  std::optional<VerifyResult> verify;
  // Set if the load writes, even if all writes failed: they may be stored.
  std::optional<CleanupResult> cleanup;
  // The options: server, catalog, concurrency, ...
  nlohmann::ordered_json options;
};

// Returns a summary and tables as text.
std::string TextReport(const LoadReport& report);

// Returns a JSON object with the keys of ghz's reports (date, count, total,
// average, fastest, slowest, rps, latencyDistribution, statusCodeDistribution,
// errorDistribution), times in nanoseconds, and further keys of our own.
nlohmann::ordered_json ToJson(const LoadReport& report);
std::string JsonReport(const LoadReport& report);

// Returns a self-contained page with the options, the summary, the tables, and
// plots of latency over time, of percentiles and, if there were several rates,
// of latency by rate. An element with the id "report" holds the JSON.
std::string HtmlReport(const LoadReport& report);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_REPORT_REPORT_H_
