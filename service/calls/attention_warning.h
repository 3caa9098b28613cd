// Tells when a catalog's attention is an average and not a choice.
#ifndef ATTENDANT_SERVICE_CALLS_ATTENTION_WARNING_H_
#define ATTENDANT_SERVICE_CALLS_ATTENTION_WARNING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/base/clock.h"
#include "core/base/interrupt.h"
#include "core/base/mutex.h"
#include "core/catalog/snapshot.h"

namespace attendant {

// Warnings by catalog: they take as long as some exact queries, and describing
// a catalog is what clients poll. So they are remembered until the catalog's
// defaults change or it has a tenth more or fewer keys, and under other writes
// for a minute. Thread-safe.
class AttentionWarnings {
 public:
  // A sentence for each key field where the effective item count of every one
  // of 3 to 64 queries (fewer for larger catalogs), each an item, spread evenly
  // over the catalog, exceeds half of the items. Attends exactly with the
  // field's defaults. Says nothing of fields with fewer than 16 keys, where an
  // average means little, nor when the interrupt comes first. While another
  // call finds them out, what was last known of these defaults, maybe nothing.
  std::vector<std::string> Of(const Snapshot& snapshot,
                              const Interrupt& interrupt, SteadyTime now);

 private:
  struct Entry {
    std::shared_ptr<const CatalogSchema> schema;
    std::int64_t sequence = 0;
    std::int64_t key_count = 0;  // of all fields
    SteadyTime time;
    std::vector<std::string> warnings;
  };
  static bool Stands(const Entry& entry, const Snapshot& snapshot,
                     SteadyTime now);

  Mutex mutex_;
  absl::flat_hash_map<std::string, Entry> entries_
      ABSL_GUARDED_BY(mutex_);  // by catalog uid
  absl::flat_hash_set<std::string> under_way_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_ATTENTION_WARNING_H_
