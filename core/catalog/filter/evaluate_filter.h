// Which rows a filter is true of.
#ifndef ATTENDANT_CORE_CATALOG_FILTER_EVALUATE_FILTER_H_
#define ATTENDANT_CORE_CATALOG_FILTER_EVALUATE_FILTER_H_

#include "absl/status/statusor.h"
#include "core/base/bitmap.h"
#include "core/base/interrupt.h"
#include "core/catalog/filter/filter.h"
#include "core/catalog/rows/row_table.h"

namespace attendant {

// Rows that need not be looked at. Null: none.
struct FilterScope {
  const Bitmap* only = nullptr;      // if not null, others don't pass
  const Bitmap* excluded = nullptr;  // these don't pass
};

// The rows below row_end that the filter is true of and that the scope leaves,
// in a bitmap of the table's capacity. The filter is valid for the schema.
// Column by column, in blocks of 2,048 rows, 64 rows to a word; blocks that the
// scope leaves nothing of are skipped, and so is the rest of a conjunction that
// nothing of a block passes. What a text is compared with is looked up among
// the distinct texts first, so that rows compare small numbers.
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
