// Line plots as SVG, to be put into a page.
#ifndef ATTENDANT_CLIENT_LOAD_REPORT_SVG_PLOT_H_
#define ATTENDANT_CLIENT_LOAD_REPORT_SVG_PLOT_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace attendant {

struct PlotSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  // in the order of x
};

struct PlotAxis {
  std::string title;
  // Powers of ten at equal distances; values at or below 0 are left out.
  bool logarithmic = false;
  // What a value is called at a tick; four digits by default.
  std::function<std::string(double)> format = nullptr;
};

struct Plot {
  PlotAxis x;
  PlotAxis y;
  std::vector<PlotSeries> series;
};

// One <svg> element, which scales to the width it is given. Colours are the
// classes "series0", "series1", ... of the page's style, and "grid". Each point
// says its values where the pointer rests on it.
std::string DrawPlot(const Plot& plot);

// Round values from about `low` to about `high`, in ascending order: 1, 2 or 5
// times a power of ten apart. Not empty.
std::vector<double> RoundTicks(double low, double high);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_REPORT_SVG_PLOT_H_
