// The memory that the process holds and that it may use.
#ifndef ATTENDANT_CORE_BASE_PROCESS_MEMORY_H_
#define ATTENDANT_CORE_BASE_PROCESS_MEMORY_H_

#include <cstdint>
#include <string>

namespace attendant {

// Returns the bytes of memory that this process holds and that are not backed
// by a file (RssAnon and RssShmem); 0 if the system doesn't tell.
std::int64_t ResidentBytes();

// Returns the bytes of memory that a process may use: the machine's memory, or
// less if a control group (version 1 or 2) of the process allows less; 0 if the
// system doesn't tell. `root` is the directory that contains /proc and /sys.
std::int64_t MachineMemoryBytes(const std::string& root = "");

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_PROCESS_MEMORY_H_
