#include "client/files/ids.h"

#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "client/files/input.h"
#include "core/base/ids.h"
#include "core/base/status.h"

namespace attendant {

absl::StatusOr<std::vector<std::string>> ReadIds(const std::string& path) {
  ATTENDANT_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(path));
  std::vector<std::string> ids;
  absl::flat_hash_map<std::string, std::int64_t> line_of;
  std::string id;
  while (true) {
    ATTENDANT_ASSIGN_OR_RETURN(const bool more, lines.Next(id));
    if (!more) return ids;
    const std::int64_t line = lines.line_number();
    const absl::Status status =
        ValidateItemId(id, absl::StrCat(path, ": line ", line));
    if (!status.ok()) return status;
    const auto [first, is_new] = line_of.try_emplace(id, line);
    if (!is_new) {
      return FileError(path, absl::StrCat("line ", line, ": id '", id,
                                          "' is not unique: line ",
                                          first->second, " has it too"));
    }
    ids.push_back(id);
  }
}

}  // namespace attendant
