// What scans of lists keep from query to query. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_LIST_SCRATCH_H_
#define ATTENDANT_CORE_SHORTLIST_LIST_SCRATCH_H_

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "core/shortlist/code_pass.h"
#include "core/shortlist/code_scan.h"

namespace attendant {

// Passes and lists of the queries of a scan. One a thread: it keeps its memory.
class ListScratch {
 public:
  // Queries that share the passes of one scan.
  static constexpr std::size_t kMaxTogether = 64;
  // The place of a masked query, which is scanned while the others wait.
  static constexpr std::size_t kMasked = kMaxTogether;

  static ListScratch& OfThread() {
    thread_local ListScratch scratch;
    return scratch;
  }

  CodePass& pass(std::size_t i) {
    while (passes_.size() <= i) passes_.push_back(std::make_unique<CodePass>());
    return *passes_[i];
  }
  ListVisit& visit(std::size_t i) { return visits_[i]; }

 private:
  std::vector<std::unique_ptr<CodePass>> passes_;
  std::array<ListVisit, kMaxTogether + 1> visits_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_LIST_SCRATCH_H_
