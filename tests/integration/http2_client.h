// Speaks HTTP/2 frame by frame over a socket, as no gRPC client does.
#ifndef ATTENDANT_TESTS_INTEGRATION_HTTP2_CLIENT_H_
#define ATTENDANT_TESTS_INTEGRATION_HTTP2_CLIENT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace attendant {

// Frame types (RFC 9113, sec. 6).
enum class FrameType : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kRstStream = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kContinuation = 9,
};

// Frame flags.
inline constexpr std::uint8_t kEndStream = 1;   // DATA, HEADERS
inline constexpr std::uint8_t kEndHeaders = 4;  // HEADERS

// Returns a frame as bytes.
std::string Frame(FrameType type, std::uint8_t flags, std::uint32_t stream,
                  absl::string_view payload);

// Returns a client's first bytes: the preface, and SETTINGS with a stream
// window of `window` bytes.
std::string Hello(std::uint32_t window = 65535);

// Returns the HEADERS frame that begins a call of a method such as
// "/attendant.v1.ItemService/ListItems".
std::string BeginCall(std::uint32_t stream, absl::string_view path);

// Returns a message as DATA with gRPC's five-byte prefix.
std::string MessageFrame(std::uint32_t stream, std::uint8_t flags,
                         absl::string_view message);

}  // namespace attendant

#endif  // ATTENDANT_TESTS_INTEGRATION_HTTP2_CLIENT_H_
