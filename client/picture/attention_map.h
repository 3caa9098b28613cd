// Attention weights as they are drawn: what attends to what, by head.
#ifndef ATTENDANT_CLIENT_PICTURE_ATTENTION_MAP_H_
#define ATTENDANT_CLIENT_PICTURE_ATTENTION_MAP_H_

#include <cstddef>
#include <string>
#include <vector>

namespace attendant {

// The weights of one head, or of their mean.
struct AttentionPanel {
  std::string title = {};
  // [rows, columns], row-major; finite, >= 0.
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

// The greatest weight of a panel, which is drawn white, red or solid. 0 if it
// has none.
double GreatestWeight(const AttentionPanel& panel);

// A vector as rows of pixels, the first row on top; the last row may be short.
struct PixelImage {
  int width = 0;  // >= 1
  std::vector<double> values = {};
  // Drawn black and white. Values lie between.
  double black = 0;
  double white = 0;
};

// Black is 0, or the least value if that is negative; white the greatest.
PixelImage ImageOf(const std::vector<double>& values, int width);

// Where a value lies between black and white, in [0, 1]; 0 if they are one.
double Brightness(const PixelImage& image, double value);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_PICTURE_ATTENTION_MAP_H_
