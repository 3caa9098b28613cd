// Elements of the SVG pictures; internal to this folder. Lengths are in pixels.
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
// An attribute of cells that keeps seams from showing between them.
inline constexpr char kCrisp[] = " shape-rendering=\"crispEdges\"";
// The number of shades, without that of weight 0; a shade fits a byte.
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

// Formats a length to a tenth of a pixel.
std::string Px(double length);

// Formats a number with nine significant digits.
std::string Number(double number);

// Returns the level of a share in [0, 1], from 0 to kLevels.
int LevelOf(double share);

// Returns a colour from black at level 0 to white at kLevels.
std::string Grey(int level);

// Returns the labels as they are drawn: printable and shortened.
std::vector<std::string> LabelsOf(const std::vector<std::string>& texts);

// Returns a generous estimate of the widest label's width; 0 without labels.
double WidestOf(const std::vector<std::string>& labels,
                double font_size = kFontSize);

std::string Text(Point at, absl::string_view text, const TextLook& look = {});

// Returns "<rect ..." without its end, for more attributes.
std::string Rect(Point at, Size size, absl::string_view fill);

// Returns the title of a panel at `at`, or "" without one, and the height that
// the titles of a map take.
std::string Title(const AttentionPanel& panel, Point at);
double TitleHeight(const AttentionMap& map);

// Returns a whole SVG document.
std::string Document(Size size, absl::string_view body);

// Returns true if each weight is an element with its data. Viewers are slow
// with more elements than that.
bool HasElementsOfWeights(const AttentionMap& map);

// Returns the end of an open element named `element`: the weight's position and
// value as data attributes and as a tooltip, and the closing tag.
std::string WeightData(const AttentionMap& map, std::size_t panel,
                       std::size_t row, std::size_t column,
                       absl::string_view element);

// The colours of weights.
struct Palette {
  absl::string_view none;
  absl::string_view greatest;
  absl::string_view unknown;
};

// Lays out panels of one size in rows, with a legend below: the shades from 0
// to the greatest weight, and that of unknown weights if there are any.
std::string Panels(
    const AttentionMap& map, Size panel, const Palette& palette,
    absl::FunctionRef<std::string(std::size_t p, Point at)> draw_panel);

}  // namespace attendant::svg

#endif  // ATTENDANT_CLIENT_PICTURE_SVG_ELEMENTS_H_
