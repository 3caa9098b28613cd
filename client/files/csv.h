// CSV files (RFC 4180) with a header row, plain or gzipped.
#ifndef ATTENDANT_CLIENT_FILES_CSV_H_
#define ATTENDANT_CLIENT_FILES_CSV_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attendant {

// True if the path's name ends in .csv or .csv.gz.
bool IsCsv(absl::string_view path);

struct CsvRow {
  std::int64_t number = 0;  // from 1, without the header
  std::int64_t line = 0;    // the file's line on which it starts, from 1
  std::span<const std::string> columns;  // the names of the selected columns
  std::span<const std::string> fields;   // their fields, in the same order
};

using RejectCsvRow =
    std::function<absl::Status(const CsvRow&, const absl::Status&)>;

// Selects the named columns and calls `visit` with each row in order, until it
// returns an error; that error is returned with file, row and line in front of
// its message. Skips empty lines, and drops white space around unquoted fields.
//
// InvalidArgument: a column is missing or its name appears twice, the number of
// a row's fields differs from the header's, a quote is malformed or not closed,
// or the file is empty. Rows before the error have been visited.
absl::Status ReadCsv(const std::string& path,
                     const std::vector<std::string>& columns,
                     const std::function<absl::Status(const CsvRow&)>& visit);

// Selects all columns, in the header's order. If `reject` is given, it is
// called with a row that has another number of fields than the header or
// that `visit` refuses, and with the error; reading goes on with the next row
// if it returns OK.
absl::Status ReadWholeCsv(
    const std::string& path,
    const std::function<absl::Status(const CsvRow&)>& visit,
    const RejectCsvRow& reject = nullptr);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_CSV_H_
