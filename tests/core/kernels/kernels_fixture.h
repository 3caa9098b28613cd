// Fixture for tests of the kernels at every level, and reference values.
#ifndef ATTENDANT_TESTS_CORE_KERNELS_KERNELS_FIXTURE_H_
#define ATTENDANT_TESTS_CORE_KERNELS_KERNELS_FIXTURE_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/kernels/kernels.h"

namespace attendant {

// 2^-24: the relative error of one rounding to float.
inline constexpr double kEpsilon = 5.9604644775390625e-8;

// Zero, one, lengths around the vector widths (4, 8, 16) and their multiples,
// and odd lengths.
inline constexpr std::int64_t kLengths[] = {
    0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 23, 31, 32, 33, 48, 63, 100, 128, 129};
// Longer than a block of sums, at one kernel level or at all of them.
inline constexpr std::int64_t kLongLengths[] = {511,  512,  513,
                                                1025, 2065, 8192};
// Offsets from alignment, in floats.
inline constexpr std::int64_t kOffsets[] = {0, 1, 3};

class LevelTest : public ::testing::TestWithParam<KernelLevel> {
 protected:
  void SetUp() override {
    if (!IsSupported(GetParam())) GTEST_SKIP() << "not on this processor";
  }
};

class KernelsTest : public LevelTest {
 protected:
  const Kernels& kernels() const { return KernelsFor(GetParam()); }

  std::vector<float> Normal(std::int64_t size, float deviation = 1) {
    std::normal_distribution<float> normal(0, deviation);
    std::vector<float> floats;
    // Kernels do pointer arithmetic on their arguments, which must not be null.
    floats.reserve(static_cast<std::size_t>(size) + 1);
    floats.resize(static_cast<std::size_t>(size));
    for (float& f : floats) f = normal(random_);
    return floats;
  }

  std::mt19937 random_{20240607};
};

inline auto EveryLevel() {
  return ::testing::Values(KernelLevel::kScalar, KernelLevel::kAvx2,
                           KernelLevel::kAvx512);
}
inline std::string NameOf(const ::testing::TestParamInfo<KernelLevel>& tested) {
  return std::string(KernelLevelName(tested.param));
}

// The table of a level. Of two levels with the same table, because the
// processor lacks what the higher one needs, only the lower one runs it.
template <typename Table>
struct TableCase {
  std::string name;
  const Table* kernels = nullptr;
  bool runs = false;
};

template <typename Table>
std::vector<TableCase<Table>> EveryTable(
    const Table& (*table_of)(KernelLevel)) {
  std::vector<TableCase<Table>> cases;
  for (const KernelLevel level :
       {KernelLevel::kScalar, KernelLevel::kAvx2, KernelLevel::kAvx512}) {
    const Table* table = &table_of(level);
    const bool is_new = cases.empty() || table != cases.back().kernels;
    cases.push_back({std::string(KernelLevelName(level)), table,
                     IsSupported(level) && is_new});
  }
  return cases;
}

template <typename Table>
class TableTest : public ::testing::TestWithParam<TableCase<Table>> {
 protected:
  void SetUp() override {
    if (!this->GetParam().runs) GTEST_SKIP() << "not on this processor";
  }
  const Table& kernels() const { return *this->GetParam().kernels; }
};

template <typename Table>
std::string NameOfTable(
    const ::testing::TestParamInfo<TableCase<Table>>& tested) {
  return tested.param.name;
}

struct DoubleDot {
  double dot = 0;
  double magnitude = 0;  // of the terms: at most |q| |k|
};

inline DoubleDot NaiveDot(const float* a, const float* b, std::int64_t dim) {
  DoubleDot result;
  for (std::int64_t d = 0; d < dim; ++d) {
    result.dot += double{a[d]} * b[d];
    result.magnitude += std::abs(double{a[d]} * b[d]);
  }
  return result;
}

// Each term passes at most dim + 1 roundings, in any order of summation.
inline double DotTolerance(const DoubleDot& naive, std::int64_t dim) {
  return static_cast<double>(dim + 1) * kEpsilon * naive.magnitude * 1.0001;
}

struct DoubleTanhDot {
  double dot = 0;
  double magnitude = 0;  // of the terms: at most the L1 norm of the weights
};

inline DoubleTanhDot NaiveTanhDot(const float* query,
                                  const float* output_weight, const float* row,
                                  std::int64_t dim) {
  DoubleTanhDot result;
  for (std::int64_t d = 0; d < dim; ++d) {
    const double term =
        output_weight[d] * std::tanh(double{query[d]} + double{row[d]});
    result.dot += term;
    result.magnitude += std::abs(term);
  }
  return result;
}

// Each tanh has its relative error. Each term passes at most dim + 1 roundings,
// in any order of summation. Each tanh, product and sum may also round to a
// multiple of the least denormal; for a tanh that error is multiplied by its
// weight.
inline double TanhDotTolerance(const DoubleTanhDot& naive, std::int64_t dim,
                               double greatest_weight) {
  const auto count = static_cast<double>(dim + 1);
  return (std::ldexp(1.0, -21) + count * kEpsilon) * naive.magnitude * 1.0001 +
         count * (2 + greatest_weight) * std::ldexp(1.0, -149);
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_CORE_KERNELS_KERNELS_FIXTURE_H_
