#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/picture/svg.h"
#include "client/picture/svg_elements.h"

namespace attendant {
namespace {

using svg::Point;
using svg::Px;
using svg::Size;

// Not grey, so that unknown differs from 0.
constexpr svg::Palette kCellPalette = {"#000000", "#ffffff", "#a9c4e6"};

class MatrixLayout {
 public:
  explicit MatrixLayout(const AttentionMap& map)
      : map_(map),
        rows_(svg::LabelsOf(map.rows)),
        columns_(svg::LabelsOf(map.columns)),
        greatest_(GreatestWeight(map)) {
    const std::size_t most =
        std::max({rows_.size(), columns_.size(), std::size_t{1}});
    cell_ = std::clamp(std::floor(600 / static_cast<double>(most)), 4.0, 30.0);
    font_size_ = std::min(svg::kFontSize, cell_ + 1);
    left_ = svg::WidestOf(rows_, font_size_) + 8;
    const double lean = std::sqrt(0.5);  // labels of columns lean by 45 degrees
    top_ = svg::TitleHeight(map) +
           lean * (svg::WidestOf(columns_, font_size_) + font_size_) + 4;
    grid_ = {cell_ * static_cast<double>(columns_.size()),
             cell_ * static_cast<double>(rows_.size())};
    double right = grid_.width;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      right =
          std::max(right, (static_cast<double>(i) + 0.5) * cell_ +
                              lean * svg::WidestOf({columns_[i]}, font_size_));
    }
    size_ = {left_ + right, top_ + grid_.height};
  }

  Size size() const { return size_; }

  std::string Draw(std::size_t p, Point at) const {
    const Point grid = {at.x + left_, at.y + top_};
    return absl::StrCat(
        svg::Title(map_.panels[p], at), Labels(grid),
        svg::HasElementsOfWeights(map_) ? Cells(p, grid) : Runs(p, grid),
        svg::Rect(grid, grid_, "none"), " stroke=\"", svg::kFrame, "\"/>\n");
  }

 private:
  std::string Labels(Point grid) const {
    std::string labels;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const Point foot = {grid.x + (static_cast<double>(i) + 0.6) * cell_,
                          grid.y - 6};
      const std::string turn = absl::StrCat(" transform=\"rotate(-45 ",
                                            Px(foot.x), " ", Px(foot.y), ")\"");
      absl::StrAppend(&labels,
                      svg::Text(foot, columns_[i],
                                {.font_size = font_size_, .more = turn}));
    }
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const double y = CornerOf(grid, row, 0).y;
      absl::StrAppend(
          &labels,
          svg::Text({grid.x - 8, y + cell_ / 2 + font_size_ * 0.35}, rows_[row],
                    {.font_size = font_size_, .anchor = "end"}));
    }
    return labels;
  }

  // Draws an element for each cell.
  std::string Cells(std::size_t p, Point grid) const {
    std::string cells;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      for (std::size_t column = 0; column < columns_.size(); ++column) {
        const int level = LevelAt(p, row, column);
        absl::StrAppend(&cells,
                        svg::Rect(CornerOf(grid, row, column), {cell_, cell_},
                                  ColourOf(level)),
                        svg::kCrisp,
                        svg::WeightData(map_, p, row, column, "rect"));
      }
    }
    return cells;
  }

  // Draws a path for each shade: a stroke as wide as a cell is high for each
  // run of cells of that shade in a row.
  std::string Runs(std::size_t p, Point grid) const {
    std::vector<std::string> paths(svg::kLevels + 2);  // by level
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      for (std::size_t first = 0, end = 0; first < columns_.size();
           first = end) {
        const int level = LevelAt(p, row, first);
        end = first + 1;
        while (end < columns_.size() && LevelAt(p, row, end) == level) ++end;
        const Point corner = CornerOf(grid, row, first);
        absl::StrAppend(&paths[level], "M", Px(corner.x), " ",
                        Px(corner.y + cell_ / 2), "h",
                        Px(static_cast<double>(end - first) * cell_));
      }
    }
    std::string runs;
    for (std::size_t level = 0; level < paths.size(); ++level) {
      if (paths[level].empty()) continue;
      absl::StrAppend(&runs, "<path class=\"weights\" data-panel=\"", p,
                      "\" stroke=\"", ColourOf(static_cast<int>(level)),
                      "\" stroke-width=\"", Px(cell_), "\"", svg::kCrisp,
                      " d=\"", paths[level], "\"/>\n");
    }
    return runs;
  }

  Point CornerOf(Point grid, std::size_t row, std::size_t column) const {
    return {grid.x + static_cast<double>(column) * cell_,
            grid.y + static_cast<double>(row) * cell_};
  }

  static constexpr int kUnknown = svg::kLevels + 1;

  int LevelAt(std::size_t p, std::size_t row, std::size_t column) const {
    const double weight = map_.weight(p, row, column);
    return IsKnown(weight) ? svg::LevelOf(ShareOf(weight, greatest_))
                           : kUnknown;
  }
  static std::string ColourOf(int level) {
    return level == kUnknown ? std::string(kCellPalette.unknown)
                             : svg::Grey(level);
  }

  const AttentionMap& map_;
  const std::vector<std::string> rows_;
  const std::vector<std::string> columns_;
  const double greatest_;
  double cell_ = 0;
  double font_size_ = 0;
  double left_ = 0;  // of the grid, from the panel's corner
  double top_ = 0;
  Size grid_;
  Size size_;
};

}  // namespace

std::string MatrixSvg(const AttentionMap& map) {
  const MatrixLayout layout(map);
  return svg::Panels(
      map, layout.size(), kCellPalette,
      [&](std::size_t p, Point at) { return layout.Draw(p, at); });
}

}  // namespace attendant
