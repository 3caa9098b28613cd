// Draws line plots as SVG elements of a page.
#ifndef ATTENDANT_CLIENT_LOAD_REPORT_SVG_PLOT_H_
#define ATTENDANT_CLIENT_LOAD_REPORT_SVG_PLOT_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace attendant {

struct PlotSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  // ascending in x
};

struct PlotAxis {
  std::string title;
  // Spaces powers of ten evenly; values <= 0 are left out.
  bool logarithmic = false;
  // Formats the value at a tick. Default: four digits.
  std::function<std::string(double)> format = nullptr;
};

struct Plot {
  PlotAxis x;
  PlotAxis y;
  std::vector<PlotSeries> series;
};

// Returns an <svg> element that scales to the width available. The page's style
// sets the colours of the classes "series0", "series1", ... and "grid". Each
// point has a tooltip with its values.
std::string DrawPlot(const Plot& plot);

// Returns round values from about `low` to about `high`, ascending and 1, 2 or
// 5 times a power of ten apart. Not empty.
std::vector<double> RoundTicks(double low, double high);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_REPORT_SVG_PLOT_H_
