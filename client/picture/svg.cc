#include "client/picture/svg.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/format/markup.h"
#include "client/format/text.h"

namespace attendant {
namespace {

// Lengths are pixels.
constexpr double kMargin = 16;
constexpr double kFontSize = 13;
// Of a character of that size, generously, and what a capital has more.
constexpr double kCharacterWidth = 7.9;
constexpr double kCapitalWidth = 1.5;
constexpr double kTitleHeight = 26;
// Panels stand side by side up to this, then below.
constexpr double kMaxWidth = 1000;
constexpr double kPanelGap = 32;
// Longer labels are shortened.
constexpr int kMaxLabelWidth = 40;
constexpr char kInk[] = "#222222";
constexpr char kFrame[] = "#888888";
// An attribute of cells: no seams between them.
constexpr char kCrisp[] = " shape-rendering=\"crispEdges\"";

struct Point {
  double x = 0;
  double y = 0;
};

struct Size {
  double width = 0;
  double height = 0;
};

// To a tenth of a pixel.
std::string Px(double length) {
  return absl::StrCat(std::round(length * 10) / 10);
}

std::string Number(double number) { return absl::StrFormat("%.9g", number); }

std::string Label(const std::string& text) {
  return Shorten(Printable(text), kMaxLabelWidth);
}

double WidthOf(const std::string& label, double font_size = kFontSize) {
  const auto capitals = static_cast<double>(
      std::count_if(label.begin(), label.end(), absl::ascii_isupper));
  return (DisplayWidth(label) * kCharacterWidth + capitals * kCapitalWidth) *
         font_size / kFontSize;
}

std::vector<std::string> LabelsOf(const std::vector<std::string>& texts) {
  std::vector<std::string> labels;
  for (const std::string& text : texts) labels.push_back(Label(text));
  return labels;
}

double WidestOf(const std::vector<std::string>& labels, double font_size) {
  double widest = 0;
  for (const std::string& label : labels) {
    widest = std::max(widest, WidthOf(label, font_size));
  }
  return widest;
}

struct TextLook {
  double font_size = kFontSize;
  absl::string_view anchor = "start";
  absl::string_view more = {};  // attributes
};

std::string Text(Point at, absl::string_view text, const TextLook& look = {}) {
  return absl::StrCat("<text x=\"", Px(at.x), "\" y=\"", Px(at.y),
                      "\" font-size=\"", Px(look.font_size),
                      "\" text-anchor=\"", look.anchor, "\"", look.more, ">",
                      EscapeMarkup(text), "</text>\n");
}

// An open <rect ...>, without its end.
std::string Rect(Point at, Size size, absl::string_view fill) {
  return absl::StrCat("<rect x=\"", Px(at.x), "\" y=\"", Px(at.y),
                      "\" width=\"", Px(size.width), "\" height=\"",
                      Px(size.height), "\" fill=\"", fill, "\"");
}

// Of a brightness in [0, 1].
std::string Grey(double brightness) {
  const int level = static_cast<int>(std::lround(255 * brightness));
  return absl::StrFormat("#%02x%02x%02x", level, level, level);
}

std::string Document(Size size, absl::string_view body) {
  return absl::StrCat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", Px(size.width),
      "\" height=\"", Px(size.height), "\" viewBox=\"0 0 ", Px(size.width), " ",
      Px(size.height),
      "\" font-family=\"DejaVu Sans, Verdana, sans-serif\" fill=\"", kInk,
      "\">\n", Rect({0, 0}, size, "#ffffff"), "/>\n", body, "</svg>\n");
}

// Where a weight stands, for programs and as a tooltip: what comes between
// " class=" and the end of its element, whose name is `element`.
std::string WeightData(const AttentionMap& map, std::size_t panel,
                       std::size_t row, std::size_t column,
                       absl::string_view element) {
  const std::string weight = Number(map.weight(panel, row, column));
  return absl::StrCat(
      " class=\"weight\" data-panel=\"", panel, "\" data-row=\"", row,
      "\" data-column=\"", column, "\" data-weight=\"", weight, "\"><title>",
      EscapeMarkup(map.rows[row]), " → ", EscapeMarkup(map.columns[column]),
      ": ", weight, "</title></", element, ">\n");
}

// Panels of one size, side by side and below each other.
template <typename DrawPanel>
std::string Panels(const AttentionMap& map, Size panel,
                   const DrawPanel& draw_panel) {
  const std::size_t count = map.panels.size();
  const auto fit = static_cast<std::size_t>((kMaxWidth - 2 * kMargin) /
                                            (panel.width + kPanelGap));
  const std::size_t across = std::clamp<std::size_t>(fit, 1, count);
  std::string body;
  for (std::size_t p = 0; p < count; ++p) {
    const Point at = {
        kMargin + static_cast<double>(p % across) * (panel.width + kPanelGap),
        kMargin + static_cast<double>(p / across) * (panel.height + kPanelGap)};
    absl::StrAppend(&body, draw_panel(p, at));
  }
  const auto columns = static_cast<double>(across);
  const auto rows = static_cast<double>((count + across - 1) / across);
  return Document(
      {2 * kMargin + columns * (panel.width + kPanelGap) - kPanelGap,
       2 * kMargin + rows * (panel.height + kPanelGap) - kPanelGap},
      body);
}

bool HasTitles(const AttentionMap& map) {
  return std::any_of(
      map.panels.begin(), map.panels.end(),
      [](const AttentionPanel& panel) { return !panel.title.empty(); });
}

std::string Title(const AttentionPanel& panel, Point at) {
  if (panel.title.empty()) return "";
  return Text({at.x, at.y + kFontSize}, Label(panel.title),
              {.more = " font-weight=\"bold\""});
}

// --- Matrices ----------------------------------------------------------------

class MatrixLayout {
 public:
  explicit MatrixLayout(const AttentionMap& map)
      : map_(map), rows_(LabelsOf(map.rows)), columns_(LabelsOf(map.columns)) {
    const std::size_t most =
        std::max({rows_.size(), columns_.size(), std::size_t{1}});
    cell_ = std::clamp(std::floor(600 / static_cast<double>(most)), 4.0, 30.0);
    font_size_ = std::min(kFontSize, cell_ + 1);
    left_ = WidestOf(rows_, font_size_) + 8;
    const double lean = std::sqrt(0.5);  // labels of columns lean by 45 degrees
    top_ = (HasTitles(map) ? kTitleHeight : 0) +
           lean * (WidestOf(columns_, font_size_) + font_size_) + 4;
    grid_ = {cell_ * static_cast<double>(columns_.size()),
             cell_ * static_cast<double>(rows_.size())};
    double right = std::max(grid_.width, kScale.width + 70);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      right = std::max(right, (static_cast<double>(i) + 0.5) * cell_ +
                                  lean * WidthOf(columns_[i], font_size_));
    }
    size_ = {left_ + right, top_ + grid_.height + 2 * kScale.height + 24};
  }

  Size size() const { return size_; }

  std::string Draw(std::size_t p, Point at) const {
    const AttentionPanel& panel = map_.panels[p];
    const Point grid = {at.x + left_, at.y + top_};
    std::string svg = Title(panel, at);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const Point foot = {grid.x + (static_cast<double>(i) + 0.6) * cell_,
                          grid.y - 6};
      const std::string turn = absl::StrCat(" transform=\"rotate(-45 ",
                                            Px(foot.x), " ", Px(foot.y), ")\"");
      absl::StrAppend(&svg, Text(foot, columns_[i],
                                 {.font_size = font_size_, .more = turn}));
    }
    const double greatest = GreatestWeight(panel);
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const double y = grid.y + static_cast<double>(row) * cell_;
      absl::StrAppend(
          &svg, Text({grid.x - 8, y + cell_ / 2 + font_size_ * 0.35},
                     rows_[row], {.font_size = font_size_, .anchor = "end"}));
      for (std::size_t column = 0; column < columns_.size(); ++column) {
        const double weight = map_.weight(p, row, column);
        const Point corner = {grid.x + static_cast<double>(column) * cell_, y};
        absl::StrAppend(&svg,
                        Rect(corner, {cell_, cell_},
                             Grey(greatest > 0 ? weight / greatest : 0)),
                        kCrisp, WeightData(map_, p, row, column, "rect"));
      }
    }
    absl::StrAppend(&svg, Rect(grid, grid_, "none"), " stroke=\"", kFrame,
                    "\"/>\n",
                    DrawScale({grid.x, grid.y + grid_.height + 14}, greatest));
    return svg;
  }

 private:
  static constexpr Size kScale = {96, 8};

  static std::string DrawScale(Point at, double greatest) {
    const double baseline = at.y + kScale.height + 1;
    constexpr double kSmall = 11;
    const double bar = at.x + 14;
    return absl::StrCat(Text({at.x, baseline}, "0", {.font_size = kSmall}),
                        Rect({bar, at.y}, kScale, "url(#scale)"), " stroke=\"",
                        kFrame, "\"/>\n",
                        Text({bar + kScale.width + 6, baseline},
                             FormatNumber(greatest), {.font_size = kSmall}));
  }

  const AttentionMap& map_;
  const std::vector<std::string> rows_;
  const std::vector<std::string> columns_;
  double cell_ = 0;
  double font_size_ = 0;
  double left_ = 0;  // of the grid, from the panel's corner
  double top_ = 0;
  Size grid_;
  Size size_;
};

constexpr char kScaleGradient[] =
    "<defs><linearGradient id=\"scale\"><stop offset=\"0\" "
    "stop-color=\"#000000\"/><stop offset=\"1\" stop-color=\"#ffffff\"/>"
    "</linearGradient></defs>\n";

// --- Lines -------------------------------------------------------------------

class LinesLayout {
 public:
  explicit LinesLayout(const AttentionMap& map)
      : map_(map), rows_(LabelsOf(map.rows)), columns_(LabelsOf(map.columns)) {
    const auto most =
        static_cast<double>(std::max(rows_.size(), columns_.size()));
    step_ = std::clamp(std::floor(720 / std::max(most, 1.0)), 8.0, 26.0);
    font_size_ = std::min(kFontSize, step_);
    left_ = WidestOf(rows_, font_size_) + 6;
    top_ = HasTitles(map) ? kTitleHeight : 0;
    height_ = most * step_;
    size_ = {left_ + kSpan + 6 + WidestOf(columns_, font_size_),
             top_ + height_};
  }

  Size size() const { return size_; }

  std::string Draw(std::size_t p, Point at) const {
    const AttentionPanel& panel = map_.panels[p];
    std::string svg = Title(panel, at);
    const double left = at.x + left_;
    const double right = left + kSpan;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      absl::StrAppend(&svg,
                      Text({left - 6, Baseline(at, i, rows_.size())}, rows_[i],
                           {.font_size = font_size_, .anchor = "end"}));
    }
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      absl::StrAppend(&svg, Text({right + 6, Baseline(at, i, columns_.size())},
                                 columns_[i], {.font_size = font_size_}));
    }
    // The heaviest last, on top.
    std::vector<std::size_t> order(panel.weights.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) {
                       return panel.weights[a] < panel.weights[b];
                     });
    const double greatest = GreatestWeight(panel);
    for (const std::size_t i : order) {
      if (panel.weights[i] == 0) continue;
      const double share = panel.weights[i] / greatest;
      const std::size_t row = i / columns_.size();
      const std::size_t column = i % columns_.size();
      absl::StrAppend(&svg, "<line x1=\"", Px(left), "\" y1=\"",
                      Px(Middle(at, row, rows_.size())), "\" x2=\"", Px(right),
                      "\" y2=\"", Px(Middle(at, column, columns_.size())),
                      "\" stroke=\"#d00000\" stroke-width=\"2.5\" "
                      "stroke-opacity=\"",
                      absl::StrFormat("%.3g", share), "\"",
                      WeightData(map_, p, row, column, "line"));
    }
    return svg;
  }

 private:
  static constexpr double kSpan = 150;

  // The shorter column stands in the middle.
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
  double step_ = 0;  // from word to word
  double font_size_ = 0;
  double left_ = 0;
  double top_ = 0;
  double height_ = 0;
  Size size_;
};

}  // namespace

std::string MatrixSvg(const AttentionMap& map) {
  const MatrixLayout layout(map);
  return Panels(map, layout.size(), [&](std::size_t p, Point at) {
    return absl::StrCat(p == 0 ? kScaleGradient : "", layout.Draw(p, at));
  });
}

std::string LinesSvg(const AttentionMap& map) {
  const LinesLayout layout(map);
  return Panels(map, layout.size(),
                [&](std::size_t p, Point at) { return layout.Draw(p, at); });
}

std::string ImageSvg(const PixelImage& image) {
  constexpr double kPixel = 8;
  const auto width = static_cast<std::size_t>(image.width);
  const std::size_t height = (image.values.size() + width - 1) / width;
  std::string body;
  for (std::size_t i = 0; i < image.values.size(); ++i) {
    const Point corner = {kMargin + static_cast<double>(i % width) * kPixel,
                          kMargin + static_cast<double>(i / width) * kPixel};
    absl::StrAppend(&body,
                    Rect(corner, {kPixel, kPixel},
                         Grey(Brightness(image, image.values[i]))),
                    kCrisp, " class=\"pixel\" data-value=\"",
                    Number(image.values[i]), "\"/>\n");
  }
  return Document({2 * kMargin + static_cast<double>(width) * kPixel,
                   2 * kMargin + static_cast<double>(height) * kPixel},
                  body);
}

}  // namespace attendant
