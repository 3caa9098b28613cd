// Inverted lists around centroids that FAISS learns (Jegou, Douze, Schmid 2011,
// sec. IV). FAISS trains the centroids; keys lie list by list in our own memory
// and our kernels score them, so a scan is attention's first pass.
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
  // If not null, nothing is learned: each key goes to the nearest of these
  // lists, and list_count, target_recall, neighbour_count and seed are the
  // training's. Its score kind and dimension are those of the keys.
  std::shared_ptr<const IvfTraining> training = nullptr;
  // Of a training: the list of each of the keys (IvfIndex::ListOf), or -1 where
  // it is not known; empty: none is.
  std::span<const std::int32_t> known_lists = {};
  // Lists; at most the row count. 0 begins with 4 sqrt(row count), or fewer so
  // that a list has 16 rows, and merges them, down to a quarter, as far as
  // makes sample queries cheaper.
  std::int64_t list_count = 0;
  // Mean recall@neighbour_count against exact that queries without goals are to
  // have, by the margin that reaches it on sample queries (SampleMargins): rows
  // of the index itself, as they are and moved in a random direction by 2/3 of
  // the mean distance to the nearest other row. 100 is the size of the default
  // shortlist. At this share of it the ten best are nearly always found; its
  // far end is spread over many lists, so that more costs much time.
  double target_recall = 0.85;
  std::int64_t neighbour_count = 100;
  std::uint64_t seed = 20240607;
  // What scans will pool where that is not the keys: `value_dim` floats a row,
  // or null for its key. Kept as codes too, an eighth as large, so that scans
  // can pool rows that they don't score from floats; without, only keys have
  // codes. Read during Build.
  const ValueSource* values = nullptr;
  std::int64_t value_dim = 0;
  // Threads that Build uses, the caller's included; >= 1. The index is the same
  // for any number. Others than the caller's are busy for as long as it is.
  int thread_count = 1;
  // Where the fp32 keys go: a file of these, mapped, which takes their memory
  // and leaves the codes'. Null: memory. Build alone uses it.
  ScratchFiles* key_files = nullptr;
  // Set to stop a build early; Build then returns Cancelled. May be null.
  const std::atomic<bool>* cancelled = nullptr;
};

// Immutable. Build and Scan let no exception of FAISS escape.
class IvfIndex : public KeyIndex {
 public:
  // Builds from row_count rows; keys[r] is the key of row r, dim floats, or
  // empty for a row without one. At least 1 row has a key. COSINE clusters the
  // normalised keys. Takes seconds for 100,000 rows. Errors:
  // InvalidArgument if no row has a key, ResourceExhausted when out of memory,
  // Cancelled, Internal if FAISS fails; those of options.key_files.
  static absl::StatusOr<std::unique_ptr<IvfIndex>> Build(
      std::span<const std::span<const float>> keys, std::int64_t dim,
      ScoreKind score_kind, const IvfOptions& options);

  virtual std::int64_t list_count() const = 0;
  // Lists that reach the target where each query visits as many: about what a
  // scan visits if it isn't exhaustive.
  virtual std::int64_t probe_count() const = 0;
  // Mean recall@neighbour_count on the sample queries that were moved.
  virtual double measured_recall() const = 0;

  // How far keys are from their lists' means, and how far those were that the
  // training was learned from: mean squares.
  virtual double square_distance() const = 0;
  virtual double trained_square_distance() const = 0;
  // Keys that the training was learned from.
  virtual std::int64_t trained_key_count() const = 0;

  IndexTuning tuning() const override {
    return {.list_count = list_count(),
            .probe_count = probe_count(),
            .measured_recall = measured_recall()};
  }
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_IVF_IVF_INDEX_H_
