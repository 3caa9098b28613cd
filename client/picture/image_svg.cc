#include <cstddef>

#include "absl/strings/str_cat.h"
#include "client/picture/svg.h"
#include "client/picture/svg_elements.h"

namespace attendant {

std::string ImageSvg(const PixelImage& image) {
  constexpr double kPixel = 8;
  const auto width = static_cast<std::size_t>(image.width);
  const std::size_t height = (image.values.size() + width - 1) / width;
  std::string body;
  for (std::size_t i = 0; i < image.values.size(); ++i) {
    const svg::Point corner = {
        svg::kMargin + static_cast<double>(i % width) * kPixel,
        svg::kMargin + static_cast<double>(i / width) * kPixel};
    absl::StrAppend(
        &body,
        svg::Rect(corner, {kPixel, kPixel},
                  svg::Grey(svg::LevelOf(Brightness(image, image.values[i])))),
        svg::kCrisp, " class=\"pixel\" data-value=\"",
        svg::Number(image.values[i]), "\"/>\n");
  }
  return svg::Document(
      {2 * svg::kMargin + static_cast<double>(width) * kPixel,
       2 * svg::kMargin + static_cast<double>(height) * kPixel},
      body);
}

}  // namespace attendant
