// Writes beside a load of queries, at a rate of their own.
#ifndef ATTENDANT_CLIENT_LOAD_SEND_BACKGROUND_WRITER_H_
#define ATTENDANT_CLIENT_LOAD_SEND_BACKGROUND_WRITER_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/api/client.h"

namespace attendant {

struct WriterOptions {
  std::string catalog;
  std::string key_field;
  double rate = 1000;  // items a second, > 0
  std::uint64_t seed = 1;
  // Of the items that are written, every other is one of these, in turns, and
  // the rest are new. Empty: all are new.
  std::vector<std::string> existing_ids;
  // Keys of the items: sums of one of each, in turns. Neither is empty, nor are
  // their sizes to have a common factor, so that few items are alike.
  std::vector<std::vector<float>> keys;
  std::vector<std::vector<float>> noises;
  // After so long without a word of the server while one is waited for, the
  // import is given up. > 0
  absl::Duration timeout = absl::Seconds(10);
};

struct WriterResult {
  absl::Duration duration;
  std::int64_t due_count = 0;  // by the rate
  std::int64_t sent_count = 0;
  std::int64_t stored_count = 0;   // acknowledged: synced
  std::int64_t refused_count = 0;  // by item
  absl::Status first_refusal;      // of an item; or OK
  absl::Status status;             // why the import ended early; or OK

  double stored_per_second() const;
};

// The id and key of the i-th item written.
v1::Item ItemToWrite(const WriterOptions& options, std::int64_t i);

// Streams an import from a thread of its own, from construction to Stop. Every
// 10 ms it sends what is due; it falls behind where the server does.
class BackgroundWriter {
 public:
  // The client must outlive the object.
  BackgroundWriter(Client* client, WriterOptions options);
  ~BackgroundWriter();

  // Ends the import, waits for what was sent, and tells. At most once.
  WriterResult Stop();

 private:
  void Run();

  Client* const client_;
  const WriterOptions options_;
  std::atomic<bool> stopping_ = false;
  WriterResult result_;  // the thread's, until it is joined
  std::thread thread_;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_SEND_BACKGROUND_WRITER_H_
