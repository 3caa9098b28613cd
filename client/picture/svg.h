// Draws attention weights and pooled values as complete SVG 1.1 documents.
#ifndef ATTENDANT_CLIENT_PICTURE_SVG_H_
#define ATTENDANT_CLIENT_PICTURE_SVG_H_

#include <string>

#include "client/picture/attention_map.h"

namespace attendant {

// All panels share one scale, which is drawn below them. Up to 4,096 weights
// are an element each, of class "weight", with data-panel, data-row,
// data-column, data-weight (nine digits, or "unknown") and a tooltip. Above
// that, weights of the same of 255 shades share an element of class "weights",
// made of paths.

// Draws a matrix for each panel, as in Bahdanau et al. 2015, fig. 3: rows
// attend to columns. Black is 0, white the greatest weight, blue an unknown
// weight. A weight is a <rect>.
std::string MatrixSvg(const AttentionMap& map);

// Draws two columns of words for each panel and a line for each weight other
// than 0, as Tensor2Tensor shows the heads of Vaswani et al. 2017. The greatest
// weight is solid red, smaller weights fainter, unknown weights blue. A weight
// is a <line>.
std::string LinesSvg(const AttentionMap& map);

// Draws grey pixels, each a <rect class="pixel"> with its data-value.
std::string ImageSvg(const PixelImage& image);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_PICTURE_SVG_H_
