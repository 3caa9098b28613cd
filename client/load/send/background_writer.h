// Writes items during a load of queries, at a rate of its own.
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
  // Every other item written is one of these, in turns; the rest are new.
  // Empty: all are new.
  std::vector<std::string> existing_ids;
  // The keys of the items are sums of one of each, in turns. Neither is empty,
  // and their sizes should have no common factor, so that few items are alike.
  std::vector<std::vector<float>> keys;
  std::vector<std::vector<float>> noises;
  // The import ends after this time without a response that is waited for. > 0
  absl::Duration timeout = absl::Seconds(10);
};

struct WriterResult {
  absl::Duration duration;
  std::int64_t due_count = 0;  // by the rate
  std::int64_t sent_count = 0;
  std::int64_t stored_count = 0;   // acknowledged: synced
  std::int64_t refused_count = 0;  // items
  absl::Status first_refusal;      // of an item; or OK
  absl::Status status;             // why the import ended early; or OK

  double stored_per_second() const;
};

// Returns the i-th item written, with id and key.
v1::Item ItemToWrite(const WriterOptions& options, std::int64_t i);

// Streams an import on a thread of its own, from construction to Stop. Sends
// the items that are due every 10 ms, and falls behind if the server does.
class BackgroundWriter {
 public:
  // The client must outlive the object.
  BackgroundWriter(Client* client, WriterOptions options);
  ~BackgroundWriter();

  // Ends the import, waits for the items sent, and returns the result. Call it
  // at most once.
  WriterResult Stop();

 private:
  void Run();

  Client* const client_;
  const WriterOptions options_;
  std::atomic<bool> stopping_ = false;
  WriterResult result_;  // used by the thread until it is joined
  std::thread thread_;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_SEND_BACKGROUND_WRITER_H_
