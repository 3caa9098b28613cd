// What a process that serves sets up for itself.
#ifndef ATTENDANT_SERVICE_ATTENDANTD_PROCESS_SETUP_H_
#define ATTENDANT_SERVICE_ATTENDANTD_PROCESS_SETUP_H_

#include "absl/status/status.h"

namespace attendant {

// What is opened must not get the number of a standard stream that is closed:
// whatever is printed would go into that file. Writes to these fail. To be
// called before anything is opened.
void HoldStandardStreams();

// Locks, memory, open files and the rights of new ones, as a server wants them.
// To be called once, before it has threads. ResourceExhausted if the system
// allows fewer threads than a server has before it does anything: RocksDB and
// gRPC would end the process where one is missing.
absl::Status PrepareProcess();

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_ATTENDANTD_PROCESS_SETUP_H_
