#include "client/commands/attention/sequence_report.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
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

// "lens 81.0 %, fins 10.2 %": the mean over heads.
std::string MostAttended(const v1::ContextualizeResponse& response, int token,
                         const std::vector<std::string>& attended) {
  const int count = response.head_weights(0).column_count();
  std::vector<double> weights(static_cast<std::size_t>(count));
  for (const v1::AttentionMatrix& head : response.head_weights()) {
    for (int i = 0; i < count; ++i) {
      weights[static_cast<std::size_t>(i)] +=
          double{head.weights(token * count + i)} /
          response.head_weights_size();
    }
  }
  std::vector<int> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  const std::size_t shown = std::min(kShownTokens, order.size());
  const auto heavier = [&](int a, int b) {
    const double weight_a = weights[static_cast<std::size_t>(a)];
    const double weight_b = weights[static_cast<std::size_t>(b)];
    return weight_a != weight_b ? weight_a > weight_b : a < b;
  };
  std::partial_sort(order.begin(),
                    order.begin() + static_cast<std::ptrdiff_t>(shown),
                    order.end(), heavier);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < shown; ++i) {
    const double weight = weights[static_cast<std::size_t>(order[i])];
    if (weight == 0) break;
    texts.push_back(absl::StrCat(attended[static_cast<std::size_t>(order[i])],
                                 " ", FormatShare(weight)));
  }
  return texts.empty() ? "nothing" : absl::StrJoin(texts, ", ");
}

// Why a query for candidates found none.
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
  const std::string last = masks.back();
  masks.pop_back();
  return absl::StrCat(
      "No candidates: no item with a key in this field is left by ",
      absl::StrJoin(masks, ", "), masks.empty() ? "" : " and ", last, ".\n");
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
    std::vector<std::string> cells = {
        names.sequence[static_cast<std::size_t>(i)]};
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
                 {.title = "because of", .max_width = kWideColumn}});
    std::int64_t rank = 0;
    for (const v1::RankedCandidate& candidate : response.candidates()) {
      std::vector<std::string> events;
      for (int e = 0; e < ShownEvents(candidate, options.because_count); ++e) {
        const v1::EventAttribution& event = candidate.events(e);
        events.push_back(absl::StrCat(EventName(request, event, names), " ",
                                      shares ? FormatShare(event.weight())
                                             : FormatNumber(event.weight())));
      }
      const auto named = names.find(candidate.id());
      table.AddRow({FormatCount(++rank),
                    named == names.end() ? candidate.id() : named->second,
                    absl::StrFormat("%.4g", candidate.score()),
                    absl::StrJoin(events, ", ")});
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
