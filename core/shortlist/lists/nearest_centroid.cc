#include "core/shortlist/lists/nearest_centroid.h"

#include <algorithm>
#include <cmath>

#include "core/attention/softmax/score.h"
#include "core/base/spare_time.h"
#include "core/kernels/kernels.h"
#include "core/shortlist/builds/for_each_part.h"

namespace attendant {
namespace {

constexpr std::uint64_t kRotationSeed = 20240607;

}  // namespace

CodedRows::CodedRows(MatrixView rows, std::int64_t thread_count)
    : planes_(
          static_cast<std::size_t>(rows.row_count * QueryPlaneBytes(rows.dim))),
      codes_(static_cast<std::size_t>(rows.row_count)) {
  const Rotation rotation(rows.dim, kRotationSeed);
  ForEachPart(rows.row_count, thread_count,
              [&](std::int64_t begin, std::int64_t end) {
                std::vector<float> rotated;
                for (std::int64_t r = begin; r < end; ++r) {
                  MakeWay();
                  const std::span<const float> row = rows.Row(r);
                  rotated.assign(row.begin(), row.end());
                  CutIntoCodes(rotation, rotated, Norm(row),
                               planes_.data() + r * QueryPlaneBytes(rows.dim),
                               nullptr, &codes_[r]);
                }
              });
}

NearestCentroid::NearestCentroid(MatrixView centroids)
    : centroids_(centroids), codes_(centroids, {}, kRotationSeed) {
  for (std::int64_t c = 0; c < centroids.row_count; ++c) {
    const double norm = Norm(centroids.Row(c));
    minus_half_square_norms_.push_back(-static_cast<float>(norm * norm / 2));
  }
  const float most = *std::ranges::min_element(minus_half_square_norms_);
  // Rounding of the half square norm, of its terms, and of sums with it.
  addition_error_ = 8 * std::exp2(-24) * -most;
}

template <typename Take>
void NearestCentroid::FindRows(MatrixView rows, Take take,
                               std::int32_t* nearest, Scratch& scratch) const {
  scratch.coded_rows.resize(static_cast<std::size_t>(kBlockRows));
  scratch.scores.resize(static_cast<std::size_t>(kBlockRows * stride()));
  scratch.greatest.resize(static_cast<std::size_t>(kBlockRows * part_count()));
  scratch.positions.resize(static_cast<std::size_t>(centroids_.row_count));
  // For each row, the index of its coded query; -1 if it has no codes.
  CodeQuery queries[kBlockRows];
  std::int64_t query_of[kBlockRows];
  std::size_t query_count = 0;
  for (std::int64_t r = 0; r < rows.row_count; ++r) {
    CodedQuery& coded = scratch.coded_rows[r];
    const bool is_coded = codes_.usable() && take(r, coded);
    query_of[r] = is_coded ? static_cast<std::int64_t>(query_count) : -1;
    if (is_coded) queries[query_count++] = coded.view();
  }
  for (std::int64_t part = 0; part < part_count(); ++part) {
    ScorePart({queries, query_count}, part, scratch);
  }
  for (std::int64_t r = 0; r < rows.row_count; ++r) {
    const std::span<const float> row = rows.Row(r);
    nearest[r] = query_of[r] < 0 ? FindByFloats(row, scratch)
                                 : FindByCodes(row, scratch.coded_rows[r],
                                               query_of[r], scratch);
  }
}

void NearestCentroid::Find(MatrixView rows, std::int32_t* nearest,
                           Scratch& scratch) const {
  const auto take = [&](std::int64_t r, CodedQuery& coded) {
    return coded.Encode(codes_, rows.Row(r), 1, QueryBits::k8);
  };
  FindRows(rows, take, nearest, scratch);
}

void NearestCentroid::Find(MatrixView rows, const CodedRows& coded_rows,
                           std::int64_t first, std::int32_t* nearest,
                           Scratch& scratch) const {
  const auto take = [&](std::int64_t r, CodedQuery& coded) {
    const CutQuery* code = coded_rows.Of(first + r);
    return code != nullptr && coded.Take(*code, codes_, 1);
  };
  FindRows(rows, take, nearest, scratch);
}

float NearestCentroid::Score(std::span<const float> row,
                             std::int64_t centroid) const {
  float dot = 0;
  ActiveKernels().DotRows(row.data(), centroids_.Row(centroid).data(), 1,
                          centroids_.dim, &dot);
  return dot + minus_half_square_norms_[centroid];
}

std::int32_t NearestCentroid::FindByFloats(std::span<const float> row,
                                           Scratch& scratch) const {
  const Kernels& kernels = ActiveKernels();
  const std::int64_t centroid_count = centroids_.row_count;
  std::vector<float>& scores = scratch.float_scores;
  scores.resize(static_cast<std::size_t>(centroid_count));
  kernels.DotRows(row.data(), centroids_.data, centroid_count, centroids_.dim,
                  scores.data());
  const float best = kernels.AddMax(minus_half_square_norms_.data(),
                                    centroid_count, scores.data());
  // If the scores of an enormous row are NaN, nothing is selected.
  const std::int64_t equal_count = kernels.SelectAtLeast(
      scores.data(), centroid_count, best, scratch.positions.data());
  return equal_count > 0 ? scratch.positions[0] : 0;
}

void NearestCentroid::ScorePart(std::span<const CodeQuery> queries,
                                std::int64_t part, Scratch& scratch) const {
  const std::int64_t begin = part * kPartCentroids;
  const std::int64_t count =
      std::min(kPartCentroids, centroids_.row_count - begin);
  codes_.Logits(queries, CodeBits::k8, begin / kCodeRows,
                (count + kCodeRows - 1) / kCodeRows, stride(),
                scratch.scores.data() + begin);
  for (std::size_t q = 0; q < queries.size(); ++q) {
    const auto query = static_cast<std::int64_t>(q);
    scratch.greatest[query * part_count() + part] = ActiveKernels().AddMax(
        minus_half_square_norms_.data() + begin, count,
        scratch.scores.data() + query * stride() + begin);
  }
}

std::int32_t NearestCentroid::FindByCodes(std::span<const float> row,
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
  // A centroid this far below the greatest score cannot be the nearest.
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
  std::int32_t best = first;
  float best_score = Score(row, first);
  for (std::int64_t i = 0; i < position_count; ++i) {
    const std::int32_t c = positions[i];
    const float scale = codes_.scales()[c];
    if (c == first || scores[c] + error * scale + margin < best_score) {
      continue;
    }
    const float score = Score(row, c);
    if (score > best_score || (score == best_score && c < best)) {
      best = c;
      best_score = score;
    }
  }
  return best;
}

}  // namespace attendant
