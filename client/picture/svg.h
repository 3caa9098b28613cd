// Attention weights and pooled values as SVG 1.1 documents of their own.
#ifndef ATTENDANT_CLIENT_PICTURE_SVG_H_
#define ATTENDANT_CLIENT_PICTURE_SVG_H_

#include <string>

#include "client/picture/attention_map.h"

namespace attendant {

// A matrix for each panel, as in Bahdanau et al. 2015, fig. 3: rows attend to
// columns, and whiter means more weight: black is 0, white the panel's greatest
// weight, which a scale below names.
//
// Each weight is a <rect class="weight"> with data-panel, data-row, data-column
// and data-weight, nine digits of it, and a tooltip.
std::string MatrixSvg(const AttentionMap& map);

// Two columns of words for each panel, and a line for each weight that is not
// 0, as Tensor2Tensor shows the heads of Vaswani et al. 2017: the redder, the
// more weight; the greatest of the panel is solid.
//
// Each weight is a <line class="weight"> with what MatrixSvg gives a <rect>.
std::string LinesSvg(const AttentionMap& map);

// Grey pixels. Each is a <rect class="pixel"> with its data-value.
std::string ImageSvg(const PixelImage& image);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_PICTURE_SVG_H_
