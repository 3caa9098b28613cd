#include "client/picture/svg_elements.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/format/markup.h"
#include "client/format/text.h"

namespace attendant::svg {
namespace {

// Generous widths of a character of kFontSize, and of a capital in addition.
constexpr double kCharacterWidth = 7.9;
constexpr double kCapitalWidth = 1.5;
// The width of a row of panels; further panels go below.
constexpr double kMaxWidth = 1000;
constexpr double kPanelGap = 32;
// Longer labels are shortened.
constexpr int kMaxLabelWidth = 40;
constexpr std::size_t kMaxElements = 4096;
constexpr char kInk[] = "#222222";

constexpr Size kScale = {96, 8};
constexpr double kScaleFontSize = 11;
// Draws the scale with its labels.
constexpr Size kLegendSize = {260, 30};

double WidthOf(const std::string& label, double font_size) {
  const auto capitals =
      static_cast<double>(std::ranges::count_if(label, absl::ascii_isupper));
  return (DisplayWidth(label) * kCharacterWidth + capitals * kCapitalWidth) *
         font_size / kFontSize;
}

std::string Label(const std::string& text) {
  return Shorten(Printable(text), kMaxLabelWidth);
}

std::string Legend(const AttentionMap& map, Point at, const Palette& palette) {
  const double baseline = at.y + kScale.height + 1;
  const double bar = at.x + 14;
  const double end = bar + kScale.width + 6;
  const std::string greatest = FormatNumber(GreatestWeight(map));
  std::string svg = absl::StrCat(
      "<g class=\"legend\"><defs><linearGradient id=\"scale\"><stop "
      "offset=\"0\" stop-color=\"",
      palette.none, "\"/><stop offset=\"1\" stop-color=\"", palette.greatest,
      "\"/></linearGradient></defs>\n",
      Text({at.x, baseline}, "0", {.font_size = kScaleFontSize}),
      Rect({bar, at.y}, kScale, "url(#scale)"), " stroke=\"", kFrame, "\"/>\n",
      Text({end, baseline}, greatest, {.font_size = kScaleFontSize}));
  if (HasUnknownWeights(map)) {
    const double unknown = end + WidthOf(greatest, kScaleFontSize) + 14;
    absl::StrAppend(
        &svg,
        Rect({unknown, at.y}, {kScale.height, kScale.height}, palette.unknown),
        " stroke=\"", kFrame, "\"/>\n",
        Text({unknown + kScale.height + 6, baseline}, "not known",
             {.font_size = kScaleFontSize}));
  }
  return absl::StrCat(svg, "</g>\n");
}

}  // namespace

std::string Px(double length) {
  return absl::StrCat(std::round(length * 10) / 10);
}

std::string Number(double number) { return absl::StrFormat("%.9g", number); }

int LevelOf(double share) {
  return static_cast<int>(std::lround(kLevels * share));
}

std::string Grey(int level) {
  return absl::StrFormat("#%02x%02x%02x", level, level, level);
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

std::string Text(Point at, absl::string_view text, const TextLook& look) {
  return absl::StrCat("<text x=\"", Px(at.x), "\" y=\"", Px(at.y),
                      "\" font-size=\"", Px(look.font_size),
                      "\" text-anchor=\"", look.anchor, "\"", look.more, ">",
                      EscapeMarkup(text), "</text>\n");
}

std::string Rect(Point at, Size size, absl::string_view fill) {
  return absl::StrCat("<rect x=\"", Px(at.x), "\" y=\"", Px(at.y),
                      "\" width=\"", Px(size.width), "\" height=\"",
                      Px(size.height), "\" fill=\"", fill, "\"");
}

std::string Title(const AttentionPanel& panel, Point at) {
  if (panel.title.empty()) return "";
  return Text({at.x, at.y + kFontSize}, Label(panel.title),
              {.more = " font-weight=\"bold\""});
}

double TitleHeight(const AttentionMap& map) {
  const bool has_titles = std::ranges::any_of(
      map.panels,
      [](const AttentionPanel& panel) { return !panel.title.empty(); });
  return has_titles ? kTitleHeight : 0;
}

std::string Document(Size size, absl::string_view body) {
  return absl::StrCat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", Px(size.width),
      "\" height=\"", Px(size.height), "\" viewBox=\"0 0 ", Px(size.width), " ",
      Px(size.height),
      "\" font-family=\"DejaVu Sans, Verdana, sans-serif\" fill=\"", kInk,
      "\">\n", Rect({0, 0}, size, "#ffffff"), "/>\n", body, "</svg>\n");
}

bool HasElementsOfWeights(const AttentionMap& map) {
  return map.panels.size() * map.rows.size() * map.columns.size() <=
         kMaxElements;
}

std::string WeightData(const AttentionMap& map, std::size_t panel,
                       std::size_t row, std::size_t column,
                       absl::string_view element) {
  const double weight = map.weight(panel, row, column);
  const std::string number = IsKnown(weight) ? Number(weight) : "unknown";
  return absl::StrCat(
      " class=\"weight\" data-panel=\"", panel, "\" data-row=\"", row,
      "\" data-column=\"", column, "\" data-weight=\"", number, "\"><title>",
      EscapeMarkup(map.rows[row]), " → ", EscapeMarkup(map.columns[column]),
      ": ", number, "</title></", element, ">\n");
}

std::string Panels(
    const AttentionMap& map, Size panel, const Palette& palette,
    absl::FunctionRef<std::string(std::size_t p, Point at)> draw_panel) {
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
  const Size panels = {columns * (panel.width + kPanelGap) - kPanelGap,
                       rows * (panel.height + kPanelGap) - kPanelGap};
  absl::StrAppend(
      &body,
      Legend(map, {kMargin, kMargin + panels.height + kLegendSize.height - 12},
             palette));
  return Document({2 * kMargin + std::max(panels.width, kLegendSize.width),
                   2 * kMargin + panels.height + kLegendSize.height},
                  body);
}

}  // namespace attendant::svg
