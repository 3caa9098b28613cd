#include "client/files/jsonl.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/files/input.h"
#include "client/files/json.h"
#include "core/base/status.h"

namespace attendant {

absl::Status ReadJsonLines(
    const std::string& path,
    const std::function<absl::Status(std::int64_t line, nlohmann::json object)>&
        visit,
    const std::function<absl::Status(const absl::Status&)>& reject) {
  ATTENDANT_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(path));
  std::string line;
  while (true) {
    ATTENDANT_ASSIGN_OR_RETURN(const bool more, lines.Next(line));
    if (!more) return absl::OkStatus();
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    absl::StatusOr<nlohmann::json> object =
        ParseJsonObjectWithUniqueNames(line);
    const absl::Status status =
        object.ok() ? visit(lines.line_number(), *std::move(object))
                    : object.status();
    if (status.ok()) continue;
    const absl::Status located = PrefixField(
        status, absl::StrCat(path, ": line ", lines.line_number(), ": "));
    if (reject == nullptr) return located;
    ATTENDANT_RETURN_IF_ERROR(reject(located));
  }
}

}  // namespace attendant
