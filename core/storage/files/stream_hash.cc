#include "core/storage/files/stream_hash.h"

#include <xxhash.h>

#include <new>

#include "absl/strings/str_format.h"

namespace attendant {

void StreamHash::Free::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

StreamHash::StreamHash() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_.get());
}

void StreamHash::Update(absl::string_view bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

std::string StreamHash::Text() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
  return absl::StrFormat("%016x%016x", hash.high64, hash.low64);
}

std::string HashText(absl::string_view bytes) {
  StreamHash hash;
  hash.Update(bytes);
  return hash.Text();
}

}  // namespace attendant
