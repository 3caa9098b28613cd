// Tells when a catalog's attention is an average and not a choice.
#ifndef ATTENDANT_SERVICE_CALLS_ATTENTION_WARNING_H_
#define ATTENDANT_SERVICE_CALLS_ATTENTION_WARNING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "core/base/interrupt.h"
#include "core/base/mutex.h"
#include "core/catalog/snapshot.h"

namespace attendant {

// Warnings by catalog, remembered until its items or defaults change: they take
// as long as some exact queries, and describing a catalog is what clients poll.
// Thread-safe.
class AttentionWarnings {
 public:
  // A sentence for each key field where the effective item count of every one
  // of 3 to 64 queries (fewer for larger catalogs), each an item, spread evenly
  // over the catalog, exceeds half of the items. Attends exactly with the
  // field's defaults. Says nothing of fields with fewer than 16 keys, where an
  // average means little, nor when the interrupt comes first.
  std::vector<std::string> Of(const Snapshot& snapshot,
                              const Interrupt& interrupt);

 private:
  struct Entry {
    std::int64_t sequence = 0;
    std::shared_ptr<const CatalogSchema> schema;
    std::vector<std::string> warnings;
  };

  Mutex mutex_;
  absl::flat_hash_map<std::string, Entry> entries_
      ABSL_GUARDED_BY(mutex_);  // by catalog uid
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_ATTENTION_WARNING_H_
