// HTTP/2 as no gRPC client speaks it: frame by frame, over a socket.
#ifndef ATTENDANT_TESTS_INTEGRATION_HTTP2_CLIENT_H_
#define ATTENDANT_TESTS_INTEGRATION_HTTP2_CLIENT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace attendant {

// Types of frames (RFC 9113, sec. 6).
enum class FrameType : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kRstStream = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kContinuation = 9,
};

// Flags of frames.
inline constexpr std::uint8_t kEndStream = 1;   // DATA, HEADERS
inline constexpr std::uint8_t kEndHeaders = 4;  // HEADERS

// A frame as bytes.
std::string Frame(FrameType type, std::uint8_t flags, std::uint32_t stream,
                  absl::string_view payload);

// What a client says first: the preface, and SETTINGS with the window of a
// stream, in bytes.
std::string Hello(std::uint32_t window = 65535);

// HEADERS that begin a call of a method, as in
// "/attendant.v1.ItemService/ListItems".
std::string BeginCall(std::uint32_t stream, absl::string_view path);

// A message of a call: DATA with the five bytes that gRPC puts before it.
std::string MessageFrame(std::uint32_t stream, std::uint8_t flags,
                         absl::string_view message);

}  // namespace attendant

#endif  // ATTENDANT_TESTS_INTEGRATION_HTTP2_CLIENT_H_
