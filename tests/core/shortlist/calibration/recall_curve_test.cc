#include "core/shortlist/calibration/recall_curve.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/shortlist/keys/inverse_norm.h"
#include "tests/core/shortlist/scan_fixture.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

// 200 sample queries with 10, 40, 160 and 640 neighbours.
SampleQueries Sample() {
  const KeyTable table = ClusteredKeys(3000, 2, 10, 3);
  std::vector<float> inverse_norms;
  for (const auto key : table.keys) inverse_norms.push_back(InverseNorm(key));
  return SampleQueries::Draw({table.floats.data(), 3000, 2}, inverse_norms,
                             {.neighbour_count = 10, .seed = 3})
      .value();
}

// For every query, neighbour i is found at width_of(i).
template <typename WidthOf>
RecallCurve CurveOf(const SampleQueries& sample, WidthOf width_of) {
  RecallCurve curve(sample);
  std::vector<std::int64_t> widths;
  for (std::int64_t q = 0; q < sample.count(); ++q) {
    widths.clear();
    for (std::size_t i = 0; i < sample.Neighbours(q).size(); ++i) {
      widths.push_back(width_of(static_cast<std::int64_t>(i)));
    }
    curve.Add(q, widths);
  }
  curve.Finish();
  return curve;
}

TEST(RecallCurveTest, WidthsAreThoseAtWhichNeighboursAreFound) {
  // Ten neighbours at widths 1 to 10: a recall of .8 takes width 8.
  const RecallCurve curve =
      CurveOf(Sample(), [](std::int64_t i) { return i + 1; });
  EXPECT_EQ(curve.WidthFor(0.5, 10), 5);
  EXPECT_EQ(curve.WidthFor(0.8, 10), 8);
  EXPECT_EQ(curve.WidthFor(0.999, 10), 10);
  EXPECT_EQ(curve.WidthFor(0.8, 3), 8) << "not less for fewer";
  EXPECT_EQ(curve.WidthFor(1, 10), std::nullopt) << "no sample proves that";
  EXPECT_EQ(curve.RecallAt(8), 0.8);
  EXPECT_EQ(curve.RecallAt(7.5), 0.7);
  EXPECT_EQ(curve.RecallAt(1), 0);
}

TEST(RecallCurveTest, MoreNeighboursTakeTheWidthOfTheirDepth) {
  const RecallCurve curve =
      CurveOf(Sample(), [](std::int64_t i) { return 2 * (i + 1); });
  EXPECT_EQ(curve.WidthFor(0.5, 10), 10);
  EXPECT_NEAR(*curve.WidthFor(0.5, 40), 40, 1e-9);
  EXPECT_NEAR(*curve.WidthFor(0.5, 160), 160, 1e-9);
  EXPECT_NEAR(*curve.WidthFor(0.5, 80), 80, 1e-9) << "between two depths";
  EXPECT_NEAR(*curve.WidthFor(0.5, 6400), 6400, 1e-6) << "beyond the last";
}

TEST(RecallCurveTest, WhatNoWidthFindsIsNotPromised) {
  // The tenth neighbour and those beyond are never found.
  const RecallCurve curve = CurveOf(Sample(), [](std::int64_t i) {
    return i < 9 ? i + 1 : RecallCurve::kNever;
  });
  EXPECT_EQ(curve.WidthFor(0.9, 10), 9);
  EXPECT_EQ(curve.WidthFor(0.92, 10), std::nullopt);
  EXPECT_EQ(curve.WidthFor(0.9, 20), 18) << "in proportion";
}

TEST(CostCurveTest, CostsLieOnStraightLines) {
  CostCurve one;
  one.Add(4, 100);
  EXPECT_EQ(one.At(2), 50);
  EXPECT_EQ(one.At(8), 200);
  CostCurve three = one;
  three.Add(8, 120);
  three.Add(16, 200);
  EXPECT_EQ(three.At(4), 100);
  EXPECT_EQ(three.At(6), 110);
  EXPECT_EQ(three.At(12), 160);
  EXPECT_EQ(three.At(24), 280);
}

}  // namespace
}  // namespace attendant
