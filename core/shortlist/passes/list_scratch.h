// Memory that scans of lists keep from query to query. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_PASSES_LIST_SCRATCH_H_
#define ATTENDANT_CORE_SHORTLIST_PASSES_LIST_SCRATCH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/bitmap.h"
#include "core/shortlist/passes/code_pass.h"
#include "core/shortlist/passes/code_scan.h"

namespace attendant {

// The passes and visits of the queries of a scan, and the eligible rows of one
// query. One object per thread. Keeps its memory, except that of passes that
// kept very many keys.
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
  // Returns a bitmap of at least row_count rows, with any content. Only one is
  // in use at a time.
  Bitmap& rows(std::int64_t row_count) {
    if (rows_.size() < row_count) rows_ = Bitmap(row_count);
    return rows_;
  }

  // To be called after a scan, when no results of the passes are needed any
  // more.
  void GiveBack() {
    for (std::unique_ptr<CodePass>& pass : passes_) {
      if (pass->room() > kMaxRoom) pass = std::make_unique<CodePass>();
    }
  }

 private:
  // Enough for a shortlist of 16,000; a larger scan is not slowed down by
  // allocating the memory again.
  static constexpr std::size_t kMaxRoom = std::size_t{1} << 15;

  std::vector<std::unique_ptr<CodePass>> passes_;
  std::array<ListVisit, kMaxTogether + 1> visits_;
  Bitmap rows_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_PASSES_LIST_SCRATCH_H_
