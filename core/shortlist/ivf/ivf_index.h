// Inverted lists around learned centroids (Jegou, Douze, Schmid 2011, sec. IV).
// FAISS trains the centroids. Keys lie list by list in our own memory and are
// scored by our kernels, so that a scan is the first pass of attention.
#ifndef ATTENDANT_CORE_SHORTLIST_IVF_IVF_INDEX_H_
#define ATTENDANT_CORE_SHORTLIST_IVF_IVF_INDEX_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "core/base/scratch_files.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

struct IvfOptions {
  // If set, nothing is learned: each key goes to the nearest of the training's
  // lists, and list_count, target_recall, neighbour_count and seed are the
  // training's. Its score kind and dimension must be those of the keys.
  std::shared_ptr<const IvfTraining> training = nullptr;
  // The list of each key in `training` (IvfIndex::ListOf), or -1 if it is not
  // known. Empty: no list is known.
  std::span<const std::int32_t> known_lists = {};
  // Number of lists, at most the row count. 0 starts with 4 sqrt(row count)
  // lists, or fewer so that a list has 16 rows, and merges them, down to a
  // quarter of them, as far as this makes sample queries cheaper.
  std::int64_t list_count = 0;
  // Mean recall@neighbour_count against exact of queries without goals. It is
  // met by the margin that reaches it on sample queries (SampleMargins): rows
  // of the index itself, both as they are and moved in a random direction by
  // 2/3 of the mean distance to the nearest other row. Queries as far from all
  // lists as sums of two to five rows go by a margin of their own, which
  // reaches the recall on such sums. 100 is the size of the default shortlist.
  // At a recall of 0.85 the ten best are nearly always found; the far end of
  // the shortlist is spread over many lists, so a higher recall costs much
  // time.
  double target_recall = 0.85;
  std::int64_t neighbour_count = 100;
  std::uint64_t seed = 20240607;
  // The values that scans will pool if these are not the keys: `value_dim`
  // floats per row, or null to pool the row's key. They are also kept as codes,
  // an eighth of their size, so that scans can pool rows that they do not score
  // from floats; without `values`, only keys have codes. Read during Build.
  const ValueSource* values = nullptr;
  std::int64_t value_dim = 0;
  // Threads that Build uses, including the caller's; >= 1. The index does not
  // depend on the number. The other threads are busy as long as the caller's.
  int thread_count = 1;
  // Files that hold the fp32 keys, mapped, so that only the codes stay in
  // memory. Null: keys stay in memory. Used by Build only.
  ScratchFiles* key_files = nullptr;
  // Set to stop a build early; Build then returns Cancelled. May be null.
  const std::atomic<bool>* cancelled = nullptr;
};

// Immutable. No exception of FAISS escapes from Build or Scan.
class IvfIndex : public KeyIndex {
 public:
  // Builds an index of keys.size() rows; keys[r] is the key of row r: dim
  // floats, or empty for a row without one. At least 1 row must have a key.
  // COSINE clusters the normalised keys. Takes seconds for 100,000 rows.
  // Errors: InvalidArgument if no row has a key, ResourceExhausted when out of
  // memory, Cancelled, Internal if FAISS fails; those of options.key_files.
  static absl::StatusOr<std::unique_ptr<IvfIndex>> Build(
      std::span<const std::span<const float>> keys, std::int64_t dim,
      ScoreKind score_kind, const IvfOptions& options);

  virtual std::int64_t list_count() const = 0;
  // Number of lists that reaches the target if every query visits the same
  // number: about what a scan visits that is not exhaustive.
  virtual std::int64_t probe_count() const = 0;
  // Mean recall@neighbour_count on the moved sample queries.
  virtual double measured_recall() const = 0;

  // Mean square distance of the keys from their lists' means, and the same of
  // the keys that the training was learned from.
  virtual double square_distance() const = 0;
  virtual double trained_square_distance() const = 0;
  // Number of keys that the training was learned from.
  virtual std::int64_t trained_key_count() const = 0;

  IndexTuning tuning() const override {
    return {.list_count = list_count(),
            .probe_count = probe_count(),
            .measured_recall = measured_recall()};
  }
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_IVF_IVF_INDEX_H_
