// Attention weights and pooled values in a terminal, as shaded blocks.
#ifndef ATTENDANT_CLIENT_PICTURE_BLOCKS_H_
#define ATTENDANT_CLIENT_PICTURE_BLOCKS_H_

#include <string>

#include "client/format/text.h"
#include "client/picture/attention_map.h"

namespace attendant {

// A matrix for each panel, one below the other: labels of columns written
// downwards, one to a cell of two blocks; and a line on what the shades of all
// mean. Of a weight that is not known "??".
std::string MatrixBlocks(const AttentionMap& map, const Style& style);

// Two blocks a pixel.
std::string ImageBlocks(const PixelImage& image, const Style& style);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_PICTURE_BLOCKS_H_
