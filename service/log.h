// The server's log: one JSON object a line on stderr.
#ifndef ATTENDANT_SERVICE_LOG_H_
#define ATTENDANT_SERVICE_LOG_H_

#include <initializer_list>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// "debug", "info", "warning" or "error"; else InvalidArgument.
absl::StatusOr<LogLevel> LogLevelFromName(absl::string_view name);

// Events below `level` are dropped from now on. Info at first.
void SetLogLevel(LogLevel level);

using LogField = std::pair<absl::string_view, std::string>;

// Writes {"time": ..., "level": ..., "event": ..., fields...}. Thread-safe.
void LogEvent(LogLevel level, absl::string_view event,
              std::initializer_list<LogField> fields);

// Sends what gRPC and Protobuf log here, at debug level: what they call errors
// is mostly bad input, which is reported to callers anyway.
void CaptureLibraryLogs();

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_LOG_H_
