// Wraps all rows of a catalog in one snapshot: one segment, one index.
#ifndef ATTENDANT_BENCH_MASS_ONE_SEGMENT_H_
#define ATTENDANT_BENCH_MASS_ONE_SEGMENT_H_

#include <memory>
#include <vector>

#include "core/catalog/segments/snapshot.h"

namespace attendant {

// `index` covers the keys of `rows` in the field "key", whose schema has the
// same kind of index. Every row must have a key.
Snapshot MakeSnapshot(std::shared_ptr<RowTable> rows,
                      std::unique_ptr<KeyIndex> index,
                      std::vector<AttributeSchema> attributes);

}  // namespace attendant

#endif  // ATTENDANT_BENCH_MASS_ONE_SEGMENT_H_
