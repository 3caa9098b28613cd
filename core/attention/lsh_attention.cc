#include "core/attention/lsh_attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "core/attention/head_projection.h"
#include "core/attention/key_tile.h"
#include "core/attention/score.h"
#include "core/attention/state.h"
#include "core/base/status.h"
#include "core/kernels/kernels.h"

namespace attendant {
namespace {

constexpr std::int64_t kKeysPerBucket = 64;

std::size_t Size(std::int64_t i) { return static_cast<std::size_t>(i); }

LshOptions WithBuckets(LshOptions options, std::int64_t key_count,
                       std::int64_t dim) {
  if (options.bucket_count != 0) return options;
  const std::int64_t most =
      std::min(kMaxLshBuckets, MostLshBuckets(options.round_count, dim));
  options.bucket_count = 2 * std::clamp(key_count / (2 * kKeysPerBucket),
                                        std::int64_t{1}, most / 2);
  return options;
}

}  // namespace

LshAttention::LshAttention(const MultiHeadInput& input,
                           const LshOptions& options)
    : input_(input),
      options_(
          WithBuckets(options, input.keys.row_count, input.head_key_dim())),
      head_count_(input.head_count()),
      key_dim_(input.head_key_dim()),
      value_dim_(input.head_value_dim()),
      row_capacity_(input.mask.attended
                        ? static_cast<std::int64_t>(input.mask.attended->size())
                        : input.keys.row_count),
      hash_(key_dim_, options_.bucket_count, options_.round_count,
            options_.seed),
      keys_(Size(head_count_ * row_capacity_ * key_dim_)),
      values_(Size(head_count_ * row_capacity_ * value_dim_)),
      tables_(Size(head_count_ * options_.round_count)),
      query_(Size(key_dim_)),
      query_buckets_(Size(options_.round_count)),
      met_(Size((row_capacity_ + 63) / 64)),
      sum_(Size(value_dim_)),
      joined_(Size(head_count_ * value_dim_)),
      found_positions_(Size(head_count_)),
      found_weights_(Size(head_count_)) {}

absl::Status LshAttention::Load() {
  KeyTile tile(input_);
  const std::int64_t last_query = input_.queries.row_count - 1;
  const std::int64_t rounds = options_.round_count;
  std::vector<std::int32_t> buckets(Size(head_count_ * row_capacity_ * rounds));
  for (std::int64_t first = 0; first < tile.order_size(); first += kTileKeys) {
    ATTENDANT_RETURN_IF_ERROR(tile.Load(first, last_query));
    for (std::int64_t head = 0; head < head_count_; ++head) {
      const std::int64_t to = head * row_capacity_ + row_count_;
      std::copy_n(tile.keys(head), tile.size() * key_dim_,
                  keys_.data() + to * key_dim_);
      std::copy_n(tile.values(head), tile.size() * value_dim_,
                  values_.data() + to * value_dim_);
      for (std::int64_t i = 0; i < tile.size(); ++i) {
        ATTENDANT_RETURN_IF_ERROR(input_.interrupt.Check());
        hash_.Of(tile.keys(head) + i * key_dim_,
                 buckets.data() + (to + i) * rounds);
      }
    }
    positions_.insert(positions_.end(), tile.positions(),
                      tile.positions() + tile.size());
    row_count_ += tile.size();
  }
  for (std::int64_t head = 0; head < head_count_; ++head) {
    FillTables(head, buckets.data() + head * row_capacity_ * rounds);
  }
  return absl::OkStatus();
}

// A counting sort by bucket, in each round.
void LshAttention::FillTables(std::int64_t head, const std::int32_t* buckets) {
  for (std::int64_t round = 0; round < options_.round_count; ++round) {
    const auto bucket_of = [&](std::int64_t row) {
      return Size(buckets[row * options_.round_count + round]);
    };
    Table& table = tables_[Size(head * options_.round_count + round)];
    table.begins.assign(Size(options_.bucket_count + 1), 0);
    table.rows.resize(Size(row_count_));
    for (std::int64_t row = 0; row < row_count_; ++row) {
      ++table.begins[bucket_of(row) + 1];
    }
    std::partial_sum(table.begins.begin(), table.begins.end(),
                     table.begins.begin());
    std::vector<std::int32_t> next(table.begins);
    for (std::int64_t row = 0; row < row_count_; ++row) {
      table.rows[Size(next[bucket_of(row)]++)] = static_cast<std::int32_t>(row);
    }
  }
}

bool LshAttention::MayAttend(std::int64_t query, std::int64_t row) const {
  const AttentionMask& mask = input_.mask;
  const std::int32_t position = positions_[Size(row)];
  if (mask.causal && position > query) return false;
  return mask.forbidden.empty() ||
         mask.forbidden[Size(query * input_.keys.row_count + position)] == 0;
}

// Leaves in rows_ those that the query attends to, in ascending order.
void LshAttention::FindRows(std::int64_t head, std::int64_t query) {
  rows_.clear();
  for (std::int64_t round = 0; round < options_.round_count; ++round) {
    const Table& table = tables_[Size(head * options_.round_count + round)];
    const auto bucket = Size(query_buckets_[Size(round)]);
    for (std::int32_t at = table.begins[bucket]; at < table.begins[bucket + 1];
         ++at) {
      const auto row = static_cast<std::uint32_t>(table.rows[Size(at)]);
      met_[row / 64] |= std::uint64_t{1} << (row % 64);
    }
  }
  for (std::size_t word = 0; word < met_.size(); ++word) {
    for (; met_[word] != 0; met_[word] &= met_[word] - 1) {
      const auto row = static_cast<std::int32_t>(
          64 * word + static_cast<std::size_t>(std::countr_zero(met_[word])));
      if (MayAttend(query, row)) rows_.push_back(row);
    }
  }
  if (!rows_.empty()) return;
  for (std::int64_t row = 0; row < row_count_; ++row) {
    if (MayAttend(query, row)) rows_.push_back(static_cast<std::int32_t>(row));
  }
}

absl::Status LshAttention::AttendHead(std::int64_t head, std::int64_t query,
                                      float* pooled, LshFound& found) {
  FindRows(head, query);
  std::vector<std::int32_t>& positions = found_positions_[Size(head)];
  std::vector<float>& weights = found_weights_[Size(head)];
  const auto count = static_cast<std::int64_t>(rows_.size());
  positions.resize(rows_.size());
  weights.resize(rows_.size());
  found = {};
  std::fill_n(pooled, value_dim_, 0.0f);
  if (count == 0) return absl::OkStatus();
  scored_count_ += count;
  ActiveKernels().DotRowsAt(query_.data(), keys(head), rows_.data(), count,
                            key_dim_, weights.data());
  for (const float logit : weights) {
    if (std::isfinite(logit)) continue;
    return LogitOverflows(absl::StrCat(input_.names.queries, "[", query, "]"));
  }
  SoftmaxPartition partition;
  partition.Add(weights.data(), count, weights.data());
  ScaleRow(1 / partition.sum, count, weights.data());
  std::fill(sum_.begin(), sum_.end(), 0.0);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t row = rows_[Size(i)];
    positions[Size(i)] = positions_[Size(row)];
    ActiveKernels().AddScaled(weights[Size(i)], values(head) + row * value_dim_,
                              value_dim_, sum_.data());
  }
  for (std::int64_t d = 0; d < value_dim_; ++d) {
    pooled[d] = static_cast<float>(sum_[Size(d)]);
  }
  found.positions = positions;
  found.weights = weights;
  found.mean_logit = partition.max + partition.sum_gap / partition.sum;
  return absl::OkStatus();
}

absl::Status LshAttention::WriteOutput(bool is_empty, float* output) const {
  const std::int64_t dim = input_.output_dim();
  if (is_empty) {
    std::fill_n(output, dim, 0.0f);
    return absl::OkStatus();
  }
  if (input_.heads != nullptr && input_.heads->output) {
    const auto joined_dim = static_cast<std::int64_t>(joined_.size());
    ProjectRows(*input_.heads->output, {joined_.data(), 1, joined_dim}, output);
  } else {
    std::copy(joined_.begin(), joined_.end(), output);
  }
  if (!std::isnan(RowNorm(output, dim))) return absl::OkStatus();
  return InvalidField(absl::StrCat(input_.names.values),
                      "values whose weighted sum, or its projection, overflows",
                      "ones within the range of floats");
}

absl::Status LshAttention::Attend(std::int64_t i, float* output,
                                  std::vector<LshFound>& found) {
  ATTENDANT_RETURN_IF_ERROR(input_.interrupt.Check());
  found.resize(Size(head_count_));
  const MatrixView row = {input_.queries.data + i * input_.queries.dim, 1,
                          input_.queries.dim};
  const double factor =
      LogitFactor(input_.score_kind, key_dim_, input_.temperature);
  for (std::int64_t head = 0; head < head_count_; ++head) {
    if (input_.heads != nullptr) {
      ProjectHead(input_.heads->query, head, key_dim_, row, query_.data());
    } else {
      std::copy_n(row.data, key_dim_, query_.data());
    }
    const double norm = RowNorm(query_.data(), key_dim_);
    if (std::isnan(norm)) {
      return NotFinite(row.Row(0),
                       absl::StrCat(input_.names.queries, "[", i, "]"));
    }
    // Before it is scaled, which may round it away.
    hash_.Of(query_.data(), query_buckets_.data());
    const bool normalises = input_.score_kind == ScoreKind::kCosine && norm > 0;
    ScaleRow(normalises ? factor / norm : factor, key_dim_, query_.data());
    ATTENDANT_RETURN_IF_ERROR(AttendHead(
        head, i, joined_.data() + head * value_dim_, found[Size(head)]));
  }
  // Masks are the same for all heads.
  return WriteOutput(found[0].positions.empty(), output);
}

}  // namespace attendant
