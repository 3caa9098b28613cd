#include "core/shortlist/nearest_centroid.h"

#include <algorithm>
#include <cmath>

#include "core/attention/score.h"
#include "core/kernels/kernels.h"

namespace attendant {
namespace {

constexpr std::uint64_t kRotationSeed = 20240607;

}  // namespace

NearestCentroid::NearestCentroid(MatrixView centroids)
    : centroids_(centroids), codes_(centroids, {}, kRotationSeed) {
  for (std::int64_t c = 0; c < centroids.row_count; ++c) {
    const double norm = Norm(centroids.Row(c));
    half_square_norms_.push_back(static_cast<float>(norm * norm / 2));
  }
  const auto greatest =
      std::max_element(half_square_norms_.begin(), half_square_norms_.end());
  // Of the half square norm, of what it is taken from, and of two sums with it.
  addition_error_ = 8 * std::exp2(-24) * *greatest;
}

void NearestCentroid::Find(MatrixView rows, std::int32_t* nearest,
                           float* squared_distances, Scratch& scratch) const {
  const auto stride = static_cast<std::int64_t>(codes_.scales().size());
  scratch.coded_rows.resize(static_cast<std::size_t>(kBlockRows));
  scratch.scores.resize(static_cast<std::size_t>(kBlockRows * stride));
  scratch.positions.resize(static_cast<std::size_t>(centroids_.row_count));
  // Of each row, which of the coded queries is it; -1: it has no codes.
  CodeQuery queries[kBlockRows];
  std::int64_t query_of[kBlockRows];
  std::size_t query_count = 0;
  for (std::int64_t r = 0; r < rows.row_count; ++r) {
    CodedQuery& coded = scratch.coded_rows[static_cast<std::size_t>(r)];
    const bool is_coded =
        codes_.usable() && coded.Encode(codes_, rows.Row(r), 1);
    query_of[r] = is_coded ? static_cast<std::int64_t>(query_count) : -1;
    if (is_coded) queries[query_count++] = coded.view();
  }
  codes_.Logits({queries, query_count}, CodeBits::k8, 0, stride / kCodeRows,
                stride, scratch.scores.data());
  for (std::int64_t r = 0; r < rows.row_count; ++r) {
    const std::span<const float> row = rows.Row(r);
    const Best best =
        query_of[r] < 0
            ? FindByFloats(row, scratch)
            : FindByCodes(row, scratch.coded_rows[static_cast<std::size_t>(r)],
                          scratch.scores.data() + query_of[r] * stride,
                          scratch);
    nearest[r] = best.centroid;
    if (squared_distances != nullptr) {
      const double norm = Norm(row);
      squared_distances[r] = static_cast<float>(norm * norm - 2.0 * best.score);
    }
  }
}

float NearestCentroid::Score(std::span<const float> row,
                             std::int64_t centroid) const {
  float dot = 0;
  ActiveKernels().DotRows(row.data(), centroids_.Row(centroid).data(), 1,
                          centroids_.dim, &dot);
  return dot - half_square_norms_[static_cast<std::size_t>(centroid)];
}

NearestCentroid::Best NearestCentroid::FindByFloats(std::span<const float> row,
                                                    Scratch& scratch) const {
  const Kernels& kernels = ActiveKernels();
  const std::int64_t centroid_count = centroids_.row_count;
  std::vector<float>& scores = scratch.float_scores;
  scores.resize(static_cast<std::size_t>(centroid_count));
  kernels.DotRows(row.data(), centroids_.data, centroid_count, centroids_.dim,
                  scores.data());
  for (std::size_t c = 0; c < scores.size(); ++c) {
    scores[c] -= half_square_norms_[c];
  }
  const float best = kernels.Max(scores.data(), centroid_count);
  // None is selected if the scores of an enormous row are NaN.
  const std::int64_t equal_count = kernels.SelectAtLeast(
      scores.data(), centroid_count, best, scratch.positions.data());
  return {equal_count > 0 ? scratch.positions[0] : 0, best};
}

NearestCentroid::Best NearestCentroid::FindByCodes(std::span<const float> row,
                                                   const CodedQuery& coded,
                                                   float* logits,
                                                   Scratch& scratch) const {
  std::vector<std::int32_t>& positions = scratch.positions;
  const Kernels& kernels = ActiveKernels();
  const std::int64_t centroid_count = centroids_.row_count;
  const std::span<const float> scales = codes_.scales();
  // No score is more than `margin` above the sum here, which has the error that
  // goes with the centroid's scale added to it.
  const auto error = static_cast<float>(coded.LogitErrorPerScale(CodeBits::k8));
  const auto margin = static_cast<float>(coded.logit_error() + addition_error_);
  for (std::size_t c = 0; c < half_square_norms_.size(); ++c) {
    logits[c] += error * scales[c] - half_square_norms_[c];
  }
  // What has the greatest sum has a score that is less by twice its errors at
  // most: whatever cannot reach that cannot be the best.
  const float greatest = kernels.Max(logits, centroid_count);
  const std::int64_t count = kernels.SelectAtLeast(
      logits, centroid_count,
      greatest - 2 * (error * codes_.max_scale() + margin), positions.data());
  // Nor can, mostly, what is below the score itself.
  const auto first =
      std::find_if(positions.begin(), positions.begin() + count,
                   [&](std::int32_t c) { return logits[c] == greatest; });
  Best best = {*first, Score(row, *first)};
  const float least = best.score - margin;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t c = positions[static_cast<std::size_t>(i)];
    if (c == *first || logits[c] < least) continue;
    const float score = Score(row, c);
    if (score > best.score || (score == best.score && c < best.centroid)) {
      best = {c, score};
    }
  }
  return best;
}

}  // namespace attendant
