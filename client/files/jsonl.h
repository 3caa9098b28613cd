// JSON Lines files: one object per line, plain or gzipped.
#ifndef ATTENDANT_CLIENT_FILES_JSONL_H_
#define ATTENDANT_CLIENT_FILES_JSONL_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace attendant {

// Calls `visit` with each object and its line number, from 1, until it returns
// an error; that error is returned with file and line in front of its message.
// Skips blank lines. InvalidArgument if a line is not one JSON object, has a
// name twice, or is nested deeper than kMaxJsonDepth (json.h). If `reject` is
// given, it is called with that error in place of the return, and reading goes
// on with the next line if it returns OK.
absl::Status ReadJsonLines(
    const std::string& path,
    const std::function<absl::Status(std::int64_t line, nlohmann::json object)>&
        visit,
    const std::function<absl::Status(const absl::Status&)>& reject = nullptr);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_JSONL_H_
