#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/picture/svg.h"
#include "client/picture/svg_elements.h"

namespace attendant {
namespace {

using svg::Point;
using svg::Px;
using svg::Size;

constexpr svg::Palette kLinePalette = {"#ffffff", "#d00000", "#a9c4e6"};

// Returns the attributes that all lines have.
std::string Stroke(absl::string_view colour, double opacity) {
  return absl::StrCat(" stroke=\"", colour,
                      "\" stroke-width=\"2.5\" stroke-opacity=\"",
                      absl::StrFormat("%.3g", opacity), "\"");
}

class LinesLayout {
 public:
  explicit LinesLayout(const AttentionMap& map)
      : map_(map),
        rows_(svg::LabelsOf(map.rows)),
        columns_(svg::LabelsOf(map.columns)),
        greatest_(GreatestWeight(map)) {
    const auto most =
        static_cast<double>(std::max(rows_.size(), columns_.size()));
    step_ = std::clamp(std::floor(720 / std::max(most, 1.0)), 8.0, 26.0);
    font_size_ = std::min(svg::kFontSize, step_);
    left_ = svg::WidestOf(rows_, font_size_) + 6;
    top_ = svg::TitleHeight(map);
    height_ = most * step_;
    size_ = {left_ + kSpan + 6 + svg::WidestOf(columns_, font_size_),
             top_ + height_};
  }

  Size size() const { return size_; }

  std::string Draw(std::size_t p, Point at) const {
    return absl::StrCat(
        svg::Title(map_.panels[p], at), Labels(at),
        svg::HasElementsOfWeights(map_) ? Lines(p, at) : Bundles(p, at));
  }

 private:
  static constexpr double kSpan = 150;

  std::string Labels(Point at) const {
    std::string labels;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      absl::StrAppend(
          &labels,
          svg::Text({at.x + left_ - 6, Baseline(at, i, rows_.size())}, rows_[i],
                    {.font_size = font_size_, .anchor = "end"}));
    }
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      absl::StrAppend(&labels,
                      svg::Text({at.x + left_ + kSpan + 6,
                                 Baseline(at, i, columns_.size())},
                                columns_[i], {.font_size = font_size_}));
    }
    return labels;
  }

  // Draws an element for each weight, unknown weights first and the heaviest
  // last, on top.
  std::string Lines(std::size_t p, Point at) const {
    const std::vector<double>& weights = map_.panels[p].weights;
    std::vector<std::size_t> order(weights.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto height = [&](std::size_t i) {
      return IsKnown(weights[i]) ? weights[i] : -1;
    };
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return height(a) < height(b);
    });
    std::string lines;
    for (const std::size_t i : order) {
      if (weights[i] == 0) continue;
      const std::size_t row = i / columns_.size();
      const std::size_t column = i % columns_.size();
      const Point from = Start(at, row);
      const Point to = End(at, column);
      absl::StrAppend(
          &lines, "<line x1=\"", Px(from.x), "\" y1=\"", Px(from.y), "\" x2=\"",
          Px(to.x), "\" y2=\"", Px(to.y), "\"",
          IsKnown(weights[i])
              ? Stroke(kLinePalette.greatest, ShareOf(weights[i], greatest_))
              : Stroke(kLinePalette.unknown, 1),
          svg::WeightData(map_, p, row, column, "line"));
    }
    return lines;
  }

  // Draws a group for each shade, unknown weights first and the heaviest last,
  // with a path for each row. Weights below the first shade are not drawn.
  std::string Bundles(std::size_t p, Point at) const {
    constexpr std::size_t kUnknownShade = 0;  // in place of what is not drawn
    std::vector<std::string> groups(svg::kLevels + 1);  // by level
    std::vector<std::string> paths(groups.size());      // of a row
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const Point from = Start(at, row);
      const std::string move = absl::StrCat("M", Px(from.x), " ", Px(from.y));
      for (std::size_t column = 0; column < columns_.size(); ++column) {
        const double weight = map_.weight(p, row, column);
        std::size_t level = kUnknownShade;
        if (IsKnown(weight)) {
          level = static_cast<std::size_t>(
              svg::LevelOf(ShareOf(weight, greatest_)));
          if (level == 0) continue;
        }
        const Point to = End(at, column);
        absl::StrAppend(&paths[level], move, "L", Px(to.x), " ", Px(to.y));
      }
      for (std::size_t level = 0; level < paths.size(); ++level) {
        if (paths[level].empty()) continue;
        absl::StrAppend(&groups[level], "<path d=\"", paths[level], "\"/>\n");
        paths[level].clear();
      }
    }
    std::string bundles;
    for (std::size_t level = 0; level < groups.size(); ++level) {
      if (groups[level].empty()) continue;
      absl::StrAppend(&bundles, "<g class=\"weights\" data-panel=\"", p, "\"",
                      level == kUnknownShade
                          ? Stroke(kLinePalette.unknown, 1)
                          : Stroke(kLinePalette.greatest,
                                   static_cast<double>(level) / svg::kLevels),
                      ">\n", groups[level], "</g>\n");
    }
    return bundles;
  }

  Point Start(Point at, std::size_t row) const {
    return {at.x + left_, Middle(at, row, rows_.size())};
  }
  Point End(Point at, std::size_t column) const {
    return {at.x + left_ + kSpan, Middle(at, column, columns_.size())};
  }
  // The shorter column is centred.
  double Middle(Point at, std::size_t i, std::size_t count) const {
    const double above = (height_ - static_cast<double>(count) * step_) / 2;
    return at.y + top_ + above + (static_cast<double>(i) + 0.5) * step_;
  }
  double Baseline(Point at, std::size_t i, std::size_t count) const {
    return Middle(at, i, count) + font_size_ * 0.35;
  }

  const AttentionMap& map_;
  const std::vector<std::string> rows_;
  const std::vector<std::string> columns_;
  const double greatest_;
  double step_ = 0;  // from word to word
  double font_size_ = 0;
  double left_ = 0;
  double top_ = 0;
  double height_ = 0;
  Size size_;
};

}  // namespace

std::string LinesSvg(const AttentionMap& map) {
  const LinesLayout layout(map);
  return svg::Panels(
      map, layout.size(), kLinePalette,
      [&](std::size_t p, Point at) { return layout.Draw(p, at); });
}

}  // namespace attendant
