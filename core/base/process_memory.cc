#include "core/base/process_memory.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace attendant {
namespace {

constexpr std::int64_t kKiB = 1024;

// Returns, in bytes, the sum of the lines "NAME:   COUNT kB" of a file in
// /proc; 0 if there are none.
std::int64_t SumOfLines(const std::string& path,
                        std::initializer_list<absl::string_view> names) {
  std::ifstream file(path);
  std::int64_t bytes = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::int64_t kib = 0;
    if (!(words >> name >> kib)) continue;
    if (std::ranges::find(names, name) != names.end()) {
      bytes += kib * kKiB;
    }
  }
  return bytes;
}

// Returns the number in a file, or `otherwise` if there is none: "max" and the
// like mean no limit.
std::int64_t NumberIn(const std::string& path, std::int64_t otherwise) {
  std::ifstream file(path);
  std::string word;
  std::int64_t number = 0;
  if (file >> word && absl::SimpleAtoi(word, &number) && number > 0) {
    return number;
  }
  return otherwise;
}

}  // namespace

std::int64_t ResidentBytes() {
  return SumOfLines("/proc/self/status", {"RssAnon:", "RssShmem:"});
}

std::int64_t MachineMemoryBytes(const std::string& root) {
  std::int64_t bytes = SumOfLines(root + "/proc/meminfo", {"MemTotal:"});
  if (bytes == 0) return 0;
  std::ifstream groups(root + "/proc/self/cgroup");
  // HIERARCHY:CONTROLLERS:PATH; version 2 has no controllers.
  for (std::string line; std::getline(groups, line);) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const bool is_second = parts[1].empty();
    if (!is_second && parts[1] != "memory") continue;
    const std::string mount =
        root + (is_second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory");
    const absl::string_view name =
        is_second ? "/memory.max" : "/memory.limit_in_bytes";
    // The limits of all parent groups apply too.
    for (std::string path = parts[2];;) {
      bytes = std::min(
          bytes,
          NumberIn(absl::StrCat(mount, path == "/" ? "" : path, name), bytes));
      const std::size_t slash = path.rfind('/');
      if (slash == std::string::npos || path.empty()) break;
      path.resize(slash);
    }
  }
  return bytes;
}

}  // namespace attendant
