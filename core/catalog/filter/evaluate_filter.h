// Evaluates a filter over the rows of a table.
#ifndef ATTENDANT_CORE_CATALOG_FILTER_EVALUATE_FILTER_H_
#define ATTENDANT_CORE_CATALOG_FILTER_EVALUATE_FILTER_H_

#include "absl/status/statusor.h"
#include "core/base/bitmap.h"
#include "core/base/interrupt.h"
#include "core/catalog/filter/filter.h"
#include "core/catalog/rows/row_table.h"

namespace attendant {

// Restricts the rows to evaluate. Null members do not restrict.
struct FilterScope {
  const Bitmap* only = nullptr;      // if not null, only these can pass
  const Bitmap* excluded = nullptr;  // these do not pass
};

// Returns the rows below row_end that match the filter and are in the scope, as
// a bitmap of the table's capacity. The filter must be valid for the schema.
//
// Works column by column, in blocks of 2,048 rows and words of 64 rows. Skips
// blocks with no row in the scope, and the rest of a conjunction once no row of
// a block can pass. Text comparands are looked up among the distinct texts
// first, so that rows compare small numbers.
//
// Thread-safe; rows may be appended meanwhile. Errors: Cancelled,
// DeadlineExceeded.
absl::StatusOr<Bitmap> EvaluateFilter(const Filter& filter,
                                      const CatalogSchema& schema,
                                      const RowTable& rows, RowIndex row_end,
                                      const FilterScope& scope,
                                      const Interrupt& interrupt);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_FILTER_EVALUATE_FILTER_H_
