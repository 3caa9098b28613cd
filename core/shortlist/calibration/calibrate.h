// Calibration of how many lists a scan should visit. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_CALIBRATION_CALIBRATE_H_
#define ATTENDANT_CORE_SHORTLIST_CALIBRATION_CALIBRATE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/shortlist/calibration/sample_queries.h"
#include "core/shortlist/lists/inverted_lists.h"
#include "core/shortlist/lists/query_margin.h"

namespace attendant {

// The number of lists to visit to find a number of neighbours.
struct ProbeDepth {
  std::int64_t neighbour_count = 0;
  std::int64_t probe_count = 1;
};

struct Calibration {
  std::int64_t probe_count = 1;
  double recall = 0;  // of moved keys, at the target's margin
  // Mean recall by the number of lists visited, from 1 to all.
  std::vector<float> recalls;
  // Lists that the target recall takes for more neighbours, ascending in both;
  // the first is that of probe_count. Never empty.
  std::vector<ProbeDepth> depths;

  // margins[i] is SampleMargins::MarginFor of recall (i + 1) / kRecallSteps,
  // and blend_margins[i] BlendMarginFor; empty if there is nothing to choose.
  static constexpr std::size_t kRecallSteps = 1000;
  std::vector<float> margins = {};
  std::vector<float> blend_margins = {};
  // The peaks that .15 of the keys do not exceed, nor most of the blends, and
  // that .4 of the keys do not.
  float far_peak = 0;
  float near_peak = 0;

  std::int64_t memory_bytes() const {
    return static_cast<std::int64_t>(
        (recalls.size() + margins.size() + blend_margins.size()) *
            sizeof(float) +
        depths.size() * sizeof(ProbeDepth));
  }
  // Returns the margin for a mean recall in (0, 1], rounded up to a step.
  std::optional<QueryMargin> MarginFor(double wanted) const;
  // Returns half of the recall that one list, the fewest that are visited,
  // finds beyond the mean recall `wanted`. Only half, because keys that were
  // not moved may find less than `recalls`, and so may a single list chosen by
  // codes.
  double SpareRecall(double wanted) const {
    return std::max(0.0, double{recalls.front()} - wanted) / 2;
  }
  // Number of best keys from which margins are counted, if a share `rate` of
  // the keys is eligible.
  double SoughtCount(double rate) const {
    return static_cast<double>(depths.front().neighbour_count) / rate;
  }

  // Returns the lists to visit for the best neighbour_count keys. Interpolates
  // on a straight line between the logarithms of two depths; beyond the last
  // depth, extends the line through the last two. At least probe_count; may
  // exceed the number of lists.
  //
  // A filter that passes a share s of the keys, independently of where they
  // are, passes the same share of the best n / s and of the keys in any list:
  // finding its best n takes the lists of the best n / s.
  double ProbesFor(double neighbour_count) const;

  // Returns the least number of lists that reaches the mean recall `wanted`, in
  // (0, 1].
  std::int64_t ProbesForRecall(double wanted) const;
};

// Finds the least number of lists at which the mean recall of the sample
// queries reaches the target, from the places that the lists of their
// neighbours have in each query's order of lists; and the margins. The result
// does not depend on the number of threads.
Calibration Calibrate(const InvertedLists& lists, const SampleQueries& sample,
                      double target_recall, int thread_count);

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_CALIBRATION_CALIBRATE_H_
