#include "core/shortlist/lists/list_assigner.h"

#include <algorithm>

#include "core/shortlist/keys/inverse_norm.h"

namespace attendant {

ListAssigner::ListAssigner(MatrixView centroids, bool normalise)
    : normalise_(normalise), centroids_(centroids), nearest_(centroids_) {}

ListAssigner::ListAssigner(const ListMeans& means, bool normalise)
    : normalise_(normalise),
      learned_(LearnedOf(means)),
      centroids_(learned_.lists.empty() ? means.view()
                                        : MatrixView{learned_.means.data(),
                                                     static_cast<std::int64_t>(
                                                         learned_.lists.size()),
                                                     means.dim}),
      nearest_(centroids_) {}

ListAssigner::Learned ListAssigner::LearnedOf(const ListMeans& means) {
  Learned learned;
  for (std::int64_t l = 0; l < means.list_count(); ++l) {
    if (!means.Promises(l)) continue;
    learned.lists.push_back(static_cast<std::int32_t>(l));
  }
  if (static_cast<std::int64_t>(learned.lists.size()) == means.list_count()) {
    return {};
  }
  const auto dim = static_cast<std::size_t>(means.dim);
  learned.means = AlignedBuffer<float>(learned.lists.size() * dim);
  for (std::size_t i = 0; i < learned.lists.size(); ++i) {
    const std::span<const float> mean = means.Mean(learned.lists[i]);
    std::copy(mean.begin(), mean.end(), learned.means.data() + i * dim);
  }
  return learned;
}

void ListAssigner::Assign(
    std::int64_t count,
    absl::FunctionRef<std::span<const float>(std::int64_t i)> key_of,
    std::int32_t* lists, Scratch& scratch) const {
  constexpr std::int64_t kBlockRows = NearestCentroid::kBlockRows;
  const std::int64_t dim = centroids_.dim;
  const auto block_size = static_cast<std::size_t>(kBlockRows * dim);
  if (scratch.block_.size() < block_size) {
    scratch.block_ = AlignedBuffer<float>(block_size);
  }
  for (std::int64_t begin = 0; begin < count; begin += kBlockRows) {
    const std::int64_t block_count = std::min(kBlockRows, count - begin);
    float* to = scratch.block_.data();
    for (std::int64_t i = begin; i < begin + block_count; ++i) {
      const std::span<const float> key = key_of(i);
      const float factor = normalise_ ? InverseNorm(key) : 1;
      to = std::transform(
          key.begin(), key.end(), to,
          [factor](float component) { return component * factor; });
    }
    nearest_.Find({scratch.block_.data(), block_count, dim}, lists + begin,
                  scratch.nearest_);
  }
  if (learned_.lists.empty()) return;
  std::transform(lists, lists + count, lists,
                 [this](std::int32_t place) { return learned_.lists[place]; });
}

std::int64_t ListAssigner::memory_bytes() const {
  return static_cast<std::int64_t>(learned_.lists.size() *
                                       sizeof(std::int32_t) +
                                   learned_.means.size() * sizeof(float)) +
         nearest_.memory_bytes();
}

}  // namespace attendant
