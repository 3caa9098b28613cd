// Warns when a catalog's attention is close to an average over all items.
#ifndef ATTENDANT_SERVICE_CALLS_ATTENTION_WARNING_H_
#define ATTENDANT_SERVICE_CALLS_ATTENTION_WARNING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "core/attention/models/model.h"
#include "core/base/clock.h"
#include "core/base/interrupt.h"
#include "core/base/mutex.h"
#include "core/catalog/segments/snapshot.h"

namespace attendant {

// Caches warnings by catalog: computing them costs as much as several exact
// queries, and clients poll catalog descriptions.
//
// Computing takes at most kBudget, and at most half of the time left to the
// caller. A result is kept until the catalog's defaults change, the models its
// keys went through change, or its key count changes by a tenth; after any
// other write, for a minute. If the time ran out, the remaining fields are
// retried within that minute only for a caller with more than twice the time,
// and their previous warnings stand until then. Thread-safe.
class AttentionWarnings {
 public:
  static constexpr absl::Duration kBudget = absl::Seconds(1);

  // Returns a sentence for each key field whose attention is too flat: for each
  // of 3 to 64 queries (fewer for larger catalogs), which are items spread
  // evenly over the catalog, the effective item count exceeds half of the
  // items. With a model of several heads, the same is checked for each head.
  // Attends exactly, with the field's defaults.
  //
  // Skips fields with fewer than 16 keys, where an average means little. For
  // fields that the budget, counted from `now`, left no time for, and for all
  // fields while another call is computing the warnings of any catalog, returns
  // what was last known for the same defaults and models, possibly nothing: at
  // most one thread computes warnings at a time.
  std::vector<std::string> Of(const Snapshot& snapshot,
                              const Interrupt& interrupt, SteadyTime now);

 private:
  // What is known about a catalog.
  struct Found {
    std::vector<std::string> warnings;  // by key field; empty: none
    bool is_cut_short = false;          // time ran out for some fields
  };
  struct Entry {
    std::shared_ptr<const CatalogSchema> schema;
    std::vector<ModelName> models;  // active models, by key field
    std::int64_t sequence = 0;
    std::int64_t key_count = 0;  // over all fields
    SteadyTime time;
    SteadyTime::duration budget{};  // that the computation had
    Found found;
  };
  // `known` holds warnings for the same defaults and models, used for fields
  // that there is no time for.
  static Found Find(const Snapshot& snapshot, std::vector<std::string> known,
                    const Interrupt& interrupt);
  // True if `entry` has the snapshot's defaults and models.
  static bool Fits(const Entry& entry, const Snapshot& snapshot);
  static bool Stands(const Entry& entry, const Snapshot& snapshot,
                     SteadyTime now, SteadyTime::duration budget);

  Mutex mutex_;
  absl::flat_hash_map<std::string, Entry> entries_
      ABSL_GUARDED_BY(mutex_);  // by catalog uid
  bool under_way_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_ATTENTION_WARNING_H_
