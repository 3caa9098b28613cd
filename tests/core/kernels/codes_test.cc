#include "core/kernels/codes.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/kernels/levels.h"

namespace attendant {
namespace {

// 2^-24: the relative error of one rounding to float.
constexpr double kRoundoff = 5.9604644775390625e-8;

// Rows of codes and what the kernels read with them.
struct Rows {
  std::int64_t block_count = 0;
  std::int64_t step_count = 0;
  std::vector<std::vector<std::uint8_t>> codes;  // of each row, [8 step_count]
  std::vector<std::uint8_t> high_plane;
  std::vector<std::uint8_t> low_plane;
  std::vector<float> scales;
};

struct Queries {
  std::vector<std::vector<std::int8_t>> high;
  std::vector<std::vector<std::int8_t>> low;
  std::vector<CodeQuery> views;
};

// The same queries in 8 bits.
Queries WithoutLow(Queries queries) {
  for (std::size_t q = 0; q < queries.views.size(); ++q) {
    queries.low[q].assign(queries.low[q].size(), 0);
    queries.views[q].high = queries.high[q].data();
    queries.views[q].low = nullptr;
    queries.views[q].low_sum = 1;  // ignored
  }
  return queries;
}

// Packs the rows into the layout of codes.h, byte by byte.
void Pack(Rows& rows) {
  const auto bytes = static_cast<std::size_t>(rows.block_count *
                                              CodePlaneBytes(rows.step_count));
  rows.high_plane.resize(bytes);
  rows.low_plane.resize(bytes);
  std::size_t at = 0;
  for (std::int64_t block = 0; block < rows.block_count; ++block) {
    for (std::int64_t t = 0; t < rows.step_count; ++t) {
      for (std::int64_t r = 0; r < 16; ++r) {
        const auto& codes = rows.codes[16 * block + r];
        for (std::int64_t j = 0; j < 4; ++j, ++at) {
          const unsigned first = codes[8 * t + j];
          const unsigned second = codes[8 * t + 4 + j];
          rows.high_plane[at] =
              static_cast<std::uint8_t>(second / 16 * 16 + first / 16);
          rows.low_plane[at] =
              static_cast<std::uint8_t>(second % 16 * 16 + first % 16);
        }
      }
    }
  }
}

struct Sums {
  std::int64_t high = 0;
  std::int64_t low = 0;
};

// Returns 2 x the dot products of a query's planes with codes less 128.
Sums TwiceDot8(const Queries& queries, std::size_t q,
               const std::vector<std::uint8_t>& codes) {
  Sums sums;
  for (std::size_t d = 0; d < codes.size(); ++d) {
    sums.high += 2 * std::int64_t{queries.high[q][d]} * (codes[d] - 128);
    sums.low += 2 * std::int64_t{queries.low[q][d]} * (codes[d] - 128);
  }
  return sums;
}

// The same with the midpoint of the codes that share a high nibble.
Sums TwiceDot4(const Queries& queries, std::size_t q,
               const std::vector<std::uint8_t>& codes) {
  Sums sums;
  for (std::size_t d = 0; d < codes.size(); ++d) {
    const std::int64_t twice_code = codes[d] / 16 * 32 + 15 - 256;
    sums.high += queries.high[q][d] * twice_code;
    sums.low += queries.low[q][d] * twice_code;
  }
  return sums;
}

// A table of kernels, whether or not its level would choose it.
struct Table {
  const char* name;
  const CodeKernels* kernels;
  bool is_supported;
};

class CodesTest : public ::testing::TestWithParam<Table> {
 protected:
  void SetUp() override {
    if (!GetParam().is_supported) GTEST_SKIP() << "not on this processor";
  }

  const CodeKernels& kernels() const { return *GetParam().kernels; }
  static bool IsTwin() { return GetParam().kernels == &kScalarCodeKernels; }

  std::int64_t Uniform(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }

  // If `extreme`, all codes and components are at the ends of their ranges.
  Rows RandomRows(std::int64_t block_count, std::int64_t step_count,
                  bool extreme) {
    Rows rows;
    rows.block_count = block_count;
    rows.step_count = step_count;
    std::uniform_real_distribution<float> scale(1e-3f, 2);
    for (std::int64_t r = 0; r < 16 * block_count; ++r) {
      // The greatest sums need rows with a single code.
      const std::int64_t same = 255 * Uniform(0, 1);
      const bool is_same = Uniform(0, 1) != 0;
      std::vector<std::uint8_t> codes;
      for (std::int64_t d = 0; d < 8 * step_count; ++d) {
        codes.push_back(static_cast<std::uint8_t>(
            !extreme ? Uniform(0, 255)
                     : (is_same ? same : 255 * Uniform(0, 1))));
      }
      rows.codes.push_back(std::move(codes));
      rows.scales.push_back(scale(random_));
    }
    Pack(rows);
    return rows;
  }

  Queries RandomQueries(std::int64_t count, std::int64_t step_count,
                        bool extreme) {
    Queries queries;
    std::uniform_real_distribution<float> unit(1e-4f, 1e-3f);
    for (std::int64_t q = 0; q < count; ++q) {
      std::vector<std::int8_t> high;
      std::vector<std::int8_t> low;
      for (std::int64_t d = 0; d < 8 * step_count; ++d) {
        // Query 0 is all greatest, query 1 all least, the others mixed.
        const std::int64_t sign = q < 2 ? q : Uniform(0, 1);
        high.push_back(static_cast<std::int8_t>(
            !extreme ? Uniform(-127, 127) : (sign != 0 ? -127 : 127)));
        low.push_back(static_cast<std::int8_t>(
            !extreme ? Uniform(-128, 127) : (sign != 0 ? -128 : 127)));
      }
      CodeQuery view;
      view.high_sum = std::accumulate(high.begin(), high.end(), 0);
      view.low_sum = std::accumulate(low.begin(), low.end(), 0);
      view.unit = unit(random_);
      queries.high.push_back(std::move(high));
      queries.low.push_back(std::move(low));
      queries.views.push_back(view);
    }
    for (std::size_t q = 0; q < queries.views.size(); ++q) {
      queries.views[q].high = queries.high[q].data();
      queries.views[q].low = queries.low[q].data();
    }
    return queries;
  }

  // Returns logits[q * stride + r] of a table; entries not written stay NaN.
  static std::vector<float> Logits(const CodeKernels& kernels, int bits,
                                   const Queries& queries, const Rows& rows,
                                   std::int64_t stride) {
    const auto count = static_cast<std::int64_t>(queries.views.size());
    std::vector<float> logits(static_cast<std::size_t>(count * stride + 1),
                              std::numeric_limits<float>::quiet_NaN());
    if (bits == 8) {
      kernels.Logits8(queries.views.data(), count, rows.high_plane.data(),
                      rows.low_plane.data(), rows.scales.data(),
                      rows.block_count, rows.block_count, rows.step_count,
                      stride, logits.data());
    } else {
      kernels.Logits4(queries.views.data(), count, rows.high_plane.data(),
                      rows.scales.data(), rows.block_count, 0, rows.step_count,
                      stride, logits.data());
    }
    return logits;
  }

  // Expects every logit to be within its documented roundings of the exact one,
  // and nothing to be written between them.
  void ExpectRight(int bits, const Queries& queries, const Rows& rows,
                   std::int64_t stride) {
    const auto logits = Logits(kernels(), bits, queries, rows, stride);
    for (std::size_t q = 0; q < queries.views.size(); ++q) {
      for (std::int64_t r = 0; r < stride; ++r) {
        const float logit = logits[q * static_cast<std::size_t>(stride) +
                                   static_cast<std::size_t>(r)];
        if (r >= 16 * rows.block_count) {
          EXPECT_TRUE(std::isnan(logit)) << "wrote past the rows";
          continue;
        }
        const auto row = static_cast<std::size_t>(r);
        const Sums twice = bits == 8 ? TwiceDot8(queries, q, rows.codes[row])
                                     : TwiceDot4(queries, q, rows.codes[row]);
        const double factor =
            0.5 * rows.scales[row] * double{queries.views[q].unit};
        const auto high = 256 * static_cast<double>(twice.high);
        const auto low = static_cast<double>(twice.low);
        // Each sum rounds once, then the whole three times: in the addition and
        // in two products.
        const double tolerance =
            kRoundoff *
            (std::abs(high) + std::abs(low) + 3 * std::abs(high + low)) *
            factor * (1 + 8 * kRoundoff);
        EXPECT_NEAR(logit, (high + low) * factor, tolerance)
            << bits << " bits, " << rows.step_count << " steps, query " << q
            << ", row " << r;
      }
    }
    EXPECT_TRUE(std::isnan(logits.back())) << "wrote past the end";
  }

  void ExpectTheBytesOfScalar(int bits, const Queries& queries,
                              const Rows& rows, std::int64_t stride) {
    const auto logits = Logits(kernels(), bits, queries, rows, stride);
    const auto scalar = Logits(kScalarCodeKernels, bits, queries, rows, stride);
    EXPECT_EQ(std::memcmp(logits.data(), scalar.data(),
                          logits.size() * sizeof(float)),
              0)
        << bits << " bits, " << rows.step_count << " steps, "
        << queries.views.size() << " queries, " << rows.block_count
        << " blocks, stride " << stride;
  }

  std::mt19937 random_{20240607};
};

TEST_P(CodesTest, LogitsAreThoseOfTheFormula) {
  for (const bool extreme : {false, true}) {
    for (const std::int64_t step_count : {1, 2, 3, 16, 1024}) {
      const auto rows = RandomRows(3, step_count, extreme);
      const auto queries = RandomQueries(3, step_count, extreme);
      for (const int bits : {4, 8}) {
        ExpectRight(bits, queries, rows, 48);
        ExpectRight(bits, WithoutLow(queries), rows, 53);
      }
    }
  }
}

TEST_P(CodesTest, GivesTheBytesOfScalar) {
  if (IsTwin()) GTEST_SKIP() << "is the twin";
  for (const bool extreme : {false, true}) {
    for (const std::int64_t block_count :
         {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 19}) {
      const std::int64_t step_count = Uniform(1, 8);
      const auto rows = RandomRows(block_count, step_count, extreme);
      for (std::int64_t query_count = 0; query_count <= 17; ++query_count) {
        const auto queries = RandomQueries(query_count, step_count, extreme);
        const std::int64_t stride = 16 * block_count + Uniform(0, 5);
        for (const int bits : {4, 8}) {
          ExpectTheBytesOfScalar(bits, queries, rows, stride);
          ExpectTheBytesOfScalar(bits, WithoutLow(queries), rows, stride);
        }
      }
    }
  }
}

TEST_P(CodesTest, GivesTheBytesOfScalarForManyComponents) {
  if (IsTwin()) GTEST_SKIP() << "is the twin";
  for (const std::int64_t step_count :
       {31, 127, 128, 129, 257, 512, 513, 1024}) {
    const auto rows = RandomRows(5, step_count, step_count % 2 == 0);
    for (const std::int64_t query_count : {1, 2, 7}) {
      const auto queries =
          RandomQueries(query_count, step_count, step_count % 2 == 0);
      for (const int bits : {4, 8}) {
        ExpectTheBytesOfScalar(bits, queries, rows, 90);
        ExpectTheBytesOfScalar(bits, WithoutLow(queries), rows, 90);
      }
    }
  }
}

TEST_P(CodesTest, ARowsLogitDoesNotDependOnItsPlaceOrNeighbours) {
  const auto rows = RandomRows(21, 5, false);
  const auto queries = RandomQueries(15, 5, false);
  for (const int bits : {4, 8}) {
    const auto together = Logits(kernels(), bits, queries, rows, 336);
    for (std::size_t b = 0; b < 21; ++b) {
      for (std::size_t q = 0; q < 15; ++q) {
        Rows block;
        block.block_count = 1;
        block.step_count = 5;
        const auto first = static_cast<std::ptrdiff_t>(16 * b);
        block.codes.assign(rows.codes.begin() + first,
                           rows.codes.begin() + first + 16);
        block.scales.assign(rows.scales.begin() + first,
                            rows.scales.begin() + first + 16);
        Pack(block);
        Queries query;
        query.views = {queries.views[q]};
        const auto alone = Logits(kernels(), bits, query, block, 16);
        EXPECT_EQ(std::memcmp(alone.data(), &together[q * 336 + 16 * b],
                              16 * sizeof(float)),
                  0)
            << "block " << b << ", query " << q;
      }
    }
  }
}

TEST_P(CodesTest, BlocksAnywhereHaveTheBytesOfLogits4) {
  for (const std::int64_t step_count : {1, 3, 16, 129}) {
    const auto rows = RandomRows(21, step_count, false);
    const auto queries = RandomQueries(1, step_count, false);
    for (const auto& query : {queries, WithoutLow(queries)}) {
      const auto in_order = Logits(kernels(), 4, query, rows, 336);
      for (const std::int64_t count : {0, 1, 3, 4, 5, 16}) {
        std::vector<std::int32_t> blocks;
        std::vector<float> expected;
        for (std::int64_t i = 0; i < count; ++i) {
          blocks.push_back(static_cast<std::int32_t>(Uniform(0, 20)));
          const auto first = in_order.begin() + 16 * blocks.back();
          expected.insert(expected.end(), first, first + 16);
        }
        expected.push_back(-7);
        std::vector<float> logits(expected.size(), -7);
        kernels().Logits4At(query.views[0], rows.high_plane.data(),
                            rows.scales.data(), blocks.data(), count,
                            step_count, logits.data());
        EXPECT_EQ(logits, expected) << count << " of " << step_count;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    EveryTable, CodesTest,
    ::testing::Values(
        Table{"scalar", &kScalarCodeKernels, true},
        Table{"avx2", &kAvx2CodeKernels, IsSupported(KernelLevel::kAvx2)},
        Table{"avx_vnni", &kAvxVnniCodeKernels, HasAvxVnni()},
        Table{"avx512", &kVnniCodeKernels,
              IsSupported(KernelLevel::kAvx512) &&
                  &CodeKernelsFor(KernelLevel::kAvx512) == &kVnniCodeKernels}),
    [](const ::testing::TestParamInfo<Table>& tested) {
      return std::string(tested.param.name);
    });

TEST(CodeDispatchTest, ActiveTableIsThatOfTheActiveLevel) {
  EXPECT_EQ(&ActiveCodeKernels(), &CodeKernelsFor(ActiveKernelLevel()));
}

}  // namespace
}  // namespace attendant
