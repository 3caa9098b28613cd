// A catalog as one snapshot of it: all rows in one segment under one index.
#ifndef ATTENDANT_BENCH_MASS_ONE_SEGMENT_H_
#define ATTENDANT_BENCH_MASS_ONE_SEGMENT_H_

#include <memory>
#include <vector>

#include "core/catalog/segments/snapshot.h"

namespace attendant {

// `index` is over the keys of `rows`, every one of which has one, in the field
// "key" of that kind of index.
Snapshot MakeSnapshot(std::shared_ptr<RowTable> rows,
                      std::unique_ptr<KeyIndex> index,
                      std::vector<AttributeSchema> attributes);

}  // namespace attendant

#endif  // ATTENDANT_BENCH_MASS_ONE_SEGMENT_H_
