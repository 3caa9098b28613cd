// Streams items into a catalog.
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
  // A message is sent when it holds this many items or bytes; fewer bytes if
  // the server's limit is lower (attendantd --max-message-bytes).
  std::int64_t batch_item_count = 1024;
  std::int64_t batch_bytes = 512 << 10;
  // The most messages sent and not yet acknowledged, >= 1. More messages hide
  // latency but take more memory, here and in the server.
  int max_messages_in_flight = 8;
  // Refuse items that exist instead of replacing them.
  bool if_absent = false;
  // If the server sends nothing for this long while the import waits for it,
  // the import ends with DeadlineExceeded.
  absl::Duration stall_timeout = absl::Seconds(60);
};

// The progress of an import. Counts are in items.
struct ImportProgress {
  std::int64_t added_count = 0;
  std::int64_t acknowledged_count = 0;  // durable, or refused
  std::int64_t stored_count = 0;
  std::int64_t refused_count = 0;
  std::string state_token;  // of a state with all acknowledged items
};

// One import, made by Client::StartImport. Calls: Add any number of times, then
// Finish. Not thread-safe. Destroying it before Finish cancels the import;
// items not yet acknowledged may or may not be stored. The client must outlive
// it.
class Importer {
 public:
  ~Importer();

  // Adds an item. Blocks while too many messages are in flight, or while a
  // message larger than all before it is. A message that the server refuses for
  // its size is sent again in smaller ones; ResourceExhausted, naming the item,
  // if it holds only one. After an error of the stream all calls return that
  // error, and progress() says what is known to be stored.
  absl::Status Add(v1::Item item);

  // Sends the remaining items and waits until all are acknowledged. Call it at
  // most once.
  absl::Status Finish();

  ImportProgress progress() const;

  // Returns the items refused since the last call, in order.
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
  ImportOptions options_;  // batch_bytes shrinks to the server's limit
  std::unique_ptr<Stream> stream_;
  // The sums of earlier streams.
  ImportProgress progress_before_;
  std::vector<v1::ImportFailure> failures_before_;
  std::int64_t taken_bytes_;  // the largest message the server has accepted
  v1::ImportItemsRequest batch_;
  std::int64_t batch_bytes_ = 0;
  std::int64_t added_count_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_API_IMPORTER_H_
