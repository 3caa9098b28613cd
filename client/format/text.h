// Text for people at a terminal.
#ifndef ATTENDANT_CLIENT_FORMAT_TEXT_H_
#define ATTENDANT_CLIENT_FORMAT_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace attendant {

// Columns that a terminal needs for well-formed UTF-8 text.
int DisplayWidth(absl::string_view text);

// The text with line breaks and other control characters as spaces, so that a
// stored text can't command the terminal, and malformed UTF-8 as U+FFFD.
std::string Printable(absl::string_view text);

// The text, or its start and "…", in at most `width` >= 1 columns.
std::string Shorten(absl::string_view text, int width);

// The characters of printable text in order, each with the marks that combine
// with it.
std::vector<std::string> Characters(absl::string_view text);

// A bar of `fraction`, in [0, 1], of `width` columns, to the nearest eighth of
// one.
std::string Bar(double fraction, int width);

// The texts with a bar between, in at most `width` >= 1 columns. The bar has up
// to 24; where there is too little room it is narrowed, then left out, and then
// the text is shortened.
std::string LineWithBar(absl::string_view before, double fraction,
                        absl::string_view after, int width);

// 1234567 as "1,234,567".
std::string FormatCount(std::int64_t count);
// 0.314 as "31.4 %"; small shares keep two digits, as in "0.0042 %".
std::string FormatShare(double share);
// Four significant digits, without needless zeros; -0 as "0".
std::string FormatNumber(double number);
// Four significant digits of the largest unit that fits: "12 B", "1.5 MiB",
// "18.83 GiB".
std::string FormatBytes(std::int64_t bytes);

// Wraps text in escape codes, if colour is wanted.
struct Style {
  bool colour = false;

  std::string Bold(absl::string_view text) const;
  std::string Dim(absl::string_view text) const;
  std::string Accent(absl::string_view text) const;
};

// A table with a title row, columns two spaces apart, no trailing spaces.
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

  // One cell a column; cells are made printable.
  void AddRow(const std::vector<std::string>& cells);

  // Whether it has no rows.
  bool empty() const { return rows_.empty(); }
  std::string Format(const Style& style) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FORMAT_TEXT_H_
