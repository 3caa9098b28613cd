#include "client/load/verify.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "core/base/status.h"

namespace attendant {
namespace {

std::map<std::string, double> LogitsById(const v1::AttendResponse& answer) {
  std::map<std::string, double> logits;
  for (const v1::AttendedItem& item : answer.items()) {
    logits[item.id()] = item.logit();
  }
  return logits;
}

}  // namespace

double Recall(const v1::AttendResponse& answer,
              const v1::AttendResponse& exact) {
  if (exact.items().empty()) return 1;
  const std::map<std::string, double> found = LogitsById(answer);
  std::int64_t hit_count = 0;
  for (const v1::AttendedItem& item : exact.items()) {
    if (found.contains(item.id())) ++hit_count;
  }
  return static_cast<double>(hit_count) / exact.items_size();
}

double MaxLogitDifference(const v1::AttendResponse& answer,
                          const v1::AttendResponse& exact) {
  const std::map<std::string, double> found = LogitsById(answer);
  double difference = 0;
  for (const v1::AttendedItem& item : exact.items()) {
    const auto it = found.find(item.id());
    if (it == found.end()) continue;
    difference = std::max(difference, std::fabs(it->second - item.logit()));
  }
  return difference;
}

absl::StatusOr<VerifyResult> Verify(
    Client& client, const std::vector<v1::AttendRequest>& requests) {
  VerifyResult result;
  result.min_recall = 1;
  double recall_sum = 0;
  for (const v1::AttendRequest& request : requests) {
    v1::AttendRequest exact_request = request;
    exact_request.set_scan_mode(v1::SCAN_MODE_EXACT);
    ATTENDANT_ASSIGN_OR_RETURN(const v1::AttendResponse answer,
                               client.Attend(request));
    ATTENDANT_ASSIGN_OR_RETURN(const v1::AttendResponse exact,
                               client.Attend(exact_request));
    const double recall = Recall(answer, exact);
    recall_sum += recall;
    result.min_recall = std::min(result.min_recall, recall);
    result.max_logit_difference = std::max(result.max_logit_difference,
                                           MaxLogitDifference(answer, exact));
    ++result.query_count;
  }
  result.mean_recall = recall_sum / static_cast<double>(result.query_count);
  return result;
}

}  // namespace attendant
