// Measures the peak memory of a piece of work.
#ifndef ATTENDANT_BENCH_PEAK_MEMORY_H_
#define ATTENDANT_BENCH_PEAK_MEMORY_H_

#include <malloc.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace attendant {

// Returns a line of /proc/self/status, in bytes.
inline std::int64_t StatusBytes(const std::string& name) {
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word) {
    if (word != name) continue;
    std::int64_t kibibytes = 0;
    file >> kibibytes;
    return kibibytes * 1024;
  }
  return 0;
}

// Peak resident memory in excess of that at the start.
class PeakMemory {
 public:
  PeakMemory() {
    malloc_trim(0);  // otherwise freed memory is reused, unseen
    std::ofstream("/proc/self/clear_refs") << "5";  // forgets the peak so far
    before_ = StatusBytes("VmRSS:");
  }
  std::int64_t added() const { return StatusBytes("VmHWM:") - before_; }

 private:
  std::int64_t before_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_BENCH_PEAK_MEMORY_H_
