#include "client/files/csv.h"

#include <csv.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/files/input.h"
#include "core/base/status.h"

namespace attendant {
namespace {

constexpr std::size_t kMaxFieldBytes = 1 << 20;
constexpr std::size_t kBlockBytes = 1 << 16;

// libcsv's parser with the rows it completes. Lines are fed one at a time, so
// that a row's line is known.
class Parser {
 public:
  // Selects all columns if `columns` is null. The error of a row goes to
  // `reject`, unless that is null.
  Parser(const std::string& path, const std::vector<std::string>* columns,
         const std::function<absl::Status(const CsvRow&)>& visit,
         const RejectCsvRow& reject)
      : path_(path), columns_(columns), visit_(visit), reject_(reject) {
    csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI | CSV_REPALL_NL);
    // By default the buffer of a field grows by 128 bytes at a time.
    csv_set_blk_size(&parser_, kBlockBytes);
  }
  ~Parser() { csv_free(&parser_); }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  // Takes the next part of the file, which may end anywhere.
  absl::Status Feed(std::span<const char> part) {
    while (!part.empty()) {
      const auto newline = std::ranges::find(part, '\n');
      const bool whole = newline != part.end();
      const std::size_t size =
          static_cast<std::size_t>(newline - part.begin()) + (whole ? 1 : 0);
      if (row_begins_) {
        row_line_ = line_;
        row_begins_ = false;
      }
      const std::size_t parsed =
          csv_parse(&parser_, part.data(), size, &OnField, &OnRow, this);
      ATTENDANT_RETURN_IF_ERROR(status_);
      if (parsed != size) return ParseError();
      if (csv_get_buffer_size(&parser_) > 2 * kMaxFieldBytes) {
        if (has_header_) ++row_number_;
        return LineError("a field is too long; a quote may not be closed");
      }
      if (whole) ++line_;
      part = part.subspan(size);
    }
    return absl::OkStatus();
  }

  absl::Status Finish() {
    const int result = csv_fini(&parser_, &OnField, &OnRow, this);
    ATTENDANT_RETURN_IF_ERROR(status_);
    if (result != 0) return ParseError();
    if (!has_header_) return FileError(path_, "no header row");
    return absl::OkStatus();
  }

 private:
  static void OnField(void* bytes, std::size_t size, void* self) {
    auto* parser = static_cast<Parser*>(self);
    // Strings of earlier rows are reused, with their memory.
    if (parser->field_count_ == parser->fields_.size()) {
      parser->fields_.emplace_back();
    }
    parser->fields_[parser->field_count_++].assign(
        static_cast<const char*>(bytes), size);
  }

  static void OnRow(int /*terminator*/, void* self) {
    auto* parser = static_cast<Parser*>(self);
    if (parser->status_.ok()) parser->status_ = parser->EndRow();
    parser->field_count_ = 0;
    parser->row_begins_ = true;
  }

  absl::Status EndRow() {
    if (field_count_ == 0) return absl::OkStatus();
    if (!has_header_) {
      has_header_ = true;
      return ReadHeader();
    }
    ++row_number_;
    const absl::Status status = VisitRow();
    if (status.ok() || reject_ == nullptr) return status;
    return reject_({row_number_, row_line_, selected_columns_,
                    std::span(fields_).first(field_count_)},
                   status);
  }

  absl::Status VisitRow() {
    if (field_count_ != header_size_) {
      return LineError(absl::StrCat(
          "got ", field_count_, field_count_ == 1 ? " field" : " fields",
          ", want ", header_size_, " as in the header"));
    }
    for (std::size_t i = 0; i < positions_.size(); ++i) {
      selected_[i].assign(fields_[positions_[i]]);
    }
    absl::Status status =
        visit_({row_number_, row_line_, selected_columns_, selected_});
    if (status.ok()) return status;
    return PrefixField(status, absl::StrCat(path_, ": row ", row_number_,
                                            " (line ", row_line_, "): "));
  }

  absl::Status ReadHeader() {
    header_size_ = field_count_;
    const std::vector<std::string> header(fields_.begin(),
                                          fields_.begin() + field_count_);
    selected_columns_ = columns_ == nullptr ? header : *columns_;
    selected_.resize(selected_columns_.size());
    for (const std::string& column : selected_columns_) {
      const auto found = std::ranges::find(header, column);
      if (found == header.end()) {
        return FileError(
            path_, absl::StrCat("no column '", column, "'; the columns are ",
                                absl::StrJoin(header, ", ")));
      }
      if (std::find(found + 1, header.end(), column) != header.end()) {
        return FileError(path_,
                         absl::StrCat("column '", column, "' is there twice"));
      }
      positions_.push_back(static_cast<std::size_t>(found - header.begin()));
    }
    return absl::OkStatus();
  }

  absl::Status LineError(absl::string_view message) const {
    const std::string where =
        has_header_
            ? absl::StrCat("row ", row_number_, " (line ", row_line_, ")")
            : absl::StrCat("line ", row_line_);
    return FileError(path_, absl::StrCat(where, ": ", message));
  }

  // The row in which libcsv found an error is not complete.
  absl::Status ParseError() {
    if (has_header_) ++row_number_;
    const int error = csv_error(&parser_);
    if (error != CSV_EPARSE) {
      return absl::ResourceExhaustedError(
          absl::StrCat(path_, ": ", csv_strerror(error)));
    }
    return LineError("a quote is malformed or not closed");
  }

  const std::string& path_;
  const std::vector<std::string>* const columns_;
  const std::function<absl::Status(const CsvRow&)>& visit_;
  const RejectCsvRow& reject_;
  csv_parser parser_;
  absl::Status status_;
  bool has_header_ = false;
  std::size_t header_size_ = 0;
  std::vector<std::string> selected_columns_;
  std::vector<std::size_t> positions_;  // of the selected columns, in a row
  std::vector<std::string> fields_;     // the first field_count_ are the row's
  std::size_t field_count_ = 0;
  std::vector<std::string> selected_;
  std::int64_t row_number_ = 0;
  std::int64_t line_ = 1;
  std::int64_t row_line_ = 1;
  bool row_begins_ = true;
};

absl::Status Read(const std::string& path,
                  const std::vector<std::string>* columns,
                  const std::function<absl::Status(const CsvRow&)>& visit,
                  const RejectCsvRow& reject) {
  ATTENDANT_ASSIGN_OR_RETURN(StreamFile file, StreamFile::Open(path));
  Parser parser(path, columns, visit, reject);
  std::vector<char> buffer(kInputBufferBytes);
  bool at_start = true;
  while (true) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::size_t count, file.Read(buffer));
    if (count == 0) break;
    std::span<const char> part(buffer.data(), count);
    if (at_start &&
        absl::StartsWith({part.data(), part.size()}, kByteOrderMark)) {
      part = part.subspan(kByteOrderMark.size());
    }
    at_start = false;
    ATTENDANT_RETURN_IF_ERROR(parser.Feed(part));
  }
  return parser.Finish();
}

}  // namespace

bool IsCsv(absl::string_view path) {
  return absl::EndsWith(path, ".csv") || absl::EndsWith(path, ".csv.gz");
}

absl::Status ReadCsv(const std::string& path,
                     const std::vector<std::string>& columns,
                     const std::function<absl::Status(const CsvRow&)>& visit) {
  return Read(path, &columns, visit, nullptr);
}

absl::Status ReadWholeCsv(
    const std::string& path,
    const std::function<absl::Status(const CsvRow&)>& visit,
    const RejectCsvRow& reject) {
  return Read(path, nullptr, visit, reject);
}

}  // namespace attendant
