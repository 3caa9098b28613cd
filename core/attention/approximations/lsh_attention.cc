#include "core/attention/approximations/lsh_attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/attention/heads/attended_keys.h"
#include "core/attention/heads/head_rows.h"
#include "core/attention/heads/key_tile.h"
#include "core/attention/heads/size.h"
#include "core/attention/models/head_projection.h"
#include "core/attention/softmax/score.h"
#include "core/attention/softmax/state.h"
#include "core/base/status.h"
#include "core/kernels/kernels.h"

namespace attendant {
namespace {

constexpr std::int64_t kKeysPerBucket = 64;

}  // namespace

LshShape LshShapeOf(const MultiHeadInput& input,
                    const LshAttentionOptions& options) {
  const std::int64_t dim = input.head_key_dim();
  const std::int64_t key_count = input.keys.row_count;
  const std::int64_t wanted = options.bucket_count != 0
                                  ? options.bucket_count
                                  : 2 * (key_count / (2 * kKeysPerBucket));
  const std::int64_t most =
      std::min({kMaxLshBuckets, MostLshBuckets(options.round_count, dim),
                std::max<std::int64_t>(2, key_count + key_count % 2)});
  return {dim, std::clamp<std::int64_t>(wanted, 2, most), options.round_count,
          options.seed};
}

LshAttention::LshAttention(const MultiHeadInput& input,
                           std::shared_ptr<const LshBuckets> buckets)
    : input_(input),
      hash_(std::move(buckets)),
      key_dim_(input.head_key_dim()),
      value_dim_(input.head_value_dim()),
      positions_(AttendedKeys(input)),
      gathered_(Size(kTileKeys * std::max(input.keys.dim, input.values.dim))),
      keys_(Size(row_count() * key_dim_)),
      values_(input.projects_values() ? Size(row_count() * value_dim_) : 0),
      tables_(Size(hash_->round_count())),
      query_(Size(key_dim_)),
      query_buckets_(Size(hash_->round_count())),
      met_(Size((row_count() + 63) / 64)),
      sum_(Size(value_dim_)) {}

const float* LshAttention::ValueAt(std::int32_t row) const {
  return projects_values() ? values_.data() + row * value_dim_
                           : input_.values.Row(positions_[Size(row)]).data();
}

absl::Status LshAttention::LoadHead(std::int64_t head) {
  if (is_loaded_ && head == head_) return absl::OkStatus();
  is_loaded_ = false;
  head_ = head;
  const std::int64_t rounds = hash_->round_count();
  std::vector<std::int32_t> buckets(Size(row_count() * rounds));
  for (std::int64_t first = 0; first < row_count(); first += kTileKeys) {
    const std::int64_t count = std::min(kTileKeys, row_count() - first);
    ATTENDANT_RETURN_IF_ERROR(input_.interrupt.Check());
    ATTENDANT_RETURN_IF_ERROR(LoadRows(first, count));
    for (std::int64_t row = first; row < first + count; ++row) {
      ATTENDANT_RETURN_IF_ERROR(input_.interrupt.Check());
      hash_->Of(keys_.data() + row * key_dim_, buckets.data() + row * rounds);
    }
  }
  has_checked_values_ = true;
  FillTables(buckets);
  is_loaded_ = true;
  return absl::OkStatus();
}

absl::Status LshAttention::LoadRows(std::int64_t first, std::int64_t count) {
  const std::span<const std::int32_t> positions = {positions_.data() + first,
                                                   Size(count)};
  ATTENDANT_RETURN_IF_ERROR(
      LoadHeadKeys(input_, head_,
                   GatherRows(input_.keys, positions, gathered_.data()),
                   positions, keys_.data() + first * key_dim_)
          .status());
  if (!projects_values() && has_checked_values_) return absl::OkStatus();
  ATTENDANT_RETURN_IF_ERROR(input_.interrupt.Check());
  return LoadHeadValues(
      input_, head_, GatherRows(input_.values, positions, gathered_.data()),
      positions,
      projects_values() ? values_.data() + first * value_dim_ : nullptr);
}

// Counting sort by bucket, for each round.
void LshAttention::FillTables(const std::vector<std::int32_t>& buckets) {
  for (std::int64_t round = 0; round < hash_->round_count(); ++round) {
    const auto bucket_of = [&](std::int64_t row) {
      return Size(buckets[Size(row * hash_->round_count() + round)]);
    };
    Table& table = tables_[Size(round)];
    table.begins.assign(Size(hash_->bucket_count() + 1), 0);
    table.rows.resize(Size(row_count()));
    for (std::int64_t row = 0; row < row_count(); ++row) {
      ++table.begins[bucket_of(row) + 1];
    }
    std::partial_sum(table.begins.begin(), table.begins.end(),
                     table.begins.begin());
    std::vector<std::int32_t> next(table.begins);
    for (std::int64_t row = 0; row < row_count(); ++row) {
      table.rows[Size(next[bucket_of(row)]++)] = static_cast<std::int32_t>(row);
    }
  }
}

// Sets rows_ to the rows that the query attends to, in ascending order.
void LshAttention::FindRows(std::int64_t query) {
  const AllowedKeys allowed = input_.AllowedFor(query);
  rows_.clear();
  for (std::int64_t round = 0; round < hash_->round_count(); ++round) {
    const Table& table = tables_[Size(round)];
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
      if (allowed.Has(positions_[Size(row)])) rows_.push_back(row);
    }
  }
  if (!rows_.empty()) return;
  for (std::int32_t row = 0; row < row_count(); ++row) {
    if (allowed.Has(positions_[Size(row)])) rows_.push_back(row);
  }
}

// Computes the query's buckets, and the query times the factor that turns a dot
// product into a logit.
absl::Status LshAttention::LoadQuery(std::int64_t i) {
  const MatrixView row = {input_.queries.data + i * input_.queries.dim, 1,
                          input_.queries.dim};
  if (input_.heads != nullptr) {
    ProjectHead(input_.heads->query, head_, key_dim_, row, query_.data());
  } else {
    std::copy_n(row.data, key_dim_, query_.data());
  }
  const double norm = RowNorm(query_.data(), key_dim_);
  if (std::isnan(norm)) {
    return NotFinite(row.Row(0),
                     absl::StrCat(input_.names.queries, "[", i, "]"));
  }
  // Hash before scaling, which may round the query to 0.
  hash_->Of(query_.data(), query_buckets_.data());
  const double factor =
      LogitFactor(input_.score_kind, key_dim_, input_.temperature);
  const bool normalises = input_.score_kind == ScoreKind::kCosine && norm > 0;
  ScaleRow(normalises ? factor / norm : factor, key_dim_, query_.data());
  return absl::OkStatus();
}

absl::Status LshAttention::Attend(std::int64_t i, float* pooled,
                                  LshFound& found) {
  ATTENDANT_RETURN_IF_ERROR(input_.interrupt.Check());
  ATTENDANT_RETURN_IF_ERROR(LoadQuery(i));
  FindRows(i);
  const auto count = static_cast<std::int64_t>(rows_.size());
  found_positions_.resize(rows_.size());
  found_weights_.resize(rows_.size());
  found = {};
  std::fill_n(pooled, value_dim_, 0.0f);
  if (count == 0) return absl::OkStatus();
  scored_count_ += count;
  float* weights = found_weights_.data();
  ActiveKernels().DotRowsAt(query_.data(), keys_.data(), rows_.data(), count,
                            key_dim_, weights);
  for (const float logit : found_weights_) {
    if (std::isfinite(logit)) continue;
    return LogitOverflows(absl::StrCat(input_.names.queries, "[", i, "]"));
  }
  SoftmaxPartition partition;
  partition.Add(weights, count, weights);
  ScaleRow(1 / partition.sum, count, weights);
  std::ranges::fill(sum_, 0.0);
  for (std::size_t k = 0; k < rows_.size(); ++k) {
    found_positions_[k] = positions_[Size(rows_[k])];
    ActiveKernels().AddScaled(weights[k], ValueAt(rows_[k]), value_dim_,
                              sum_.data());
  }
  std::transform(sum_.begin(), sum_.end(), pooled,
                 [](double d) { return static_cast<float>(d); });
  found.positions = found_positions_;
  found.weights = found_weights_;
  found.mean_logit = partition.max + partition.sum_gap / partition.sum;
  return absl::OkStatus();
}

}  // namespace attendant
