// A graph of near keys, walked from key to key towards the query (Malkov,
// Yashunin 2018). FAISS builds the graph, with distances from our kernels. The
// walk is ours, because it keeps everything that it scores, applies masks and
// can be interrupted.
//
// Inner products are not a distance by which keys could be ordered. Three known
// graphs fail if norms differ:
// - Links by greatest product (Morozov, Babenko 2018) all lead to long keys,
//   and the other keys are lost.
// - With links by smallest angle, a walk meets the short keys of a direction
//   before the long ones.
// - One more dimension that makes all norms equal (Bachrach et al. 2014)
//   gathers the short keys at its pole, far from every query. On keys with
//   norms spread over 10x, a walk met a third of the best where others met
//   three quarters.
//
// So if norms differ there are two graphs, by angle and by product, and a walk
// follows the links of both: the first reaches every key, the second is quick.
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
  // Links a key keeps on each level of a graph, in [2, 256]; twice as many on
  // the lowest level. More links find more keys in fewer steps. Each link takes
  // 8 bytes per key, or 16 if norms differ.
  int link_count = 16;
  // Candidates for a key's links, >= 1. More make a better graph; build time
  // grows in proportion.
  int build_width = 40;
  // Mean recall@neighbour_count against exact, for scans whose goals name no
  // recall; see IvfOptions.
  double target_recall = 0.8;
  std::int64_t neighbour_count = 100;
  std::uint64_t seed = 20240607;
  // Set to stop a build early; Build then returns Cancelled. May be null.
  const std::atomic<bool>* cancelled = nullptr;
};

// Immutable. No exception of FAISS escapes from Build or Scan.
//
// A scan walks with as many candidates as the wanted recall took on sample
// queries, or with ScanGoals::probe_count candidates, and with more if a mask
// leaves few of the rows it meets. It takes all keys instead if that is cheaper
// or the goals require it (WidthSearch).
class HnswIndex : public KeyIndex {
 public:
  // As IvfIndex::Build, with its errors. Single-threaded: takes about 10
  // seconds for 100,000 rows of 128.
  static absl::StatusOr<std::unique_ptr<HnswIndex>> Build(
      std::span<const std::span<const float>> keys, std::int64_t dim,
      ScoreKind score_kind, const HnswOptions& options);

  // Bytes as described in index_file.h. Load returns DataLoss and throws
  // std::bad_alloc.
  virtual void Save(ByteSink& sink) const = 0;
  static absl::StatusOr<std::unique_ptr<HnswIndex>> Load(
      ByteSource& source, std::int64_t row_count);
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KINDS_HNSW_INDEX_H_
