// How an answer came about, for those who wonder why it took so long or holds
// so little.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_ATTEND_TRACE_H_
#define ATTENDANT_CORE_CATALOG_QUERY_ATTEND_TRACE_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/index_kind.h"

namespace attendant {

// One scan of one head over all segments.
struct ScanTrace {
  int head = 0;
  // FLAT: every key was scored from its floats, in some segments at least.
  IndexKind index_kind = IndexKind::kFlat;
  bool exhaustive = false;  // every key was asked for, from its floats
  // How far the index was told to look in place of what it was built for; 0:
  // nothing was said.
  std::int64_t probe_count = 0;
  std::int64_t scored_count = 0;
  std::int64_t visited_list_count = 0;
  int shared_query_count = 1;  // of the pass, this one among them
  absl::Duration time;         // of the pass
  // Why another scan of the head had to follow, a literal; empty: it need not.
  absl::string_view not_enough;
};

struct AttendTrace {
  // What the query stands for: vectors, masks, defaults.
  absl::Duration plan_duration;
  // All passes over keys that it took part in.
  absl::Duration scan_duration;
  // From shortlists to items, weights and pooled values.
  absl::Duration answer_duration;
  // In the order in which they were made; mostly one a head.
  absl::InlinedVector<ScanTrace, 2> scans;
  // Distinct items of all heads' shortlists.
  std::int64_t candidate_count = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_ATTEND_TRACE_H_
