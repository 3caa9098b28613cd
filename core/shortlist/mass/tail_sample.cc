#include "core/shortlist/mass/tail_sample.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/base/minus_infinity.h"
#include "core/base/random.h"
#include "core/kernels/codes.h"
#include "core/kernels/kernels.h"

namespace attendant {
namespace {

// Blocks that are skipped at once.
constexpr std::size_t kGroupBlocks = 16;

}  // namespace

void TailSample::Add(const float* exps, std::int64_t count, float max) {
  static_assert(kChunk == kCodeRows);
  thread_local std::vector<float> ones;
  if (ones.size() < static_cast<std::size_t>(count)) {
    ones.resize(static_cast<std::size_t>(count), 1);
  }
  const std::size_t first = sums_.size();
  chunks_.push_back({static_cast<std::int64_t>(first), max});
  sums_.resize(first +
               static_cast<std::size_t>((count + kCodeRows - 1) / kCodeRows));
  ActiveKernels().DotChunks(exps, ones.data(), count, &sums_[first]);
}

std::size_t TailSample::EndOf(std::size_t chunk) const {
  return chunk + 1 < chunks_.size()
             ? static_cast<std::size_t>(chunks_[chunk + 1].first_block)
             : sums_.size();
}

// Uses four sums, because an addition waits for the one before it.
double TailSample::SumOf(std::size_t first_block, std::size_t end_block) const {
  double sums[4] = {};
  std::size_t b = first_block;
  for (; b + 4 <= end_block; b += 4) {
    for (std::size_t j = 0; j < 4; ++j) sums[j] += sums_[b + j];
  }
  for (; b < end_block; ++b) sums[0] += sums_[b];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void TailSample::Remove(std::span<const std::int32_t> positions,
                        std::span<const float> logits) {
  std::size_t c = 0;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const auto block = static_cast<std::size_t>(positions[i] / kCodeRows);
    while (EndOf(c) <= block) ++c;
    sums_[block] =
        std::max(0.0f, sums_[block] - std::exp(logits[i] - chunks_[c].max));
  }
}

double TailSample::LogSum() const {
  double max = kMinusInfinity;
  for (const Chunk& chunk : chunks_) max = std::max(max, double{chunk.max});
  double sum = 0;
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    sum += SumOf(static_cast<std::size_t>(chunks_[c].first_block), EndOf(c)) *
           std::exp(chunks_[c].max - max);
  }
  return sum > 0 ? max + std::log(sum) : kMinusInfinity;
}

void TailSample::DrawBlocks(std::int64_t count, std::uint64_t seed,
                            std::vector<Draw>& draws) const {
  draws.clear();
  const auto uniform = [seed](std::uint64_t i) {
    return UniformFrom(SplitMixBits(seed, i));
  };
  const double log_sum = LogSum();
  if (log_sum == kMinusInfinity) return;
  // Draw j is the block at which the cumulative share of the blocks passes (j +
  // u_j) / count.
  const auto place_of = [&](std::int64_t j) {
    return (static_cast<double>(j) +
            uniform(2 * static_cast<std::uint64_t>(j))) /
           static_cast<double>(count);
  };
  double passed = 0;
  double next = place_of(0);
  std::int64_t j = 0;
  for (std::size_t c = 0; c < chunks_.size() && j < count; ++c) {
    const double log_factor = chunks_[c].max - log_sum;
    const double factor = std::exp(log_factor);
    const std::size_t end = EndOf(c);
    for (auto first = static_cast<std::size_t>(chunks_[c].first_block);
         first < end && j < count; first += kGroupBlocks) {
      const std::size_t last = std::min(end, first + kGroupBlocks);
      const double after = passed + SumOf(first, last) * factor;
      // Most groups have no draw.
      for (std::size_t b = first; b < last && next < after; ++b) {
        // A group's sum may be rounded to more than that of its blocks.
        if (sums_[b] == 0) continue;
        passed += sums_[b] * factor;
        while (j < count && next < passed) {
          draws.push_back({static_cast<std::int64_t>(b),
                           std::log(double{sums_[b]}) + log_factor,
                           uniform(2 * static_cast<std::uint64_t>(j) + 1)});
          next = place_of(++j);
        }
      }
      passed = after;
    }
  }
}

}  // namespace attendant
