#include "client/doctor/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace attendant {
namespace {

const char* NameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kSkipped:
      return "skipped";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kFailure:
      return "failure";
  }
  return "failure";
}

std::string MarkOf(Verdict verdict, const Style& style) {
  switch (verdict) {
    case Verdict::kOk:
      return style.Accent("✓");
    case Verdict::kSkipped:
      return style.Dim("-");
    case Verdict::kWarning:
      return style.Bold("!");
    case Verdict::kFailure:
      return style.Bold("✗");
  }
  return "";
}

std::string Padded(const std::string& text, int width) {
  return absl::StrCat(text, std::string(static_cast<std::size_t>(std::max(
                                            0, width - DisplayWidth(text))),
                                        ' '));
}

std::size_t CountOf(std::span<const Examination> examinations,
                    Verdict verdict) {
  std::size_t count = 0;
  for (const Examination& examination : examinations) {
    for (const Finding& finding : examination.findings) {
      count += finding.verdict == verdict;
    }
  }
  return count;
}

std::string Summary(std::span<const Examination> examinations) {
  const std::size_t failures = CountOf(examinations, Verdict::kFailure);
  const std::size_t warnings = CountOf(examinations, Verdict::kWarning);
  if (failures + warnings == 0) {
    return CountOf(examinations, Verdict::kSkipped) > 0
               ? "All that was examined is well."
               : "All is well.";
  }
  return absl::StrCat(failures, failures == 1 ? " failure" : " failures",
                      " and ", warnings,
                      warnings == 1 ? " warning" : " warnings", ".");
}

}  // namespace

Verdict WorstOf(std::span<const Examination> examinations) {
  if (CountOf(examinations, Verdict::kFailure) > 0) return Verdict::kFailure;
  if (CountOf(examinations, Verdict::kWarning) > 0) return Verdict::kWarning;
  return Verdict::kOk;
}

std::string DoctorReport(std::span<const Examination> examinations,
                         const Style& style) {
  int width = 0;
  for (const Examination& examination : examinations) {
    for (const Finding& finding : examination.findings) {
      width = std::max(width, DisplayWidth(Printable(finding.subject)));
    }
  }
  std::string text;
  for (const Examination& examination : examinations) {
    absl::StrAppend(&text, style.Bold(Printable(examination.title)), "\n");
    for (const Finding& finding : examination.findings) {
      absl::StrAppend(&text, "  ", MarkOf(finding.verdict, style), " ",
                      Padded(Printable(finding.subject), width), "  ",
                      Printable(finding.text), "\n");
      if (finding.advice.empty()) continue;
      absl::StrAppend(
          &text, std::string(static_cast<std::size_t>(width) + 6, ' '),
          style.Dim(absl::StrCat("→ ", Printable(finding.advice))), "\n");
    }
    absl::StrAppend(&text, "\n");
  }
  return absl::StrCat(text, Summary(examinations), "\n");
}

std::string DoctorJson(std::span<const Examination> examinations) {
  nlohmann::ordered_json json;
  json["verdict"] = NameOf(WorstOf(examinations));
  json["examinations"] = nlohmann::ordered_json::array();
  for (const Examination& examination : examinations) {
    nlohmann::ordered_json part;
    part["title"] = examination.title;
    part["findings"] = nlohmann::ordered_json::array();
    for (const Finding& finding : examination.findings) {
      part["findings"].push_back({{"subject", finding.subject},
                                  {"verdict", NameOf(finding.verdict)},
                                  {"text", finding.text},
                                  {"advice", finding.advice}});
    }
    json["examinations"].push_back(std::move(part));
  }
  return absl::StrCat(
      json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace), "\n");
}

}  // namespace attendant
