// Passes of several queries over the codes of lists; the codes are read once
// for all of them. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_PASSES_CODE_SCAN_H_
#define ATTENDANT_CORE_SHORTLIST_PASSES_CODE_SCAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "core/shortlist/lists/inverted_lists.h"
#include "core/shortlist/mass/far_lists.h"
#include "core/shortlist/passes/code_pass.h"

namespace attendant {

// A started pass, the lists that TakeLists takes (in this order if it is alone)
// and TakeOtherLists leaves out, and its status: an interrupt ends this visit
// only.
struct ListVisit {
  CodePass* pass = nullptr;
  std::vector<std::int32_t> lists;
  std::span<const float> scores;  // of all lists, if they were chosen by them
  bool knows_products = false;    // the pass has the products of its lists
  FarLists far;                   // of `lists`, those that are never taken
  // Next indexes in `lists` while others are taken, and while it is looked
  // ahead for them.
  std::size_t next_own = 0;
  std::size_t next_ahead = 0;
  absl::Status status;
};

// Makes each visit's pass take all keys of its lists.
void TakeLists(const InvertedLists& lists, std::span<ListVisit* const> visits);

// Makes each visit's pass take all keys of the other lists. Each visit's lists
// must ascend. All passes must read the same bits.
void TakeOtherLists(const InvertedLists& lists,
                    std::span<ListVisit* const> visits);

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_PASSES_CODE_SCAN_H_
