// Angular buckets over several rounds of hashing (Kitaev, Kaiser, Levskaya
// 2020, Reformer, sec. 2, after Andoni et al. 2015). In each round a vector x
// belongs to the bucket argmax [x R; -x R] of a random R of the round. Keys
// that share a bucket with the query in some round are scored.
//
// Two departures. Buckets other than the query's own are visited too, by
// descending expected score of their best key, until the wanted recall is
// reached: with a handful of rounds the query's own buckets hold too few keys.
// And if norms differ, keys are divided by norm before direction (Yan et al.
// 2018), so that long keys are met first.
#ifndef ATTENDANT_CORE_SHORTLIST_KINDS_LSH_INDEX_H_
#define ATTENDANT_CORE_SHORTLIST_KINDS_LSH_INDEX_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "core/base/byte_stream.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

struct LshOptions {
  // Rounds, in [1, 64]. Each takes 4 bytes per key.
  int round_count = 8;
  // Buckets per round, even; 0 chooses about the square root of the key count.
  // More buckets hold fewer keys each, and take longer to choose from.
  std::int64_t bucket_count = 0;
  // Mean recall@neighbour_count against exact, for scans whose goals name no
  // recall; see IvfOptions.
  double target_recall = 0.8;
  std::int64_t neighbour_count = 100;
  std::uint64_t seed = 20240607;
  // Set to stop a build early; Build then returns Cancelled. May be null.
  const std::atomic<bool>* cancelled = nullptr;
};

// Immutable. A scan visits the query's own buckets, and then others of all
// rounds, as many in all as the wanted recall took on sample queries, or
// ScanGoals::probe_count; it visits more if a mask leaves few of the rows in
// them. It takes all keys instead if that is cheaper or the goals require it
// (WidthSearch).
class LshIndex : public KeyIndex {
 public:
  // As IvfIndex::Build, with its errors except Internal. Single-threaded: takes
  // seconds for 100,000 rows of 128.
  static absl::StatusOr<std::unique_ptr<LshIndex>> Build(
      std::span<const std::span<const float>> keys, std::int64_t dim,
      ScoreKind score_kind, const LshOptions& options);

  // Bytes as described in index_file.h. Load returns DataLoss and throws
  // std::bad_alloc.
  virtual void Save(ByteSink& sink) const = 0;
  static absl::StatusOr<std::unique_ptr<LshIndex>> Load(ByteSource& source,
                                                        std::int64_t row_count);
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KINDS_LSH_INDEX_H_
