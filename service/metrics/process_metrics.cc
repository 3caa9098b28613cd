#include "service/metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace attendant {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) +
         1e-6 * static_cast<double>(time.tv_usec);
}

// Returns the machine's boot time in seconds since the epoch; 0: unknown.
double BootTime() {
  std::ifstream stat("/proc/stat");
  for (std::string line; std::getline(stat, line);) {
    absl::string_view rest = line;
    double seconds = 0;
    if (absl::ConsumePrefix(&rest, "btime ") &&
        absl::SimpleAtod(rest, &seconds)) {
      return seconds;
    }
  }
  return 0;
}

// Returns the process's start time in seconds since the epoch; 0: unknown. See
// proc(5).
double StartTime() {
  std::ifstream stat("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(stat)), {});
  // The second field, the name in parentheses, may contain any characters.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  constexpr int kFieldsBetween = 19;  // fields 3 to 21
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
  double ticks = 0;
  const double boot = BootTime();
  if (!(fields >> ticks) || boot == 0) return 0;
  return boot + ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

void AddProcessMetrics(MetricPage& page) {
  rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    page.AddCounter("process_cpu_seconds_total",
                    "Total CPU time used by the process, in seconds.",
                    Seconds(usage.ru_utime) + Seconds(usage.ru_stime));
  }
  double pages_virtual = 0;
  double pages_resident = 0;
  if (std::ifstream("/proc/self/statm") >> pages_virtual >> pages_resident) {
    const auto page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
    page.AddGauge(
        "process_resident_memory_bytes",
        "Resident memory of the process, including mapped files, in bytes.",
        pages_resident * page_bytes);
    page.AddGauge("process_virtual_memory_bytes",
                  "Virtual address space of the process, in bytes.",
                  pages_virtual * page_bytes);
  }
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (!error) {
    // Excludes the descriptor of the listing itself.
    page.AddGauge(
        "process_open_fds", "Open file descriptors (files and connections).",
        static_cast<double>(std::distance(begin(files), end(files))) - 1);
  }
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    page.AddGauge("process_max_fds", "Maximum number of open file descriptors.",
                  limit.rlim_cur == RLIM_INFINITY
                      ? std::numeric_limits<double>::infinity()
                      : static_cast<double>(limit.rlim_cur));
  }
  if (const double start = StartTime(); start > 0) {
    page.AddGauge("process_start_time_seconds",
                  "Start time of the process, in seconds since 1970.", start);
  }
}

}  // namespace attendant
