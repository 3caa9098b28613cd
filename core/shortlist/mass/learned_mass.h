// What is known of the lists that queries don't visit, and learned anew from
// the queries that come. Internal.
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

// What was known of masses at one moment, by which all queries of a snapshot
// go: their answers do not depend on what others teach meanwhile. Thread-safe
// once nothing is added.
class KnownMasses {
 public:
  // `mass` must be there as long as somebody asks for what was known of it.
  void Add(const LearnedMass& mass);
  // Null: it was not added.
  std::shared_ptr<const UnscoredMass> Find(const LearnedMass& mass) const;

 private:
  absl::flat_hash_map<const LearnedMass*, std::shared_ptr<const UnscoredMass>>
      masses_;
};

// An index is built before anybody asks it anything: how far its guesses may be
// trusted is then learned from samples that are made of keys. Queries that are
// asked may be farther from all keys, or nearer. So some of those that a guess
// was made for are kept, and once there are enough they stand in place of
// sampled keys. Thread-safe.
class LearnedMass {
 public:
  // Queries that are kept, of those that come.
  static constexpr std::size_t kKeptQueries = 256;
  // Fewer different ones say nothing: one caller may ask the same for ever.
  static constexpr std::size_t kMinQueries = 64;
  // It is due after kKeptQueries, and each time that it was learned after so
  // many times as many as before: learning takes seconds, and what there is to
  // learn grows slowly.
  static constexpr std::int64_t kDueFactor = 32;

  // Of queries of `dim` components; 0 where none will come.
  LearnedMass(UnscoredMass mass, std::int64_t dim);

  // The newest. Waits for nobody.
  std::shared_ptr<const UnscoredMass> Load() const { return mass_.Load(); }
  // What `known` has of it; the newest where that is null or has nothing.
  std::shared_ptr<const UnscoredMass> Load(const KnownMasses* known) const;

  // UnscoredMass::Guess by Load(known); the query is one that was asked.
  bool Guess(const KnownMasses* known, std::span<const ListPart> parts,
             const VisitedMass& visited, UnscoredGuess& guess);

  // Notes a query [dim]. It is kept with the same probability as all others
  // that came since the kept ones were taken (Algorithm R; Vitter 1985, sec.
  // 3), but for one that comes while another thread is at those that are kept.
  // Waits for nobody.
  void Asked(std::span<const float> query);

  bool is_due() const {
    return asked_count_.load(std::memory_order_relaxed) >=
           due_count_.load(std::memory_order_relaxed);
  }
  // The queries that are kept, [count, dim] and all different, or nothing if
  // they are fewer than kMinQueries.
  std::vector<float> KeptQueries() const;
  // What was learned from those that were kept. If it is not usable, what was
  // known stays. One at a time.
  void Store(UnscoredMass mass);
  // How often what is known has become other than it was at first.
  std::int64_t learned_count() const { return learned_count_.load(); }
  // Begins to keep others, in place of those that were kept, of which nothing
  // was learned if nothing was stored: it is then due after as many again.
  void KeepOthers();

  std::int64_t memory_bytes() const;

 private:
  const std::size_t dim_;
  Published<UnscoredMass> mass_;
  std::atomic<std::int64_t> learned_count_ = 0;  // raised after mass_ is stored
  std::atomic<std::int64_t> asked_count_ = 0;
  std::atomic<std::int64_t> due_count_ = kKeptQueries;
  mutable Mutex mutex_;
  // [kKeptQueries, dim]; zeros where there is none yet.
  std::vector<float> kept_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_MASS_LEARNED_MASS_H_
