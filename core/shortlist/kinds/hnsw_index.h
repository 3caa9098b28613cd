// A graph of near keys, walked from key to key towards the query (Malkov,
// Yashunin 2018). FAISS builds the graph, measuring with our kernels; the walk
// is ours, since it keeps all that it scores, looks at masks and stops when
// told.
//
// Inner products order keys by no distance. In a graph of the keys of greatest
// product (Morozov, Babenko 2018) all links lead to long keys, and the others
// are lost; in one of the smallest angles a walk meets the short keys of a
// direction before the long ones; with one more dimension that makes all norms
// equal (Bachrach et al. 2014) the short keys gather at its pole, far from
// every query, and on keys with norms spread over 10x a walk met a third of the
// best where others had three quarters. So where norms differ there are two
// graphs, by angle and by product, and a walk follows the links of both: the
// first reaches every key, the second is quick.
#ifndef ATTENDANT_CORE_SHORTLIST_KINDS_HNSW_INDEX_H_
#define ATTENDANT_CORE_SHORTLIST_KINDS_HNSW_INDEX_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "core/base/byte_stream.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

struct HnswOptions {
  // Links a key keeps on each level of a graph, twice as many on the lowest: in
  // [2, 256]. More find more in fewer steps, and take 8 bytes a key each, twice
  // that where norms differ.
  int link_count = 16;
  // Candidates for a key's links: more make a better graph, in as much more
  // time. At least 1.
  int build_width = 40;
  // Mean recall@neighbour_count against exact of scans whose goals name none;
  // see IvfOptions.
  double target_recall = 0.8;
  std::int64_t neighbour_count = 100;
  std::uint64_t seed = 20240607;
  // Set to stop a build early; Build then returns Cancelled. May be null.
  const std::atomic<bool>* cancelled = nullptr;
};

// Immutable. Build and Scan let no exception of FAISS escape.
//
// A scan walks with as many candidates as the wanted recall took on sample
// queries, or as ScanGoals::probe_count says, and more where a mask leaves few
// of the rows it meets; or it takes all keys (WidthSearch).
class HnswIndex : public KeyIndex {
 public:
  // As IvfIndex::Build, and with its errors. Single-threaded: takes about 10
  // seconds for 100,000 rows of 128.
  static absl::StatusOr<std::unique_ptr<HnswIndex>> Build(
      std::span<const std::span<const float>> keys, std::int64_t dim,
      ScoreKind score_kind, const HnswOptions& options);

  // As bytes; see index_file.h. Errors of Load: DataLoss; throws
  // std::bad_alloc.
  virtual void Save(ByteSink& sink) const = 0;
  static absl::StatusOr<std::unique_ptr<HnswIndex>> Load(
      ByteSource& source, std::int64_t row_count);
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KINDS_HNSW_INDEX_H_
