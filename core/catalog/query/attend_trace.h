// Records how an answer was computed, to explain a slow or small answer.
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
  // FLAT if every key was scored from its floats, in at least one segment.
  IndexKind index_kind = IndexKind::kFlat;
  bool exhaustive = false;  // every key was to be scored from its floats
  // How far the index was told to look instead of what it was built for; 0 if
  // it was not told.
  std::int64_t probe_count = 0;
  std::int64_t scored_count = 0;
  std::int64_t visited_list_count = 0;
  int shared_query_count = 1;  // of the pass, including this one
  absl::Duration time;         // duration of the pass
  // Why the head had to be scanned again, as a literal; empty if it was not.
  absl::string_view not_enough;
};

struct AttendTrace {
  // Time to resolve the query: vectors, masks, defaults.
  absl::Duration plan_duration;
  // Time of all passes over keys that the query took part in.
  absl::Duration scan_duration;
  // Time to turn shortlists into items, weights and pooled values.
  absl::Duration answer_duration;
  // In the order in which they ran; usually one per head.
  absl::InlinedVector<ScanTrace, 2> scans;
  // Distinct items in the shortlists of all heads.
  std::int64_t candidate_count = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_ATTEND_TRACE_H_
