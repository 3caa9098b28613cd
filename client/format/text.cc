#include "client/format/text.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace attendant {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";
constexpr absl::string_view kEllipsis = "…";
constexpr int kWidestBar = 24;
constexpr int kNarrowestBar = 4;

// The first character of a text: its bytes, and its code point or -1 if it is
// malformed.
struct Character {
  std::size_t size = 1;
  utf8proc_int32_t code_point = -1;
};

Character FirstCharacter(absl::string_view text) {
  Character character;
  const utf8proc_ssize_t size = utf8proc_iterate(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
      static_cast<utf8proc_ssize_t>(text.size()), &character.code_point);
  if (size > 0) {
    character.size = static_cast<std::size_t>(size);
  } else {
    character.code_point = -1;
  }
  return character;
}

int Width(const Character& character) {
  return character.code_point < 0 ? 1
                                  : utf8proc_charwidth(character.code_point);
}

bool IsControl(utf8proc_int32_t code_point) {
  switch (utf8proc_category(code_point)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return true;
    default:
      return false;
  }
}

std::string Wrapped(bool colour, absl::string_view code,
                    absl::string_view text) {
  if (!colour || text.empty()) return std::string(text);
  return absl::StrCat("\x1b[", code, "m", text, "\x1b[0m");
}

}  // namespace

int DisplayWidth(absl::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    width += Width(character);
    text.remove_prefix(character.size);
  }
  return width;
}

std::string Printable(absl::string_view text) {
  std::string printable;
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    if (character.code_point < 0) {
      absl::StrAppend(&printable, kReplacement);
    } else if (IsControl(character.code_point)) {
      printable.push_back(' ');
    } else {
      absl::StrAppend(&printable, text.substr(0, character.size));
    }
    text.remove_prefix(character.size);
  }
  return printable;
}

std::string Shorten(absl::string_view text, int width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  std::string shortened;
  int used = 1;  // the ellipsis
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    used += Width(character);
    if (used > width) break;
    absl::StrAppend(&shortened, text.substr(0, character.size));
    text.remove_prefix(character.size);
  }
  absl::StripTrailingAsciiWhitespace(&shortened);
  return absl::StrCat(shortened, kEllipsis);
}

std::vector<std::string> Characters(absl::string_view text) {
  std::vector<std::string> characters;
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    const std::string bytes(text.substr(0, character.size));
    if (Width(character) == 0 && !characters.empty()) {
      characters.back() += bytes;
    } else {
      characters.push_back(bytes);
    }
    text.remove_prefix(character.size);
  }
  return characters;
}

std::string Bar(double fraction, int width) {
  static constexpr std::array<absl::string_view, 8> kParts = {
      "", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!(fraction > 0)) return "";
  const int eighths =
      static_cast<int>(std::lround(std::min(fraction, 1.0) * width * 8));
  std::string bar;
  for (int i = 0; i < eighths / 8; ++i) absl::StrAppend(&bar, "█");
  absl::StrAppend(&bar, kParts[eighths % 8]);
  return bar;
}

std::string LineWithBar(absl::string_view before, double fraction,
                        absl::string_view after, int width) {
  const int bar_width =
      std::min(kWidestBar, width - DisplayWidth(before) - DisplayWidth(after));
  if (bar_width < kNarrowestBar) {
    const std::string text =
        absl::StrCat(absl::StripTrailingAsciiWhitespace(before), after);
    return Shorten(absl::StripLeadingAsciiWhitespace(text), width);
  }
  const std::string bar = Bar(fraction, bar_width);
  const std::string rest(
      static_cast<std::size_t>(bar_width - DisplayWidth(bar)), ' ');
  return absl::StrCat(before, bar, rest, after);
}

std::string FormatCount(std::int64_t count) {
  std::string digits = absl::StrCat(count);
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, 1, ',');
  }
  return digits;
}

std::string FormatShare(double share) {
  const double percent = 100 * share;
  if (percent == 0) return "0 %";
  if (percent >= 0.95) return absl::StrFormat("%.1f %%", percent);
  if (percent < 0.001) return "<0.001 %";
  const int digits = 1 - static_cast<int>(std::floor(std::log10(percent)));
  return absl::StrFormat("%.*f %%", digits, percent);
}

std::string FormatNumber(double number) {
  return absl::StrFormat("%.4g", number == 0 ? 0 : number);
}

std::string FormatBytes(std::int64_t bytes) {
  constexpr absl::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto number = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (number >= 1024 && unit + 1 < std::size(kUnits)) {
    number /= 1024;
    ++unit;
  }
  return absl::StrCat(FormatNumber(number), " ", kUnits[unit]);
}

std::string Style::Bold(absl::string_view text) const {
  return Wrapped(colour, "1", text);
}
std::string Style::Dim(absl::string_view text) const {
  return Wrapped(colour, "2", text);
}
std::string Style::Accent(absl::string_view text) const {
  return Wrapped(colour, "36", text);
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::AddRow(const std::vector<std::string>& cells) {
  std::vector<std::string> row;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    row.push_back(Shorten(Printable(cells[i]), columns_[i].max_width));
  }
  rows_.push_back(std::move(row));
}

std::string Table::Format(const Style& style) const {
  std::vector<int> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    int width = DisplayWidth(columns_[i].title);
    for (const auto& row : rows_) {
      width = std::max(width, DisplayWidth(row[i]));
    }
    widths.push_back(width);
  }
  const auto append_cell = [&](std::size_t i, absl::string_view cell,
                               absl::string_view styled, std::string& line) {
    const bool right = columns_[i].align == Align::kRight;
    const std::string padding(
        static_cast<std::size_t>(widths[i] - DisplayWidth(cell)), ' ');
    if (right) absl::StrAppend(&line, padding);
    absl::StrAppend(&line, styled);
    if (i + 1 == columns_.size()) return;
    absl::StrAppend(&line, right ? "" : padding, "  ");
  };
  const auto ended = [](std::string line) {
    absl::StripTrailingAsciiWhitespace(&line);
    return line + "\n";
  };
  std::string line;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::string& title = columns_[i].title;
    append_cell(i, title, style.Bold(title), line);
  }
  std::string text = ended(std::move(line));
  for (const auto& row : rows_) {
    line.clear();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const Tone tone = columns_[i].tone;
      append_cell(i, row[i],
                  tone == Tone::kDim      ? style.Dim(row[i])
                  : tone == Tone::kAccent ? style.Accent(row[i])
                                          : row[i],
                  line);
    }
    absl::StrAppend(&text, ended(std::move(line)));
  }
  return text;
}

}  // namespace attendant
