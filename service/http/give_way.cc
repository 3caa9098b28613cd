#include "service/http/give_way.h"

#include <algorithm>

namespace attendant {
namespace {

std::ptrdiff_t CountFrom(std::span<const Guest> guests, std::uint64_t address) {
  return std::count_if(
      guests.begin(), guests.end(),
      [address](const Guest& guest) { return guest.address == address; });
}

}  // namespace

std::size_t WhoGivesWay(std::span<const Guest> guests, SteadyTime now) {
  std::uint64_t address = 0;
  std::ptrdiff_t most = 0;
  for (const Guest& guest : guests) {
    if (most > 0 && guest.address == address) continue;
    const std::ptrdiff_t count = CountFrom(guests, guest.address);
    if (count > most) {
      most = count;
      address = guest.address;
    }
  }
  std::size_t oldest = guests.size();
  std::size_t newest = 0;
  for (std::size_t i = 0; i < guests.size(); ++i) {
    if (guests[i].address != address) continue;
    if (!guests[i].has_spoken) return i;
    oldest = std::min(oldest, i);
    newest = i;
  }
  const bool stays =
      now - guests[oldest].since < absl::ToChronoNanoseconds(kExchangeTime);
  return stays ? newest : oldest;
}

}  // namespace attendant
