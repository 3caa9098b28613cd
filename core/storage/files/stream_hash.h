// The checksum of stored snapshots: XXH3 of 128 bits. Detects damage, not
// forgery.
#ifndef ATTENDANT_CORE_STORAGE_FILES_STREAM_HASH_H_
#define ATTENDANT_CORE_STORAGE_FILES_STREAM_HASH_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

struct XXH3_state_s;

namespace attendant {

inline constexpr std::size_t kHashTextBytes = 32;

// Hashes bytes that arrive part by part. Not thread-safe.
class StreamHash {
 public:
  StreamHash();

  void Update(absl::string_view bytes);
  // Returns the hash of all bytes so far as 32 lower-case hex digits.
  std::string Text() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

std::string HashText(absl::string_view bytes);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_FILES_STREAM_HASH_H_
