#include "client/load/report/report.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/format/text.h"
#include "client/load/send/wire_sender.h"

namespace attendant {
namespace {

using Json = nlohmann::ordered_json;
using Column = Table::Column;

std::string FormatRate(double rate) {
  return FormatCount(static_cast<std::int64_t>(rate + 0.5));
}

std::vector<Column> Columns(const std::vector<std::string>& titles) {
  std::vector<Column> columns;
  for (const std::string& title : titles) {
    columns.push_back({.title = title, .align = Table::Align::kRight});
  }
  return columns;
}

// Says what was requested, and how many requests were sent and answered.
std::string LoopLines(const LoadReport& report) {
  const LoadResult& result = report.result;
  const Tally& total = result.total;
  const double seconds = absl::ToDoubleSeconds(result.duration);
  if (!report.rate) {
    return absl::StrFormat("closed loop: %s requests in %.1f s, %s a second\n",
                           FormatCount(total.request_count()), seconds,
                           FormatRate(result.requests_per_second()));
  }
  std::string text = absl::StrFormat(
      "open loop at %g a second: %s sent in %.1f s, %s a second reached; "
      "%s answered, %s refused, %s failed otherwise\n",
      *report.rate, FormatCount(total.request_count()), seconds,
      FormatRate(result.requests_per_second()),
      FormatCount(total.answered_count()), FormatCount(total.refused_count()),
      FormatCount(total.failed_count() - total.refused_count()));
  absl::StrAppendFormat(
      &text,
      "generator    %s sent over %g ms late; p50 %s ms late, p99 %s, at most "
      "%s\n",
      FormatCount(result.late_count),
      absl::ToDoubleMilliseconds(LoadResult::kLate),
      FormatMs(result.lateness.AtPercentile(50)),
      FormatMs(result.lateness.AtPercentile(99)),
      FormatMs(result.lateness.max_ns()));
  if (result.unsent_count > 0) {
    absl::StrAppendFormat(
        &text, "not sent     %d: %d were waiting for their answers already\n",
        result.unsent_count, LoadResult::kMaxWaiting);
  }
  return text;
}

std::string LatencyLines(const Tally& total) {
  std::string text = "latency ms   no answers\n";
  if (total.answered_count() > 0) {
    text = absl::StrFormat("latency ms   mean %.3f, fastest %s, slowest %s\n",
                           total.latencies().mean_ns() / 1e6,
                           FormatMs(total.latencies().min_ns()),
                           FormatMs(total.latencies().max_ns()));
  }
  const std::int64_t timeout_count =
      total.CountOf(absl::StatusCode::kDeadlineExceeded);
  if (timeout_count > 0) {
    absl::StrAppendFormat(
        &text,
        "timed out    %s, which the latencies leave out, though "
        "they would be among the longest\n",
        FormatCount(timeout_count));
  }
  if (total.refused_count() > 0) {
    absl::StrAppendFormat(&text, "refused ms   p50 %s, p99 %s, at most %s\n",
                          FormatMs(total.refusals().AtPercentile(50)),
                          FormatMs(total.refusals().AtPercentile(99)),
                          FormatMs(total.refusals().max_ns()));
  }
  return text;
}

std::string StatusLines(const LoadResult& result) {
  std::string text = "status      ";
  for (const auto& [code, count] : result.total.status_counts()) {
    absl::StrAppend(&text, " ", absl::StatusCodeToString(code), " ",
                    FormatCount(count));
  }
  text += "\n";
  for (const auto& [message, count] : result.error_counts) {
    absl::StrAppendFormat(&text, "error        %d x %s\n", count,
                          Printable(message));
  }
  return text;
}

std::string WriteLine(const WriterResult& writes) {
  std::string text = absl::StrFormat(
      "writes       %d due, %d sent, %d stored (%.0f a second), %d refused",
      writes.due_count, writes.sent_count, writes.stored_count,
      writes.stored_per_second(), writes.refused_count);
  if (!writes.first_refusal.ok()) {
    absl::StrAppend(&text,
                    ", the first: ", Printable(writes.first_refusal.message()));
  }
  if (!writes.status.ok()) {
    absl::StrAppend(&text, "; ended: ", writes.status.message());
  }
  return text + "\n";
}

std::string VerifyLines(const VerifyResult& verify) {
  std::string text;
  if (verify.query_count > 0) {
    absl::StrAppendFormat(
        &text,
        "verified     %d answers against exact, %d of them under load: recall "
        "mean %.4f, lowest %.4f; largest difference of a logit %g, of a weight "
        "%g\n",
        verify.query_count, verify.under_load_count, verify.mean_recall,
        verify.min_recall, verify.max_logit_difference,
        verify.max_weight_difference);
  }
  if (verify.failed_count > 0) {
    absl::StrAppendFormat(
        &text, "not verified %d answers, whose checks failed, the first: %s\n",
        verify.failed_count, Printable(verify.first_failure.message()));
  }
  return text;
}

std::string CleanupLines(const CleanupResult& cleanup) {
  if (cleanup.status.ok()) {
    return absl::StrFormat("deleted      %d items that the load wrote\n",
                           cleanup.deleted_count);
  }
  return absl::StrCat("left behind  items that the load may have written: ",
                      Printable(cleanup.status.message()),
                      "\n             to delete them: ", cleanup.command, "\n");
}

std::string Summary(const LoadReport& report) {
  std::string text = LoopLines(report);
  if (report.more_connection_count > 0) {
    absl::StrAppendFormat(&text,
                          "connections  %d more than asked for: each had %d "
                          "calls under way\n",
                          report.more_connection_count, WireSender::kMaxCalls);
  }
  text += LatencyLines(report.result.total);
  text += StatusLines(report.result);
  if (report.writes) text += WriteLine(*report.writes);
  if (report.verify) text += VerifyLines(*report.verify);
  if (report.cleanup) text += CleanupLines(*report.cleanup);
  return text;
}

std::string PercentileTable(const Tally& total) {
  Table table(Columns({"percentile", "ms", "slower answers"}));
  const LatencyHistogram& latencies = total.latencies();
  for (const double percent : kReportedPercentiles) {
    table.AddRow({absl::StrFormat("%g", percent),
                  FormatMs(latencies.AtPercentile(percent)),
                  FormatCount(latencies.CountAbove(percent))});
  }
  return table.Format({});
}

// Adds a row: requests, answers, failures and latencies.
void AddTallyRow(Table& table, std::string name, const Tally& tally,
                 double answers_per_second) {
  const LatencyHistogram& latencies = tally.latencies();
  std::vector<std::string> row = {
      std::move(name), FormatCount(tally.request_count()),
      FormatRate(answers_per_second), FormatCount(tally.failed_count())};
  for (const double percent : {50., 99., 99.9, 100.}) {
    row.push_back(latencies.count() == 0
                      ? "-"
                      : FormatMs(latencies.AtPercentile(percent)));
  }
  table.AddRow(std::move(row));
}

std::vector<Column> TallyColumns(const std::string& first) {
  return Columns({first, "requests", "answers/s", "failed", "p50 ms", "p99 ms",
                  "p99.9 ms", "max ms"});
}

// Writes a percentage as ghz does, which reads whole ones only as integers.
Json PercentageToJson(double percent) {
  const auto whole = static_cast<std::int64_t>(percent);
  return static_cast<double>(whole) == percent ? Json(whole) : Json(percent);
}

Json LatenciesToJson(const Tally& tally) {
  Json distribution = Json::array();
  for (const double percent : kReportedPercentiles) {
    distribution.push_back(
        {{"percentage", PercentageToJson(percent)},
         {"latency", tally.latencies().AtPercentile(percent)}});
  }
  return distribution;
}

// Returns the name of a code as in grpc-go and ghz: "DeadlineExceeded".
std::string GoCodeName(absl::StatusCode code) {
  if (code == absl::StatusCode::kOk) return "OK";
  if (code == absl::StatusCode::kCancelled) return "Canceled";
  std::string name;
  bool begins_word = true;
  for (const char c : absl::StatusCodeToString(code)) {
    if (c != '_') name += begins_word ? c : absl::ascii_tolower(c);
    begins_word = c == '_';
  }
  return name;
}

Json StatusesToJson(const Tally& tally) {
  Json statuses = Json::object();
  for (const auto& [code, count] : tally.status_counts()) {
    statuses[GoCodeName(code)] = count;
  }
  return statuses;
}

Json TallyToJson(const Tally& tally, double answers_per_second) {
  return {{"count", tally.request_count()},
          {"answersPerSecond", answers_per_second},
          {"latencyDistribution", LatenciesToJson(tally)},
          {"statusCodeDistribution", StatusesToJson(tally)}};
}

Json SlicesToJson(const LoadResult& result) {
  Json slices = Json::array();
  for (const SliceResult& slice : result.slices) {
    Json json = {{"rate", slice.rate},
                 {"seconds", absl::ToDoubleSeconds(slice.duration)}};
    json.update(TallyToJson(slice.tally, slice.answers_per_second()));
    slices.push_back(std::move(json));
  }
  return slices;
}

Json MomentsToJson(const LoadResult& result) {
  Json moments = Json::array();
  for (const Moment& moment : result.moments) {
    moments.push_back({{"end", absl::ToInt64Nanoseconds(moment.end)},
                       {"duration", absl::ToInt64Nanoseconds(moment.duration)},
                       {"answered", moment.answered_count},
                       {"failed", moment.failed_count},
                       {"p50", moment.p50_ns},
                       {"p90", moment.p90_ns},
                       {"p99", moment.p99_ns},
                       {"max", moment.max_ns}});
  }
  return moments;
}

}  // namespace

std::string TextReport(const LoadReport& report) {
  const LoadResult& result = report.result;
  std::string text = Summary(report);
  if (result.total.answered_count() > 0) {
    absl::StrAppend(&text, "\n", PercentileTable(result.total));
  }
  if (result.kinds.size() > 1) {
    Table table(TallyColumns("kind"));
    for (const auto& [kind, tally] : result.kinds) {
      AddTallyRow(table, kind, tally, result.AnswersPerSecond(tally));
    }
    absl::StrAppend(&text, "\n", table.Format({}));
  }
  if (result.slices.size() > 1) {
    Table table(TallyColumns("rate"));
    for (const SliceResult& slice : result.slices) {
      AddTallyRow(table, FormatRate(slice.rate), slice.tally,
                  slice.answers_per_second());
    }
    absl::StrAppend(&text, "\n", table.Format({}));
  }
  return text;
}

Json VerifyToJson(const VerifyResult& verify) {
  Json json = {{"count", verify.query_count},
               {"failed", verify.failed_count},
               {"error", std::string(verify.first_failure.message())},
               {"underLoad", verify.under_load_count}};
  if (verify.query_count == 0) return json;
  json["recall"] = verify.mean_recall;
  json["lowestRecall"] = verify.min_recall;
  json["maxLogitDifference"] = verify.max_logit_difference;
  json["maxWeightDifference"] = verify.max_weight_difference;
  return json;
}

Json ToJson(const LoadReport& report) {
  const LoadResult& result = report.result;
  const Tally& total = result.total;
  Json json;
  json["date"] = absl::FormatTime(report.date, absl::UTCTimeZone());
  json["version"] = ATTENDANT_VERSION;
  json["count"] = total.request_count();
  json["total"] = absl::ToInt64Nanoseconds(result.duration);
  json["average"] = static_cast<std::int64_t>(total.latencies().mean_ns());
  json["fastest"] = total.latencies().min_ns();
  json["slowest"] = total.latencies().max_ns();
  json["rps"] = result.requests_per_second();
  json["latencyDistribution"] = LatenciesToJson(total);
  json["statusCodeDistribution"] = StatusesToJson(total);
  json["errorDistribution"] = result.error_counts;
  if (report.rate) {
    json["openLoop"] = {{"rate", *report.rate},
                        {"sent", total.request_count()},
                        {"answered", total.answered_count()},
                        {"refused", total.refused_count()},
                        {"refusedP99", total.refusals().AtPercentile(99)},
                        {"unsent", result.unsent_count},
                        {"late", result.late_count},
                        {"lateP99", result.lateness.AtPercentile(99)},
                        {"latest", result.lateness.max_ns()}};
    json["slices"] = SlicesToJson(result);
  }
  if (result.kinds.size() > 1) {
    for (const auto& [kind, tally] : result.kinds) {
      json["kinds"][kind] = TallyToJson(tally, result.AnswersPerSecond(tally));
    }
  }
  if (report.writes) {
    json["writes"] = {
        {"due", report.writes->due_count},
        {"sent", report.writes->sent_count},
        {"stored", report.writes->stored_count},
        {"refused", report.writes->refused_count},
        {"firstRefusal", std::string(report.writes->first_refusal.message())},
        {"storedPerSecond", report.writes->stored_per_second()},
        {"error", std::string(report.writes->status.message())}};
  }
  json["options"] = report.options;
  json["moreConnections"] = report.more_connection_count;
  if (report.verify) json["verify"] = VerifyToJson(*report.verify);
  if (report.cleanup) {
    json["cleanup"] = {{"deleted", report.cleanup->deleted_count},
                       {"error", std::string(report.cleanup->status.message())},
                       {"command", report.cleanup->command}};
  }
  json["moments"] = MomentsToJson(result);
  return json;
}

std::string JsonReport(const LoadReport& report) {
  // Messages of a server may contain malformed UTF-8.
  return ToJson(report).dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace attendant
