// Text for people at a terminal.
#ifndef ATTENDANT_CLIENT_FORMAT_TEXT_H_
#define ATTENDANT_CLIENT_FORMAT_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace attendant {

// Returns the columns that a terminal needs for UTF-8 text.
int DisplayWidth(absl::string_view text);

// Returns the text with a space for each control character, line breaks
// included, so that stored text can't control the terminal, and with U+FFFD for
// malformed UTF-8.
std::string Printable(absl::string_view text);

// Returns the text, or its start and "…", in at most `width` >= 1 columns.
std::string Shorten(absl::string_view text, int width);

// Splits printable text into characters, each with its combining marks.
std::vector<std::string> Characters(absl::string_view text);

// Draws `fraction`, in [0, 1], of a bar of `width` columns, to the nearest
// eighth of a column.
std::string Bar(double fraction, int width);

// Returns the texts with a bar between them, in at most `width` >= 1 columns.
// The bar has up to 24 columns. With too little room it is narrowed, then left
// out, and then the text is shortened.
std::string LineWithBar(absl::string_view before, double fraction,
                        absl::string_view after, int width);

// Formats 1234567 as "1,234,567".
std::string FormatCount(std::int64_t count);
// Formats 0.314 as "31.4 %"; small shares keep two digits, as in "0.0042 %",
// down to
// "<0.001 %".
std::string FormatShare(double share);
// Formats with four significant digits and no trailing zeros; -0 as "0".
std::string FormatNumber(double number);
// Formats with four significant digits in the largest unit that fits: "12 B",
// "1.5 MiB", "18.83 GiB".
std::string FormatBytes(std::int64_t bytes);

// Wraps text in escape codes if `colour` is true.
struct Style {
  bool colour = false;

  std::string Bold(absl::string_view text) const;
  std::string Dim(absl::string_view text) const;
  std::string Accent(absl::string_view text) const;
};

// A table with a title row, columns two spaces apart and no trailing spaces.
class Table {
 public:
  enum class Align { kLeft, kRight };
  enum class Tone { kPlain, kDim, kAccent };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    Tone tone = Tone::kPlain;
    int max_width = 60;  // longer cells are shortened
  };

  explicit Table(std::vector<Column> columns);

  // Adds a row with a cell for each column. Cells are made printable.
  void AddRow(const std::vector<std::string>& cells);

  // Returns true if there are no rows.
  bool empty() const { return rows_.empty(); }
  std::string Format(const Style& style) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FORMAT_TEXT_H_
