#include "core/catalog/query/crowding.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "core/catalog/rows/attribute_columns.h"

namespace attendant {
namespace {

// What items of a crowd have in common. Texts are compared themselves, since
// their codes differ between segments.
struct Crowd {
  std::size_t limit = 0;
  std::int64_t number = 0;      // of an int64 or a bool
  absl::string_view text = "";  // of a string or of a list

  bool operator==(const Crowd&) const = default;
  template <typename H>
  friend H AbslHashValue(H hash, const Crowd& crowd) {
    return H::combine(std::move(hash), crowd.limit, crowd.number, crowd.text);
  }
};

struct Crowdedness {
  std::int64_t row_count = 0;
  std::size_t last_row = 0;  // lists may repeat a text
};

// Appends the crowds of a row under one limit.
void AppendCrowds(const AttributeColumn* column, RowIndex row,
                  std::size_t limit, std::vector<Crowd>& crowds) {
  if (column == nullptr || !column->present.Test(row)) return;
  switch (column->type) {
    case AttributeType::kBool:
      crowds.push_back({.limit = limit, .number = column->truths.Test(row)});
      return;
    case AttributeType::kInt64:
      crowds.push_back({.limit = limit, .number = column->integers[row]});
      return;
    case AttributeType::kString:
      crowds.push_back(
          {.limit = limit, .text = column->texts.Text(column->codes[row])});
      return;
    case AttributeType::kStringList: {
      const std::int64_t begin = column->begins[row];
      for (std::int64_t i = begin; i < begin + column->counts[row]; ++i) {
        crowds.push_back({.limit = limit,
                          .text = column->texts.Text(column->entries[i].code)});
      }
      return;
    }
    case AttributeType::kDouble:
    case AttributeType::kTimestamp:
      return;  // refused by Resolve
  }
}

absl::StatusOr<ResolvedCrowdingLimit> Resolve(const CatalogSchema& schema,
                                              const CrowdingLimit& limit) {
  ResolvedCrowdingLimit resolved;
  resolved.attribute = schema.AttributeIndex(limit.attribute);
  if (resolved.attribute < 0) {
    return InvalidField("attribute", absl::StrCat("'", limit.attribute, "'"),
                        "an attribute that the schema declares");
  }
  const AttributeType type = schema.attributes[resolved.attribute].type;
  if (type == AttributeType::kDouble || type == AttributeType::kTimestamp) {
    return InvalidField(
        "attribute",
        absl::StrCat("'", limit.attribute, "', ", WithArticle(type)),
        "an attribute of type string, string_list, int64 or bool");
  }
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(limit.max_count, 1, kMaxResultCount, "max_count"));
  resolved.max_count = limit.max_count;
  return resolved;
}

}  // namespace

absl::StatusOr<std::vector<ResolvedCrowdingLimit>> ResolveCrowdingLimits(
    const CatalogSchema& schema, const std::vector<CrowdingLimit>& limits) {
  ATTENDANT_RETURN_IF_ERROR(CheckCount(static_cast<std::int64_t>(limits.size()),
                                       0, kMaxCrowdingLimitCount,
                                       "crowding_limits"));
  std::vector<ResolvedCrowdingLimit> resolved;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const auto limit = Resolve(schema, limits[i]);
    if (!limit.ok()) {
      return PrefixField(limit.status(),
                         absl::StrCat("crowding_limits[", i, "]."));
    }
    resolved.push_back(*limit);
  }
  return resolved;
}

absl::StatusOr<std::vector<std::size_t>> WithoutCrowds(
    const Snapshot& snapshot, std::span<const ResolvedCrowdingLimit> limits,
    std::span<const RowAddress> rows, std::size_t count,
    const Interrupt& interrupt) {
  absl::flat_hash_map<Crowd, Crowdedness> crowdedness;
  std::vector<std::size_t> positions;
  std::vector<Crowd> crowds;  // of one row
  ATTENDANT_RETURN_IF_ERROR(
      VisitEach(rows.size(), interrupt, [&](std::size_t i) {
        if (positions.size() == count) return;
        const RowTable& table =
            *snapshot.segments[rows[i].segment].segment->rows;
        crowds.clear();
        for (std::size_t l = 0; l < limits.size(); ++l) {
          AppendCrowds(table.columns().column(limits[l].attribute), rows[i].row,
                       l, crowds);
        }
        const bool is_crowded =
            std::ranges::any_of(crowds, [&](const Crowd& crowd) {
              const auto found = crowdedness.find(crowd);
              return found != crowdedness.end() &&
                     found->second.row_count >= limits[crowd.limit].max_count;
            });
        if (is_crowded) return;
        positions.push_back(i);
        for (const Crowd& crowd : crowds) {
          Crowdedness& of_crowd = crowdedness[crowd];
          if (of_crowd.row_count > 0 && of_crowd.last_row == i) continue;
          ++of_crowd.row_count;
          of_crowd.last_row = i;
        }
      }));
  return positions;
}

}  // namespace attendant
