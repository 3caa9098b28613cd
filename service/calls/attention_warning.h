// Tells when a catalog's attention is an average and not a choice.
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

// Warnings by catalog: they take as long as some exact queries, and describing
// a catalog is what clients poll. So finding them takes kBudget at most, and
// half of the time that the caller has, and what was found is remembered until
// the catalog's defaults change, or the models that its keys went through, or
// it has a tenth more or fewer keys, and under other writes for a minute. What
// there was no time to find is not looked for again within that minute, but by
// a caller with more than twice that time, and what was known of it stands
// meanwhile. Thread-safe.
class AttentionWarnings {
 public:
  static constexpr absl::Duration kBudget = absl::Seconds(1);

  // A sentence for each key field where the effective item count of every one
  // of 3 to 64 queries (fewer for larger catalogs), each an item, spread evenly
  // over the catalog, exceeds half of the items; with a model of several heads,
  // that of each head. Attends exactly with the field's defaults. Says nothing
  // of fields with fewer than 16 keys, where an average means little; of those
  // that the budget, from `now` on, left no time for, and of all while another
  // call finds out any catalog's, what was last known of these defaults and
  // models, maybe nothing: one thread at a time is kept by it.
  std::vector<std::string> Of(const Snapshot& snapshot,
                              const Interrupt& interrupt, SteadyTime now);

 private:
  // What is known of a catalog.
  struct Found {
    std::vector<std::string> warnings;  // by key field; empty: none
    bool is_cut_short = false;          // of fields there was no time for
  };
  struct Entry {
    std::shared_ptr<const CatalogSchema> schema;
    std::vector<ModelName> models;  // active ones, by key field
    std::int64_t sequence = 0;
    std::int64_t key_count = 0;  // of all fields
    SteadyTime time;
    SteadyTime::duration budget{};  // in which it was found
    Found found;
  };
  // `known`: of the same defaults and models, for the fields that there is no
  // time for.
  static Found Find(const Snapshot& snapshot, std::vector<std::string> known,
                    const Interrupt& interrupt);
  // Whether it is of the snapshot's defaults and models.
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
