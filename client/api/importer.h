// Streaming items into a catalog.
#ifndef ATTENDANT_CLIENT_API_IMPORTER_H_
#define ATTENDANT_CLIENT_API_IMPORTER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "attendant/v1/item_service.grpc.pb.h"

namespace attendant {

struct ImportOptions {
  // A message is sent when it holds so many items or bytes, or as many bytes as
  // the server takes (attendantd --max-message-bytes), if that is less.
  std::int64_t batch_item_count = 1024;
  std::int64_t batch_bytes = 512 << 10;
  // Messages sent and not yet acknowledged, >= 1. More hide latency and hold
  // more memory, here and in the server.
  int max_messages_in_flight = 8;
  // Items that exist are refused, not replaced.
  bool if_absent = false;
  // An import that hears nothing for so long while it waits is given up with
  // DeadlineExceeded.
  absl::Duration stall_timeout = absl::Seconds(60);
};

// How far an import is. Counts are of items.
struct ImportProgress {
  std::int64_t added_count = 0;
  std::int64_t acknowledged_count = 0;  // durable, or refused
  std::int64_t stored_count = 0;
  std::int64_t refused_count = 0;
  std::string state_token;  // of the state with all that was acknowledged
};

// One import. Used by one thread: Add, ..., Finish. Made by
// Client::StartImport. Destroying an unfinished one cancels it: what was sent
// may or may not be stored. The client must outlive it.
class Importer {
 public:
  ~Importer();

  // Adds an item; blocks while too much is in flight, and while a message that
  // is larger than all before it is. One that the server refuses for its size
  // is sent again in smaller ones; ResourceExhausted naming the item if it
  // holds but one. After an error of the stream all calls return that error,
  // and progress() says what is known to be stored.
  absl::Status Add(v1::Item item);

  // Sends what is left and waits for the last acknowledgement. At most once.
  absl::Status Finish();

  ImportProgress progress() const;

  // The items refused since the last call, in order.
  std::vector<v1::ImportFailure> TakeFailures();

 private:
  friend class Client;
  class Stream;

  Importer(v1::ItemService::Stub* stub, const std::string& catalog,
           const ImportOptions& options);
  absl::Status Append(v1::Item item);
  absl::Status Send();
  absl::Status SendAgain(v1::ImportItemsRequest refused);

  v1::ItemService::Stub* const stub_;
  const std::string catalog_;
  ImportOptions options_;  // batch_bytes shrinks to what the server takes
  std::unique_ptr<Stream> stream_;
  // Of the streams before.
  ImportProgress progress_before_;
  std::vector<v1::ImportFailure> failures_before_;
  std::int64_t taken_bytes_;  // the largest message that the server took
  v1::ImportItemsRequest batch_;
  std::int64_t batch_bytes_ = 0;
  std::int64_t added_count_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_API_IMPORTER_H_
