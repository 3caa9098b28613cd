#include "service/http/give_way.h"

#include <algorithm>

namespace attendant {
namespace {

std::ptrdiff_t CountFrom(std::span<const Guest> guests,
                         const std::string& host) {
  return std::ranges::count_if(
      guests, [&host](const Guest& guest) { return guest.host == host; });
}

}  // namespace

std::size_t WhoGivesWay(std::span<const Guest> guests, SteadyTime now) {
  std::string host;
  std::ptrdiff_t most = 0;
  for (const Guest& guest : guests) {
    if (most > 0 && guest.host == host) continue;
    const std::ptrdiff_t count = CountFrom(guests, guest.host);
    if (count > most) {
      most = count;
      host = guest.host;
    }
  }
  std::size_t oldest = guests.size();
  std::size_t newest = 0;
  for (std::size_t i = 0; i < guests.size(); ++i) {
    if (guests[i].host != host) continue;
    if (!guests[i].has_spoken) return i;
    oldest = std::min(oldest, i);
    newest = i;
  }
  const bool stays =
      now - guests[oldest].since < absl::ToChronoNanoseconds(kExchangeTime);
  return stays ? newest : oldest;
}

}  // namespace attendant
