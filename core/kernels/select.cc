#include "core/kernels/select.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <numeric>

#include "core/kernels/float_order.h"
#include "core/kernels/kernels.h"
#include "core/kernels/sort.h"

namespace attendant {
namespace {

// With this many groups per number wanted, the count-th of the groups' greatest
// numbers is seldom far below the count-th of all.
constexpr std::size_t kGroupsPerWanted = 3;
constexpr std::size_t kMaxGroupSize = 16;

// Returns a lower bound of the count-th greatest number: about the count-th of
// the greatest numbers of the groups. `group_count` >= count.
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
  // A slightly lower bound is good enough and cheaper.
  const auto k = static_cast<std::int64_t>(count);
  return NearKthGreatest(greatest, k, k + k / 4);
}

// Steps in the order of floats: an eighth of an octave, and an eighth of the
// whole range.
constexpr std::uint32_t kFirstStep = 1u << 20;
constexpr std::uint32_t kLastStep = 1u << 29;

// Returns the least of the numbers that are >= threshold, of which there must
// be one. Compares integers, because the compiler vectorises their minimum.
float LeastOf(std::span<const float> numbers, float threshold) {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  std::int32_t least = kMost;
  for (const float number : numbers) {
    const auto bits = std::bit_cast<std::int32_t>(number);
    const std::int32_t order = bits ^ ((bits >> 31) & kMost);
    const std::int32_t left_out = number >= threshold ? 0 : -1;
    least = std::min(least, (order & ~left_out) | (kMost & left_out));
  }
  return std::bit_cast<float>(least ^ ((least >> 31) & kMost));
}

}  // namespace

float KthGreatest(std::span<const float> numbers, std::int64_t k) {
  return NearKthGreatest(numbers, k, k - 1);
}

float NearKthGreatest(std::span<const float> numbers, std::int64_t k,
                      std::int64_t most_count) {
  const Kernels& kernels = ActiveKernels();
  const auto n = static_cast<std::int64_t>(numbers.size());
  const std::uint32_t greatest = OrderOf(kernels.Max(numbers.data(), n));
  // At least k numbers are >= least; fewer are > most.
  std::uint32_t least = OrderOf(-std::numeric_limits<float>::infinity());
  std::uint32_t most = greatest;
  // The first guesses descend from the greatest number in growing steps until k
  // numbers are above: they are seldom far below.
  std::uint32_t below = kFirstStep;
  while (least < most) {
    const std::uint32_t middle = least + (most - least + 1) / 2;
    const std::uint32_t guess =
        std::max(middle, greatest > below ? greatest - below : 0);
    const std::int64_t count =
        kernels.CountAtLeast(numbers.data(), n, FloatOf(guess));
    if (count < k) {
      most = guess - 1;
      below = below > kLastStep ? greatest : 4 * below;
      continue;
    }
    least = guess;
    below = greatest;
    if (count <= most_count) break;
    if (count == k) return LeastOf(numbers, FloatOf(guess));
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
  }
  // No number is >= NaN, so a NaN bound finds too few: consider all numbers.
  if (group_count >= numbers.size() || positions.size() < wanted) {
    positions.resize(numbers.size());
    std::iota(positions.begin(), positions.end(), 0);
  }
  thread_local std::vector<float> found_numbers;
  thread_local std::vector<std::int32_t> order;
  found_numbers.resize(positions.size());
  for (std::size_t i = 0; i < positions.size(); ++i) {
    found_numbers[i] = numbers[positions[i]];
  }
  SortDescending(found_numbers, order);
  order.resize(wanted);
  for (std::int32_t& place : order) {
    place = positions[place];
  }
  positions.assign(order.begin(), order.end());
}

}  // namespace attendant
