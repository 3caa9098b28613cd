#include "core/shortlist/select_best.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>

#include "core/kernels/kernels.h"

namespace attendant {
namespace {

// Groups whose greatest numbers bound the count-th greatest of all from below.
constexpr std::size_t kGroupSize = 16;

// At most the count-th greatest of numbers, and near it where there are many
// more groups than `count`.
float LowerBound(std::span<const float> numbers, std::size_t count,
                 std::vector<float>& greatest) {
  const std::size_t group_count = numbers.size() / kGroupSize;
  greatest.assign(numbers.begin(),
                  numbers.begin() + static_cast<std::ptrdiff_t>(group_count));
  // Group j holds numbers j, j + group_count, j + 2 group_count...
  for (std::size_t i = 1; i < kGroupSize; ++i) {
    const float* next = numbers.data() + i * group_count;
    for (std::size_t j = 0; j < group_count; ++j) {
      greatest[j] = std::max(greatest[j], next[j]);
    }
  }
  const auto nth = greatest.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(greatest.begin(), nth, greatest.end(), std::greater<>());
  return *nth;
}

}  // namespace

void SelectBest(std::span<const float> numbers, std::int64_t count,
                std::vector<std::int32_t>& positions) {
  const auto wanted = static_cast<std::size_t>(count);
  positions.resize(numbers.size());
  if (4 * wanted * kGroupSize <= numbers.size()) {
    thread_local std::vector<float> greatest;
    const std::int64_t found = ActiveKernels().SelectAtLeast(
        numbers.data(), static_cast<std::int64_t>(numbers.size()),
        LowerBound(numbers, wanted, greatest), positions.data());
    positions.resize(static_cast<std::size_t>(found));
  } else {
    std::iota(positions.begin(), positions.end(), 0);
  }
  if (positions.size() > wanted) {
    const auto better = [&numbers](std::int32_t a, std::int32_t b) {
      const float of_a = numbers[static_cast<std::size_t>(a)];
      const float of_b = numbers[static_cast<std::size_t>(b)];
      return of_a != of_b ? of_a > of_b : a < b;
    };
    std::nth_element(positions.begin(),
                     positions.begin() + static_cast<std::ptrdiff_t>(wanted),
                     positions.end(), better);
    positions.resize(wanted);
  }
  std::sort(positions.begin(), positions.end());
}

}  // namespace attendant
