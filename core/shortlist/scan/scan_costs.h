// Costs of scans in nanoseconds, for choosing between them: measured on
// 1,000,000 keys of 128 floats, far more than a cache holds (bench/README.md).
// Only ratios matter. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_SCAN_SCAN_COSTS_H_
#define ATTENDANT_CORE_SHORTLIST_SCAN_SCAN_COSTS_H_

#include <cstdint>

namespace attendant {

// Scoring a key from its floats, read directly after its neighbour.
inline double CostOfKey(std::int64_t dim) {
  return 5 + 0.22 * static_cast<double>(dim);
}
// Scoring a key at an arbitrary place.
inline double CostOfKeyAnywhere(std::int64_t dim) {
  return 2.7 * CostOfKey(dim);
}
// Scoring an eligible key among keys that are skipped.
inline double CostOfEligibleKey(std::int64_t dim) {
  return 1.6 * CostOfKey(dim);
}
// Testing whether a key is eligible.
inline constexpr double kCostOfTest = 2.7;

// Ranking a list and guessing its mass, and visiting it, in addition to the
// cost of its keys: for queries of 128 floats (docs/performance.md).
inline constexpr double kCostOfList = 4;
inline constexpr double kCostOfVisit = 250;

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_SCAN_SCAN_COSTS_H_
