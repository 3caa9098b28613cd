#include "core/base/host_port.h"

#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace attendant {

absl::string_view HostOf(absl::string_view address) {
  return address.substr(0, address.rfind(':'));
}

std::string BareHostOf(absl::string_view address) {
  absl::string_view host = HostOf(address);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  return std::string(host);
}

std::uint16_t PortOf(absl::string_view address) {
  const std::size_t colon = address.rfind(':');
  std::uint32_t port = 0;
  if (colon == absl::string_view::npos ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port > std::numeric_limits<std::uint16_t>::max()) {
    return 0;
  }
  return static_cast<std::uint16_t>(port);
}

std::string WithPort(absl::string_view address, int port) {
  return absl::StrCat(HostOf(address), ":", port);
}

}  // namespace attendant
