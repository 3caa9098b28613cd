// A sequence with one element for each head of a query.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_BY_HEAD_H_
#define ATTENDANT_CORE_CATALOG_QUERY_BY_HEAD_H_

#include "absl/container/inlined_vector.h"

namespace attendant {

// Most queries have one head, for which nothing is allocated.
template <typename T>
using ByHead = absl::InlinedVector<T, 1>;

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_BY_HEAD_H_
