// Tells whether anything listens at an address.
#ifndef ATTENDANT_CLIENT_API_LISTENER_H_
#define ATTENDANT_CLIENT_API_LISTENER_H_

#include <string>

namespace attendant {

// True if a TCP connection to HOST:PORT can be made. Waits up to one second for
// each of the host's addresses.
bool SomethingListensAt(const std::string& address);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_API_LISTENER_H_
