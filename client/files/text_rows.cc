#include "client/files/text_rows.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/brief.h"
#include "core/base/status.h"

namespace attendant {
namespace {

class TextRowsFile : public VectorFile {
 public:
  TextRowsFile(std::string path, std::vector<float> numbers, std::int64_t dim)
      : VectorFile(std::move(path),
                   static_cast<std::int64_t>(numbers.size()) / dim, dim),
        numbers_(std::move(numbers)) {}

 private:
  absl::Status ReadFloats(std::int64_t row, std::span<float> out) override {
    std::copy_n(numbers_.begin() + row * dim(), dim(), out.begin());
    return absl::OkStatus();
  }

  const std::vector<float> numbers_;  // [row_count, dim]
};

}  // namespace

absl::StatusOr<std::unique_ptr<VectorFile>> OpenTextRows(
    const std::string& path) {
  ATTENDANT_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(path));
  std::vector<float> numbers;
  std::size_t dim = 0;
  std::string line;
  const auto error = [&](absl::string_view message) {
    return FileError(path,
                     absl::StrCat("line ", lines.line_number(), ": ", message));
  };
  while (true) {
    ATTENDANT_ASSIGN_OR_RETURN(const bool more, lines.Next(line));
    if (!more) break;
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t,"), absl::SkipEmpty());
    if (words.empty() || line[0] == '#') continue;
    if (dim == 0) dim = words.size();
    if (words.size() != dim || dim > std::size_t{kMaxFileDim}) {
      return error(absl::StrCat("numbers in the row: got ", words.size(),
                                ", want ",
                                std::min<std::size_t>(dim, kMaxFileDim)));
    }
    for (const absl::string_view word : words) {
      float number = 0;
      if (!absl::SimpleAtof(word, &number)) {
        return error(absl::StrCat("got '", Brief(word), "', want a number",
                                  numbers.size() < dim
                                      ? "; rows have neither a header nor ids"
                                      : ""));
      }
      numbers.push_back(number);
    }
  }
  if (dim == 0) return FileError(path, "got no row of numbers");
  return std::unique_ptr<VectorFile>(new TextRowsFile(
      path, std::move(numbers), static_cast<std::int64_t>(dim)));
}

}  // namespace attendant
