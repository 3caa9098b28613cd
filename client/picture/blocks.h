// Draws attention weights and pooled values as shaded blocks of text.
#ifndef ATTENDANT_CLIENT_PICTURE_BLOCKS_H_
#define ATTENDANT_CLIENT_PICTURE_BLOCKS_H_

#include <string>

#include "client/format/text.h"
#include "client/picture/attention_map.h"

namespace attendant {

// Draws a matrix for each panel, one below the other, then a line that explains
// the shades. A cell is two blocks wide, "??" if the weight is unknown. Labels
// of columns are written downwards.
std::string MatrixBlocks(const AttentionMap& map, const Style& style);

// Draws each pixel as two blocks.
std::string ImageBlocks(const PixelImage& image, const Style& style);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_PICTURE_BLOCKS_H_
