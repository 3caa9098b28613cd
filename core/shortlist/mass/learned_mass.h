// Knowledge of the lists that queries do not visit, relearned from the queries
// that are asked. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_MASS_LEARNED_MASS_H_
#define ATTENDANT_CORE_SHORTLIST_MASS_LEARNED_MASS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "core/base/mutex.h"
#include "core/base/published.h"
#include "core/shortlist/mass/unscored_mass.h"

namespace attendant {

class LearnedMass;

// The masses as they were known at one moment. All queries of a snapshot use
// them, so that their answers do not depend on what is learned meanwhile.
// Thread-safe once nothing more is added.
class KnownMasses {
 public:
  // Records what is known of `mass` now. `mass` must outlive the calls of Find
  // for it.
  void Add(const LearnedMass& mass);
  // Returns null if `mass` was not added.
  std::shared_ptr<const UnscoredMass> Find(const LearnedMass& mass) const;

 private:
  absl::flat_hash_map<const LearnedMass*, std::shared_ptr<const UnscoredMass>>
      masses_;
};

// An index is built before any query is asked, so how far its guesses may be
// trusted is first learned from samples made of keys. Real queries may be
// farther from all keys, or nearer. So some of the queries that a guess was
// made for are kept, and once there are enough of them they replace the sampled
// keys. Thread-safe.
class LearnedMass {
 public:
  // Number of queries that are kept.
  static constexpr std::size_t kKeptQueries = 256;
  // Fewer different queries teach nothing: one caller may ask the same again
  // and again.
  static constexpr std::size_t kMinQueries = 64;
  // Learning is first due after kKeptQueries, and after each learning it is due
  // at kDueFactor times as many queries as before: it takes seconds, and what
  // there is to learn grows slowly.
  static constexpr std::int64_t kDueFactor = 32;

  // For queries of `dim` components; 0 if no queries will come.
  LearnedMass(UnscoredMass mass, std::int64_t dim);

  // Returns the newest mass. Never blocks.
  std::shared_ptr<const UnscoredMass> Load() const { return mass_.Load(); }
  // Returns the mass that `known` has recorded; the newest if `known` is null
  // or has none.
  std::shared_ptr<const UnscoredMass> Load(const KnownMasses* known) const;

  // Calls UnscoredMass::Guess of Load(known), and notes the query as asked.
  bool Guess(const KnownMasses* known, std::span<const ListPart> parts,
             const VisitedMass& visited, UnscoredGuess& guess);

  // Notes a query [dim]. It is kept with the same probability as every other
  // query since the current collection began (Algorithm R; Vitter 1985, sec.
  // 3), except that a query is dropped while another thread is using the kept
  // ones. Never blocks.
  void Asked(std::span<const float> query);

  bool is_due() const {
    return asked_count_.load(std::memory_order_relaxed) >=
           due_count_.load(std::memory_order_relaxed);
  }
  // Returns the kept queries, [count, dim] and all different, or nothing if
  // they are fewer than kMinQueries.
  std::vector<float> KeptQueries() const;
  // Stores what was learned from the kept queries. If `mass` is not usable,
  // what was known stays. One call at a time.
  void Store(UnscoredMass mass);
  // Number of times that the mass has changed since the start.
  std::int64_t learned_count() const { return learned_count_.load(); }
  // Starts to keep new queries in place of those that were kept. If nothing was
  // stored, nothing was learned from those, and learning is due after as many
  // queries again.
  void KeepOthers();

  std::int64_t memory_bytes() const;

 private:
  const std::size_t dim_;
  Published<UnscoredMass> mass_;
  std::atomic<std::int64_t> learned_count_ = 0;  // raised after mass_ is stored
  std::atomic<std::int64_t> asked_count_ = 0;
  std::atomic<std::int64_t> due_count_ = kKeptQueries;
  mutable Mutex mutex_;
  // [kKeptQueries, dim]; zeros where no query is kept yet.
  std::vector<float> kept_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_MASS_LEARNED_MASS_H_
