// The scans that one query takes: one for each of its heads, wider ones where
// an index found too few items, and one of every key where that is not enough
// or the index knows too little of the mass.
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

// What is drawn from.
struct Population {
  std::vector<RowAddress> rows;
  std::vector<float> logits;
};

// What all scans of a query found.
struct HeadScans {
  ByHead<HeadScan> heads;
  Population catalog;  // if all its logits are drawn from
  std::int64_t scored_count = 0;
  std::int64_t visited_list_count = 0;
  int shared_query_count = 1;
  AttendTrace trace;  // scans and scan_duration
};

// Which queries a scan gains from having beside it.
enum class Company {
  kCodes,   // those that read codes, or the floats of a few lists
  kFloats,  // those that read every key from its floats
  // None, so that others should not wait for it: keys are projected for it or
  // values pooled, only some rows are read by a mask, draws follow that take
  // longer, or every logit is kept for them, which takes much memory.
  kNone,
};

class MeanLogWeights;

// The scans of a query, one after the other, so that queries which are at it
// together can share passes. Not thread-safe.
//
// Order: while not done, NextTask and then Take of its scan.
class QueryScan {
 public:
  // All must outlive the object.
  QueryScan(const Snapshot& snapshot, const QueryPlan& plan,
            const Interrupt& interrupt);
  QueryScan(QueryScan&&) noexcept;
  ~QueryScan();

  bool done() const;
  // Of the next scan. Who reads codes should not wait for who reads floats.
  Company company() const;
  HeadScanTask NextTask() const;
  // `time` is that of the pass. FailedPrecondition if only the index may
  // answer, and it does not know what the query needs; errors of the interrupt.
  absl::Status Take(HeadScan scan, absl::Duration time);

  // Of the scans so far.
  const AttendTrace& trace() const { return scans_.trace; }

  // What was found. Once, when done. Errors of the interrupt.
  absl::StatusOr<HeadScans> Found() &&;

 private:
  const PlannedHead& head() const;
  // Whether a query sees so little of a segment by its index that it reads
  // that for itself.
  bool IsMasked(std::size_t segment) const;
  absl::string_view WhyNotEnough(const HeadScan& scan) const;
  bool FoundTooFew(const HeadScan& scan) const;
  void Widen(const HeadScan& scan);
  ScanTrace& Note(const HeadScan& scan, absl::Duration time);

  const Snapshot* snapshot_;
  const QueryPlan* plan_;
  const Interrupt* interrupt_;
  // Of the head that is being scanned.
  bool takes_every_key_ = false;
  int wider_count_ = 0;           // scans that were wider than asked for
  std::int64_t probe_count_ = 0;  // of the next; 0: the plan's
  HeadScans scans_;
  std::unique_ptr<MeanLogWeights> means_;  // if several heads draw
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_QUERY_SCAN_H_
