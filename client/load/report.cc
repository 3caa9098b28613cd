#include "client/load/report.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace attendant {
namespace {

constexpr double kPercentiles[] = {50, 90, 95, 99, 99.9};

double ToMs(double nanoseconds) { return nanoseconds / 1e6; }

std::int64_t Fastest(const LoadResult& result) {
  return result.latencies_ns.empty() ? 0 : result.latencies_ns.front();
}

std::int64_t Slowest(const LoadResult& result) {
  return result.latencies_ns.empty() ? 0 : result.latencies_ns.back();
}

}  // namespace

std::string TextReport(const LoadReport& report) {
  const LoadResult& result = report.result;
  std::string text;
  if (report.rate) {
    absl::StrAppendFormat(
        &text,
        "open loop at %g a second: %d sent in %.1f s, %d answered, %d refused, "
        "%d failed otherwise\n",
        *report.rate, result.request_count(),
        absl::ToDoubleSeconds(result.duration), result.latencies_ns.size(),
        result.refused_count(), result.failed_count() - result.refused_count());
    absl::StrAppendFormat(
        &text, "late:        %d sent over %s late, the latest %.3f ms\n",
        result.late_count, absl::FormatDuration(LoadResult::kLate),
        ToMs(static_cast<double>(result.latest_ns)));
  } else {
    absl::StrAppendFormat(
        &text, "closed loop: %d requests in %.1f s, %.0f a second\n",
        result.request_count(), absl::ToDoubleSeconds(result.duration),
        result.requests_per_second());
  }
  absl::StrAppendFormat(&text, "latency ms:  mean %.3f",
                        ToMs(result.mean_latency_ns()));
  for (const double percent : kPercentiles) {
    absl::StrAppendFormat(
        &text, "  p%g %.3f", percent,
        ToMs(static_cast<double>(result.LatencyAtPercentile(percent))));
  }
  absl::StrAppendFormat(&text, "  max %.3f\n",
                        ToMs(static_cast<double>(Slowest(result))));
  text += "status:     ";
  for (const auto& [code, count] : result.status_counts) {
    absl::StrAppendFormat(&text, " %s %d", absl::StatusCodeToString(code),
                          count);
  }
  text += "\n";
  for (const auto& [message, count] : result.error_counts) {
    absl::StrAppendFormat(&text, "error:       %d x %s\n", count, message);
  }
  if (report.writes) {
    absl::StrAppendFormat(
        &text, "writes:      %d due, %d sent, %d stored (%.0f a second)%s\n",
        report.writes->due_count, report.writes->sent_count,
        report.writes->stored_count, report.writes->stored_per_second(),
        report.writes->status.ok()
            ? ""
            : absl::StrCat("; ended: ", report.writes->status.message()));
  }
  if (report.verify) {
    absl::StrAppendFormat(
        &text,
        "verified:    %d queries against exact: recall mean %.4f, lowest "
        "%.4f; largest logit difference %g\n",
        report.verify->query_count, report.verify->mean_recall,
        report.verify->min_recall, report.verify->max_logit_difference);
  }
  return text;
}

std::string JsonReport(const LoadReport& report) {
  const LoadResult& result = report.result;
  nlohmann::ordered_json json;
  json["count"] = result.request_count();
  json["total"] = absl::ToInt64Nanoseconds(result.duration);
  json["average"] = static_cast<std::int64_t>(result.mean_latency_ns());
  json["fastest"] = Fastest(result);
  json["slowest"] = Slowest(result);
  json["rps"] = result.requests_per_second();
  json["latencyDistribution"] = nlohmann::ordered_json::array();
  for (const double percent : kPercentiles) {
    json["latencyDistribution"].push_back(
        {{"percentage", percent},
         {"latency", result.LatencyAtPercentile(percent)}});
  }
  json["statusCodeDistribution"] = nlohmann::ordered_json::object();
  for (const auto& [code, count] : result.status_counts) {
    json["statusCodeDistribution"][absl::StatusCodeToString(code)] = count;
  }
  json["errorDistribution"] = result.error_counts;
  if (report.rate) {
    json["openLoop"] = {{"rate", *report.rate},
                        {"sent", result.request_count()},
                        {"answered", result.latencies_ns.size()},
                        {"refused", result.refused_count()},
                        {"late", result.late_count},
                        {"latest", result.latest_ns}};
  }
  if (report.writes) {
    json["writes"] = {{"due", report.writes->due_count},
                      {"sent", report.writes->sent_count},
                      {"stored", report.writes->stored_count},
                      {"refused", report.writes->refused_count},
                      {"storedPerSecond", report.writes->stored_per_second()},
                      {"error", std::string(report.writes->status.message())}};
  }
  json["options"] = report.options;
  if (report.verify) {
    json["verify"] = {
        {"count", report.verify->query_count},
        {"recall", report.verify->mean_recall},
        {"lowestRecall", report.verify->min_recall},
        {"maxLogitDifference", report.verify->max_logit_difference}};
  }
  // Messages of a server may be any bytes.
  return json.dump(2, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace attendant
