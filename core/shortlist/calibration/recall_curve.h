// Curves of how wide an index must look for a wanted recall, and what that
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

// Learned from the widths at which the neighbours of sample queries are found.
// A width counts candidates of a graph, buckets or codes; a greater width finds
// more. Immutable after Finish.
class RecallCurve {
 public:
  // Width of a neighbour that no width found.
  static constexpr std::int64_t kNever = INT64_MAX;

  RecallCurve() = default;
  // `sample` must outlive the calls of Add.
  explicit RecallCurve(const SampleQueries& sample);

  // Adds query q, once for each query. widths[i] is the least width at which
  // its i-th neighbour is found.
  void Add(std::int64_t q, std::span<const std::int64_t> widths);
  // To be called once, after the last Add.
  void Finish();

  // Returns the width for a mean recall, in (0, 1], among the neighbour_count
  // best keys; nullopt if the sample queries did not reach it. Interpolates on
  // straight lines between logarithms of widths, both between two recalls and
  // between two numbers of neighbours learned from; beyond the last number,
  // extends the line through the last two. At least the width of the first
  // number.
  //
  // A filter that passes a share s of the keys, independently of where they
  // are, passes the same share of the best n / s: finding its best n takes the
  // width of the best n / s.
  std::optional<double> WidthFor(double recall, double neighbour_count) const;

  // Returns the greatest recall learned from that `width` reaches, as mean
  // recall of the sample queries' first number of neighbours.
  double RecallAt(double width) const;

  void Save(ByteSink& sink) const;
  // DataLoss if the bytes are no such curve.
  static absl::StatusOr<RecallCurve> Load(ByteSource& source);

 private:
  // widths[i] is the least width of the i-th recall learned from, or kNever.
  struct Depth {
    std::int64_t neighbour_count = 0;
    std::vector<std::int64_t> widths;
  };

  static std::optional<double> WidthAt(const Depth& depth, double recall);

  const SampleQueries* sample_ = nullptr;
  std::vector<std::vector<std::int64_t>> found_;  // by depth, until Finish
  std::vector<Depth> depths_;
};

// Points (width, cost) joined by straight lines.
class CostCurve {
 public:
  // Adds a point. Widths are > 0 and ascending. At requires at least one point.
  void Add(double width, double cost) { points_.emplace_back(width, cost); }
  // Returns the cost at `width`: proportional to the width below the first
  // point; beyond the last point on the line through the last two.
  double At(double width) const;

  void Save(ByteSink& sink) const;
  // DataLoss if the bytes are no such curve.
  static absl::StatusOr<CostCurve> Load(ByteSource& source);

 private:
  std::vector<std::pair<double, double>> points_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_CALIBRATION_RECALL_CURVE_H_
