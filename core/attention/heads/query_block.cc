#include "core/attention/heads/query_block.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/attention/heads/size.h"
#include "core/attention/models/head_projection.h"
#include "core/base/minus_infinity.h"
#include "core/base/status.h"
#include "core/kernels/kernels.h"

namespace attendant {
namespace {

// The number of queries scored against a tile at a time: their logits, and a
// few rows of keys, fit into the L1 cache.
constexpr std::int64_t kQueries = 64;
// Below the greatest float by more than the rounding of any norm.
constexpr double kSafeLogit = 3e38;

std::int64_t Capacity(const MultiHeadInput& input) {
  const std::int64_t query_bytes =
      input.head_count() *
      (input.head_key_dim() * std::int64_t{sizeof(float)} +
       input.head_value_dim() * std::int64_t{sizeof(double)} +
       std::int64_t{sizeof(SoftmaxPartition)});
  std::int64_t capacity =
      std::clamp(kBlockBytes / query_bytes, std::int64_t{1}, kBlockQueries);
  // Round down to full steps, if there are any.
  if (capacity > kQueries) capacity -= capacity % kQueries;
  return std::min(capacity, input.queries.row_count);
}

}  // namespace

QueryBlock::QueryBlock(const MultiHeadInput& input)
    : input_(input),
      head_count_(input.head_count()),
      key_dim_(input.head_key_dim()),
      value_dim_(input.head_value_dim()),
      softmax_(input.activation_kind == ActivationKind::kSoftmax),
      capacity_(Capacity(input)),
      max_norms_(Size(head_count_)),
      logits_(Size(kQueries * kTileKeys)),
      negated_(Size(kTileKeys)),
      live_(Size(kQueries)) {
  const std::int64_t step = std::min(kQueries, capacity_);
  tile_sums_ = AlignedBuffer<float>(Size(step * value_dim_));
  if (input.heads != nullptr && input.heads->output) {
    joined_ = AlignedBuffer<float>(Size(step * head_count_ * value_dim_));
  }
  const std::int64_t rows = head_count_ * capacity_;
  queries_ = AlignedBuffer<float>(Size(rows * key_dim_));
  pooled_ = AlignedBuffer<double>(Size(rows * value_dim_));
  partitions_.resize(Size(rows));
}

absl::Status QueryBlock::Start(std::int64_t first, std::int64_t count,
                               float* weights) {
  first_ = first;
  count_ = count;
  weights_ = weights;
  std::ranges::fill(max_norms_, 0.0);
  std::ranges::fill(partitions_, SoftmaxPartition());
  std::fill_n(pooled_.data(), head_count_ * count * value_dim_, 0.0);
  if (weights != nullptr) {
    const std::int64_t n = input_.keys.row_count;
    for (std::int64_t head = 0; head < head_count_; ++head) {
      std::fill_n(weights + (head * input_.queries.row_count + first) * n,
                  count * n, kMinusInfinityF);
    }
  }
  for (std::int64_t i = 0; i < count; i += kQueries) {
    ATTENDANT_RETURN_IF_ERROR(input_.interrupt.Check());
    ATTENDANT_RETURN_IF_ERROR(ProjectQueries(i, std::min(kQueries, count - i)));
  }
  return absl::OkStatus();
}

absl::Status QueryBlock::ProjectQueries(std::int64_t first,
                                        std::int64_t count) {
  const MatrixView queries = {
      input_.queries.data + (first_ + first) * input_.queries.dim, count,
      input_.queries.dim};
  const double factor =
      LogitFactor(input_.score_kind, key_dim_, input_.temperature);
  for (std::int64_t head = 0; head < head_count_; ++head) {
    float* projected = queries_.data() + RowOf(head, first) * key_dim_;
    if (input_.heads != nullptr) {
      ProjectHead(input_.heads->query, head, key_dim_, queries, projected);
    } else {
      std::copy_n(queries.data, count * key_dim_, projected);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      float* query = projected + i * key_dim_;
      const auto field = [&] {
        return absl::StrCat(input_.names.queries, "[", first_ + first + i, "]");
      };
      double norm = RowNorm(query, key_dim_);
      if (std::isnan(norm)) return NotFinite(queries.Row(i), field());
      if (input_.score_kind == ScoreKind::kCosine) {
        // A query of norm 0 stays unchanged: it has similarity 0 with all keys.
        if (norm > 0) ScaleRow(factor / norm, key_dim_, query);
        norm = factor;
      } else {
        ScaleRow(factor, key_dim_, query);
        norm *= factor;
      }
      // Otherwise a component, and with it every logit, may overflow a float.
      if (!(norm < kSafeLogit)) return LogitOverflows(field());
      double& max_norm = max_norms_[Size(head)];
      max_norm = std::max(max_norm, norm);
    }
  }
  return absl::OkStatus();
}

absl::Status QueryBlock::Add(const KeyTile& tile) {
  const Kernels& kernels = ActiveKernels();
  const std::int64_t n = tile.size();
  if (n == 0) return absl::OkStatus();
  for (std::int64_t head = 0; head < head_count_; ++head) {
    for (std::int64_t first = 0; first < count_; first += kQueries) {
      ATTENDANT_RETURN_IF_ERROR(input_.interrupt.Check());
      const std::int64_t count = std::min(kQueries, count_ - first);
      ATTENDANT_RETURN_IF_ERROR(Score(head, first, count, tile));
      if (weights_ != nullptr) KeepLogits(head, first, count, tile);
      for (std::int64_t i = 0; i < count; ++i) {
        if (softmax_) {
          AddSoftmax(RowOf(head, first + i), i, n);
        } else {
          AddActivated(RowOf(head, first + i), i, n);
        }
        scored_count_ += live_[Size(i)];
      }
      kernels.PoolRows(logits_.data(), count, tile.values(head), n, value_dim_,
                       tile_sums_.data());
      for (std::int64_t i = 0; i < count; ++i) {
        float* sum = tile_sums_.data() + i * value_dim_;
        double* pooled = pooled_.data() + RowOf(head, first + i) * value_dim_;
        // Scaling by 1 checks that all are finite.
        if (kernels.Scale(sum, value_dim_, 1, sum)) {
          kernels.AddScaled(1, sum, value_dim_, pooled);
          continue;
        }
        // The mean may be a finite float although this sum is not.
        for (std::int64_t key = 0; key < n; ++key) {
          kernels.AddScaled(logits_[Size(i * n + key)],
                            tile.values(head) + key * value_dim_, value_dim_,
                            pooled);
        }
      }
    }
  }
  return absl::OkStatus();
}

// Computes the logits [count, tile.size()], with masked ones at -infinity.
absl::Status QueryBlock::Score(std::int64_t head, std::int64_t first,
                               std::int64_t count, const KeyTile& tile) {
  const std::int64_t n = tile.size();
  ActiveKernels().DotRowsMulti(queries_.data() + RowOf(head, first) * key_dim_,
                               count, tile.keys(head), n, key_dim_,
                               logits_.data());
  // q . k| is at most the product of the norms, so logits need a check only if
  // that is near the greatest float.
  if (!(max_norms_[Size(head)] * tile.max_norm(head) < kSafeLogit)) {
    for (std::int64_t i = 0; i < count * n; ++i) {
      if (std::isfinite(logits_[Size(i)])) continue;
      const std::int64_t query = first_ + first + i / n;
      if (input_.AllowedFor(query).Has(tile.positions()[i % n])) {
        return LogitOverflows(
            absl::StrCat(input_.names.queries, "[", query, "]"));
      }
    }
  }
  Mask(first, count, tile);
  return absl::OkStatus();
}

void QueryBlock::Mask(std::int64_t first, std::int64_t count,
                      const KeyTile& tile) {
  const std::int64_t n = tile.size();
  std::fill_n(live_.begin(), count, n);
  const AttentionMask& mask = input_.mask;
  const bool crosses = mask.causal && tile.max_position() > first_ + first;
  if (!crosses && mask.forbidden.empty()) return;
  for (std::int64_t i = 0; i < count; ++i) {
    const AllowedKeys allowed = input_.AllowedFor(first_ + first + i);
    float* logits = logits_.data() + i * n;
    std::int64_t live = 0;
    for (std::int64_t key = 0; key < n; ++key) {
      const bool has = allowed.Has(tile.positions()[key]);
      logits[key] = has ? logits[key] : kMinusInfinityF;
      live += has ? 1 : 0;
    }
    live_[Size(i)] = live;
  }
}

void QueryBlock::KeepLogits(std::int64_t head, std::int64_t first,
                            std::int64_t count, const KeyTile& tile) {
  for (std::int64_t i = 0; i < count; ++i) {
    float* row =
        weights_ + (head * input_.queries.row_count + first_ + first + i) *
                       input_.keys.row_count;
    for (std::int64_t key = 0; key < tile.size(); ++key) {
      row[tile.positions()[key]] = logits_[Size(i * tile.size() + key)];
    }
  }
}

// Turns the logits of the i-th scored query into e relative to the greatest
// logit so far, and rescales the earlier sums to it.
void QueryBlock::AddSoftmax(std::int64_t row, std::int64_t i, std::int64_t n) {
  float* logits = logits_.data() + i * n;
  if (live_[Size(i)] == 0) {
    std::fill_n(logits, n, 0.0f);
    return;
  }
  SoftmaxPartition& sums = partition(row);
  const bool was_empty = sums.count == 0;
  const float old_max = sums.max;
  sums.Add(logits, n, logits);
  if (was_empty || sums.max == old_max) return;
  const double scale = std::exp(double{old_max} - sums.max);
  double* pooled = pooled_.data() + row * value_dim_;
  for (std::int64_t d = 0; d < value_dim_; ++d) pooled[d] *= scale;
}

// As AddSoftmax, for weights that are not normalised. The partition then holds
// the count and, as gaps from 0, the sum of the logits.
void QueryBlock::AddActivated(std::int64_t row, std::int64_t i,
                              std::int64_t n) {
  float* logits = logits_.data() + i * n;
  SoftmaxPartition& sums = partition(row);
  sums.count += live_[Size(i)];
  for (std::int64_t key = 0; key < n; ++key) {
    if (logits[key] != kMinusInfinityF) sums.sum_gap += logits[key];
  }
  Activate(logits, n);
}

// Turns logits into weights, in place; masked ones become 0.
void QueryBlock::Activate(float* logits, std::int64_t n) {
  if (input_.activation_kind == ActivationKind::kNone) {
    for (std::int64_t key = 0; key < n; ++key) {
      if (logits[key] == kMinusInfinityF) logits[key] = 0;
    }
    return;
  }
  // With e = exp(-|logit|), sigmoid = 1 / (1 + e) for a logit >= 0 and e / (1 +
  // e) for a logit below 0.
  float* exps = negated_.data();
  for (std::int64_t key = 0; key < n; ++key) exps[key] = -std::abs(logits[key]);
  ActiveKernels().SumExps(exps, n, 0, exps);
  for (std::int64_t key = 0; key < n; ++key) {
    const float e = exps[key];
    logits[key] = (logits[key] >= 0 ? 1 : e) / (1 + e);
  }
}

absl::Status QueryBlock::Finish(float* outputs) {
  if (weights_ != nullptr) NormaliseWeights();
  const std::int64_t output_dim = input_.output_dim();
  const std::int64_t joined_dim = head_count_ * value_dim_;
  const bool projects = input_.heads != nullptr && input_.heads->output;
  for (std::int64_t first = 0; first < count_; first += kQueries) {
    ATTENDANT_RETURN_IF_ERROR(input_.interrupt.Check());
    const std::int64_t count = std::min(kQueries, count_ - first);
    float* to = outputs + (first_ + first) * output_dim;
    float* joined = projects ? joined_.data() : to;
    for (std::int64_t head = 0; head < head_count_; ++head) {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t row = RowOf(head, first + i);
        const double* pooled = pooled_.data() + row * value_dim_;
        const SoftmaxPartition& sums = partition(row);
        const double sum = softmax_ && sums.count > 0 ? sums.sum : 1;
        float* mean = joined + i * joined_dim + head * value_dim_;
        for (std::int64_t d = 0; d < value_dim_; ++d) {
          mean[d] = static_cast<float>(pooled[d] / sum);
        }
      }
    }
    if (projects) {
      ProjectRows(*input_.heads->output, {joined, count, joined_dim}, to);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      float* output = to + i * output_dim;
      // The mask is the same for all heads.
      if (partition(first + i).count == 0) {
        std::fill_n(output, output_dim, 0.0f);
      }
      ATTENDANT_RETURN_IF_ERROR(
          CheckOutput(output, output_dim, input_.names.values));
    }
  }
  return absl::OkStatus();
}

void QueryBlock::NormaliseWeights() {
  const std::int64_t n = input_.keys.row_count;
  for (std::int64_t head = 0; head < head_count_; ++head) {
    for (std::int64_t i = 0; i < count_; ++i) {
      float* row =
          weights_ + (head * input_.queries.row_count + first_ + i) * n;
      const SoftmaxPartition& sums = partition(RowOf(head, i));
      if (sums.count == 0) {
        std::fill_n(row, n, 0.0f);
        continue;
      }
      ActiveKernels().SumExps(row, n, sums.max, row);
      ScaleRow(1 / sums.sum, n, row);
    }
  }
}

absl::Status QueryBlock::MeanWeights(const KeyTile& tile, float* mean_weights) {
  const std::int64_t n = tile.size();
  std::fill_n(mean_weights, count_ * n, 0.0f);
  if (n == 0) return absl::OkStatus();
  const double share = 1 / static_cast<double>(head_count_);
  for (std::int64_t head = 0; head < head_count_; ++head) {
    for (std::int64_t first = 0; first < count_; first += kQueries) {
      ATTENDANT_RETURN_IF_ERROR(input_.interrupt.Check());
      const std::int64_t count = std::min(kQueries, count_ - first);
      ATTENDANT_RETURN_IF_ERROR(Score(head, first, count, tile));
      for (std::int64_t i = 0; i < count; ++i) {
        if (live_[Size(i)] == 0) continue;
        float* row = logits_.data() + i * n;
        const SoftmaxPartition& sums = partition(RowOf(head, first + i));
        if (softmax_) {
          ActiveKernels().SumExps(row, n, sums.max, row);
        } else {
          Activate(row, n);
        }
        const auto factor =
            static_cast<float>(softmax_ ? share / sums.sum : share);
        float* means = mean_weights + (first + i) * n;
        for (std::int64_t key = 0; key < n; ++key) {
          means[key] += factor * row[key];
        }
      }
    }
  }
  return absl::OkStatus();
}

double QueryBlock::MeanLogit(std::int64_t i) const {
  double sum = 0;
  for (std::int64_t head = 0; head < head_count_; ++head) {
    const SoftmaxPartition& sums = partition(RowOf(head, i));
    if (sums.count == 0) return 0;
    sum += softmax_ ? sums.max + sums.sum_gap / sums.sum
                    : sums.sum_gap / static_cast<double>(sums.count);
  }
  return sum / static_cast<double>(head_count_);
}

}  // namespace attendant
