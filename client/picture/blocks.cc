#include "client/picture/blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

// Longer labels are shortened.
constexpr int kMaxLabelWidth = 24;
constexpr std::array<absl::string_view, 5> kShades = {"  ", "░░", "▒▒", "▓▓",
                                                      "██"};
constexpr absl::string_view kUnknown = "??";

// Returns the shade of `fraction`, in [0, 1], to the nearest quarter.
absl::string_view Shade(double fraction) {
  const long level = std::lround(fraction * (kShades.size() - 1));
  return kShades[std::clamp(level, 0L, long{kShades.size() - 1})];
}

std::string Label(const std::string& text) {
  return Shorten(Printable(text), kMaxLabelWidth);
}

std::string Padding(int width) {
  return std::string(static_cast<std::size_t>(std::max(width, 0)), ' ');
}

// Returns the line without trailing white space, and a line end.
std::string Line(std::string line) {
  absl::StripTrailingAsciiWhitespace(&line);
  return absl::StrCat(line, "\n");
}

// Writes the labels downwards, side by side, so that all end on one line.
std::string ColumnHead(const std::vector<std::string>& labels, int indent) {
  std::vector<std::vector<std::string>> columns;
  std::size_t height = 0;
  for (const std::string& label : labels) {
    columns.push_back(Characters(Label(label)));
    height = std::max(height, columns.back().size());
  }
  std::string head;
  for (std::size_t y = 0; y < height; ++y) {
    std::string line = Padding(indent);
    for (const std::vector<std::string>& column : columns) {
      const std::size_t above = height - column.size();
      const std::string character = y < above ? "" : column[y - above];
      absl::StrAppend(&line, character, Padding(2 - DisplayWidth(character)));
    }
    absl::StrAppend(&head, Line(std::move(line)));
  }
  return head;
}

std::string Legend(double greatest, bool has_unknown) {
  return absl::StrCat(
      greatest == 0
          ? "No weight is above 0."
          : absl::StrCat("██ is ", FormatNumber(greatest),
                         ", ▓▓ ▒▒ ░░ three, two and one quarter of it."),
      has_unknown ? absl::StrCat(" ", kUnknown, " is not known.") : "");
}

}  // namespace

std::string MatrixBlocks(const AttentionMap& map, const Style& style) {
  int label_width = 0;
  for (const std::string& row : map.rows) {
    label_width = std::max(label_width, DisplayWidth(Label(row)));
  }
  const double greatest = GreatestWeight(map);
  std::string text;
  for (std::size_t p = 0; p < map.panels.size(); ++p) {
    const AttentionPanel& panel = map.panels[p];
    if (p > 0) text.push_back('\n');
    if (!panel.title.empty()) {
      absl::StrAppend(&text, style.Bold(panel.title), "\n");
    }
    absl::StrAppend(&text, style.Dim(ColumnHead(map.columns, label_width + 2)));
    for (std::size_t row = 0; row < map.rows.size(); ++row) {
      const std::string label = Label(map.rows[row]);
      std::string line =
          absl::StrCat(Padding(label_width - DisplayWidth(label)), label, "  ");
      for (std::size_t column = 0; column < map.columns.size(); ++column) {
        const double weight = map.weight(p, row, column);
        absl::StrAppend(&line, IsKnown(weight)
                                   ? Shade(ShareOf(weight, greatest))
                                   : kUnknown);
      }
      absl::StrAppend(&text, Line(std::move(line)));
    }
  }
  absl::StrAppend(&text, style.Dim(Legend(greatest, HasUnknownWeights(map))),
                  "\n");
  return text;
}

std::string ImageBlocks(const PixelImage& image, const Style& style) {
  std::string text;
  std::string line;
  const auto width = static_cast<std::size_t>(image.width);
  for (std::size_t i = 0; i < image.values.size(); ++i) {
    absl::StrAppend(&line, Shade(Brightness(image, image.values[i])));
    if ((i + 1) % width == 0 || i + 1 == image.values.size()) {
      absl::StrAppend(&text, Line(std::move(line)));
      line.clear();
    }
  }
  absl::StrAppend(
      &text,
      style.Dim(absl::StrCat("██ is ", FormatNumber(image.white), ", blank ",
                             FormatNumber(image.black), ".")),
      "\n");
  return text;
}

}  // namespace attendant
