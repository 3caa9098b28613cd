// What the process takes of the machine's memory, and how much there is.
#ifndef ATTENDANT_CORE_BASE_PROCESS_MEMORY_H_
#define ATTENDANT_CORE_BASE_PROCESS_MEMORY_H_

#include <cstdint>
#include <string>

namespace attendant {

// Memory that this process holds and that is not a file's, in bytes (RssAnon
// and RssShmem); 0 where the system doesn't tell.
std::int64_t ResidentBytes();

// What a process may use, in bytes: the machine's memory, or less where a
// control group (version 1 or 2) that it is in allows less; 0 where the system
// doesn't tell. `root` is where /proc and /sys are.
std::int64_t MachineMemoryBytes(const std::string& root = "");

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_PROCESS_MEMORY_H_
