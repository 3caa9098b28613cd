// Filters as text: refused, or they read back the same from what is written,
// and match the rows that a plain twin matches. After a byte 1 the next 8 bytes
// seed the drawing of filters as a request may have them, with lists, which
// text cannot have.
#include <cstring>

#include "core/catalog/filter/evaluate_filter.h"
#include "core/catalog/filter/parse_filter.h"
#include "core/catalog/rows/row_table.h"
#include "tests/core/catalog/random_filter.h"
#include "tests/fuzz/fuzz.h"

namespace attendant {
namespace {

constexpr RowIndex kRows = 70;  // not at a word's end

struct Table {
  CatalogSchema schema = FilterSchema();
  RowTable rows{0, kRows};
  std::vector<Attributes> attributes;

  Table() {
    RandomFilters random(1);
    for (RowIndex row = 0; row < kRows; ++row) {
      Attributes& of_row = attributes.emplace_back();
      for (int a = 0; a < 6; ++a) {
        if (random.Below(4) == 0) continue;
        of_row.emplace_back(a, random.Value(schema.attributes[a].type));
      }
      rows.Append(absl::StrCat(row), {}, of_row);
    }
  }
};

void CheckMeaning(const Filter& filter, const Table& table) {
  const auto passing =
      EvaluateFilter(filter, table.schema, table.rows, kRows, {}, Interrupt());
  Require(passing.ok(), "a valid filter is evaluated");
  for (RowIndex row = 0; row < kRows; ++row) {
    Require(passing->Test(row) ==
                IsTrueOf(filter, table.schema, table.attributes[row]),
            "rows pass as the twin says");
  }
  // Every third row is tested, and every second is excluded.
  Bitmap thirds(table.rows.capacity());
  Bitmap seconds(table.rows.capacity());
  for (RowIndex row = 0; row < kRows; row += 3) thirds.Set(row);
  for (RowIndex row = 0; row < kRows; row += 2) seconds.Set(row);
  const auto scoped =
      EvaluateFilter(filter, table.schema, table.rows, kRows,
                     {.only = &thirds, .excluded = &seconds}, Interrupt());
  Require(scoped.ok(), "so it is within a scope");
  for (RowIndex row = 0; row < kRows; ++row) {
    Require(scoped->Test(row) ==
                (passing->Test(row) && row % 3 == 0 && row % 2 != 0),
            "the scope leaves rows");
  }
}

void CheckDrawn(absl::string_view bytes, const Table& table) {
  std::uint64_t seed;
  if (bytes.size() < sizeof(seed)) return;
  std::memcpy(&seed, bytes.data(), sizeof(seed));
  const Filter filter = RandomFilters(seed).Tree(table.schema, 3, true);
  const absl::Status status = ValidateFilter(filter, table.schema, "filter");
  if (!status.ok()) {
    RequireRefusal(status, {absl::StatusCode::kInvalidArgument,
                            absl::StatusCode::kResourceExhausted});
    return;
  }
  Accept();
  CheckMeaning(filter, table);
}

}  // namespace

void CheckInput(absl::string_view text) {
  static const Table table;
  if (!text.empty() && text[0] == '\x01') {
    return CheckDrawn(text.substr(1), table);
  }
  const absl::StatusOr<Filter> filter = ParseFilter(text, table.schema);
  if (!filter.ok()) {
    RequireRefusal(filter.status(), {absl::StatusCode::kInvalidArgument,
                                     absl::StatusCode::kResourceExhausted});
    return;
  }
  Accept();
  Require(ValidateFilter(*filter, table.schema, "filter").ok(),
          "what is parsed is valid");
  CheckMeaning(*filter, table);
  // Additional parentheses may make it too long or too deep.
  const absl::StatusOr<Filter> again =
      ParseFilter(Written(*filter), table.schema);
  if (absl::IsResourceExhausted(again.status())) return;
  Require(again.ok() && *again == *filter, "what is written back is the same");
}

}  // namespace attendant
