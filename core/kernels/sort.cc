#include "core/kernels/sort.h"

#include <hwy/contrib/sort/vqsort.h>

#include <algorithm>

namespace attendant {
namespace {

// Below, a plain sort is as quick.
constexpr std::size_t kLeastVectorised = 24;

}  // namespace

void SortAscending(std::span<std::uint64_t> numbers) {
  if (numbers.size() < kLeastVectorised) {
    std::sort(numbers.begin(), numbers.end());
    return;
  }
  thread_local const hwy::Sorter sorter;
  sorter(numbers.data(), numbers.size(), hwy::SortAscending());
}

}  // namespace attendant
