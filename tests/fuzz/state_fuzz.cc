// Partial attention over any logits, split into parts anywhere: merging the
// parts gives the same as scanning everything at once.
//
// Input: k, the value dimension, the part size, and logits as floats.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/attention/softmax/state.h"
#include "tests/fuzz/fuzz.h"

namespace attendant {
namespace {

constexpr std::size_t kHeaderBytes = 3;
constexpr std::size_t kMaxRows = 2000;

class RowIds : public IdResolver {
 public:
  RowIds() {
    for (std::size_t row = 0; row < kMaxRows; ++row) {
      // Ids are in a different order from rows.
      ids_.push_back(std::to_string(row * 7919 % 10007));
    }
  }
  absl::string_view IdOf(std::int32_t, RowIndex row) const override {
    return ids_[row];
  }

 private:
  std::vector<std::string> ids_;
};

struct Rows {
  std::vector<RowIndex> rows;
  std::vector<float> logits;
  std::vector<float> values;  // depend on row and dimension, in [-1, 1]
};

void Scan(const Rows& all, std::size_t begin, std::size_t end,
          AttentionState& state) {
  if (begin == end) return;
  const std::int64_t dim = state.value_dim();
  const std::size_t count = end - begin;
  std::vector<const float*> values;
  for (std::size_t row = begin; row < end && dim > 0; ++row) {
    values.push_back(all.values.data() + row * static_cast<std::size_t>(dim));
  }
  const std::span<const float> logits(all.logits.data() + begin, count);
  state.Add(0, {all.rows.data() + begin, count}, logits, logits, values);
}

bool Near(double a, double b, double tolerance) {
  return a == b || std::abs(a - b) <= tolerance;
}

void CheckPartition(const SoftmaxPartition& partition, std::size_t count) {
  Require(partition.count == static_cast<std::int64_t>(count), "rows count");
  if (count == 0) return;
  Require(partition.sum >= 0 && std::isfinite(partition.sum), "a finite sum");
  const double entropy = *partition.Entropy();
  Require(entropy >= 0, "entropy is not below 0");
  const double effective = partition.EffectiveCount();
  Require(
      effective >= 0 && effective <= static_cast<double>(count) * (1 + 1e-9),
      "the effective count is at most the count");
}

// exp(logit - max) is computed in float, so a part with another max rounds
// differently. This is the relative error of a sum, from the kernels' contract
// (SumExps), for the greatest gap at which a term is not 0; two states differ
// by twice as much. Merges multiply in doubles.
constexpr double kMaxGap = 87;
constexpr double kTolerance = 2 * (0x1p-21 + (kMaxGap + 9) * 0x1p-24);
// Of a quotient of sums, with values of at most 1, and a rounding to float.
constexpr double kPooledTolerance = 2 * kTolerance + 0x1p-23;

void CheckSame(const SoftmaxPartition& a, const SoftmaxPartition& b) {
  Require(a.count == b.count, "counts add up");
  if (a.count == 0) return;
  Require(a.max == b.max, "the greatest logit is one of the parts'");
  // The sum is at least 1, that of the greatest logit.
  Require(Near(a.sum, b.sum, kTolerance * a.sum), "sums add up");
  // ln(sum) plus the mean gap, which is at most the entropy and a quotient of
  // sums.
  Require(Near(*a.Entropy(), *b.Entropy(), kTolerance * (1 + 2 * *a.Entropy())),
          "entropies agree");
}

void CheckSame(const AttentionState& whole, const AttentionState& merged) {
  CheckSame(whole.partition(), merged.partition());
  const auto best = whole.top().Sorted();
  const auto merged_best = merged.top().Sorted();
  Require(best.size() == merged_best.size(), "as many are kept");
  for (std::size_t i = 0; i < best.size(); ++i) {
    Require(best[i].row == merged_best[i].row &&
                best[i].logit == merged_best[i].logit,
            "the same are kept");
  }
  const std::vector<float> pooled = whole.PooledValue();
  const std::vector<float> merged_pooled = merged.PooledValue();
  for (std::size_t d = 0; d < pooled.size(); ++d) {
    Require(std::abs(pooled[d]) <= 1 + 0x1p-23F, "a mean is within its values");
    Require(Near(pooled[d], merged_pooled[d], kPooledTolerance),
            "pooled values agree");
  }
}

// Merges every other part by its sums alone.
void CheckUnkept(const Rows& all, std::size_t part_size,
                 const AttentionState& whole, const IdResolver& ids) {
  const std::int64_t dim = whole.value_dim();
  AttentionState mixed(whole.top().k(), &ids, dim);
  std::int64_t unkept_count = 0;
  bool keeps = false;
  for (std::size_t begin = 0; begin < all.rows.size(); begin += part_size) {
    const std::size_t end = std::min(all.rows.size(), begin + part_size);
    if (keeps) {
      Scan(all, begin, end, mixed);
    } else {
      AttentionState part(0, &ids, dim);
      Scan(all, begin, end, part);
      std::vector<double> sums;
      for (const float mean : part.PooledValue()) {
        sums.push_back(mean * part.partition().sum);
      }
      mixed.AddUnkept(part.partition(), sums);
      unkept_count += part.partition().count;
    }
    keeps = !keeps;
  }
  mixed.AddUnkept({});
  Require(mixed.unkept().count == unkept_count, "rows that are not kept count");
  CheckSame(whole.partition(), mixed.partition());
  const std::vector<float> pooled = whole.PooledValue();
  const std::vector<float> mixed_pooled = mixed.PooledValue();
  for (std::size_t d = 0; d < pooled.size(); ++d) {
    Require(Near(pooled[d], mixed_pooled[d], kPooledTolerance),
            "sums pool as their rows do");
  }
}

}  // namespace

void CheckInput(absl::string_view input) {
  static const RowIds ids;
  if (input.size() < kHeaderBytes) return;
  const auto number = [&](std::size_t i) {
    return static_cast<std::uint8_t>(input[i]);
  };
  const std::int64_t k = number(0) % 20;
  const std::int64_t dim = number(1) % 4;
  const std::size_t part_size = 1 + number(2);
  input.remove_prefix(kHeaderBytes);
  Rows all;
  for (; input.size() >= sizeof(float) && all.rows.size() < kMaxRows;
       input.remove_prefix(sizeof(float))) {
    float logit;
    std::memcpy(&logit, input.data(), sizeof(logit));
    // Scans refuse other logits, and no scan adds rows whose weights are all 0.
    if (!std::isfinite(logit) &&
        (logit != -std::numeric_limits<float>::infinity() ||
         all.rows.size() % part_size == 0)) {
      continue;
    }
    all.rows.push_back(static_cast<RowIndex>(all.rows.size()));
    all.logits.push_back(logit);
    for (std::int64_t d = 0; d < dim; ++d) {
      all.values.push_back(std::sin(static_cast<float>(all.values.size())));
    }
  }
  Accept();
  const std::size_t count = all.rows.size();
  AttentionState whole(k, &ids, dim);
  Scan(all, 0, count, whole);
  CheckPartition(whole.partition(), count);
  // Adds the parts in turn, and each to its own state, merged in either
  // direction.
  AttentionState in_turn(k, &ids, dim);
  SoftmaxPartition forward;
  std::vector<SoftmaxPartition> parts;
  for (std::size_t begin = 0; begin < count; begin += part_size) {
    const std::size_t end = std::min(count, begin + part_size);
    Scan(all, begin, end, in_turn);
    AttentionState part(k, &ids, dim);
    Scan(all, begin, end, part);
    parts.push_back(part.partition());
    forward.Merge(parts.back());
  }
  CheckPartition(in_turn.partition(), count);
  CheckSame(whole, in_turn);
  CheckUnkept(all, part_size, whole, ids);
  CheckSame(whole.partition(), forward);
  SoftmaxPartition backward;
  while (!parts.empty()) {
    backward.Merge(parts.back());
    parts.pop_back();
  }
  CheckSame(whole.partition(), backward);
}

}  // namespace attendant
