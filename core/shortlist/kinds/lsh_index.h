// Angular buckets over several rounds of hashing (Kitaev, Kaiser, Levskaya
// 2020, Reformer, sec. 2, after Andoni et al. 2015). In each round a vector x
// belongs to the bucket argmax [x R; -x R] of a random R of the round. Keys
// that share a bucket with the query in some round are scored.
//
// Two departures. Buckets beside the query's own are visited too, in the order
// of what their best key may be expected to score, until the wanted recall is
// reached: with a handful of rounds the own ones alone hold too little. And
// where norms differ, keys are told apart by their norm before their direction
// (Yan et al. 2018), so that long keys are met first.
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
  // Rounds, in [1, 64]. Each takes 4 bytes a key.
  int round_count = 8;
  // Buckets of a round, even; 0 chooses about the root of the key count. More
  // buckets hold fewer keys each, and take longer to choose from.
  std::int64_t bucket_count = 0;
  // Mean recall@neighbour_count against exact of scans whose goals name none;
  // see IvfOptions.
  double target_recall = 0.8;
  std::int64_t neighbour_count = 100;
  std::uint64_t seed = 20240607;
  // Set to stop a build early; Build then returns Cancelled. May be null.
  const std::atomic<bool>* cancelled = nullptr;
};

// Immutable. A scan visits the query's own buckets, and others, of all rounds,
// up to as many as the wanted recall took on sample queries, or as
// ScanGoals::probe_count says, and more where a mask leaves few of the rows in
// them; or it takes all keys (WidthSearch).
class LshIndex : public KeyIndex {
 public:
  // As IvfIndex::Build, and with its errors but for Internal. Single-threaded:
  // takes seconds for 100,000 rows of 128.
  static absl::StatusOr<std::unique_ptr<LshIndex>> Build(
      std::span<const std::span<const float>> keys, std::int64_t dim,
      ScoreKind score_kind, const LshOptions& options);

  // As bytes; see index_file.h. Errors of Load: DataLoss; throws
  // std::bad_alloc.
  virtual void Save(ByteSink& sink) const = 0;
  static absl::StatusOr<std::unique_ptr<LshIndex>> Load(ByteSource& source,
                                                        std::int64_t row_count);
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KINDS_LSH_INDEX_H_
