#include "core/shortlist/tail_sample.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "core/base/random.h"
#include "core/kernels/codes.h"

namespace attendant {
namespace {

double Uniform(std::uint64_t i) { return UniformFrom(SplitMixBits(0, i)); }

}  // namespace

void TailSample::Add(const float* exps, std::int64_t count, float max) {
  chunks_.push_back({static_cast<std::int64_t>(sums_.size()), max});
  for (std::int64_t begin = 0; begin < count; begin += kCodeRows) {
    const std::int64_t end = std::min(count, begin + kCodeRows);
    float sum = 0;
    for (std::int64_t i = begin; i < end; ++i) sum += exps[i];
    sums_.push_back(sum);
  }
}

const TailSample::Chunk& TailSample::ChunkOf(std::int64_t block) const {
  const auto after = std::upper_bound(
      chunks_.begin(), chunks_.end(), block,
      [](std::int64_t b, const Chunk& chunk) { return b < chunk.first_block; });
  return *(after - 1);
}

void TailSample::Remove(std::int64_t position, float logit) {
  const std::int64_t block = position / kCodeRows;
  float& sum = sums_[static_cast<std::size_t>(block)];
  sum = std::max(0.0f, sum - std::exp(logit - ChunkOf(block).max));
}

double TailSample::LogSum() const {
  double max = -std::numeric_limits<double>::infinity();
  for (const Chunk& chunk : chunks_) max = std::max(max, double{chunk.max});
  double sum = 0;
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    const auto begin = static_cast<std::size_t>(chunks_[c].first_block);
    const std::size_t end =
        c + 1 < chunks_.size()
            ? static_cast<std::size_t>(chunks_[c + 1].first_block)
            : sums_.size();
    double of_chunk = 0;
    for (std::size_t b = begin; b < end; ++b) of_chunk += sums_[b];
    sum += of_chunk * std::exp(chunks_[c].max - max);
  }
  return sum > 0 ? max + std::log(sum)
                 : -std::numeric_limits<double>::infinity();
}

void TailSample::DrawBlocks(std::int64_t count,
                            std::vector<Draw>& draws) const {
  draws.clear();
  const double log_sum = LogSum();
  if (log_sum == -std::numeric_limits<double>::infinity()) return;
  // Draw j is where the shares of the blocks, one after the other, pass
  // (j + u) / count.
  double passed = 0;
  double next = Uniform(0) / static_cast<double>(count);
  std::int64_t j = 0;
  for (std::size_t c = 0; c < chunks_.size() && j < count; ++c) {
    const double log_factor = chunks_[c].max - log_sum;
    const double factor = std::exp(log_factor);
    const std::size_t end =
        c + 1 < chunks_.size()
            ? static_cast<std::size_t>(chunks_[c + 1].first_block)
            : sums_.size();
    for (auto b = static_cast<std::size_t>(chunks_[c].first_block); b < end;
         ++b) {
      passed += sums_[b] * factor;
      while (j < count && next < passed) {
        draws.push_back({static_cast<std::int64_t>(b),
                         std::log(double{sums_[b]}) + log_factor,
                         Uniform(static_cast<std::uint64_t>(j) + 1)});
        next = (static_cast<double>(++j) + Uniform(0)) /
               static_cast<double>(count);
      }
    }
  }
}

}  // namespace attendant
