// Sums of vectors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/kernels/kernels.h"
#include "tests/core/kernels/kernels_fixture.h"

namespace attendant {
namespace {

using SumsTest = KernelsTest;

TEST_P(SumsTest, DotChunksAgreeWithDoubles) {
  for (const std::int64_t n : {1, 15, 16, 17, 127, 128, 129, 1000}) {
    for (const std::int64_t offset : kOffsets) {
      const auto a = Normal(n + offset);
      const auto b = Normal(n + offset);
      const auto chunk_count = static_cast<std::size_t>((n - 1) / kChunk + 1);
      std::vector<float> sums(chunk_count + 1, -7);
      kernels().DotChunks(a.data() + offset, b.data() + offset, n, sums.data());
      for (std::size_t c = 0; c < chunk_count; ++c) {
        DoubleDot naive;
        const auto first = static_cast<std::int64_t>(c) * kChunk;
        for (std::int64_t i = first; i < std::min(n, first + kChunk); ++i) {
          const auto at = static_cast<std::size_t>(offset + i);
          const double term = double{a[at]} * b[at];
          naive.dot += term;
          naive.magnitude += std::abs(term);
        }
        EXPECT_NEAR(sums[c], naive.dot,
                    (kChunk + 1) * 1.001 * kEpsilon * naive.magnitude)
            << "chunk " << c << " of " << n;
      }
      EXPECT_EQ(sums.back(), -7) << "wrote past the end";
    }
  }
}

TEST_P(SumsTest, TransformHasTheBytesOfScalar) {
  for (std::int64_t size = 1; size <= 1024; size *= 2) {
    for (std::int64_t row_count = 1; row_count <= size; row_count *= 2) {
      auto vectors = Normal(size + 2);
      auto twin = vectors;
      kernels().Transform(vectors.data() + 1, size, row_count);
      KernelsFor(KernelLevel::kScalar)
          .Transform(twin.data() + 1, size, row_count);
      EXPECT_EQ(vectors, twin) << row_count << " rows, " << size;
    }
  }
}

TEST_P(SumsTest, TransformIsThatOfItsDefinition) {
  for (const std::int64_t size : {1, 2, 8, 64}) {
    const auto vector = Normal(size);
    auto transformed = vector;
    kernels().Transform(transformed.data(), size, 1);
    for (std::int64_t i = 0; i < size; ++i) {
      DoubleDot naive;
      for (std::int64_t j = 0; j < size; ++j) {
        const double component = vector[j];
        const bool is_odd = __builtin_parityll(static_cast<unsigned>(i & j));
        naive.dot += is_odd ? -component : component;
        naive.magnitude += std::abs(component);
      }
      // One rounding a stage, of at most 6.
      EXPECT_NEAR(transformed[i], naive.dot,
                  6 * 1.001 * kEpsilon * naive.magnitude);
    }
  }
}

TEST_P(SumsTest, AddScaledAddsInDoubles) {
  for (const std::int64_t dim : kLengths) {
    for (const std::int64_t offset : kOffsets) {
      const auto row = Normal(dim + offset);
      const auto start = Normal(dim + 1);
      std::vector<double> sum(start.begin(), start.end());
      kernels().AddScaled(0.3, row.data() + offset, dim, sum.data());
      for (std::int64_t d = 0; d < dim; ++d) {
        const double term = 0.3 * row[d + offset];
        const double base = start[d];
        // Two roundings of a double.
        EXPECT_NEAR(sum[d], base + term,
                    std::ldexp(std::abs(base) + std::abs(term), -51));
      }
      EXPECT_EQ(sum.back(), start.back()) << "wrote past the end";
    }
  }
}

TEST_P(SumsTest, AddScaledRowsGivesTheBytesOfAddScaled) {
  for (const std::int64_t dim : kLengths) {
    for (const std::int64_t n : {0, 1, 2, 17}) {
      const auto rows = Normal(n * dim + 1);
      const auto numbers = Normal(n);
      const std::vector<double> factors(numbers.begin(), numbers.end());
      std::vector<const float*> places;
      for (std::int64_t r = 0; r < n; ++r) {
        places.push_back(rows.data() + r * dim + r % 2);
      }
      const auto start = Normal(dim + 1);
      std::vector<double> sum(start.begin(), start.end());
      std::vector<double> want = sum;
      kernels().AddScaledRows(factors.data(), places.data(), n, dim,
                              sum.data());
      for (std::size_t r = 0; r < places.size(); ++r) {
        kernels().AddScaled(factors[r], places[r], dim, want.data());
      }
      EXPECT_EQ(sum, want);
    }
  }
}

TEST_P(SumsTest, PoolRowsAgreesWithDoubles) {
  for (const std::int64_t dim : kLengths) {
    for (const std::int64_t row_count : {0, 1, 3, 17}) {
      for (const std::int64_t query_count : {0, 1, 3, 4, 9}) {
        for (const std::int64_t offset : kOffsets) {
          const auto weights = Normal(query_count * row_count + offset);
          const auto rows = Normal(row_count * dim + offset);
          std::vector<float> sums(
              static_cast<std::size_t>(query_count * dim + 1), -7);
          kernels().PoolRows(weights.data() + offset, query_count,
                             rows.data() + offset, row_count, dim, sums.data());
          EXPECT_EQ(sums.back(), -7) << "wrote past the end";
          for (std::int64_t i = 0; i < query_count * dim; ++i) {
            DoubleDot naive;
            for (std::int64_t r = 0; r < row_count; ++r) {
              const double term =
                  double{weights[offset + i / dim * row_count + r]} *
                  rows[offset + r * dim + i % dim];
              naive.dot += term;
              naive.magnitude += std::abs(term);
            }
            EXPECT_NEAR(sums[i], naive.dot, DotTolerance(naive, row_count))
                << "dim " << dim << " rows " << row_count << " sum " << i;
          }
        }
      }
    }
  }
}

TEST_P(SumsTest, PoolRowsGivesAQueryTheSameBytesAloneAndAmongOthers) {
  for (const std::int64_t dim : kLengths) {
    const auto weights = Normal(7 * 19);
    const auto rows = Normal(19 * dim);
    std::vector<float> together(static_cast<std::size_t>(7 * dim));
    kernels().PoolRows(weights.data(), 7, rows.data(), 19, dim,
                       together.data());
    std::vector<float> alone(static_cast<std::size_t>(dim));
    for (std::int64_t q = 0; q < 7; ++q) {
      kernels().PoolRows(weights.data() + q * 19, 1, rows.data(), 19, dim,
                         alone.data());
      EXPECT_TRUE(
          std::equal(alone.begin(), alone.end(), together.begin() + q * dim))
          << "dim " << dim << " query " << q;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, SumsTest, EveryLevel(), NameOf);

}  // namespace
}  // namespace attendant
