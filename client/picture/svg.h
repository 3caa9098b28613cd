// Attention weights and pooled values as SVG 1.1 documents of their own.
#ifndef ATTENDANT_CLIENT_PICTURE_SVG_H_
#define ATTENDANT_CLIENT_PICTURE_SVG_H_

#include <string>

#include "client/picture/attention_map.h"

namespace attendant {

// All panels share one scale, which stands below them. Up to 4,096 weights are
// elements of class "weight" with data-panel, data-row, data-column,
// data-weight, nine digits of it or "unknown", and a tooltip. Of more weights
// those of one shade, of 255, are one element of class "weights": paths.

// A matrix for each panel, as in Bahdanau et al. 2015, fig. 3: rows attend to
// columns, and whiter means more weight: black is 0, white the greatest weight,
// blue what is not known. A weight is a <rect>.
std::string MatrixSvg(const AttentionMap& map);

// Two columns of words for each panel, and a line for each weight that is not
// 0, as Tensor2Tensor shows the heads of Vaswani et al. 2017: the redder, the
// more weight; the greatest is solid, and blue what is not known. A weight is a
// <line>.
std::string LinesSvg(const AttentionMap& map);

// Grey pixels. Each is a <rect class="pixel"> with its data-value.
std::string ImageSvg(const PixelImage& image);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_PICTURE_SVG_H_
