// How close answers by the index come to the exact ones.
#ifndef ATTENDANT_CLIENT_LOAD_VERIFY_H_
#define ATTENDANT_CLIENT_LOAD_VERIFY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "client/client.h"

namespace attendant {

struct VerifyResult {
  std::int64_t query_count = 0;
  // Share of the exact answer's items that the answer holds.
  double mean_recall = 0;
  double min_recall = 0;
  // Over items in both answers; 0 where logits are exact, as they should be.
  double max_logit_difference = 0;
};

// The share of the items of `exact` that are in `answer`; 1 if it has none.
double Recall(const v1::AttendResponse& answer,
              const v1::AttendResponse& exact);

// The largest difference of an item's logits; 0 if no item is in both.
double MaxLogitDifference(const v1::AttendResponse& answer,
                          const v1::AttendResponse& exact);

// Asks each request as it is and again with scan_mode EXACT. requests is not
// empty. Errors: those of the first request that fails.
absl::StatusOr<VerifyResult> Verify(
    Client& client, const std::vector<v1::AttendRequest>& requests);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_VERIFY_H_
