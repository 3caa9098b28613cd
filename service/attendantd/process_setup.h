// Process-wide setup for a server.
#ifndef ATTENDANT_SERVICE_ATTENDANTD_PROCESS_SETUP_H_
#define ATTENDANT_SERVICE_ATTENDANTD_PROCESS_SETUP_H_

#include "absl/status/status.h"

namespace attendant {

// Opens /dev/null for every standard stream that is closed, so that no file
// opened later gets its descriptor and receives what is printed. Writes to
// these descriptors fail. Call before anything is opened.
void HoldStandardStreams();

// Configures lock checking, malloc, the open-files limit and the umask. Call
// once, before the server has threads. ResourceExhausted if the system allows
// fewer threads than an idle server has with `worker_count` threads that answer
// queries: RocksDB and gRPC would abort the process when a thread can't be
// started.
absl::Status PrepareProcess(int worker_count);

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_ATTENDANTD_PROCESS_SETUP_H_
