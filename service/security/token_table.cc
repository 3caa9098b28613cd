#include "service/security/token_table.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"

namespace attendant {
namespace {

constexpr absl::string_view kHashName = "hkdf-sha256";
constexpr std::size_t kSecretBytes = 32;
constexpr absl::string_view kNameRule = "1 to 64 letters, digits, '-' and '_'";

struct FreeKdf {
  void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
};

// Returns false if the library fails, as when it has no SHA-256.
bool Derive(absl::string_view secret, const std::array<unsigned char, 16>& salt,
            std::array<unsigned char, 32>& hash) {
  // Fetched once; never freed.
  static EVP_KDF* const hkdf = EVP_KDF_fetch(nullptr, "HKDF", nullptr);
  const std::unique_ptr<EVP_KDF_CTX, FreeKdf> context(EVP_KDF_CTX_new(hkdf));
  if (context == nullptr) return false;
  char digest[] = "SHA256";
  char purpose[] = "attendant token";
  const OSSL_PARAM params[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_octet_string(
          OSSL_KDF_PARAM_KEY, const_cast<char*>(secret.data()), secret.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT,
                                        const_cast<unsigned char*>(salt.data()),
                                        salt.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, purpose,
                                        sizeof(purpose) - 1),
      OSSL_PARAM_construct_end()};
  return EVP_KDF_derive(context.get(), hash.data(), hash.size(), params) == 1;
}

bool IsName(absl::string_view name) {
  return !name.empty() && name.size() <= TokenTable::kMaxNameBytes &&
         std::ranges::all_of(name, [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  c == '-' || c == '_';
         });
}

template <std::size_t kSize>
bool Decode(absl::string_view text, std::array<unsigned char, kSize>& bytes) {
  std::string decoded;
  if (!absl::WebSafeBase64Unescape(text, &decoded) || decoded.size() != kSize) {
    return false;
  }
  std::copy(decoded.begin(), decoded.end(), bytes.begin());
  return true;
}

template <std::size_t kSize>
std::string Encode(const std::array<unsigned char, kSize>& bytes) {
  return absl::WebSafeBase64Escape(absl::string_view(
      reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

// Computes SHA-256 of random bits specific to this process, followed by the
// secret. Returns false if the library has no random bits or the secret is
// longer than any valid one.
bool Digest(absl::string_view secret, std::array<unsigned char, 32>& digest) {
  constexpr std::size_t kKeyBytes = 32;
  constexpr std::size_t kMaxBytes = 64;
  struct Key {
    std::array<unsigned char, kKeyBytes> bytes;
    const bool is_random =
        RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1;
  };
  static const Key& key = *new Key;
  static EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  if (!key.is_random || sha256 == nullptr || secret.size() > kMaxBytes) {
    return false;
  }
  std::array<unsigned char, kKeyBytes + kMaxBytes> text;
  const auto end =
      std::copy(secret.begin(), secret.end(),
                std::copy(key.bytes.begin(), key.bytes.end(), text.begin()));
  return EVP_Digest(text.data(), static_cast<std::size_t>(end - text.begin()),
                    digest.data(), nullptr, sha256, nullptr) == 1;
}

absl::string_view NameOf(absl::string_view token) {
  return token.substr(0, token.find('.'));
}

}  // namespace

bool FoundSecret::Is(absl::string_view secret) const {
  // Takes the same time if nothing is kept, so that timing does not reveal
  // which names exist.
  static constexpr std::array<unsigned char, 32> kNone = {};
  const bool is_kept = kept_.load(std::memory_order_acquire);
  std::array<unsigned char, 32> digest;
  return Digest(secret, digest) &&
         CRYPTO_memcmp(digest.data(), (is_kept ? digest_ : kNone).data(),
                       digest.size()) == 0 &&
         is_kept;
}

void FoundSecret::Keep(absl::string_view secret) {
  MutexLock lock(&mutex_);
  if (kept_.load(std::memory_order_relaxed)) return;
  kept_.store(Digest(secret, digest_), std::memory_order_release);
}

absl::StatusOr<TokenTable::Entry> TokenTable::EntryFromLine(
    absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  // The line is not quoted: it may contain a secret in the wrong place.
  if (words.size() != 4) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got ", words.size(), " words, want NAME ROLE CATALOGS HASH"));
  }
  Entry entry;
  if (!IsName(words[0])) {
    return absl::InvalidArgumentError(
        absl::StrCat("the name is not ", kNameRule));
  }
  entry.grant.name = std::string(words[0]);
  ATTENDANT_ASSIGN_OR_RETURN(entry.grant.role, RoleFromName(words[1]));
  ATTENDANT_ASSIGN_OR_RETURN(entry.grant.scope,
                             CatalogScope::FromText(words[2]));
  const std::vector<absl::string_view> parts = absl::StrSplit(words[3], ':');
  if (parts.size() != 3 || parts[0] != kHashName ||
      !Decode(parts[1], entry.salt) || !Decode(parts[2], entry.hash)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the hash is not ", kHashName,
                     ":SALT:HASH as attendantd token writes it"));
  }
  return entry;
}

absl::StatusOr<TokenTable> TokenTable::FromText(absl::string_view text) {
  TokenTable table;
  int line_number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++line_number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#') continue;
    absl::StatusOr<Entry> entry = EntryFromLine(line);
    if (!entry.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", line_number, ": ", entry.status().message()));
    }
    std::string name = entry->grant.name;
    if (!table.entries_.emplace(std::move(name), *std::move(entry)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", line_number,
                       ": an earlier line has a token with this name"));
    }
  }
  return table;
}

const Grant* TokenTable::Find(absl::string_view token) const {
  static const Entry& nobody = *new Entry();
  const auto found = entries_.find(NameOf(token));
  const bool is_known = found != entries_.end();
  const Entry& entry = is_known ? found->second : nobody;
  const std::size_t dot = token.find('.');
  const absl::string_view secret =
      dot == absl::string_view::npos ? "" : token.substr(dot + 1);
  if (entry.found->Is(secret)) return &entry.grant;
  std::array<unsigned char, 32> hash;
  const bool is_same =
      Derive(secret, entry.salt, hash) &&
      CRYPTO_memcmp(hash.data(), entry.hash.data(), hash.size()) == 0;
  if (!is_known || !is_same) return nullptr;
  entry.found->Keep(secret);
  return &entry.grant;
}

absl::StatusOr<NewToken> MakeToken(const Grant& grant) {
  if (!IsName(grant.name)) {
    return InvalidField("name", absl::StrCat("\"", grant.name, "\""),
                        kNameRule);
  }
  std::array<unsigned char, kSecretBytes> secret;
  std::array<unsigned char, 16> salt;
  std::array<unsigned char, 32> hash;
  const std::string failure = "libcrypto has no random bits or no SHA-256";
  if (RAND_bytes(secret.data(), static_cast<int>(secret.size())) != 1 ||
      RAND_bytes(salt.data(), static_cast<int>(salt.size())) != 1) {
    return absl::InternalError(failure);
  }
  const std::string text = Encode(secret);
  if (!Derive(text, salt, hash)) return absl::InternalError(failure);
  return NewToken{
      .token = absl::StrCat(grant.name, ".", text),
      .line = absl::StrCat(grant.name, " ", RoleName(grant.role), " ",
                           grant.scope.ToText(), " ", kHashName, ":",
                           Encode(salt), ":", Encode(hash))};
}

}  // namespace attendant
