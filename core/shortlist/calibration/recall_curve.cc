#include "core/shortlist/calibration/recall_curve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/base/status.h"

namespace attendant {
namespace {

constexpr std::array kRecalls = {0.3,  0.4,   0.5,  0.6,   0.7,   0.75, 0.8,
                                 0.85, 0.9,   0.92, 0.94,  0.95,  0.96, 0.97,
                                 0.98, 0.985, 0.99, 0.995, 0.998, 0.999};

}  // namespace

RecallCurve::RecallCurve(const SampleQueries& sample)
    : sample_(&sample), found_(sample.depths().size()) {}

void RecallCurve::Add(std::int64_t q, std::span<const std::int64_t> widths) {
  for (std::size_t d = 0; d < found_.size(); ++d) {
    if (!sample_->Reaches(q, d)) continue;
    const auto count =
        std::min(widths.size(), static_cast<std::size_t>(sample_->depths()[d]));
    found_[d].insert(found_[d].end(), widths.begin(),
                     widths.begin() + static_cast<std::ptrdiff_t>(count));
  }
}

void RecallCurve::Finish() {
  for (std::size_t d = 0; d < found_.size(); ++d) {
    std::vector<std::int64_t>& found = found_[d];
    std::ranges::sort(found);
    Depth depth = {.neighbour_count = sample_->depths()[d], .widths = {}};
    for (const double recall : kRecalls) {
      const auto needed = static_cast<std::size_t>(
          std::ceil(recall * static_cast<double>(found.size())));
      // A single key has no neighbours: any width will do.
      depth.widths.push_back(needed == 0 ? 1 : found[needed - 1]);
    }
    // If a depth was not found, it and the deeper ones are better guessed from
    // the depths that were.
    if (d > 0 && depth.widths.front() == kNever) break;
    depths_.push_back(std::move(depth));
  }
  found_.clear();
  sample_ = nullptr;
}

std::optional<double> RecallCurve::WidthAt(const Depth& depth, double recall) {
  const auto next = static_cast<std::size_t>(
      std::lower_bound(kRecalls.begin(), kRecalls.end(), recall) -
      kRecalls.begin());
  if (next == kRecalls.size() || depth.widths[next] == kNever) {
    return std::nullopt;
  }
  const auto high = static_cast<double>(depth.widths[next]);
  if (next == 0) return high;
  const auto low = static_cast<double>(depth.widths[next - 1]);
  const double share =
      (recall - kRecalls[next - 1]) / (kRecalls[next] - kRecalls[next - 1]);
  return low * std::pow(high / low, share);
}

std::optional<double> RecallCurve::WidthFor(double recall,
                                            double neighbour_count) const {
  const std::optional<double> least = WidthAt(depths_[0], recall);
  if (!least) return std::nullopt;
  const auto count_at = [this](std::size_t d) {
    return static_cast<double>(depths_[d].neighbour_count);
  };
  if (neighbour_count <= count_at(0)) return least;
  // Widths grow in proportion to neighbours: that is never too little.
  double width = *least * neighbour_count / count_at(0);
  double low = *least;
  for (std::size_t d = 1; d < depths_.size(); ++d) {
    const std::optional<double> high = WidthAt(depths_[d], recall);
    if (!high) break;
    const double slope =
        std::log(*high / low) / std::log(count_at(d) / count_at(d - 1));
    width = low * std::pow(neighbour_count / count_at(d - 1), slope);
    if (neighbour_count <= count_at(d)) break;
    low = *high;
  }
  return std::max(*least, width);
}

double RecallCurve::RecallAt(double width) const {
  double reached = 0;
  for (std::size_t i = 0; i < kRecalls.size(); ++i) {
    const std::int64_t needed = depths_[0].widths[i];
    if (needed != kNever && static_cast<double>(needed) <= width) {
      reached = kRecalls[i];
    }
  }
  return reached;
}

double CostCurve::At(double width) const {
  if (points_.size() == 1 || width <= points_.front().first) {
    return points_.front().second * width / points_.front().first;
  }
  std::size_t high = 1;
  while (high + 1 < points_.size() && points_[high].first < width) ++high;
  const auto& [low_width, low_cost] = points_[high - 1];
  return low_cost + (points_[high].second - low_cost) * (width - low_width) /
                        (points_[high].first - low_width);
}

void RecallCurve::Save(ByteSink& sink) const {
  sink.Put(static_cast<std::uint64_t>(depths_.size()));
  for (const Depth& depth : depths_) {
    sink.Put(depth.neighbour_count);
    sink.PutArray(std::span<const std::int64_t>(depth.widths));
  }
}

absl::StatusOr<RecallCurve> RecallCurve::Load(ByteSource& source) {
  RecallCurve curve;
  const auto depth_count = source.Get<std::uint64_t>();
  std::int64_t last_count = 0;
  for (std::uint64_t d = 0; d < depth_count && source.status().ok(); ++d) {
    Depth depth;
    depth.neighbour_count = source.Get<std::int64_t>();
    depth.widths = source.GetArray<std::vector<std::int64_t>>();
    if (depth.neighbour_count <= last_count ||
        depth.widths.size() != kRecalls.size() || depth.widths[0] < 1 ||
        !std::ranges::is_sorted(depth.widths)) {
      source.Fail(absl::DataLossError("its recalls are of no widths"));
    }
    last_count = depth.neighbour_count;
    curve.depths_.push_back(std::move(depth));
  }
  if (depth_count == 0) {
    source.Fail(absl::DataLossError("its recalls are of no widths"));
  }
  ATTENDANT_RETURN_IF_ERROR(source.status());
  return curve;
}

void CostCurve::Save(ByteSink& sink) const {
  sink.Put(static_cast<std::uint64_t>(points_.size()));
  for (const auto& [width, cost] : points_) {
    sink.Put(width);
    sink.Put(cost);
  }
}

absl::StatusOr<CostCurve> CostCurve::Load(ByteSource& source) {
  CostCurve curve;
  const auto count = source.Get<std::uint64_t>();
  double last_width = 0;
  for (std::uint64_t i = 0; i < count && source.status().ok(); ++i) {
    const auto width = source.Get<double>();
    const auto cost = source.Get<double>();
    if (!(width > last_width) || !std::isfinite(width) ||
        !std::isfinite(cost)) {
      source.Fail(absl::DataLossError("its costs are of no widths"));
    }
    last_width = width;
    curve.Add(width, cost);
  }
  if (count == 0) {
    source.Fail(absl::DataLossError("its costs are of no widths"));
  }
  ATTENDANT_RETURN_IF_ERROR(source.status());
  return curve;
}

}  // namespace attendant
