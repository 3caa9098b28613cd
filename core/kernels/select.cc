#include "core/kernels/select.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <numeric>

#include "core/kernels/kernels.h"
#include "core/kernels/sort.h"

namespace attendant {
namespace {

// Of the greatest numbers of so many groups, the count-th is seldom far below
// the count-th of all.
constexpr std::size_t kGroupsPerWanted = 3;
constexpr std::size_t kMaxGroupSize = 16;

// At most the count-th greatest of numbers: the count-th of the greatest of
// each group. `group_count` >= count.
float LowerBound(std::span<const float> numbers, std::size_t count,
                 std::size_t group_count, std::vector<float>& greatest) {
  greatest.assign(numbers.begin(),
                  numbers.begin() + static_cast<std::ptrdiff_t>(group_count));
  // Group j holds numbers j, j + group_count, j + 2 group_count...
  for (std::size_t begin = group_count; begin < numbers.size();
       begin += group_count) {
    const float* next = numbers.data() + begin;
    const std::size_t end = std::min(group_count, numbers.size() - begin);
    for (std::size_t j = 0; j < end; ++j) {
      greatest[j] = std::max(greatest[j], next[j]);
    }
  }
  // A little less will do.
  const auto k = static_cast<std::int64_t>(count);
  return NearKthGreatest(greatest, k, k + k / 4);
}

// Numbers in the order of floats.
std::uint32_t OrderOf(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000;
}

float FloatOf(std::uint32_t order) {
  return std::bit_cast<float>((order >> 31) != 0 ? order & 0x7fffffff : ~order);
}

}  // namespace

float KthGreatest(std::span<const float> numbers, std::int64_t k) {
  return NearKthGreatest(numbers, k, k - 1);
}

float NearKthGreatest(std::span<const float> numbers, std::int64_t k,
                      std::int64_t most_count) {
  const Kernels& kernels = ActiveKernels();
  const auto n = static_cast<std::int64_t>(numbers.size());
  // At least k numbers are >= least; fewer are > most.
  std::uint32_t least = OrderOf(-std::numeric_limits<float>::infinity());
  std::uint32_t most = OrderOf(kernels.Max(numbers.data(), n));
  while (least < most) {
    const std::uint32_t guess = least + (most - least + 1) / 2;
    const std::int64_t count =
        kernels.CountAtLeast(numbers.data(), n, FloatOf(guess));
    if (count >= k) {
      least = guess;
      if (count <= most_count) break;
    } else {
      most = guess - 1;
    }
  }
  return FloatOf(least);
}

void SelectBest(std::span<const float> numbers, std::int64_t count,
                std::vector<std::int32_t>& positions) {
  const auto wanted = static_cast<std::size_t>(count);
  positions.resize(numbers.size());
  const std::size_t group_count =
      std::max(kGroupsPerWanted * wanted, numbers.size() / kMaxGroupSize);
  if (group_count < numbers.size()) {
    thread_local std::vector<float> greatest;
    const std::int64_t found = ActiveKernels().SelectAtLeast(
        numbers.data(), static_cast<std::int64_t>(numbers.size()),
        LowerBound(numbers, wanted, group_count, greatest), positions.data());
    positions.resize(static_cast<std::size_t>(found));
  } else {
    std::iota(positions.begin(), positions.end(), 0);
  }
  thread_local std::vector<std::uint64_t> order;
  order.resize(positions.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int32_t position = positions[i];
    order[i] = DescendingKey(numbers[static_cast<std::size_t>(position)],
                             static_cast<std::uint32_t>(position));
  }
  SortAscending(std::span(order));
  positions.resize(wanted);
  for (std::size_t i = 0; i < wanted; ++i) {
    positions[i] = static_cast<std::int32_t>(order[i] & 0xffffffff);
  }
}

}  // namespace attendant
