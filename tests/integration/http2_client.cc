#include "tests/integration/http2_client.h"

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

std::string BigEndian(std::uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) {
    text.push_back(static_cast<char>(value >> (8 * i)));
  }
  return text;
}

// Returns a literal header field without indexing (RFC 7541, sec. 6.2.2). The
// texts must be short.
std::string Field(absl::string_view name, absl::string_view value) {
  const auto text = [](absl::string_view of) {
    return absl::StrCat(BigEndian(static_cast<std::uint32_t>(of.size()), 1),
                        of);
  };
  return absl::StrCat(BigEndian(0, 1), text(name), text(value));
}

}  // namespace

std::string Frame(FrameType type, std::uint8_t flags, std::uint32_t stream,
                  absl::string_view payload) {
  return absl::StrCat(BigEndian(static_cast<std::uint32_t>(payload.size()), 3),
                      BigEndian(static_cast<std::uint8_t>(type), 1),
                      BigEndian(flags, 1), BigEndian(stream, 4), payload);
}

std::string Hello(std::uint32_t window) {
  constexpr std::uint32_t kInitialWindowSize = 4;
  return absl::StrCat("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                      Frame(FrameType::kSettings, 0, 0,
                            absl::StrCat(BigEndian(kInitialWindowSize, 2),
                                         BigEndian(window, 4))));
}

std::string BeginCall(std::uint32_t stream, absl::string_view path) {
  return Frame(
      FrameType::kHeaders, kEndHeaders, stream,
      absl::StrCat(Field(":method", "POST"), Field(":scheme", "http"),
                   Field(":path", path), Field(":authority", "localhost"),
                   Field("te", "trailers"),
                   Field("content-type", "application/grpc")));
}

std::string MessageFrame(std::uint32_t stream, std::uint8_t flags,
                         absl::string_view message) {
  return Frame(
      FrameType::kData, flags, stream,
      absl::StrCat(BigEndian(0, 1),
                   BigEndian(static_cast<std::uint32_t>(message.size()), 4),
                   message));
}

}  // namespace attendant
