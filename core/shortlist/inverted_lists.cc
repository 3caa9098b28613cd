#include "core/shortlist/inverted_lists.h"

#include <bit>

#include "core/kernels/kernels.h"

namespace attendant {

void InvertedLists::RankLists(std::span<const float> query,
                              std::vector<std::uint64_t>& ranks) const {
  const std::int64_t lists = list_count();
  thread_local std::vector<float> products;
  products.resize(static_cast<std::size_t>(lists));
  ranks.resize(static_cast<std::size_t>(lists));
  ActiveKernels().DotRows(query.data(), centroids.data(), lists, dim,
                          products.data());
  for (std::size_t l = 0; l < ranks.size(); ++l) {
    // The bits of a float, made to order as the float does.
    const auto bits = std::bit_cast<std::uint32_t>(products[l]);
    const std::uint32_t ordered = (bits >> 31) != 0 ? ~bits : bits | 0x80000000;
    ranks[l] = std::uint64_t{ordered} << 32 | ~static_cast<std::uint32_t>(l);
  }
}

}  // namespace attendant
