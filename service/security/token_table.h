// Bearer tokens as a server knows them: salted hashes, a line each.
#ifndef ATTENDANT_SERVICE_SECURITY_TOKEN_TABLE_H_
#define ATTENDANT_SERVICE_SECURITY_TOKEN_TABLE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/mutex.h"
#include "service/security/access.h"

namespace attendant {

// Knows a secret again that its salted hash was compared with, at a tenth of
// the cost: by SHA-256 of it and of random bits of this process. Thread-safe.
class FoundSecret {
 public:
  bool Is(absl::string_view secret) const;
  void Keep(absl::string_view secret);

 private:
  std::atomic<bool> kept_ = false;
  Mutex mutex_;  // of writers
  std::array<unsigned char, 32> digest_ = {};
};

// A token is NAME.SECRET, the secret 256 random bits in base64url. Since nobody
// can guess so much, its hash need not be slow: HKDF-SHA256 (RFC 5869) with a
// salt of its own.
//
// The file has a line for each token,
//
//   NAME ROLE CATALOGS hkdf-sha256:SALT:HASH
//
// as in "ci write films,shop-* hkdf-sha256:...:...". Empty lines and those that
// begin with '#' say nothing. Immutable, so thread-safe.
class TokenTable {
 public:
  static constexpr std::size_t kMaxNameBytes = 64;

  // InvalidArgument naming the line for one that is none of the above or has
  // the name of another.
  static absl::StatusOr<TokenTable> FromText(absl::string_view text);

  bool empty() const { return entries_.empty(); }

  // What the token gives, null if it is none of these. Takes as long for a name
  // that there is as for one that there is not, but less for a secret that was
  // found before. Valid as long as the table.
  const Grant* Find(absl::string_view token) const;

 private:
  struct Entry {
    Grant grant;
    std::array<unsigned char, 16> salt = {};
    std::array<unsigned char, 32> hash = {};
    // Shared, so that entries can be moved.
    std::shared_ptr<FoundSecret> found = std::make_shared<FoundSecret>();
  };

  static absl::StatusOr<Entry> EntryFromLine(absl::string_view line);

  absl::flat_hash_map<std::string, Entry> entries_;
};

struct NewToken {
  std::string token;  // for the caller: not kept anywhere else
  std::string line;   // for the file
};

// Draws a token. InvalidArgument naming "name" if that is not 1 to
// kMaxNameBytes of [A-Za-z0-9_-]; Internal if the system has no random bits.
absl::StatusOr<NewToken> MakeToken(const Grant& grant);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SECURITY_TOKEN_TABLE_H_
