// Product quantisation (Jegou, Douze, Schmid 2011): a key's components are cut
// into parts, and each part is replaced by the number of the nearest of 256
// centroids, a byte. A query meets all codes: the product with a code is a sum
// of as many numbers from a table as there are parts. The best by code are then
// scored from their floats.
//
// FAISS's k-means learns the centroids. Its ProductQuantizer would learn and
// encode by BLAS and OpenMP, whose threads are beyond our control, and wants
// parts of one size.
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
  // Parts of a key, bytes of its code, at most its dim; 0: one for every 4
  // components. More are nearer to the key, and take longer to add up.
  std::int64_t part_count = 0;
  // Mean recall@neighbour_count against exact of scans whose goals name none;
  // see IvfOptions.
  double target_recall = 0.8;
  std::int64_t neighbour_count = 100;
  std::uint64_t seed = 20240607;
  // Where the fp32 keys go: a file of these, mapped, which takes their memory
  // and leaves the codes'. Null: memory. Build alone uses it.
  ScratchFiles* key_files = nullptr;
  // Set to stop a build early; Build then returns Cancelled. May be null.
  const std::atomic<bool>* cancelled = nullptr;
};

// Immutable. Build and Scan let no exception of FAISS escape. A scan rescores
// as many keys as the wanted recall took on sample queries, or as
// ScanGoals::probe_count says; or it takes all keys (WidthSearch).
class PqIndex : public KeyIndex {
 public:
  // As IvfIndex::Build, and with its errors. Single-threaded: takes seconds for
  // 100,000 rows of 128.
  static absl::StatusOr<std::unique_ptr<PqIndex>> Build(
      std::span<const std::span<const float>> keys, std::int64_t dim,
      ScoreKind score_kind, const PqOptions& options);

  // As bytes; see index_file.h. Errors of Load: DataLoss; throws
  // std::bad_alloc.
  virtual void Save(ByteSink& sink) const = 0;
  static absl::StatusOr<std::unique_ptr<PqIndex>> Load(
      ByteSource& source, std::int64_t row_count,
      ScratchFiles* key_files = nullptr);
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KINDS_PQ_INDEX_H_
