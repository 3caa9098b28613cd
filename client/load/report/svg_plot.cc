#include "client/load/report/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/format/markup.h"
#include "client/format/text.h"

namespace attendant {
namespace {

constexpr double kWidth = 760;
constexpr double kHeight = 300;
constexpr double kLeft = 70;
constexpr double kRight = 20;
constexpr double kTop = 30;
constexpr double kBottom = 45;
constexpr int kWantedTicks = 6;

// Maps values to positions along one side of the plot.
class Scale {
 public:
  Scale(const PlotAxis& axis, double low, double high, double from, double to)
      : axis_(axis), from_(from), to_(to) {
    if (!axis.logarithmic) {
      low = std::min(low, 0.0);
      if (high <= low) high = low + 1;
    } else if (high <= low) {
      low /= 2;
      high *= 2;
    }
    if (axis.logarithmic) {
      for (double tick = std::pow(10, std::floor(std::log10(low)));
           tick < high * 10; tick *= 10) {
        ticks_.push_back(tick);
      }
    } else {
      ticks_ = RoundTicks(low, high);
    }
    low_ = Place(std::min(low, ticks_.front()));
    high_ = Place(std::max(high, ticks_.back()));
  }

  bool Has(double value) const { return !axis_.logarithmic || value > 0; }
  double At(double value) const {
    return from_ + (to_ - from_) * (Place(value) - low_) / (high_ - low_);
  }
  const std::vector<double>& ticks() const { return ticks_; }
  std::string Format(double value) const {
    return axis_.format ? axis_.format(value) : FormatNumber(value);
  }

 private:
  double Place(double value) const {
    return axis_.logarithmic ? std::log10(value) : value;
  }

  const PlotAxis& axis_;
  const double from_;
  const double to_;
  std::vector<double> ticks_;
  double low_ = 0;
  double high_ = 1;
};

// Returns the least and the greatest value that is drawn.
template <typename Of>
std::pair<double, double> RangeOf(const Plot& plot, const PlotAxis& axis,
                                  const Of& of) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const PlotSeries& series : plot.series) {
    for (const auto& point : series.points) {
      const double value = of(point);
      if (axis.logarithmic && value <= 0) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  if (low > high) return {1, 10};
  return {low, high};
}

}  // namespace

std::vector<double> RoundTicks(double low, double high) {
  const double wanted = (high - low) / kWantedTicks;
  double step = std::pow(10, std::floor(std::log10(wanted)));
  for (const double factor : {2.0, 5.0, 10.0}) {
    if (step >= wanted * 0.999) break;
    step = factor * std::pow(10, std::floor(std::log10(wanted)));
  }
  std::vector<double> ticks;
  for (double i = std::floor(low / step + 1e-9);
       ticks.empty() || ticks.back() < high - 1e-9 * step; ++i) {
    ticks.push_back(i * step);
  }
  return ticks;
}

std::string DrawPlot(const Plot& plot) {
  const auto [x_low, x_high] =
      RangeOf(plot, plot.x, [](const auto& point) { return point.first; });
  const auto [y_low, y_high] =
      RangeOf(plot, plot.y, [](const auto& point) { return point.second; });
  const Scale x(plot.x, x_low, x_high, kLeft, kWidth - kRight);
  const Scale y(plot.y, y_low, y_high, kHeight - kBottom, kTop);

  std::string svg = absl::StrFormat(
      "<svg viewBox=\"0 0 %g %g\" role=\"img\" "
      "xmlns=\"http://www.w3.org/2000/svg\">\n",
      kWidth, kHeight);
  for (const double tick : x.ticks()) {
    absl::StrAppendFormat(
        &svg,
        "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%g\" y2=\"%g\"/>"
        "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%s</text>\n",
        x.At(tick), x.At(tick), kTop, kHeight - kBottom, x.At(tick),
        kHeight - kBottom + 16, EscapeMarkup(x.Format(tick)));
  }
  for (const double tick : y.ticks()) {
    absl::StrAppendFormat(
        &svg,
        "<line class=\"grid\" x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\"/>"
        "<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
        kLeft, kWidth - kRight, y.At(tick), y.At(tick), kLeft - 6,
        y.At(tick) + 4, EscapeMarkup(y.Format(tick)));
  }
  absl::StrAppendFormat(
      &svg, "<text x=\"%g\" y=\"%g\" text-anchor=\"end\">%s</text>\n",
      kWidth - kRight, kHeight - 8, EscapeMarkup(plot.x.title));
  absl::StrAppendFormat(&svg, "<text x=\"8\" y=\"16\">%s</text>\n",
                        EscapeMarkup(plot.y.title));
  double legend = kWidth - kRight;
  for (std::size_t s = plot.series.size(); s-- > 0;) {
    absl::StrAppendFormat(&svg,
                          "<text class=\"series%d\" x=\"%.1f\" y=\"16\" "
                          "text-anchor=\"end\">%s</text>\n",
                          s, legend, EscapeMarkup(plot.series[s].name));
    legend -= 8.0 * static_cast<double>(plot.series[s].name.size()) + 14;
  }
  for (std::size_t s = 0; s < plot.series.size(); ++s) {
    std::string line;
    std::string dots;
    for (const auto& [x_value, y_value] : plot.series[s].points) {
      if (!x.Has(x_value) || !y.Has(y_value)) continue;
      const std::string at =
          absl::StrFormat("%.1f,%.1f", x.At(x_value), y.At(y_value));
      absl::StrAppend(&line, line.empty() ? "" : " ", at);
      absl::StrAppendFormat(
          &dots,
          "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"><title>%s: %s, "
          "%s</title></circle>\n",
          x.At(x_value), y.At(y_value), EscapeMarkup(plot.series[s].name),
          EscapeMarkup(x.Format(x_value)), EscapeMarkup(y.Format(y_value)));
    }
    absl::StrAppendFormat(
        &svg, "<g class=\"series%d\"><polyline points=\"%s\"/>\n%s</g>\n", s,
        line, dots);
  }
  return absl::StrCat(svg, "</svg>\n");
}

}  // namespace attendant
