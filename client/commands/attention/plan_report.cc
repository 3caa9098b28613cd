#include "client/commands/attention/plan_report.h"

#include <google/protobuf/duration.pb.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/commands/shared/command.h"
#include "client/commands/shared/flags.h"

namespace attendant {
namespace {

double Seconds(const google::protobuf::Duration& duration) {
  return static_cast<double>(duration.seconds()) + 1e-9 * duration.nanos();
}

// Formats a duration with three digits, as "12.3 ms".
std::string TimeText(double seconds) {
  if (seconds >= 1) return absl::StrFormat("%.3g s", seconds);
  if (seconds >= 1e-3) return absl::StrFormat("%.3g ms", 1e3 * seconds);
  return absl::StrFormat("%.3g us", 1e6 * seconds);
}

std::string StageTable(const v1::QueryPlan& plan, const Style& style) {
  const std::pair<const char*, double> stages[] = {
      {"queue", Seconds(plan.queue_duration())},
      {"read", Seconds(plan.read_duration())},
      {"plan", Seconds(plan.plan_duration())},
      {"scan", Seconds(plan.scan_duration())},
      {"answer", Seconds(plan.answer_duration())},
      {"reply", Seconds(plan.reply_duration())}};
  double most = 0;
  for (const auto& [name, seconds] : stages) most = std::max(most, seconds);
  Table table({{.title = "stage"},
               {.title = "time", .align = Table::Align::kRight},
               {.title = "", .tone = Table::Tone::kAccent}});
  for (const auto& [name, seconds] : stages) {
    table.AddRow({name, TimeText(seconds),
                  most > 0 ? Bar(seconds / most, kBarWidth) : ""});
  }
  return table.Format(style);
}

// Returns what was scored: the keys of an index, or every key.
std::string ScannedText(const v1::ScanStep& scan) {
  if (scan.exhaustive()) return "every key, from floats";
  if (scan.index_kind() == v1::INDEX_KIND_FLAT) return "flat, from floats";
  return absl::AsciiStrToUpper(FlagOf(scan.index_kind()));
}

std::string ScanTable(const v1::QueryPlan& plan, const Style& style) {
  using Align = Table::Align;
  Table table({{.title = "head", .align = Align::kRight},
               {.title = "scanned"},
               {.title = "scored", .align = Align::kRight},
               {.title = "lists", .align = Align::kRight},
               {.title = "shared by", .align = Align::kRight},
               {.title = "time", .align = Align::kRight},
               {.title = "and then"}});
  for (const v1::ScanStep& scan : plan.scans()) {
    table.AddRow({FormatCount(scan.head()), ScannedText(scan),
                  FormatCount(scan.scored_count()),
                  FormatCount(scan.visited_list_count()),
                  FormatCount(scan.shared_query_count()),
                  TimeText(Seconds(scan.scan_duration())),
                  scan.not_enough_reason().empty()
                      ? ""
                      : absl::StrCat("once more: ", scan.not_enough_reason())});
  }
  return table.Format(style);
}

}  // namespace

std::string PlanReport(const v1::QueryPlan& plan, const Style& style) {
  return absl::StrCat(
      StageTable(plan, style), "\n", ScanTable(plan, style), "\n",
      style.Dim(absl::StrCat(
          "Weighed ", CountOf(plan.candidate_count(), "candidate"), " from ",
          CountOf(plan.segment_count(), "segment"), " with ",
          Printable(plan.kernel_level()), " kernels. Request ",
          Printable(plan.request_id()), ".")),
      "\n");
}

}  // namespace attendant
