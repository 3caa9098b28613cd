#include "client/picture/attention_map.h"

#include <algorithm>

namespace attendant {

double GreatestWeight(const AttentionMap& map) {
  double greatest = 0;
  for (const AttentionPanel& panel : map.panels) {
    for (const double weight : panel.weights) {
      if (IsKnown(weight)) greatest = std::max(greatest, weight);
    }
  }
  return greatest;
}

bool HasUnknownWeights(const AttentionMap& map) {
  return std::ranges::any_of(map.panels, [](const AttentionPanel& panel) {
    return !std::ranges::all_of(panel.weights, IsKnown);
  });
}

PixelImage ImageOf(const std::vector<double>& values, int width) {
  PixelImage image = {.width = width, .values = values};
  for (const double value : values) {
    image.black = std::min(image.black, value);
    image.white = std::max(image.white, value);
  }
  return image;
}

double Brightness(const PixelImage& image, double value) {
  if (!(image.white > image.black)) return 0;
  return (value - image.black) / (image.white - image.black);
}

}  // namespace attendant
