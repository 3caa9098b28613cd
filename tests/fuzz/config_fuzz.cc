// attendantd's configuration file: refused with the status of bad usage and a
// reason, or what it says is in range and is read back the same.
#include <cstdlib>

#include "service/flags.h"
#include "service/listen_address.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/scratch.h"

namespace attendant {
namespace {

std::variant<Flags, EarlyExit> ParseFile(absl::string_view text) {
  const std::string path = WriteScratch("attendantd.toml", text);
  const char* const arguments[] = {"attendantd", "--config", path.c_str()};
  return ParseFlags(3, arguments);
}

void CheckText(absl::string_view text) {
  const auto parsed = ParseFile(text);
  if (const auto* exit = std::get_if<EarlyExit>(&parsed)) {
    Require(!exit->text.empty() &&
                (exit->exit_status == 0 || exit->exit_status == 2),
            "bad usage is told");
    return;
  }
  Accept();
  const Flags& flags = std::get<Flags>(parsed);
  Require(flags.server.worker_count >= 1 && flags.server.worker_count <= 1024,
          "workers in range");
  Require(flags.server.max_message_bytes >= 64 << 10, "messages in range");
  Require(flags.grace_seconds >= 0 && flags.grace_seconds <= 3600,
          "grace in range");
  Require(flags.memory_limit_bytes >= 0, "memory in range");
  Require(flags.auto_ivf_min_count >= 1, "keys in range");
  Require(ValidateListen(flags.server.listen).ok(), "an address");
  const std::string written = ToText(flags);
  const auto again = ParseFile(written);
  const Flags* same = std::get_if<Flags>(&again);
  Require(same != nullptr, "what is written is read:\n" + written);
  Require(ToText(*same) == written, "and is the same:\n" + written);
}

}  // namespace
}  // namespace attendant

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  attendant::CheckText(attendant::TextOf(data, size));
  return 0;
}
