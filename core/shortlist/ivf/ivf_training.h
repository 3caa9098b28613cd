// The learned part of an IVF index, without its keys. Internal.
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

// The lists, how many of them a query visits, and what is known of the rest.
// Shared by all indexes whose keys are like those it was learned from, so that
// together they answer as one index. Immutable except for the mass;
// thread-safe.
struct IvfTraining {
  std::shared_ptr<const ListMeans> means;
  // Assigns other keys to the lists. Null in KeyRows, which assigns none.
  std::unique_ptr<const ListAssigner> assigner;
  Calibration calibration;
  double target_recall = 0;  // for queries that state none
  ScoreKind score_kind = ScoreKind::kDot;
  std::uint64_t seed = 0;  // of the rotation of codes
  // Statistics of the keys that it was learned from.
  std::int64_t key_count = 0;
  double square_distance = 0;  // mean square, to their lists' means

  // Differs between trainings with other means, score kinds or seeds.
  std::uint64_t id = 0;

  // Knowledge of the lists that a query does not visit. Not null.
  std::unique_ptr<LearnedMass> mass;

  std::int64_t memory_bytes() const {
    return means->memory_bytes() + mass->memory_bytes() +
           (assigner == nullptr ? 0 : assigner->memory_bytes()) +
           calibration.memory_bytes();
  }
};

// Options for learning and relearning the mass of a training whose other fields
// are set, with its seed and one thread.
UnscoredMassOptions MassOptionsOf(const IvfTraining& training);

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_IVF_IVF_TRAINING_H_
