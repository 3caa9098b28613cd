// What scans take, in nanoseconds, to choose between them: measured on
// 1,000,000 keys of 128 floats, which are far more than a cache holds
// (bench/README.md). Only ratios matter. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_SCAN_SCAN_COSTS_H_
#define ATTENDANT_CORE_SHORTLIST_SCAN_SCAN_COSTS_H_

#include <cstdint>

namespace attendant {

// To score a key from its floats, read after its neighbour.
inline double CostOfKey(std::int64_t dim) {
  return 5 + 0.22 * static_cast<double>(dim);
}
// The same of one that lies anywhere.
inline double CostOfKeyAnywhere(std::int64_t dim) {
  return 2.7 * CostOfKey(dim);
}
// The same of one between some that are left out.
inline double CostOfEligibleKey(std::int64_t dim) {
  return 1.6 * CostOfKey(dim);
}
// To tell whether a key is eligible.
inline constexpr double kCostOfTest = 2.7;

// To rank a list and guess its mass, and to visit it, beside what its keys
// take: for queries of 128 floats (docs/performance.md).
inline constexpr double kCostOfList = 4;
inline constexpr double kCostOfVisit = 250;

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_SCAN_SCAN_COSTS_H_
