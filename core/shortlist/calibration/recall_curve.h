// How far an index must look for the recall that is asked for, and what that
// costs. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_CALIBRATION_RECALL_CURVE_H_
#define ATTENDANT_CORE_SHORTLIST_CALIBRATION_RECALL_CURVE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/byte_stream.h"
#include "core/shortlist/calibration/sample_queries.h"

namespace attendant {

// Learned from at what width (candidates of a graph, buckets, codes: the wider,
// the more is found) the neighbours of sample queries are found. Immutable once
// all are added.
class RecallCurve {
 public:
  // Of a neighbour that no width found.
  static constexpr std::int64_t kNever = INT64_MAX;

  RecallCurve() = default;
  // sample must outlive the calls of Add.
  explicit RecallCurve(const SampleQueries& sample);

  // widths[i] is the least width at which the i-th neighbour of query q is
  // found; each query once.
  void Add(std::int64_t q, std::span<const std::int64_t> widths);
  // After the last Add.
  void Finish();

  // The width for a mean recall, in (0, 1], among so many best keys, or nothing
  // if it was not reached on the sample queries. Between two recalls and two
  // numbers of neighbours learned from, on the straight line between logarithms
  // of widths; beyond the last number through the last two. Not below that of
  // the first number. A filter that passes a share s of the keys, whichever
  // they are, passes as much of the best n / s: to find its best n takes the
  // width of the best n / s.
  std::optional<double> WidthFor(double recall, double neighbour_count) const;

  // Mean recall of the sample queries' first number of neighbours, at the
  // greatest recall learned from that `width` reaches.
  double RecallAt(double width) const;

  void Save(ByteSink& sink) const;
  // DataLoss if they are bytes of none.
  static absl::StatusOr<RecallCurve> Load(ByteSource& source);

 private:
  // widths[i]: least width of the i-th recall learned from, or kNever.
  struct Depth {
    std::int64_t neighbour_count = 0;
    std::vector<std::int64_t> widths;
  };

  static std::optional<double> WidthAt(const Depth& depth, double recall);

  const SampleQueries* sample_ = nullptr;
  std::vector<std::vector<std::int64_t>> found_;  // by depth, until Finish
  std::vector<Depth> depths_;
};

// Points (width, cost), joined by straight lines.
class CostCurve {
 public:
  // Of ascending widths > 0; at least one before At is called.
  void Add(double width, double cost) { points_.emplace_back(width, cost); }
  // In proportion below the first point; beyond the last on the line through
  // the last two.
  double At(double width) const;

  void Save(ByteSink& sink) const;
  // DataLoss if they are bytes of none.
  static absl::StatusOr<CostCurve> Load(ByteSource& source);

 private:
  std::vector<std::pair<double, double>> points_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_CALIBRATION_RECALL_CURVE_H_
