// One catalog that changes while it is read.
#ifndef ATTENDANT_CORE_CATALOG_LIVE_CATALOG_H_
#define ATTENDANT_CORE_CATALOG_LIVE_CATALOG_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/mutex.h"
#include "core/base/published.h"
#include "core/catalog/background.h"
#include "core/catalog/snapshot.h"
#include "core/storage/store.h"

namespace attendant {

struct LiveCatalogOptions {
  // AUTO trains an IVF index once a key field has this many keys, and again
  // when the rows outside of it have outgrown a quarter of it.
  std::int64_t auto_ivf_min_count = 20000;
};

// State of one key field's index.
struct IndexState {
  IndexKind active_kind = IndexKind::kFlat;
  bool training = false;
  std::int64_t list_count = 0;
  std::int64_t probe_count = 0;
  std::optional<double> measured_recall;
  std::int64_t key_count = 0;
};

// Per-item outcome of an import.
struct ImportOutcome {
  std::vector<absl::Status> statuses;  // one an item
  std::int64_t sequence = 0;
};

// Thread-safe. snapshot() takes no lock. Writes are serialised by a mutex;
// each returns after it is synced and visible to the next snapshot().
class LiveCatalog {
 public:
  // Loads all items from the store. `background` must outlive the catalog.
  static absl::StatusOr<std::unique_ptr<LiveCatalog>> Open(
      CatalogRecord record, std::unique_ptr<CatalogStore> store,
      BackgroundWorker* background, const LiveCatalogOptions& options);

  // Waits for background work on this catalog to stop.
  ~LiveCatalog();

  std::shared_ptr<const Snapshot> snapshot() const;

  // All or nothing. InvalidArgument names items[i] and the field, also for a
  // repeated id, or a request_id that was used with other content.
  absl::StatusOr<WriteOutcome> Upsert(std::span<const Item> items,
                                      absl::string_view request_id);
  absl::StatusOr<WriteOutcome> Delete(std::span<const std::string> ids,
                                      absl::string_view request_id);

  // Each item on its own; one synced write for all that are valid. A repeated
  // id: the last wins. An error only if the store failed: nothing was applied.
  absl::StatusOr<ImportOutcome> Import(std::span<const Item> items);

  // From the snapshot. NotFound names the first missing id.
  absl::StatusOr<std::vector<Item>> Get(std::span<const std::string> ids) const;

  // Up to `limit` items in the order of ids after `after`.
  absl::StatusOr<std::vector<Item>> List(absl::string_view after,
                                         std::int64_t limit) const;

  // New defaults (already validated): temperature, combine and index kinds.
  absl::Status SetDefaults(std::vector<KeyFieldSchema> key_fields);
  absl::Status SetEncoder(int field, TextEncoder encoder);

  std::vector<IndexState> index_states() const;
  std::int64_t memory_bytes() const;
  // A copy of the record as it is now.
  CatalogRecord record() const;

  // Blocks until no index is being trained or waits for training. For tests,
  // and for loaders that want the index before they measure.
  void AwaitIndexes() const;

 private:
  class Impl;
  explicit LiveCatalog(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_LIVE_CATALOG_H_
