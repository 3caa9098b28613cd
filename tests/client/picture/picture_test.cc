// Pictures of attention. examples/worked/pictures.py checks the SVG documents
// of whole replies with an XML parser.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "client/picture/attention_map.h"
#include "client/picture/blocks.h"
#include "client/picture/svg.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

AttentionMap TwoByThree() {
  return {
      .rows = {"he", "été"},
      .columns = {"a", "<b>", "cd"},
      .panels = {{.title = "", .weights = {0.5, 0.25, 0.25, 0, 0.125, 0.4}}}};
}

TEST(PictureTest, BlocksAreDarkerForLessWeight) {
  EXPECT_EQ(MatrixBlocks(TwoByThree(), {}),
            "       <\n"
            "       b c\n"
            "     a > d\n"
            " he  ██▒▒▒▒\n"
            "été    ░░▓▓\n"
            "██ is 0.5, ▓▓ ▒▒ ░░ three, two and one quarter of it.\n");
}

TEST(PictureTest, PanelsOfHeadsAreNamedAndShareOneScale) {
  AttentionMap map = {.rows = {"q"}, .columns = {"k"}, .panels = {}};
  map.panels = {{"head 0", {0.5}}, {"head 1", {1}}};
  EXPECT_EQ(MatrixBlocks(map, {}),
            "head 0\n"
            "   k\n"
            "q  ▒▒\n"
            "\n"
            "head 1\n"
            "   k\n"
            "q  ██\n"
            "██ is 1, ▓▓ ▒▒ ░░ three, two and one quarter of it.\n");
  EXPECT_THAT(MatrixSvg(map), HasSubstr("fill=\"#808080\""));
  EXPECT_THAT(LinesSvg(map), HasSubstr("stroke-opacity=\"0.5\""));
  EXPECT_THAT(MatrixSvg(map), HasSubstr(">head 1</text>"));
  EXPECT_THAT(LinesSvg(map), HasSubstr(">head 1</text>"));
}

TEST(PictureTest, TheGreatestWeightIsWhiteAndNoneBlack) {
  const std::string svg = MatrixSvg(TwoByThree());
  EXPECT_THAT(svg,
              HasSubstr("fill=\"#ffffff\" shape-rendering=\"crispEdges\" "
                        "class=\"weight\" data-panel=\"0\" "
                        "data-row=\"0\" data-column=\"0\" data-weight=\"0.5\">"
                        "<title>he → a: 0.5</title></rect>"));
  EXPECT_THAT(
      svg,
      HasSubstr(
          "fill=\"#000000\" shape-rendering=\"crispEdges\" class=\"weight\" "
          "data-panel=\"0\" data-row=\"1\" "
          "data-column=\"0\" data-weight=\"0\">"));
}

TEST(PictureTest, LinesAreSolidByWeightAndNoneForNone) {
  const std::string svg = LinesSvg(TwoByThree());
  EXPECT_THAT(svg, HasSubstr("stroke-opacity=\"1\" class=\"weight\" "
                             "data-panel=\"0\" data-row=\"0\" "
                             "data-column=\"0\" data-weight=\"0.5\""));
  EXPECT_THAT(svg, HasSubstr("stroke-opacity=\"0.8\""));
  EXPECT_THAT(svg, Not(HasSubstr("data-weight=\"0\"")));
}

TEST(PictureTest, WhatIsNotKnownIsNotNothing) {
  AttentionMap map = {.rows = {"q"}, .columns = {"a", "b"}, .panels = {}};
  map.panels = {{"", {0, kUnknownWeight}}};
  EXPECT_EQ(GreatestWeight(map), 0);
  EXPECT_EQ(MatrixBlocks(map, {}),
            "   a b\n"
            "q    ??\n"
            "No weight is above 0. ?? is not known.\n");
  for (const std::string& svg : {MatrixSvg(map), LinesSvg(map)}) {
    EXPECT_THAT(svg, HasSubstr("data-weight=\"unknown\"><title>q → b: "
                               "unknown</title>"));
    EXPECT_THAT(svg, HasSubstr(">not known</text>"));
  }
  EXPECT_THAT(MatrixSvg(map), HasSubstr("fill=\"#a9c4e6\""));
  EXPECT_THAT(LinesSvg(map), HasSubstr("stroke=\"#a9c4e6\""));
}

// A server sends at most 512 x 512 weights for a head.
TEST(PictureTest, ManyWeightsAreDrawnByShade) {
  constexpr std::size_t kSide = 512;
  AttentionMap map;
  map.panels.resize(1);
  for (std::size_t i = 0; i < kSide; ++i) {
    map.rows.push_back(std::to_string(i));
    map.columns.push_back(std::to_string(i));
    for (std::size_t j = 0; j < kSide; ++j) {
      map.panels[0].weights.push_back(
          static_cast<double>((i * i + 31 * j) % 997) / 996);
    }
  }
  for (const std::string& svg : {MatrixSvg(map), LinesSvg(map)}) {
    EXPECT_LT(svg.size(), 8u << 20);
    EXPECT_THAT(svg, Not(HasSubstr("data-weight")));
  }
  // Of 65 x 64 a few: what is seen is read in worked_readers_test and, of
  // whole replies, by examples/worked.
  map.rows.resize(64);
  map.columns.resize(65);
  map.panels[0].weights.assign(std::size_t{64 * 65}, 0);
  map.panels[0].weights[0] = map.panels[0].weights[1] = 1;
  map.panels[0].weights[3] = kUnknownWeight;
  const std::string matrix = MatrixSvg(map);
  EXPECT_THAT(matrix, HasSubstr("stroke=\"#ffffff\" stroke-width=\"9\""));
  EXPECT_THAT(matrix, HasSubstr("stroke=\"#a9c4e6\" stroke-width=\"9\""));
  EXPECT_THAT(matrix, HasSubstr("h18\"/>"));
  const std::string lines = LinesSvg(map);
  EXPECT_THAT(lines, HasSubstr("stroke=\"#d00000\" stroke-width=\"2.5\" "
                               "stroke-opacity=\"1\">\n<path d=\"M"));
  // Unknown weights are drawn below the others.
  EXPECT_LT(lines.find("stroke=\"#a9c4e6\""), lines.find("stroke=\"#d00000\""));
}

TEST(PictureTest, LabelsAreText) {
  EXPECT_THAT(MatrixSvg(TwoByThree()), HasSubstr(">&lt;b&gt;</text>"));
  EXPECT_THAT(LinesSvg(TwoByThree()), Not(HasSubstr("<b>")));
}

TEST(PictureTest, ImagesGoFromTheLeastValueToTheGreatest) {
  const PixelImage image = ImageOf({-1, 0, 1, 3}, 2);
  EXPECT_EQ(Brightness(image, -1), 0);
  EXPECT_EQ(Brightness(image, 1), 0.5);
  EXPECT_EQ(ImageBlocks(image, {}),
            "  ░░\n"
            "▒▒██\n"
            "██ is 3, blank -1.\n");
  EXPECT_THAT(ImageSvg(image),
              HasSubstr("fill=\"#ffffff\" shape-rendering=\"crispEdges\" "
                        "class=\"pixel\" data-value=\"3\""));
  // Without a positive value all is black, and nothing is divided by 0.
  EXPECT_EQ(Brightness(ImageOf({0, 0}, 1), 0), 0);
}

}  // namespace
}  // namespace attendant
