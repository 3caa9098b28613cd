// The attention models of a data directory.
#ifndef ATTENDANT_CORE_CATALOG_LIVE_MODEL_SET_H_
#define ATTENDANT_CORE_CATALOG_LIVE_MODEL_SET_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/attention/models/model.h"
#include "core/attention/models/probe.h"
#include "core/base/clock.h"
#include "core/base/interrupt.h"
#include "core/base/memory_budget.h"
#include "core/base/mutex.h"
#include "core/base/published.h"
#include "core/storage/records/store.h"

namespace attendant {

inline constexpr int kMaxModelVersions = 1000;
inline constexpr int kMaxProbes = 16;

// The memory of a model's weights, in bytes.
std::int64_t WeightBytes(const AttentionModel& model);

// A version of a model as served: name, create_time, asymmetry, model.
using ModelVersion = ModelRecord;

// Thread-safe; Get and List take no lock. Versions are immutable, stay in
// memory with their weights, and can be used after their deletion until their
// last holder releases them.
class ModelSet {
 public:
  // Opens the models of `store`. `store`, `clock` and `memory`, if not null,
  // must outlive the set. A version that cannot be read keeps its place and
  // every call for it returns the error. Errors as Store::ListModels.
  static absl::StatusOr<std::unique_ptr<ModelSet>> Open(
      Store* store, const Clock* clock, MemoryBudget* memory = nullptr);

  // Stores the model as the next version of its name, synced. InvalidArgument
  // naming "model.name", a field of "model." (see ValidateModel) or of
  // "probes[i]" (see CheckProbe); ResourceExhausted beyond kMaxModelVersions,
  // damaged versions included, or kMaxProbes, or if memory is full; DataLoss if
  // the last version of this name is unknown; Cancelled or DeadlineExceeded
  // before it is stored.
  absl::StatusOr<std::shared_ptr<const ModelVersion>> Create(
      absl::string_view name, AttentionModel model,
      std::span<const ProjectionProbe> probes, const Interrupt& interrupt = {});

  // Returns a version, or the newest if `version` is not set. NotFound with
  // reason MODEL_NOT_FOUND, naming the model; DataLoss if it is damaged.
  absl::StatusOr<std::shared_ptr<const ModelVersion>> Get(
      absl::string_view name, std::optional<std::int64_t> version) const;

  // Returns the first `limit` versions after `after`, ordered by name and
  // version, without damaged ones.
  std::vector<std::shared_ptr<const ModelVersion>> List(
      const ModelName& after, std::int64_t limit) const;

  // Deletes a version, damaged or not, and returns once it is gone from the
  // disk. Does not check whether a catalog uses it; see
  // CatalogSet::DeleteModel. NotFound as Get.
  absl::Status Delete(const ModelName& name);

  // The error of each version that could not be read, and, under version 0, of
  // each name whose last version is unknown.
  std::map<std::pair<std::string, std::int64_t>, absl::Status> damages() const;

 private:
  // A version, or the error that prevented it from being read.
  struct Entry {
    std::shared_ptr<const ModelVersion> version;
    absl::Status damage;
  };
  using Id = std::pair<std::string, std::int64_t>;
  using Versions = absl::btree_map<Id, Entry>;

  ModelSet(Store* store, const Clock* clock, MemoryBudget* memory,
           ModelList list);
  // Publishes `versions` as the current ones.
  void Publish(std::shared_ptr<const Versions> versions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Store* const store_;
  const Clock* const clock_;
  MemoryBudget* const memory_;  // may be null
  mutable Mutex mutex_;         // serialises changes
  MemoryBudget::Account account_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, absl::StatusOr<std::int64_t>> last_versions_
      ABSL_GUARDED_BY(mutex_);
  Published<Versions> versions_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_LIVE_MODEL_SET_H_
