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

// What a model's weights take of memory.
std::int64_t WeightBytes(const AttentionModel& model);

// A version of a model as it is served: name, create_time, asymmetry, model.
using ModelVersion = ModelRecord;

// Thread-safe; Get and List take no lock. Versions are immutable, stay in
// memory with their weights, and can be used after their deletion until the
// last holder lets go.
class ModelSet {
 public:
  // `store`, `clock` and `memory`, if given, must outlive the set. A version
  // that can't be read keeps its place and answers with that error. Errors as
  // Store::ListModels.
  static absl::StatusOr<std::unique_ptr<ModelSet>> Open(
      Store* store, const Clock* clock, MemoryBudget* memory = nullptr);

  // Stores the model as the next version of its name, synced. InvalidArgument
  // naming "model.name", a field of "model." (see ValidateModel) or of
  // "probes[i]" (see CheckProbe); ResourceExhausted past kMaxModelVersions,
  // those that are damaged included, or kMaxProbes, or where memory is full;
  // DataLoss if the last version of this name can't be told; Cancelled or
  // DeadlineExceeded before it is stored.
  absl::StatusOr<std::shared_ptr<const ModelVersion>> Create(
      absl::string_view name, AttentionModel model,
      std::span<const ProjectionProbe> probes, const Interrupt& interrupt = {});

  // The newest version, if none is given. NotFound with reason MODEL_NOT_FOUND,
  // naming the model; DataLoss if it is damaged.
  absl::StatusOr<std::shared_ptr<const ModelVersion>> Get(
      absl::string_view name, std::optional<std::int64_t> version) const;

  // In the order of name and version, the first after `after`, at most `limit`.
  // Damaged ones are left out.
  std::vector<std::shared_ptr<const ModelVersion>> List(
      const ModelName& after, std::int64_t limit) const;

  // NotFound as Get. Returns after the version, damaged or not, is gone from
  // the disk. Whether a catalog uses it is not asked here: see
  // CatalogSet::DeleteModel.
  absl::Status Delete(const ModelName& name);

  // Why, for each version that could not be read; under version 0, for each
  // name whose last version can't be told.
  std::map<std::pair<std::string, std::int64_t>, absl::Status> damages() const;

 private:
  // A version, or why there is none.
  struct Entry {
    std::shared_ptr<const ModelVersion> version;
    absl::Status damage;
  };
  using Id = std::pair<std::string, std::int64_t>;
  using Versions = absl::btree_map<Id, Entry>;

  ModelSet(Store* store, const Clock* clock, MemoryBudget* memory,
           ModelList list);
  // Makes them the versions that there are.
  void Publish(std::shared_ptr<const Versions> versions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Store* const store_;
  const Clock* const clock_;
  MemoryBudget* const memory_;  // null: none
  mutable Mutex mutex_;         // serialises changes
  MemoryBudget::Account account_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, absl::StatusOr<std::int64_t>> last_versions_
      ABSL_GUARDED_BY(mutex_);
  Published<Versions> versions_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_LIVE_MODEL_SET_H_
