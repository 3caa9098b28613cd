// Pages of lists.
#ifndef ATTENDANT_SERVICE_CALLS_PAGE_H_
#define ATTENDANT_SERVICE_CALLS_PAGE_H_

#include <google/protobuf/message_lite.h>

#include <cstdint>

#include "absl/status/statusor.h"

namespace attendant {

// Returns the number of entries of a page: `requested`, capped at 1000, or 100
// if it is 0. InvalidArgument naming "page_size" if it is negative.
absl::StatusOr<int> PageSize(int requested);

// The room left in a page while it is filled, in entries and in bytes of the
// message.
class PageRoom {
 public:
  // `reply` may already contain data.
  PageRoom(int page_size, std::int64_t max_message_bytes,
           const google::protobuf::MessageLite& reply);

  // Adds `entry` to the count and returns true, or returns false if the page is
  // full; then the next page begins with `entry`. The first entry always fits,
  // whatever its size.
  bool Takes(const google::protobuf::MessageLite& entry);

 private:
  int entries_left_;
  std::int64_t bytes_left_;
  bool is_empty_ = true;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_PAGE_H_
