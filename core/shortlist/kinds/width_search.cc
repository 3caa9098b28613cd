#include "core/shortlist/kinds/width_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/status.h"
#include "core/shortlist/scan/row_scan.h"

namespace attendant {

void FoundKeys::Clear() {
  positions.clear();
  similarities.clear();
  met_count = 0;
  exhausted = false;
}

void WidthSearch::Save(ByteSink& sink) const {
  keys_.Save(sink);
  sink.Put(options_.target_recall);
  sink.Put(options_.neighbour_count);
  sink.Put(options_.least_width);
  sink.Put(options_.masks_first);
  sink.Put(curve_.has_value());
  if (!curve_) return;
  curve_->recall.Save(sink);
  curve_->cost.Save(sink);
}

absl::StatusOr<WidthSearch> WidthSearch::Load(ByteSource& source,
                                              std::int64_t row_count,
                                              ScratchFiles* files) {
  ATTENDANT_ASSIGN_OR_RETURN(KeyRows keys,
                             KeyRows::Load(source, row_count, files));
  Options options;
  options.target_recall = source.Get<double>();
  options.neighbour_count = source.Get<std::int64_t>();
  options.least_width = source.Get<std::int64_t>();
  options.masks_first = source.Get<bool>();
  const auto has_curve = source.Get<bool>();
  ATTENDANT_RETURN_IF_ERROR(source.status());
  if (!(options.target_recall > 0 && options.target_recall <= 1) ||
      options.neighbour_count < 1 || options.least_width < 1) {
    return absl::DataLossError("it looks for no recall");
  }
  std::optional<WidthCurve> curve;
  if (has_curve) {
    curve.emplace();
    ATTENDANT_ASSIGN_OR_RETURN(curve->recall, RecallCurve::Load(source));
    ATTENDANT_ASSIGN_OR_RETURN(curve->cost, CostCurve::Load(source));
  }
  return WidthSearch(std::move(keys), std::move(curve), options);
}

std::optional<double> WidthSearch::WidthFor(double recall,
                                            double neighbour_count) const {
  if (!curve_) return std::nullopt;
  const std::optional<double> width =
      curve_->recall.WidthFor(recall, neighbour_count);
  if (!width) return std::nullopt;
  return std::max(*width, static_cast<double>(options_.least_width));
}

IndexTuning WidthSearch::tuning() const {
  const std::optional<double> width = WidthFor(
      options_.target_recall, static_cast<double>(options_.neighbour_count));
  if (!width) return {.probe_count = keys_.key_count(), .measured_recall = 1};
  return {.probe_count = static_cast<std::int64_t>(std::ceil(*width)),
          .measured_recall = curve_->recall.RecallAt(std::ceil(*width))};
}

absl::StatusOr<ScanStats> WidthSearch::Scan(const ScanQuery& query,
                                            AttentionState& state,
                                            Find find) const {
  if (!KeyRows::WantsAll(query) && curve_) {
    const KeyRows::Eligible eligible = keys_.FindEligible(query);
    thread_local FoundKeys found;
    ATTENDANT_ASSIGN_OR_RETURN(const bool enough,
                               FindEnough(query, state, eligible, find, found));
    if (enough) return AddFound(query, eligible, found, state);
  }
  return keys_.ScanAll(query, state);
}

absl::StatusOr<bool> WidthSearch::FindEnough(const ScanQuery& query,
                                             const AttentionState& state,
                                             const KeyRows::Eligible& eligible,
                                             Find find,
                                             FoundKeys& found) const {
  if (eligible.count == 0) return false;
  const std::int64_t wanted = std::min(state.top().k(), eligible.count);
  const bool by_width = query.goals.probe_count > 0;
  const double recall =
      query.goals.recall > 0 ? query.goals.recall : options_.target_recall;
  // Returns the width for `rate`, the share of eligible rows among those met.
  const auto width_for = [&](double rate) {
    return by_width
               ? std::optional(static_cast<double>(query.goals.probe_count))
               : WidthFor(recall, static_cast<double>(wanted) / rate);
  };
  std::optional<double> width = width_for(
      options_.masks_first ? 1
                           : static_cast<double>(eligible.count) /
                                 static_cast<double>(keys_.key_count()));
  // A width named by the caller is used unless scoring from floats costs less.
  const double most = by_width ? keys_.CostOfFloats(eligible)
                               : keys_.CostOfAll(query, state, eligible);
  while (width && curve_->cost.At(*width) < most) {
    found.Clear();
    ATTENDANT_RETURN_IF_ERROR(find(
        query, eligible, static_cast<std::int64_t>(std::ceil(*width)), found));
    const auto found_count = static_cast<std::int64_t>(found.positions.size());
    if (found_count >= wanted) {
      if (eligible.all || by_width || options_.masks_first) return true;
      // Eligible rows may be nearer to the query than others, or farther.
      const std::optional<double> needed = width_for(
          static_cast<double>(std::max<std::int64_t>(1, found_count)) /
          static_cast<double>(found.met_count));
      if (!needed) return false;
      if (*needed <= *width * 1.1) return true;
      // The next look starts over, so it must be wide enough to be worth it.
      width = std::max(*needed, 1.5 * *width);
    } else if (found.exhausted) {
      return false;
    } else {
      width = 2 * *width;
    }
  }
  return false;
}

absl::StatusOr<ScanStats> WidthSearch::AddFound(
    const ScanQuery& query, const KeyRows::Eligible& eligible,
    const FoundKeys& found, AttentionState& state) const {
  RowScan scan(query, state);
  ATTENDANT_RETURN_IF_ERROR(scan.Start());
  if (found.similarities.empty()) {
    ATTENDANT_RETURN_IF_ERROR(keys_.ScanPositions(found.positions, scan));
  }
  for (std::size_t i = 0; i < found.similarities.size(); ++i) {
    const std::int32_t position = found.positions[i];
    ATTENDANT_RETURN_IF_ERROR(scan.AddScored(keys_.keys().Row(position).data(),
                                             keys_.rows()[position],
                                             found.similarities[i]));
  }
  ATTENDANT_RETURN_IF_ERROR(scan.Finish());
  const bool complete = scan.scored_count() == eligible.count;
  return ScanStats{.scored_count = scan.scored_count(),
                   .complete = complete,
                   .exact = complete,
                   .results_exact = complete,
                   .knows_mass = complete};
}

}  // namespace attendant
