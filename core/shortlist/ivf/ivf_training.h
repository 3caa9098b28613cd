// What an IVF index learned, without its keys. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_IVF_IVF_TRAINING_H_
#define ATTENDANT_CORE_SHORTLIST_IVF_IVF_TRAINING_H_

#include <cstdint>
#include <memory>

#include "core/attention/softmax/score.h"
#include "core/shortlist/calibration/calibrate.h"
#include "core/shortlist/lists/list_assigner.h"
#include "core/shortlist/lists/list_means.h"
#include "core/shortlist/mass/learned_mass.h"
#include "core/shortlist/mass/unscored_mass.h"

namespace attendant {

// The lists, how many of them a query visits, and what is known of the others:
// shared by all indexes of keys that are like those it was learned from, which
// together answer as one index would. Immutable but for the mass; thread-safe.
struct IvfTraining {
  std::shared_ptr<const ListMeans> means;
  // Of other keys. Null in KeyRows, which take none.
  std::unique_ptr<const ListAssigner> assigner;
  Calibration calibration;
  double target_recall = 0;  // of who states none
  ScoreKind score_kind = ScoreKind::kDot;
  std::uint64_t seed = 0;  // of the codes' rotation
  // Of the keys that it was learned from.
  std::int64_t key_count = 0;
  double square_distance = 0;  // to their lists' means, in the mean

  // Drawn: no two trainings have the same, though they may have learned from
  // the same keys.
  std::uint64_t id = 0;

  // Of the lists that a query does not visit. Not null.
  std::unique_ptr<LearnedMass> mass;

  std::int64_t memory_bytes() const {
    return means->memory_bytes() + mass->memory_bytes() +
           (assigner == nullptr ? 0 : assigner->memory_bytes()) +
           static_cast<std::int64_t>(
               (calibration.recalls.size() + calibration.margins.size()) *
               sizeof(float));
  }
};

// How the mass is learned, and learned anew, from the lists of a training whose
// other fields are set. The seed and all are the training's; one thread.
UnscoredMassOptions MassOptionsOf(const IvfTraining& training);

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_IVF_IVF_TRAINING_H_
