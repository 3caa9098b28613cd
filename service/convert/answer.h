// Converts answers from core to the wire.
#ifndef ATTENDANT_SERVICE_CONVERT_ANSWER_H_
#define ATTENDANT_SERVICE_CONVERT_ANSWER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "attendant/v1/attention_service.pb.h"
#include "core/base/interrupt.h"
#include "core/catalog/query/attend.h"
#include "core/catalog/segments/snapshot.h"
#include "service/convert/read_mask.h"

namespace attendant {

// Fills in all fields except stats.compute_duration. `snapshot` is the one that
// answered. ReplyTooLarge as soon as the items alone exceed max_bytes;
// Cancelled or DeadlineExceeded as `interrupt` says.
absl::Status AttendAnswerToProto(const AttendAnswer& answer,
                                 const Snapshot& snapshot, const ReadMask& mask,
                                 std::int64_t max_bytes,
                                 const Interrupt& interrupt,
                                 v1::AttendResponse* wire);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONVERT_ANSWER_H_
