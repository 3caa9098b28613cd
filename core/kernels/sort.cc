#include "core/kernels/sort.h"

#include <hwy/contrib/sort/vqsort.h>

#include <algorithm>

#include "core/kernels/float_order.h"
#include "core/kernels/kernels.h"

namespace attendant {
namespace {

// Below this a plain sort is as fast.
constexpr std::size_t kMinVectorised = 24;

// Returns integers that ascend as the floats, none of them NaN, descend; both
// zeros are equal.
std::uint32_t DescendingOrder(float number) { return ~OrderOf(number + 0.0f); }

}  // namespace

void SortAscending(std::span<std::uint64_t> numbers) {
  if (numbers.size() < kMinVectorised) {
    std::ranges::sort(numbers);
    return;
  }
  thread_local const hwy::Sorter sorter;
  sorter(numbers.data(), numbers.size(), hwy::SortAscending());
}

void SortDescending(std::span<const float> numbers,
                    std::vector<std::int32_t>& places) {
  const std::size_t n = numbers.size();
  places.resize(n);
  if (n <= static_cast<std::size_t>(kMaxRanked)) {
    std::uint32_t orders[kMaxRanked];
    std::uint32_t ranks[kMaxRanked];
    for (std::size_t i = 0; i < n; ++i) orders[i] = DescendingOrder(numbers[i]);
    ActiveKernels().Rank(orders, static_cast<std::int64_t>(n), ranks);
    for (std::size_t i = 0; i < n; ++i) {
      places[ranks[i]] = static_cast<std::int32_t>(i);
    }
    return;
  }
  thread_local std::vector<std::uint64_t> keys;
  keys.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    keys[i] = std::uint64_t{DescendingOrder(numbers[i])} << 32 | i;
  }
  SortAscending(keys);
  for (std::size_t i = 0; i < n; ++i) {
    places[i] = static_cast<std::int32_t>(keys[i] & 0xffffffff);
  }
}

}  // namespace attendant
