// The end of a server's connections.
#ifndef ATTENDANT_SERVICE_CONNECTIONS_HANG_UP_H_
#define ATTENDANT_SERVICE_CONNECTIONS_HANG_UP_H_

#include "absl/time/time.h"

namespace attendant {

// Tells every peer that is connected to TCP port `port` of this process that no
// more will be sent, behind what was, and waits up to `patience` for them to
// hang up too. Whoever waits for a reply learns that its connection has ended:
// for a gRPC client that is UNAVAILABLE, as for one who comes too late, and it
// tries elsewhere. gRPC's own shutdown would cancel such a call. Connections
// that are made meanwhile are not waited for.
//
// Not beside something else that closes sockets on the same port and opens
// files.
void HangUp(int port, absl::Duration patience);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONNECTIONS_HANG_UP_H_
