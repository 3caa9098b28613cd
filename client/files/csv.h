// CSV files (RFC 4180) with a header row, plain or gzipped.
#ifndef ATTENDANT_CLIENT_FILES_CSV_H_
#define ATTENDANT_CLIENT_FILES_CSV_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace attendant {

struct CsvRow {
  std::int64_t number = 0;  // from 1, the header not counted
  std::int64_t line = 0;    // where it starts in the file, from 1
  // Of the columns asked for, in that order.
  std::span<const std::string> fields;
};

// Calls `visit` for each row in order, with the columns named, until it returns
// an error, which is then returned with file, row and line before its message.
// Empty lines are skipped; white space around unquoted fields is not part of
// them.
//
// InvalidArgument: a column is missing or named twice, a row has another number
// of fields than the header, a quote is malformed or not closed, the file is
// empty. Visits before the error have taken place.
absl::Status ReadCsv(const std::string& path,
                     const std::vector<std::string>& columns,
                     const std::function<absl::Status(const CsvRow&)>& visit);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_CSV_H_
