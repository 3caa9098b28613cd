// Passes of several queries over the codes of lists, which are read once for
// all of them. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_PASSES_CODE_SCAN_H_
#define ATTENDANT_CORE_SHORTLIST_PASSES_CODE_SCAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "core/shortlist/lists/inverted_lists.h"
#include "core/shortlist/passes/code_pass.h"

namespace attendant {

// A pass that has been started, the lists that it takes (in this order, if it
// is alone), and how it went: an interrupt ends it, and only it.
struct ListVisit {
  CodePass* pass = nullptr;
  std::vector<std::int32_t> lists;
  std::span<const float> scores;  // of all lists, if they were chosen by them
  bool knows_products = false;    // the pass has those of its lists
  std::size_t next_own = 0;       // of `lists`, while others are taken
  absl::Status status;
};

// Each visit's pass takes all keys of its lists.
void TakeLists(const InvertedLists& lists, std::span<ListVisit* const> visits);

// The same of all other lists; each visit's are in ascending order. The passes
// read the same bits.
void TakeOtherLists(const InvertedLists& lists,
                    std::span<ListVisit* const> visits);

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_PASSES_CODE_SCAN_H_
