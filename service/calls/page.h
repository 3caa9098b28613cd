// Pages of lists.
#ifndef ATTENDANT_SERVICE_CALLS_PAGE_H_
#define ATTENDANT_SERVICE_CALLS_PAGE_H_

#include <google/protobuf/message_lite.h>

#include <cstdint>

#include "absl/status/statusor.h"

namespace attendant {

// The entries of a page: 100 for 0, and at most 1000. InvalidArgument naming
// "page_size" below 0.
absl::StatusOr<int> PageSize(int requested);

// What is left of a page while it is filled: of its entries, and of the bytes
// that a message may have.
class PageRoom {
 public:
  // Of `reply`, with what it has already.
  PageRoom(int page_size, std::int64_t max_message_bytes,
           const google::protobuf::MessageLite& reply);

  // False if the page is full without `entry`, which begins the next one then.
  // The first has room, however large it is.
  bool Takes(const google::protobuf::MessageLite& entry);

 private:
  int entries_left_;
  std::int64_t bytes_left_;
  bool is_empty_ = true;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CALLS_PAGE_H_
