// The common part of indexes that find more keys the wider they look: it
// decides how wide to look, accounts for masks, and decides when to take all
// keys instead. Internal.
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

// The curves that calibration learned for an index.
struct WidthCurve {
  RecallCurve recall;
  CostCurve cost;  // nanoseconds, as KeyRows::CostOfFloats
};

struct FoundKeys {
  // Positions of eligible rows, each once, in an order that depends only on the
  // query.
  std::vector<std::int32_t> positions;
  // KeyScorer's similarities of `positions`; empty: not scored yet.
  std::vector<float> similarities;
  std::int64_t met_count = 0;  // keys met, eligible or not
  bool exhausted = false;      // a greater width would find no more

  void Clear();
};

class WidthSearch {
 public:
  // Finds the keys of `width`, width >= 1, and adds them to `found`, which is
  // empty. Returns the error of an interrupt, if any.
  using Find = absl::FunctionRef<absl::Status(
      const ScanQuery& query, const KeyRows::Eligible& eligible,
      std::int64_t width, FoundKeys& found)>;

  struct Options {
    double target_recall = 0;  // for goals that name none
    std::int64_t neighbour_count = 0;
    std::int64_t least_width = 1;  // smallest width of any scan
    // True if a width counts eligible keys only, whatever masks leave out.
    bool masks_first = false;
  };

  // curve: nullopt if all scans must take all keys.
  WidthSearch(KeyRows keys, std::optional<WidthCurve> curve,
              const Options& options)
      : keys_(std::move(keys)), curve_(std::move(curve)), options_(options) {}

  void Save(ByteSink& sink) const;
  // As KeyRows::Load.
  static absl::StatusOr<WidthSearch> Load(ByteSource& source,
                                          std::int64_t row_count,
                                          ScratchFiles* files = nullptr);

  const KeyRows& keys() const { return keys_; }
  // False if every scan takes all keys.
  bool finds() const { return curve_.has_value(); }
  IndexTuning tuning() const;

  // Looks as wide as the goals call for, and wider if a mask leaves few of the
  // rows met, until it has the rows asked for. Takes all eligible rows instead,
  // from codes or floats, if the goals ask for it, that is estimated to cost
  // less, or no width reached the wanted recall. A goal that names a
  // probe_count is followed as long as scoring all eligible rows from floats
  // would cost more.
  absl::StatusOr<ScanStats> Scan(const ScanQuery& query, AttentionState& state,
                                 Find find) const;

 private:
  std::optional<double> WidthFor(double recall, double neighbour_count) const;
  // Returns false if all keys are to be taken.
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
