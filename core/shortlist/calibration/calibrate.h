// How many lists a scan should visit. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_CALIBRATION_CALIBRATE_H_
#define ATTENDANT_CORE_SHORTLIST_CALIBRATION_CALIBRATE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/shortlist/calibration/sample_queries.h"
#include "core/shortlist/lists/inverted_lists.h"

namespace attendant {

// The lists to visit for so many neighbours.
struct ProbeDepth {
  std::int64_t neighbour_count = 0;
  std::int64_t probe_count = 1;
};

struct Calibration {
  std::int64_t probe_count = 1;
  double recall = 0;  // of moved keys, by the target's margin
  // By the number of lists visited, from 1 to all.
  std::vector<float> recalls;
  // What the target takes for more neighbours, ascending in both; the first is
  // that of probe_count. At least one.
  std::vector<ProbeDepth> depths;

  // SampleMargins::MarginFor of recalls (i + 1) / kRecallSteps; empty where
  // there is nothing to choose.
  static constexpr std::size_t kRecallSteps = 1000;
  std::vector<float> margins;

  // The margin for a mean recall in (0, 1], rounded up to a step.
  std::optional<float> MarginFor(double wanted) const;
  // Of what one list, the least that is visited, finds beyond a mean recall, a
  // half: keys that were not moved may find less than `recalls`, and so may one
  // list that was chosen by codes.
  double SpareRecall(double wanted) const {
    return std::max(0.0, double{recalls.front()} - wanted) / 2;
  }
  // Keys that margins count from, of which a share of `rate` is eligible.
  double SoughtCount(double rate) const {
    return static_cast<double>(depths.front().neighbour_count) / rate;
  }

  // The lists to visit for the best neighbour_count keys, by the straight line
  // between the logarithms of two depths, or through the last two beyond them.
  // A filter that passes a share s of the keys, whichever they are, passes as
  // much of the best n / s as of those in any list: to find its best n takes
  // the lists of the best n / s. Not below probe_count; may be above the number
  // of lists.
  double ProbesFor(double neighbour_count) const;

  // The least lists that reach another mean recall, in (0, 1].
  std::int64_t ProbesForRecall(double wanted) const;
};

// Finds the least number of lists at which the mean recall of sample queries of
// the lists' keys reaches the target, by looking where the lists of their
// neighbours stand in each query's order of lists; and the margins. The same
// for any number of threads.
Calibration Calibrate(const InvertedLists& lists, const SampleQueries& sample,
                      double target_recall, int thread_count);

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_CALIBRATION_CALIBRATE_H_
