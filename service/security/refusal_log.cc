#include "service/security/refusal_log.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "service/log/log.h"

namespace attendant {

void RefusalLog::Note(absl::string_view path, const absl::Status& status) {
  const auto dropped = limiter_.Admit(SteadyNow());
  if (!dropped.has_value()) return;
  LogEvent(LogLevel::kWarning, "call_refused",
           {{"path", std::string(path)},
            {"error", std::string(status.message())},
            {"not_logged_before", LogValue::Json(absl::StrCat(*dropped))}});
}

}  // namespace attendant
