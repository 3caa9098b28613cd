#include "core/shortlist/lists/list_means.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/container/inlined_vector.h"
#include "core/attention/softmax/score.h"
#include "core/base/minus_infinity.h"
#include "core/base/status.h"
#include "core/kernels/float_order.h"
#include "core/kernels/kernels.h"
#include "core/kernels/select.h"

namespace attendant {
namespace {

// Number of lists that are expected to hold the best keys, and of lists in a
// block if more are.
constexpr std::size_t kBestLists = 16;

// Some lists with the best scores, and how many of their keys are above a
// score. Loops run over all of a block, some of whose lists may have no keys,
// and select numbers without branching.
class BestLists {
 public:
  BestLists(const ListMeans& means, std::span<const float> scores,
            std::size_t block_count) {
    const auto wanted = static_cast<std::int64_t>(
        std::min(block_count * kBestLists, scores.size()));
    thread_local std::vector<std::int32_t> best;
    SelectBest(scores, wanted, best);
    most_ = scores[best.front()];
    least_ = most_;
    blocks_.resize(block_count);
    std::size_t size = 0;
    for (const std::int32_t list : best) {
      const auto l = static_cast<std::size_t>(list);
      // A list without keys promises nothing. A list of one key has it at its
      // mean.
      if (!ListMeans::IsPromise(means.reaches[l])) break;
      const float reach = means.reaches[l];
      least_ = std::min(least_, scores[l] - reach);
      Block& block = blocks_[size / kBestLists];
      const std::size_t at = size % kBestLists;
      block.products[at] = scores[l] - reach;
      block.inverse_deviations[at] =
          reach > 0 ? std::sqrt(2 * std::log(means.counts[l])) / reach : kStep;
      block.counts[at] = means.counts[l];
      ++size;
    }
  }

  // The greatest score, and the least product with a mean.
  float most() const { return most_; }
  float least() const { return least_; }
  double key_count() const {
    double sum = 0;
    for (const Block& block : blocks_) {
      for (const float count : block.counts) sum += count;
    }
    return sum;
  }

  // Returns how many keys are expected to score more than `score`. Approximates
  // the normal distribution by a logistic one of a cubic (Bowling et al. 2009),
  // whose error is at most .00014.
  double CountAbove(float score) const {
    double sum = 0;
    for (const Block& block : blocks_) sum += block.CountAbove(score);
    return sum;
  }

 private:
  // Inverse deviation of a single key: a step from below it to above it.
  static constexpr float kStep = 1e30f;

  struct Block {
    float CountAbove(float score) const;

    std::array<float, kBestLists> products = {};
    std::array<float, kBestLists> inverse_deviations = {};
    std::array<float, kBestLists> counts = {};
  };

  float most_ = 0;
  float least_ = 0;
  absl::InlinedVector<Block, 1> blocks_;
};

float BestLists::Block::CountAbove(float score) const {
  constexpr float kMaxDeviations = 9;
  std::array<float, kBestLists> deviations;
  for (std::size_t i = 0; i < kBestLists; ++i) {
    deviations[i] = (score - products[i]) * inverse_deviations[i];
  }
  for (float& d : deviations) d = d > -kMaxDeviations ? d : -kMaxDeviations;
  for (float& d : deviations) d = d < kMaxDeviations ? d : kMaxDeviations;
  std::array<float, kBestLists> odds;
  for (std::size_t i = 0; i < kBestLists; ++i) {
    const float d = deviations[i];
    odds[i] = d * (1.5976f + .07056f * d * d);
  }
  constexpr auto kCount = static_cast<std::int64_t>(kBestLists);
  const Kernels& kernels = ActiveKernels();
  const float greatest = kernels.Max(odds.data(), kCount);
  std::array<float, kBestLists> exps;
  kernels.SumExps(odds.data(), kCount, greatest, exps.data());
  const float factor = std::exp(greatest);
  for (std::size_t i = 0; i < kBestLists; ++i) {
    exps[i] = counts[i] / (1 + factor * exps[i]);
  }
  float sum = 0;
  for (const float count : exps) sum += count;
  return sum;
}

}  // namespace

float ListMeans::ExpectedScore(std::span<const float> scores, double k,
                               std::int64_t best_count) const {
  constexpr int kHalvings = 8;
  const auto wanted_lists = static_cast<std::size_t>(
      std::clamp<std::int64_t>(best_count, 1, list_count()));
  const BestLists lists(*this, scores,
                        (wanted_lists + kBestLists - 1) / kBestLists);
  // If there are few keys in all, about half of them are above the middle.
  const double wanted = std::min(k, lists.key_count() / 2);
  float low = lists.least();
  float high = lists.most();
  for (int i = 0; i < kHalvings; ++i) {
    const float middle = low + (high - low) / 2;
    (lists.CountAbove(middle) > wanted ? low : high) = middle;
  }
  return low;
}

std::int64_t ListMeans::memory_bytes() const {
  return static_cast<std::int64_t>(
             (means.size() + reaches.size() + counts.size()) * sizeof(float)) +
         codes.memory_bytes();
}

void ListMeans::Save(ByteSink& sink) const {
  sink.Put(dim);
  sink.PutArray(means.span());
  sink.PutArray(std::span<const float>(reaches));
  sink.PutArray(std::span<const float>(counts));
}

absl::StatusOr<std::shared_ptr<const ListMeans>> ListMeans::Load(
    ByteSource& source, std::uint64_t seed) {
  auto loaded = std::make_shared<ListMeans>();
  loaded->dim = source.Get<std::int64_t>();
  loaded->means = source.GetArray<AlignedBuffer<float>>();
  loaded->reaches = source.GetArray<std::vector<float>>();
  loaded->counts = source.GetArray<std::vector<float>>();
  ATTENDANT_RETURN_IF_ERROR(source.status());
  const bool fits =
      loaded->dim >= 1 && loaded->dim <= kMaxDimension &&
      loaded->list_count() >= 1 &&
      loaded->means.size() ==
          loaded->reaches.size() * static_cast<std::size_t>(loaded->dim) &&
      loaded->counts.size() == loaded->reaches.size() &&
      std::ranges::any_of(loaded->reaches, IsPromise);
  if (!fits) {
    return absl::DataLossError("it is no training of lists: their means");
  }
  loaded->codes = KeyCodes(loaded->view(), {}, seed);
  return loaded;
}

void ListMeans::ScoreLists(std::span<const float> query,
                           std::vector<float>& scores) const {
  thread_local std::vector<float> direction;
  DirectionOf(query, direction);
  scores.resize(reaches.size());
  ActiveKernels().DotRows(direction.data(), means.data(), list_count(), dim,
                          scores.data());
  for (std::size_t l = 0; l < scores.size(); ++l) scores[l] += reaches[l];
}

void ListMeans::ScoreListsByCode(std::span<const CodeQuery> queries,
                                 CodeBits bits, std::int64_t stride,
                                 float* scores) const {
  const std::int64_t blocks = (list_count() + kCodeRows - 1) / kCodeRows;
  codes.Logits(queries, bits, 0, blocks, stride, scores);
  for (std::size_t q = 0; q < queries.size(); ++q) {
    float* of_query = scores + static_cast<std::int64_t>(q) * stride;
    // The greatest score is not used here.
    ActiveKernels().AddMax(reaches.data(), list_count(), of_query);
  }
}

void ListMeans::RankLists(std::span<const float> scores,
                          std::vector<std::uint64_t>& ranks) {
  ranks.resize(scores.size());
  for (std::size_t l = 0; l < ranks.size(); ++l) {
    ranks[l] = std::uint64_t{OrderOf(scores[l])} << 32 |
               ~static_cast<std::uint32_t>(l);
  }
}

}  // namespace attendant
