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
  // Of the half square norm, of what it is taken from, and of sums with it.
  addition_error_ = 8 * std::exp2(-24) * *greatest;
}

void NearestCentroid::Find(MatrixView rows, std::int32_t* nearest,
                           float* squared_distances, Scratch& scratch) const {
  scratch.coded_rows.resize(static_cast<std::size_t>(kBlockRows));
  scratch.scores.resize(static_cast<std::size_t>(kBlockRows * stride()));
  scratch.greatest.resize(static_cast<std::size_t>(kBlockRows * part_count()));
  scratch.positions.resize(static_cast<std::size_t>(centroids_.row_count));
  // Of each row, which of the coded queries is it; -1: it has no codes.
  CodeQuery queries[kBlockRows];
  std::int64_t query_of[kBlockRows];
  std::size_t query_count = 0;
  for (std::int64_t r = 0; r < rows.row_count; ++r) {
    CodedQuery& coded = scratch.coded_rows[static_cast<std::size_t>(r)];
    const bool is_coded =
        codes_.usable() && coded.Encode(codes_, rows.Row(r), 1, QueryBits::k8);
    query_of[r] = is_coded ? static_cast<std::int64_t>(query_count) : -1;
    if (is_coded) queries[query_count++] = coded.view();
  }
  for (std::int64_t part = 0; part < part_count(); ++part) {
    ScorePart({queries, query_count}, part, scratch);
  }
  for (std::int64_t r = 0; r < rows.row_count; ++r) {
    const std::span<const float> row = rows.Row(r);
    const Best best =
        query_of[r] < 0
            ? FindByFloats(row, scratch)
            : FindByCodes(row, scratch.coded_rows[static_cast<std::size_t>(r)],
                          query_of[r], scratch);
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

void NearestCentroid::ScorePart(std::span<const CodeQuery> queries,
                                std::int64_t part, Scratch& scratch) const {
  const std::int64_t begin = part * kPartCentroids;
  const std::int64_t count =
      std::min(kPartCentroids, centroids_.row_count - begin);
  codes_.Logits(queries, CodeBits::k8, begin / kCodeRows,
                (count + kCodeRows - 1) / kCodeRows, stride(),
                scratch.scores.data() + begin);
  const float* half_square_norms = half_square_norms_.data() + begin;
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const auto query = static_cast<std::int64_t>(q);
    float* scores = scratch.scores.data() + query * stride() + begin;
    for (std::int64_t c = 0; c < count; ++c) scores[c] -= half_square_norms[c];
    scratch.greatest[static_cast<std::size_t>(query * part_count() + part)] =
        ActiveKernels().Max(scores, count);
  }
}

NearestCentroid::Best NearestCentroid::FindByCodes(std::span<const float> row,
                                                   const CodedQuery& coded,
                                                   std::int64_t query,
                                                   Scratch& scratch) const {
  // A score from codes is off by at most error x scale + margin.
  const auto error = static_cast<float>(coded.LogitErrorPerScale(CodeBits::k8));
  const auto margin = static_cast<float>(coded.logit_error() + addition_error_);
  const float* scores = scratch.scores.data() + query * stride();
  const float* greatest_of = scratch.greatest.data() + query * part_count();
  const float greatest =
      *std::max_element(greatest_of, greatest_of + part_count());
  // Whatever is so much below the greatest cannot be the best.
  const float least = greatest - 2 * (error * codes_.max_scale() + margin);
  std::int32_t* positions = scratch.positions.data();
  std::int64_t position_count = 0;
  for (std::int64_t part = 0; part < part_count(); ++part) {
    if (greatest_of[part] < least) continue;
    const std::int64_t begin = part * kPartCentroids;
    std::int32_t* found = positions + position_count;
    const std::int64_t found_count = ActiveKernels().SelectAtLeast(
        scores + begin, std::min(kPartCentroids, centroids_.row_count - begin),
        least, found);
    for (std::int64_t i = 0; i < found_count; ++i) {
      found[i] += static_cast<std::int32_t>(begin);
    }
    position_count += found_count;
  }
  const std::int32_t first =
      *std::find_if(positions, positions + position_count,
                    [&](std::int32_t c) { return scores[c] == greatest; });
  Best best = {first, Score(row, first)};
  for (std::int64_t i = 0; i < position_count; ++i) {
    const std::int32_t c = positions[i];
    const float scale = codes_.scales()[static_cast<std::size_t>(c)];
    if (c == first || scores[c] + error * scale + margin < best.score) continue;
    const float score = Score(row, c);
    if (score > best.score || (score == best.score && c < best.centroid)) {
      best = {c, score};
    }
  }
  return best;
}

}  // namespace attendant
