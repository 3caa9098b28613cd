// The server's log: one JSON object per line on stderr.
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

// Returns the level named "debug", "info", "warning" or "error";
// InvalidArgument for other names.
absl::StatusOr<LogLevel> LogLevelFromName(absl::string_view name);

// Drops events below `level` from now on. The initial level is info.
void SetLogLevel(LogLevel level);

// True if events of `level` are logged.
bool IsLogged(LogLevel level);

// A text, or a number or object as JSON.
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

// Writes {"time": ..., "level": ..., "event": ..., fields...}. Texts are cut to
// kMaxLogTextBytes. Thread-safe.
inline constexpr std::size_t kMaxLogTextBytes = 1024;
void LogEvent(LogLevel level, absl::string_view event,
              std::span<const LogField> fields);
inline void LogEvent(LogLevel level, absl::string_view event,
                     std::initializer_list<LogField> fields) {
  LogEvent(level, event, std::span(fields.begin(), fields.size()));
}

// Redirects the logs of gRPC and Protobuf here, at debug level: what they call
// errors is mostly bad input, which callers are told of anyway.
void CaptureLibraryLogs();

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_LOG_LOG_H_
