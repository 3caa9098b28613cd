// Product quantisation (Jegou, Douze, Schmid 2011): a key's components are cut
// into parts, and each part is replaced by the number, one byte, of the nearest
// of 256 centroids. A query is compared with all codes: its product with a code
// is the sum of one table entry per part. The best keys by code are then scored
// from their floats.
//
// FAISS's k-means learns the centroids. FAISS's ProductQuantizer is not used:
// it learns and encodes with BLAS and OpenMP, whose threads are beyond our
// control, and requires parts of equal size.
#ifndef ATTENDANT_CORE_SHORTLIST_KINDS_PQ_INDEX_H_
#define ATTENDANT_CORE_SHORTLIST_KINDS_PQ_INDEX_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "core/base/byte_stream.h"
#include "core/base/scratch_files.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

struct PqOptions {
  // Parts of a key, which are the bytes of its code; at most dim. 0: one part
  // for every 4 components. More parts approximate the key better and take
  // longer to add up.
  std::int64_t part_count = 0;
  // Mean recall@neighbour_count against exact, for scans whose goals name no
  // recall; see IvfOptions.
  double target_recall = 0.8;
  std::int64_t neighbour_count = 100;
  std::uint64_t seed = 20240607;
  // Files that hold the fp32 keys, mapped, so that only the codes stay in
  // memory. Null: keys stay in memory. Used by Build only.
  ScratchFiles* key_files = nullptr;
  // Set to stop a build early; Build then returns Cancelled. May be null.
  const std::atomic<bool>* cancelled = nullptr;
};

// Immutable. No exception of FAISS escapes from Build or Scan. A scan rescores
// as many keys as the wanted recall took on sample queries, or
// ScanGoals::probe_count keys. It takes all keys instead if that is cheaper or
// the goals require it (WidthSearch).
class PqIndex : public KeyIndex {
 public:
  // As IvfIndex::Build, with its errors. Single-threaded: takes seconds for
  // 100,000 rows of 128.
  static absl::StatusOr<std::unique_ptr<PqIndex>> Build(
      std::span<const std::span<const float>> keys, std::int64_t dim,
      ScoreKind score_kind, const PqOptions& options);

  // Bytes as described in index_file.h. Load returns DataLoss and throws
  // std::bad_alloc.
  virtual void Save(ByteSink& sink) const = 0;
  static absl::StatusOr<std::unique_ptr<PqIndex>> Load(
      ByteSource& source, std::int64_t row_count,
      ScratchFiles* key_files = nullptr);
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KINDS_PQ_INDEX_H_
