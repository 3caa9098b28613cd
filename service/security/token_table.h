// The server's table of bearer tokens: salted hashes, one per line.
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

// Recognises a secret that has already been verified against its salted hash,
// at a tenth of the cost: by SHA-256 of the secret and random bits of this
// process. Thread-safe.
class FoundSecret {
 public:
  bool Is(absl::string_view secret) const;
  void Keep(absl::string_view secret);

 private:
  std::atomic<bool> kept_ = false;
  Mutex mutex_;  // serialises writers
  std::array<unsigned char, 32> digest_ = {};
};

// A token is NAME.SECRET; the secret is 256 random bits in base64url. Nobody
// can guess that much, so the hash need not be slow: HKDF-SHA256 (RFC 5869)
// with a separate salt for each token.
//
// The file has one line for each token,
//
//   NAME ROLE CATALOGS hkdf-sha256:SALT:HASH
//
// as in "ci write films,shop-* hkdf-sha256:...:...". Empty lines and lines that
// begin with '#' are ignored. Immutable, hence thread-safe.
class TokenTable {
 public:
  static constexpr std::size_t kMaxNameBytes = 64;

  // InvalidArgument naming the line if it is malformed or repeats a name.
  static absl::StatusOr<TokenTable> FromText(absl::string_view text);

  bool empty() const { return entries_.empty(); }
  bool HasName(absl::string_view name) const { return entries_.contains(name); }

  // Returns what the token permits; null if it is not in the table. Takes the
  // same time whether or not the name exists, but less for a secret that was
  // verified before. The result is valid as long as the table.
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
  std::string token;  // for the caller; stored nowhere else
  std::string line;   // for the file
};

// Generates a token. InvalidArgument naming "name" if the name is not 1 to
// kMaxNameBytes characters of [A-Za-z0-9_-]; Internal if the system has no
// random bits.
absl::StatusOr<NewToken> MakeToken(const Grant& grant);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_SECURITY_TOKEN_TABLE_H_
