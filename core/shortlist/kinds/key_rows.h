// The keys of a segment for indexes that find rows one by one. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_KINDS_KEY_ROWS_H_
#define ATTENDANT_CORE_SHORTLIST_KINDS_KEY_ROWS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/byte_stream.h"
#include "core/base/ids.h"
#include "core/base/scratch_files.h"
#include "core/base/views.h"
#include "core/shortlist/ivf/list_index.h"
#include "core/shortlist/scan/eligible_rows.h"
#include "core/shortlist/scan/key_index.h"
#include "core/shortlist/scan/row_scan.h"

namespace attendant {

// Keys in the order of their rows, without the rows that have none: position p
// holds the key of row rows()[p]. The keys form one inverted list, with its
// codes, so that scans of all keys run as list scans. Immutable.
class KeyRows {
 public:
  // keys[r] is the key of row r: dim floats, or empty. files: where the floats
  // go; null: into memory. InvalidArgument if no row has a key; other errors as
  // ScratchFiles. Throws std::bad_alloc.
  static absl::StatusOr<KeyRows> Make(
      std::span<const std::span<const float>> keys, std::int64_t dim,
      ScoreKind score_kind, std::uint64_t seed, ScratchFiles* files = nullptr);

  // Load returns DataLoss if the bytes are no such keys, or have rows >=
  // row_count; other errors as ScratchFiles. Throws std::bad_alloc.
  void Save(ByteSink& sink) const;
  static absl::StatusOr<KeyRows> Load(ByteSource& source,
                                      std::int64_t row_count,
                                      ScratchFiles* files = nullptr);

  std::int64_t dim() const { return lists().dim; }
  std::int64_t key_count() const { return lists().key_count(); }
  MatrixView keys() const { return lists().key_view(); }
  MatrixView key_runs() const { return lists().key_runs(); }
  // By position; see InverseNorm. Never NaN.
  std::span<const float> inverse_norms() const { return lists().inverse_norms; }
  std::span<const RowIndex> rows() const { return lists().rows; }
  // Returns the key of `row`, or an empty span if it has none.
  std::span<const float> KeyOf(RowIndex row) const { return list_->Key(row); }

  // See KeyIndex.
  std::uint64_t Keyed(std::int64_t w, std::uint64_t rows) const {
    return list_->Keyed(w, rows);
  }
  float inverse_norm(RowIndex row) const { return list_->inverse_norm(row); }
  double max_norm() const { return list_->max_norm(); }

  // The eligible rows that have keys.
  struct Eligible {
    bool all = false;  // every row with a key is eligible
    EligibleRows rows;
    std::int64_t count = 0;

    // Requires that `row` has a key.
    bool Has(RowIndex row) const { return all || rows.Bit(row) != 0; }
  };
  // The query's masks must outlive the result.
  Eligible FindEligible(const ScanQuery& query) const;

  // True if the goals ask for a scan of all keys, whatever the index.
  static bool WantsAll(const ScanQuery& query);
  // Scans all eligible keys, by codes if these serve the goals.
  absl::StatusOr<ScanStats> ScanAll(const ScanQuery& query,
                                    AttentionState& state) const;
  // Estimated nanoseconds to score all eligible keys from their floats
  // (scan_costs.h).
  double CostOfFloats(const Eligible& eligible) const;
  // Estimated nanoseconds of ScanAll, which may use codes.
  double CostOfAll(const ScanQuery& query, const AttentionState& state,
                   const Eligible& eligible) const;

  // Scores these positions, each given once, all of eligible rows.
  absl::Status ScanPositions(std::span<const std::int32_t> positions,
                             RowScan& scan) const;

  MemoryParts memory() const { return list_->memory(); }

 private:
  // `lists` holds one list.
  KeyRows(InvertedLists lists, std::int64_t row_count, ScoreKind score_kind,
          std::uint64_t seed);
  const InvertedLists& lists() const { return list_->lists(); }
  // Returns how many of the eligible rows have keys.
  std::int64_t Count(const EligibleRows& eligible) const;

  std::unique_ptr<const ListIndex> list_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KINDS_KEY_ROWS_H_
