#include "client/doctor/open_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/format/text.h"

namespace attendant {
namespace {

// Files that a catalog keeps open once its database and segments have grown.
constexpr double kFilesPerCatalog = 40;
// Files that must be free for the server to make a catalog.
constexpr double kFilesOfNewCatalog = 7;
constexpr double kCatalogShare = 2.0 / 3;
constexpr double kMaxCatalogs = 1000;
constexpr double kFewFiles = 4096;

std::string CountText(double count) {
  return FormatCount(static_cast<std::int64_t>(count));
}

}  // namespace

Finding OpenFilesOf(double limit, std::optional<double> open) {
  Finding finding = {.subject = kOpenFiles};
  if (open.has_value()) finding.text = CountText(*open) + " of ";
  if (!std::isfinite(limit)) {
    finding.text += "any number";
    return finding;
  }
  absl::StrAppend(&finding.text, open.has_value() ? "" : "up to ",
                  CountText(limit), ", enough for about ",
                  CountText(std::min(kMaxCatalogs,
                                     limit * kCatalogShare / kFilesPerCatalog)),
                  " catalogs");
  const bool no_room =
      open.value_or(0) + kFilesOfNewCatalog > limit * kCatalogShare;
  if (no_room) {
    absl::StrAppend(&finding.text,
                    "; none can be added, as a third is left to connections");
  }
  if (limit < kFewFiles || no_room) {
    finding.verdict = Verdict::kWarning;
    finding.advice =
        "raise it: ulimit -Hn 65536, or LimitNOFILE=65536 in the service's "
        "unit, and restart the server";
  }
  return finding;
}

std::optional<Finding> ExamineOpenFiles(std::int64_t pid,
                                        const std::string& root) {
  std::ifstream limits(absl::StrCat(root, "/proc/", pid, "/limits"));
  for (std::string line; std::getline(limits, line);) {
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, "Max open files")) continue;
    std::string soft;
    std::istringstream(std::string(rest)) >> soft;
    double limit = std::numeric_limits<double>::infinity();
    if (soft != "unlimited" && !absl::SimpleAtod(soft, &limit)) break;
    Finding finding = OpenFilesOf(limit, std::nullopt);
    absl::StrAppend(&finding.text, " of process ", pid);
    return finding;
  }
  return std::nullopt;
}

Finding ExamineOwnOpenFiles() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return {kOpenFiles, Verdict::kWarning,
            "the system does not tell how many may be", ""};
  }
  // A server raises its soft limit to the hard one.
  Finding finding = OpenFilesOf(limit.rlim_max == RLIM_INFINITY
                                    ? std::numeric_limits<double>::infinity()
                                    : static_cast<double>(limit.rlim_max),
                                std::nullopt);
  absl::StrAppend(&finding.text,
                  ", if the server is started from this shell; a service has "
                  "a limit of its own");
  return finding;
}

}  // namespace attendant
