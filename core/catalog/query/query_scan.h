// The scans of one query: one for each of its heads, wider ones if an index
// found too few items, and one of every key if that is not enough or the index
// knows too little of the mass.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_QUERY_SCAN_H_
#define ATTENDANT_CORE_CATALOG_QUERY_QUERY_SCAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/interrupt.h"
#include "core/catalog/query/attend.h"
#include "core/catalog/query/by_head.h"
#include "core/catalog/query/query_plan.h"
#include "core/catalog/query/scan.h"
#include "core/catalog/segments/snapshot.h"

namespace attendant {

// The set that draws are made from.
struct Population {
  std::vector<RowAddress> rows;
  std::vector<float> logits;
};

// The results of all scans of a query.
struct HeadScans {
  ByHead<HeadScan> heads;
  Population catalog;  // if all of its logits are drawn from
  std::int64_t scored_count = 0;
  std::int64_t visited_list_count = 0;
  int shared_query_count = 1;
  AttendTrace trace;  // scans and scan_duration
};

// The kind of queries that a scan can profitably share a pass with.
enum class Company {
  kCodes,   // queries that read codes, or the floats of a few lists
  kFloats,  // queries that read every key from its floats
  // None. Others should not wait for this query, because keys are projected or
  // values pooled for it, a mask leaves only some rows to read, longer draws
  // follow, or every logit is kept for them, which takes much memory.
  kNone,
};

class MeanLogWeights;

// The scans of a query, one after the other, so that queries which run together
// can share passes. Not thread-safe.
//
// Order: while not done(), call NextTask and then Take with its scan.
class QueryScan {
 public:
  // All arguments must outlive the object.
  QueryScan(const Snapshot& snapshot, const QueryPlan& plan,
            const Interrupt& interrupt);
  QueryScan(QueryScan&&) noexcept;
  ~QueryScan();

  bool done() const;
  // The company of the next scan. A query that reads codes should not wait for
  // one that reads floats.
  Company company() const;
  HeadScanTask NextTask() const;
  // Takes the result of the task; `time` is the duration of the pass.
  // FailedPrecondition if only the index may answer and it does not know what
  // the query needs; errors of the interrupt.
  absl::Status Take(HeadScan scan, absl::Duration time);

  // The trace of the scans so far.
  const AttendTrace& trace() const { return scans_.trace; }

  // Returns the results. Call once, when done. Errors of the interrupt.
  absl::StatusOr<HeadScans> Found() &&;

 private:
  const PlannedHead& head() const;
  // True if the masks leave so few rows of a segment to its index that the
  // query scans the segment alone.
  bool IsMasked(std::size_t segment) const;
  absl::string_view WhyNotEnough(const HeadScan& scan) const;
  bool FoundTooFew(const HeadScan& scan) const;
  void Widen(const HeadScan& scan);
  ScanTrace& Note(const HeadScan& scan, absl::Duration time);

  const Snapshot* snapshot_;
  const QueryPlan* plan_;
  const Interrupt* interrupt_;
  // State of the head that is being scanned.
  bool takes_every_key_ = false;
  int wider_count_ = 0;           // scans wider than requested
  std::int64_t probe_count_ = 0;  // of the next scan; 0: the plan's
  HeadScans scans_;
  std::unique_ptr<MeanLogWeights> means_;  // set if several heads draw
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_QUERY_SCAN_H_
