// Attention weights and pooled values in the form that pictures are drawn from.
#ifndef ATTENDANT_CLIENT_PICTURE_ATTENTION_MAP_H_
#define ATTENDANT_CLIENT_PICTURE_ATTENTION_MAP_H_

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace attendant {

// A weight that a reply leaves out, which is drawn differently from 0.
inline constexpr double kUnknownWeight =
    std::numeric_limits<double>::quiet_NaN();
inline bool IsKnown(double weight) { return !std::isnan(weight); }

// The weights of one head, or the mean over heads.
struct AttentionPanel {
  std::string title = {};
  // [rows, columns], row-major; finite, >= 0, or kUnknownWeight.
  std::vector<double> weights = {};
};

struct AttentionMap {
  std::vector<std::string> rows = {};     // what attends
  std::vector<std::string> columns = {};  // what is attended to
  std::vector<AttentionPanel> panels = {};

  double weight(std::size_t panel, std::size_t row, std::size_t column) const {
    return panels[panel].weights[row * columns.size() + column];
  }
};

// Returns the greatest known weight of all panels, which share one scale: it is
// drawn white, red or solid. 0 if there is none.
double GreatestWeight(const AttentionMap& map);

// Returns a known weight as a share of the greatest, in [0, 1].
inline double ShareOf(double weight, double greatest) {
  return greatest > 0 ? weight / greatest : 0;
}

bool HasUnknownWeights(const AttentionMap& map);

// A vector as rows of pixels, the first row on top; the last row may be short.
struct PixelImage {
  int width = 0;  // >= 1
  std::vector<double> values = {};
  // The values drawn black and white; all others lie between.
  double black = 0;
  double white = 0;
};

// Makes an image where black is 0, or the least value if that is negative, and
// white is the greatest value.
PixelImage ImageOf(const std::vector<double>& values, int width);

// Returns the value's position between black and white, in [0, 1]; 0 if black
// equals white.
double Brightness(const PixelImage& image, double value);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_PICTURE_ATTENTION_MAP_H_
