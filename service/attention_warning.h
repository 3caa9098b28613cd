// Tells when a catalog's attention is an average and not a choice.
#ifndef ATTENDANT_SERVICE_ATTENTION_WARNING_H_
#define ATTENDANT_SERVICE_ATTENTION_WARNING_H_

#include <string>
#include <vector>

#include "core/base/interrupt.h"
#include "core/catalog/snapshot.h"

namespace attendant {

// A sentence for each key field where the median effective item count of up to
// 16 queries, each an item spread evenly over the catalog, exceeds half of the
// items. Attends exactly with the field's defaults. Says nothing of fields with
// fewer than 16 keys, where an average means little, or more than 200,000,
// where it would take too long; nor when the interrupt comes first.
std::vector<std::string> AttentionWarnings(const Snapshot& snapshot,
                                           const Interrupt& interrupt);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_ATTENTION_WARNING_H_
