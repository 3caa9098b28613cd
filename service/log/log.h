// The server's log: one JSON object a line on stderr.
#ifndef ATTENDANT_SERVICE_LOG_LOG_H_
#define ATTENDANT_SERVICE_LOG_LOG_H_

#include <initializer_list>
#include <span>
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

// True if events of the level are not dropped.
bool IsLogged(LogLevel level);

// A text, or a number or object in JSON.
class LogValue {
 public:
  LogValue(std::string text) : text_(std::move(text)) {}
  LogValue(const char* text) : text_(text) {}
  static LogValue Json(std::string json) {
    LogValue value(std::move(json));
    value.is_json_ = true;
    return value;
  }

  const std::string& text() const { return text_; }
  bool is_json() const { return is_json_; }

 private:
  std::string text_;
  bool is_json_ = false;
};

using LogField = std::pair<absl::string_view, LogValue>;

// Writes {"time": ..., "level": ..., "event": ..., fields...}, of each text the
// first kMaxLogTextBytes. Thread-safe.
inline constexpr std::size_t kMaxLogTextBytes = 1024;
void LogEvent(LogLevel level, absl::string_view event,
              std::span<const LogField> fields);
inline void LogEvent(LogLevel level, absl::string_view event,
                     std::initializer_list<LogField> fields) {
  LogEvent(level, event, std::span(fields.begin(), fields.size()));
}

// Sends what gRPC and Protobuf log here, at debug level: what they call errors
// is mostly bad input, which is reported to callers anyway.
void CaptureLibraryLogs();

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_LOG_LOG_H_
