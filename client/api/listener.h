// What is at an address where no server of ours answers.
#ifndef ATTENDANT_CLIENT_API_LISTENER_H_
#define ATTENDANT_CLIENT_API_LISTENER_H_

#include <string>

namespace attendant {

// Whether some process takes a TCP connection at HOST:PORT, within a second of
// each address that the host has.
bool SomethingListensAt(const std::string& address);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_API_LISTENER_H_
