// What is common to indexes that find more the wider they look: how wide, what
// masks leave of it, and when to take all keys instead. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_KINDS_WIDTH_SEARCH_H_
#define ATTENDANT_CORE_SHORTLIST_KINDS_WIDTH_SEARCH_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/byte_stream.h"
#include "core/base/scratch_files.h"
#include "core/shortlist/calibration/recall_curve.h"
#include "core/shortlist/kinds/key_rows.h"
#include "core/shortlist/scan/key_index.h"

namespace attendant {

// What calibration learned of an index.
struct WidthCurve {
  RecallCurve recall;
  CostCurve cost;  // nanoseconds, as KeyRows::CostOfFloats
};

struct FoundKeys {
  // Of eligible rows, each once, in an order that only the query decides.
  std::vector<std::int32_t> positions;
  // Of positions, KeyScorer's; empty: they are scored yet.
  std::vector<float> similarities;
  std::int64_t met_count = 0;  // eligible or not
  bool exhausted = false;      // no greater width finds more

  void Clear();
};

class WidthSearch {
 public:
  // Finds what `width` finds, width >= 1, for the cleared `found`. Errors of an
  // interrupt.
  using Find = absl::FunctionRef<absl::Status(
      const ScanQuery& query, const KeyRows::Eligible& eligible,
      std::int64_t width, FoundKeys& found)>;

  struct Options {
    double target_recall = 0;  // of goals that name none
    std::int64_t neighbour_count = 0;
    std::int64_t least_width = 1;  // what any scan looks at
    // A width is one of eligible keys alone, whatever masks leave out.
    bool masks_first = false;
  };

  // curve: nothing if all scans must take all keys.
  WidthSearch(KeyRows keys, std::optional<WidthCurve> curve,
              const Options& options)
      : keys_(std::move(keys)), curve_(std::move(curve)), options_(options) {}

  void Save(ByteSink& sink) const;
  // As KeyRows::Load.
  static absl::StatusOr<WidthSearch> Load(ByteSource& source,
                                          std::int64_t row_count,
                                          ScratchFiles* files = nullptr);

  const KeyRows& keys() const { return keys_; }
  // False if all scans take all keys.
  bool finds() const { return curve_.has_value(); }
  IndexTuning tuning() const;

  // Looks as wide as the goals call for, and wider where a mask leaves few of
  // the rows met, until it has the rows asked for. Takes all eligible rows
  // instead, by their codes or from their floats, if the goals ask for it, or
  // that is estimated to cost less, or no width reached such a recall. A goal
  // of so many probes is followed as long as floats would cost more.
  absl::StatusOr<ScanStats> Scan(const ScanQuery& query, AttentionState& state,
                                 Find find) const;

 private:
  std::optional<double> WidthFor(double recall, double neighbour_count) const;
  // False: all keys are to be taken.
  absl::StatusOr<bool> FindEnough(const ScanQuery& query,
                                  const AttentionState& state,
                                  const KeyRows::Eligible& eligible, Find find,
                                  FoundKeys& found) const;
  absl::StatusOr<ScanStats> AddFound(const ScanQuery& query,
                                     const KeyRows::Eligible& eligible,
                                     const FoundKeys& found,
                                     AttentionState& state) const;

  KeyRows keys_;
  std::optional<WidthCurve> curve_;
  Options options_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_KINDS_WIDTH_SEARCH_H_
