// What the SVG pictures are made of. Internal. Lengths are pixels.
#ifndef ATTENDANT_CLIENT_PICTURE_SVG_ELEMENTS_H_
#define ATTENDANT_CLIENT_PICTURE_SVG_ELEMENTS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "client/picture/attention_map.h"

namespace attendant::svg {

inline constexpr double kMargin = 16;
inline constexpr double kFontSize = 13;
inline constexpr double kTitleHeight = 26;
inline constexpr char kFrame[] = "#888888";
// An attribute of cells: no seams between them.
inline constexpr char kCrisp[] = " shape-rendering=\"crispEdges\"";
// Shades, but for none, of which there are as many as a byte tells.
inline constexpr int kLevels = 255;

struct Point {
  double x = 0;
  double y = 0;
};

struct Size {
  double width = 0;
  double height = 0;
};

struct TextLook {
  double font_size = kFontSize;
  absl::string_view anchor = "start";
  absl::string_view more = {};  // attributes
};

// A length to a tenth of a pixel.
std::string Px(double length);

// Nine digits.
std::string Number(double number);

// Of a share in [0, 1], 0 to kLevels.
int LevelOf(double share);

// A colour, from black at level 0 to white at kLevels.
std::string Grey(int level);

// Labels as they are drawn: printable, and of a bounded length.
std::vector<std::string> LabelsOf(const std::vector<std::string>& texts);

// At most, roughly. 0 of no label.
double WidestOf(const std::vector<std::string>& labels,
                double font_size = kFontSize);

std::string Text(Point at, absl::string_view text, const TextLook& look = {});

// An open <rect ...>, without its end.
std::string Rect(Point at, Size size, absl::string_view fill);

// A panel's title above it, or nothing; and the height that titles take.
std::string Title(const AttentionPanel& panel, Point at);
double TitleHeight(const AttentionMap& map);

// A whole picture.
std::string Document(Size size, absl::string_view body);

// Whether each weight is an element of its own, which says what it is. Of more
// weights that would be too much for whoever looks at them.
bool HasElementsOfWeights(const AttentionMap& map);

// Where a weight stands, for programs and as a tooltip: what comes after the
// other attributes of an open element, to its end; `element` is its name.
std::string WeightData(const AttentionMap& map, std::size_t panel,
                       std::size_t row, std::size_t column,
                       absl::string_view element);

// The colours of weights.
struct Palette {
  absl::string_view none;
  absl::string_view greatest;
  absl::string_view unknown;
};

// Panels of one size, side by side and below each other, and below them what
// the shades of all mean: from none to the greatest weight, and what is unknown
// where there is such a weight.
std::string Panels(
    const AttentionMap& map, Size panel, const Palette& palette,
    absl::FunctionRef<std::string(std::size_t p, Point at)> draw_panel);

}  // namespace attendant::svg

#endif  // ATTENDANT_CLIENT_PICTURE_SVG_ELEMENTS_H_
