#include "core/catalog/segments/matching.h"

#include <algorithm>
#include <span>

#include "core/base/bitmap.h"
#include "core/base/status.h"
#include "core/catalog/filter/evaluate_filter.h"
#include "core/catalog/rows/row_table.h"

namespace attendant {

absl::Status ForEachAllowed(const Masks& masks, const Snapshot& state,
                            absl::FunctionRef<void(absl::string_view id)> visit,
                            const Interrupt& interrupt) {
  constexpr std::int64_t kRowsBetweenChecks = 16384;
  for (std::size_t s = 0; s < state.segments.size(); ++s) {
    const RowTable& rows = *state.segments[s].segment->rows;
    const Bitmap& matching = *masks[s].allowed;
    for (std::int64_t begin = 0; begin < matching.size();
         begin += kRowsBetweenChecks) {
      ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
      matching.ForEachSet(begin,
                          std::min(matching.size(), begin + kRowsBetweenChecks),
                          [&](std::int64_t row) {
                            visit(rows.Id(static_cast<RowIndex>(row)));
                          });
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<MatchingPage> FindMatchingPage(const Snapshot& state,
                                              const Filter& filter,
                                              absl::string_view after,
                                              std::size_t most,
                                              const Interrupt& interrupt) {
  Masks masks(state);
  ATTENDANT_RETURN_IF_ERROR(masks.Keep(filter, interrupt));
  MatchingPage page;
  // A heap with the greatest id in front, once it is full.
  std::vector<absl::string_view> first;
  first.reserve(most);
  const auto take = [&](absl::string_view id) {
    ++page.total_count;
    if (id <= after) return;
    if (first.size() < most) {
      first.push_back(id);
      if (first.size() == most) std::ranges::make_heap(first);
    } else if (id < first.front()) {
      std::ranges::pop_heap(first);
      first.back() = id;
      std::ranges::push_heap(first);
    }
  };
  ATTENDANT_RETURN_IF_ERROR(ForEachAllowed(masks, state, take, interrupt));
  std::ranges::sort(first);
  page.ids = {first.begin(), first.end()};
  return page;
}

absl::StatusOr<bool> Matches(const Filter& filter, const CatalogSchema& schema,
                             const Item& item, const Interrupt& interrupt) {
  ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
  RowTable row(/*value_dim=*/0, /*capacity=*/1);
  row.Append(item.id, /*value=*/{}, item.attributes, nullptr);
  ATTENDANT_ASSIGN_OR_RETURN(
      const Bitmap passing,
      EvaluateFilter(filter, schema, row, /*row_end=*/1, {}, interrupt));
  return passing.Test(0);
}

}  // namespace attendant
