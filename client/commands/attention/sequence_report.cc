#include "client/commands/attention/sequence_report.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/commands/attention/mask_flags.h"
#include "client/commands/shared/command.h"

namespace attendant {
namespace {

constexpr int kShownComponents = 4;
constexpr std::size_t kShownTokens = 3;

using Align = Table::Align;
using Tone = Table::Tone;

std::string FirstComponents(const v1::Vector& vector) {
  const auto& values = vector.floats().values();
  std::string text = "[";
  for (int i = 0; i < std::min(values.size(), kShownComponents); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", FormatNumber(values[i]));
  }
  return absl::StrCat(text, values.size() > kShownComponents ? ", ...]" : "]");
}

absl::string_view ApproximateSentence(v1::AttentionMethod method) {
  return method == v1::ATTENTION_METHOD_APPROXIMATE ? " APPROXIMATE." : "";
}

// Returns what the token attends to most, by the mean weight over heads, as
// "lens 81.0 %, fins 10.2 %".
std::string MostAttended(const v1::ContextualizeResponse& response, int token,
                         const std::vector<std::string>& attended) {
  const int count = response.head_weights(0).column_count();
  std::vector<double> weights(static_cast<std::size_t>(count));
  for (const v1::AttentionMatrix& head : response.head_weights()) {
    for (int i = 0; i < count; ++i) {
      weights[i] += double{head.weights(token * count + i)} /
                    response.head_weights_size();
    }
  }
  std::vector<int> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  const std::size_t shown = std::min(kShownTokens, order.size());
  const auto heavier = [&](int a, int b) {
    const double weight_a = weights[a];
    const double weight_b = weights[b];
    return weight_a != weight_b ? weight_a > weight_b : a < b;
  };
  std::partial_sort(order.begin(),
                    order.begin() + static_cast<std::ptrdiff_t>(shown),
                    order.end(), heavier);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < shown; ++i) {
    const double weight = weights[order[i]];
    if (weight == 0) break;
    texts.push_back(absl::StrCat(attended[order[i]], " ", FormatShare(weight)));
  }
  return texts.empty() ? "nothing" : absl::StrJoin(texts, ", ");
}

// Says why a query for candidates found none.
std::string NoCandidates(const v1::RankCandidatesRequest& request) {
  const v1::CandidateQuery& query = request.candidates().query();
  std::vector<std::string> masks;
  if (!query.filter().empty() || query.has_filter_expression()) {
    masks.push_back("--filter");
  }
  if (query.deny_list().ids_size() > 0) masks.push_back("--deny");
  if (!query.has_exclude_events() || query.exclude_events()) {
    masks.push_back("the events");
  }
  if (masks.empty()) {
    return "No candidates: no item has a key in this field.\n";
  }
  return absl::StrCat(
      "No candidates: no item with a key in this field is left by ",
      ListOf(std::move(masks)), ".\n");
}

// Returns the events that are shown with a candidate, as in "lens 90.0 %",
// "towel 8.0 % in 2 events": events of one item are added up, and the greatest
// weight comes first.
std::vector<std::string> NamedEvents(const v1::RankCandidatesRequest& request,
                                     const v1::RankedCandidate& candidate,
                                     const RankReportOptions& options,
                                     bool shares) {
  struct Named {
    std::string id;
    std::string name;
    double weight = 0;
    int event_count = 0;
  };
  std::vector<Named> all;
  for (int e = 0; e < ShownEvents(candidate, options.because_count); ++e) {
    const v1::EventAttribution& event = candidate.events(e);
    const std::string id = EventName(request, event, /*names=*/{});
    auto named = std::ranges::find_if(
        all, [&](const Named& other) { return other.id == id; });
    if (named == all.end()) {
      named = all.insert(
          all.end(),
          {.id = id, .name = EventName(request, event, options.names)});
    }
    named->weight += event.weight();
    ++named->event_count;
  }
  std::ranges::stable_sort(
      all, [](const Named& a, const Named& b) { return a.weight > b.weight; });
  std::vector<std::string> texts;
  for (const Named& named : all) {
    texts.push_back(absl::StrCat(
        named.name, " ",
        shares ? FormatShare(named.weight) : FormatNumber(named.weight),
        named.event_count == 1
            ? ""
            : absl::StrCat(" in ", CountOf(named.event_count, "event"))));
  }
  return texts;
}

// Joins the texts by commas in lines of at most kWideColumn columns, unless a
// text is longer alone. Returns at least one line.
std::vector<std::string> InLines(const std::vector<std::string>& texts) {
  std::vector<std::string> lines(1);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string text =
        absl::StrCat(texts[i], i + 1 == texts.size() ? "" : ",");
    if (!lines.back().empty() &&
        DisplayWidth(lines.back()) + 1 + DisplayWidth(text) > kWideColumn) {
      lines.emplace_back();
    }
    absl::StrAppend(&lines.back(), lines.back().empty() ? "" : " ", text);
  }
  return lines;
}

}  // namespace

std::string ContextReport(const v1::ContextualizeResponse& response,
                          const TokenNames& names, const Style& style) {
  std::vector<Table::Column> columns = {{.title = "token"}};
  const bool has_weights = response.head_weights_size() > 0;
  if (has_weights) {
    columns.push_back({.title = "attends to", .max_width = kWideColumn});
  }
  columns.push_back(
      {.title = "output", .tone = Tone::kDim, .max_width = kWideColumn});
  Table table(std::move(columns));
  for (int i = 0; i < response.outputs_size(); ++i) {
    std::vector<std::string> cells = {names.sequence[i]};
    if (has_weights) cells.push_back(MostAttended(response, i, names.attended));
    cells.push_back(FirstComponents(response.outputs(i)));
    table.AddRow(cells);
  }
  const int dim = response.outputs_size() == 0
                      ? 0
                      : response.outputs(0).floats().values_size();
  return absl::StrCat(
      table.Format(style), "\n", CountOf(response.outputs_size(), "token"),
      " of ", CountOf(dim, "component"), "; ",
      CountOf(response.scored_count(), "pair"), " scored.",
      has_weights && response.head_weights_size() > 1
          ? absl::StrCat(" Shares are means over ",
                         CountOf(response.head_weights_size(), "head"), ".")
          : "",
      ApproximateSentence(response.method()), "\n");
}

std::string RankReport(const v1::RankCandidatesRequest& request,
                       const v1::RankCandidatesResponse& response,
                       const RankReportOptions& options) {
  const ItemNames& names = options.names;
  const bool shares =
      request.activation_kind() == v1::ACTIVATION_KIND_UNSPECIFIED ||
      request.activation_kind() == v1::ACTIVATION_KIND_SOFTMAX;
  std::string text;
  if (response.candidates().empty()) {
    text = NoCandidates(request);
  } else {
    Table table({{.title = "#", .align = Align::kRight, .tone = Tone::kDim},
                 {.title = "item"},
                 {.title = "score", .align = Align::kRight},
                 {.title = "because of",
                  .max_width = std::numeric_limits<int>::max()}});
    std::int64_t rank = 0;
    for (const v1::RankedCandidate& candidate : response.candidates()) {
      const std::vector<std::string> because =
          InLines(NamedEvents(request, candidate, options, shares));
      const auto named = names.find(candidate.id());
      table.AddRow({FormatCount(++rank),
                    named == names.end() ? candidate.id() : named->second,
                    absl::StrFormat("%.4g", candidate.score()), because[0]});
      for (std::size_t i = 1; i < because.size(); ++i) {
        table.AddRow({"", "", "", because[i]});
      }
    }
    text = absl::StrCat(
        table.Format(options.style), "\n",
        CountOf(response.candidates_size(), "candidate"), ", ",
        CountOf(request.history_size() + request.profile_size(), "event"), "; ",
        CountOf(response.scored_count(), "pair"), " scored.",
        ApproximateSentence(response.method()), "\n");
  }
  if (response.future_event_count() > 0) {
    absl::StrAppend(&text, "Masked for being after the time asked about: ",
                    CountOf(response.future_event_count(), "event"), ".\n");
  }
  if (!response.unknown_item_ids().empty()) {
    absl::StrAppend(&text, "Skipped, not in the catalog: ",
                    Printable(absl::StrJoin(response.unknown_item_ids(), ", ")),
                    "\n");
  }
  return text;
}

}  // namespace attendant
