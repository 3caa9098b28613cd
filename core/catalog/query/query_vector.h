// The vector that a query stands for, before any model.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_QUERY_VECTOR_H_
#define ATTENDANT_CORE_CATALOG_QUERY_QUERY_VECTOR_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/interrupt.h"
#include "core/catalog/query/attend.h"
#include "core/catalog/segments/snapshot.h"

namespace attendant {

// A query of one key field as a vector.
struct QueryVector {
  std::vector<float> vector;
  // The rows of the examples that exist.
  std::vector<RowAddress> example_rows;
  std::vector<ItemId> unknown_example_ids;
};

// Returns the vector of a query of `field`. `dim` is its number of floats: the
// field's dimension, or what its model takes. `path` is the location of the
// query in the request, as in "query". Errors as Attend. Checks the interrupt
// every few examples.
absl::StatusOr<QueryVector> ResolveQueryVector(const Snapshot& snapshot,
                                               const QueryForm& query,
                                               int field, std::int64_t dim,
                                               absl::string_view path,
                                               const Interrupt& interrupt);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_QUERY_VECTOR_H_
