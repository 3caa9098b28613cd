// What a load test found, for people and for programs.
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

// Of every report's table.
inline constexpr double kReportedPercentiles[] = {10, 25, 50,   75,   90,
                                                  95, 99, 99.9, 99.99};

// What became of the items that the load wrote, "load-SEED-NUMBER".
struct CleanupResult {
  std::int64_t deleted_count = 0;
  absl::Status status;  // why some are left; or OK
  std::string command;  // that deletes them
};

struct LoadReport {
  absl::Time date;  // when the load began
  LoadResult result;
  // Requests due a second in an open loop, the mean; nothing of a closed one.
  std::optional<double> rate;
  // Connections that were opened beside those asked for, for want of room.
  int more_connection_count = 0;
  std::optional<WriterResult> writes;
  std::optional<VerifyResult> verify;
  // Of a load that writes: whatever became of a write, it may be stored.
  std::optional<CleanupResult> cleanup;
  // As asked for: server, catalog, concurrency, ...
  nlohmann::ordered_json options;
};

// Lines for people: a summary and tables.
std::string TextReport(const LoadReport& report);

// One JSON object with the keys of ghz's reports: date, count, total, average,
// fastest, slowest, rps, latencyDistribution, statusCodeDistribution,
// errorDistribution; times are in nanoseconds. What is ours is beside them.
nlohmann::ordered_json ToJson(const LoadReport& report);
std::string JsonReport(const LoadReport& report);

// A page of its own, with what was asked for, the summary, the tables, and
// plots of latency over time, of percentiles and, where there were several, of
// rates against latency. It holds the JSON too, in an element with the id
// "report".
std::string HtmlReport(const LoadReport& report);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_REPORT_REPORT_H_
