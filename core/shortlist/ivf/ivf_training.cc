#include "core/shortlist/ivf/ivf_training.h"

#include <cmath>

namespace attendant {

UnscoredMassOptions MassOptionsOf(const IvfTraining& training) {
  const Calibration& calibration = training.calibration;
  UnscoredMassOptions options = {
      .score_kind = training.score_kind,
      .probe_counts = {},
      .margin = calibration.MarginFor(training.target_recall),
      .sought_count = calibration.SoughtCount(1),
      .square_distance = training.square_distance,
      .seed = training.seed};
  for (int i = 0; i < kLearnedRates; ++i) {
    options.probe_counts[i] =
        static_cast<std::int64_t>(std::ceil(calibration.ProbesFor(
            static_cast<double>(calibration.depths[0].neighbour_count) /
            LearnedRate(i))));
  }
  return options;
}

}  // namespace attendant
