// The scans that one query takes: one for each of its heads, and another where
// an index found too few.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_SCAN_H_
#define ATTENDANT_CORE_CATALOG_QUERY_SCAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/interrupt.h"
#include "core/catalog/attend.h"
#include "core/catalog/query_plan.h"
#include "core/catalog/scan.h"
#include "core/catalog/snapshot.h"

namespace attendant {

// What is drawn from.
struct Population {
  std::vector<RowAddress> rows;
  std::vector<float> logits;
};

// What all scans of a query found.
struct HeadScans {
  std::vector<HeadScan> heads;
  Population catalog;  // if that is drawn from
  std::int64_t scored_count = 0;
  std::int64_t visited_list_count = 0;
  int shared_query_count = 1;
};

// True if the plan draws items from the whole catalog.
bool DrawsFromCatalog(const QueryPlan& plan);

class MeanLogWeights;

// The scans of a query, one after the other, so that queries which are at it
// together can share passes. Not thread-safe.
//
// Order: while not done, NextTask and then Take of its scan.
class QueryScan {
 public:
  // All must outlive the object.
  QueryScan(const Snapshot& snapshot, const AttendQuery& query,
            const QueryPlan& plan, const Interrupt& interrupt);
  QueryScan(QueryScan&&) noexcept;
  ~QueryScan();

  bool done() const;
  // True if the next scan shares no pass: it takes every key because the last
  // found too few, which others should not wait for, or it keeps every key's
  // logit, which takes much memory.
  bool alone() const { return widens_ || DrawsFromCatalog(*plan_); }
  HeadScanTask NextTask() const;
  void Take(HeadScan scan);

  // What was found. Once, when done.
  HeadScans Found() &&;

 private:
  const PlannedHead& head() const;

  const Snapshot* snapshot_;
  const AttendQuery* query_;
  const QueryPlan* plan_;
  const Interrupt* interrupt_;
  bool widens_ = false;
  HeadScans scans_;
  std::unique_ptr<MeanLogWeights> means_;  // if several heads draw
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_SCAN_H_
