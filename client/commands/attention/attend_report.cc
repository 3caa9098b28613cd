#include "client/commands/attention/attend_report.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/commands/attention/mask_flags.h"
#include "client/commands/attention/plan_report.h"
#include "client/commands/shared/command.h"
#include "client/commands/shared/convert.h"
#include "client/commands/shared/flags.h"

namespace attendant {
namespace {

constexpr std::size_t kMaxPooledShown = 8;

bool IsSoftmax(const v1::AttendResponse& response) {
  return response.activation_kind() != v1::ACTIVATION_KIND_SIGMOID &&
         response.activation_kind() != v1::ACTIVATION_KIND_NONE;
}

// Returns "31.4 % (exact)", "31.0 % to 32.5 % (bound)", or "" if the mass is
// unknown. An interval whose ends print alike is "within 0.1 %".
std::string MassText(const v1::Mass& mass) {
  const std::string lower = FormatShare(mass.lower_bound());
  const std::string upper = FormatShare(mass.upper_bound());
  const bool narrow = lower == upper;
  switch (mass.method()) {
    case v1::MASS_METHOD_EXACT:
      return absl::StrCat(FormatShare(mass.value()), " (exact)");
    case v1::MASS_METHOD_BOUND:
      return narrow ? absl::StrCat(lower, " (bound, within 0.1 %)")
                    : absl::StrCat(lower, " to ", upper, " (bound)");
    case v1::MASS_METHOD_ESTIMATE:
      return absl::StrCat(
          FormatShare(mass.value()), " (estimate, ",
          narrow ? "within 0.1 %" : absl::StrCat(lower, " to ", upper), ")");
    default:
      return "";
  }
}

// Returns an item's weight: a share with softmax, otherwise a number. A sigmoid
// so near to 1 that it would print as 1 is written as its distance from 1.
std::string WeightText(const v1::AttendResponse& response,
                       const v1::AttendedItem& item) {
  if (IsSoftmax(response)) return FormatShare(item.weight());
  constexpr double kPrintsAsOne = 0.99995;
  if (response.activation_kind() == v1::ACTIVATION_KIND_SIGMOID &&
      response.heads_size() <= 1 && item.weight() >= kPrintsAsOne) {
    const double rest = 1 / (1 + std::exp(double{item.logit()}));
    if (rest > 0) return absl::StrFormat("1 - %.2g", rest);
  }
  return FormatNumber(item.weight());
}

// Returns the key field of the head that earned the item; with a model, the
// head's number.
std::string EarnedBy(const v1::AttendResponse& response,
                     const v1::AttendedItem& item) {
  return response.has_model() ? absl::StrCat("head ", item.head())
                              : item.key_field();
}

// Returns the item's weight by each head in order, as "99.7 %, 0.085 %".
std::string WeightsByHead(const v1::AttendedItem& item, bool softmax) {
  return absl::StrJoin(
      item.head_weights(), ", ", [softmax](std::string* text, double weight) {
        *text += softmax ? FormatShare(weight) : FormatNumber(weight);
      });
}

std::string ItemTable(const v1::AttendResponse& response,
                      const AttendReportOptions& options) {
  using Align = Table::Align;
  using Tone = Table::Tone;
  std::vector<Table::Column> columns = {
      {.title = "#", .align = Align::kRight, .tone = Tone::kDim},
      {.title = "item"}};
  for (const std::string& name : options.shown_attributes) {
    columns.push_back({.title = name});
  }
  if (options.opaque_value) {
    columns.push_back({.title = "opaque value", .max_width = kWideColumn});
  }
  const bool softmax = IsSoftmax(response);
  columns.push_back({.title = "weight", .align = Align::kRight});
  columns.push_back({.title = "", .tone = Tone::kAccent});
  columns.push_back(
      {.title = "logit", .align = Align::kRight, .tone = Tone::kDim});
  if (response.heads_size() > 1) {
    columns.push_back({.title = "earned by", .tone = Tone::kDim});
    if (options.head_weights) {
      columns.push_back({.title = "by head", .max_width = kWideColumn});
    }
  }
  if (response.has_slate()) {
    columns.push_back(
        {.title = "drawn with", .align = Align::kRight, .tone = Tone::kDim});
  }
  // Draws with replacement have no kappa.
  if (response.slate().has_kappa()) {
    columns.push_back(
        {.title = "inclusion", .align = Align::kRight, .tone = Tone::kDim});
  }
  double greatest = 0;
  for (const v1::AttendedItem& item : response.items()) {
    greatest = std::max(greatest, item.weight());
  }
  Table table(std::move(columns));
  std::int64_t rank = 0;
  for (const v1::AttendedItem& item : response.items()) {
    std::vector<std::string> cells = {FormatCount(++rank), item.id()};
    for (const std::string& name : options.shown_attributes) {
      const auto attribute = item.attributes().find(name);
      cells.push_back(attribute == item.attributes().end()
                          ? ""
                          : AttributeText(attribute->second));
    }
    if (options.opaque_value) cells.push_back(item.opaque_value());
    cells.push_back(WeightText(response, item));
    cells.push_back(
        Bar(greatest > 0 ? item.weight() / greatest : 0, kBarWidth));
    cells.push_back(absl::StrFormat("%.3f", item.logit()));
    if (response.heads_size() > 1) {
      cells.push_back(EarnedBy(response, item));
      if (options.head_weights) cells.push_back(WeightsByHead(item, softmax));
    }
    if (response.has_slate()) {
      cells.push_back(FormatShare(std::exp(item.log_weight())));
    }
    if (response.slate().has_kappa()) {
      cells.push_back(
          FormatShare(std::exp(item.log_inclusion_given_threshold())));
    }
    table.AddRow(cells);
  }
  return table.Format(options.style);
}

// Returns "Log partition 5.437 ± 0.012 (estimate).".
std::string PartitionSentence(double log_partition,
                              const v1::Interval& interval) {
  const double below = log_partition - interval.lower_bound();
  const double above = interval.upper_bound() - log_partition;
  const std::string value =
      absl::StrCat("Log partition ", absl::StrFormat("%.6g", log_partition));
  std::string range;
  if (interval.method() == v1::MASS_METHOD_BOUND) {
    // Bounds are seldom symmetric.
    range = absl::StrFormat(", from %.6g to %.6g", interval.lower_bound(),
                            interval.upper_bound());
  } else if (interval.method() == v1::MASS_METHOD_ESTIMATE) {
    range = absl::StrFormat(" ± %.2g", std::max(below, above));
  }
  return absl::StrCat(value, range, " (", FlagOf(interval.method()), ").");
}

// Formats a number of items that need not be whole.
std::string EffectiveCount(double count) {
  return count < 9.95 ? absl::StrFormat("%.1f", count)
                      : FormatCount(std::llround(count));
}

// Returns the interval of a count in brackets, or "" if the count is exact. An
// interval whose ends print alike is "within 1" or "within 0.1".
std::string RangeText(const v1::Interval& interval) {
  if (interval.method() != v1::MASS_METHOD_BOUND &&
      interval.method() != v1::MASS_METHOD_ESTIMATE) {
    return "";
  }
  const std::string lower = EffectiveCount(interval.lower_bound());
  const std::string upper = EffectiveCount(interval.upper_bound());
  return absl::StrCat(" (", FlagOf(interval.method()), ", ",
                      lower != upper ? absl::StrCat(lower, " to ", upper)
                      : lower.find('.') == std::string::npos ? "within 1"
                                                             : "within 0.1",
                      ")");
}

std::string MassSentence(const v1::AttendResponse& response, bool hard) {
  const int count = response.items_size();
  const std::string these = hard || count == 1
                                ? "This item"
                                : absl::StrCat("These ", FormatCount(count));
  const absl::string_view hold = count == 1 ? "holds" : "hold";
  const std::string returned = MassText(response.returned_mass());
  if (!IsSoftmax(response)) {
    return absl::StrCat("Weights are ",
                        response.activation_kind() == v1::ACTIVATION_KIND_NONE
                            ? "the logits"
                            : "1 / (1 + exp(-logit))",
                        ", each on its own: they are not shares of anything.");
  }
  if (returned.empty()) {
    return absl::StrCat(
        "How much of the catalog's attention ", absl::AsciiStrToLower(these),
        " ", hold,
        " is unknown: ", FormatCount(response.stats().scored_count()), " of ",
        FormatCount(response.stats().eligible_count()),
        " keys were scored (--mass-precision 0.02 estimates the rest).");
  }
  std::string text = absl::StrCat(
      these, " ", hold, " ", returned.substr(0, returned.find(" (")),
      " of the catalog's attention", returned.substr(returned.find(" (")));
  absl::StrAppend(&text, ".");
  const std::string shortlist = MassText(response.shortlist_mass());
  if (!hard && !shortlist.empty()) {
    absl::StrAppend(&text,
                    response.weight_scope() == v1::WEIGHT_SCOPE_SHORTLIST
                        ? " Weights are shares of the shortlist, which holds "
                        : " The shortlist holds ",
                    shortlist.substr(0, shortlist.find(" (")), ".");
  }
  if (response.has_effective_item_count()) {
    absl::StrAppend(&text, " Effective items: ",
                    EffectiveCount(response.effective_item_count()), " of ",
                    FormatCount(response.stats().eligible_count()),
                    RangeText(response.effective_item_count_interval()), ".");
  }
  if (response.has_log_partition_interval()) {
    absl::StrAppend(&text, " ",
                    PartitionSentence(response.log_partition(),
                                      response.log_partition_interval()));
  }
  return text;
}

// Returns a table with a row for each head.
std::string HeadTable(const v1::AttendResponse& response, const Style& style) {
  using Align = Table::Align;
  std::vector<Table::Column> columns = {
      {.title = "head"},
      {.title = "key field"},
      {.title = "score"},
      {.title = "temperature", .align = Align::kRight},
      {.title = "effective items", .align = Align::kRight},
      {.title = "mass returned", .align = Align::kRight}};
  // Heads that all count the same need no column for it.
  const bool has_shares =
      absl::c_any_of(response.heads(), [&](const v1::HeadAttention& head) {
        return head.share() != response.heads(0).share();
      });
  if (has_shares) {
    columns.push_back({.title = "counts", .align = Align::kRight});
  }
  Table table(columns);
  for (int h = 0; h < response.heads_size(); ++h) {
    const v1::HeadAttention& head = response.heads(h);
    const std::string mass = MassText(head.returned_mass());
    std::vector<std::string> row = {
        FormatCount(h),
        head.key_field(),
        FlagOf(head.score_kind()),
        FormatNumber(head.temperature()),
        head.has_effective_item_count()
            ? EffectiveCount(head.effective_item_count())
            : "unknown",
        mass.empty() ? "unknown" : mass};
    if (has_shares) row.push_back(FormatShare(head.share()));
    table.AddRow(row);
  }
  return table.Format(style);
}

std::string SlateSentence(const v1::AttendResponse& response) {
  const v1::Slate& slate = response.slate();
  std::string text =
      "Items are in the order drawn. \"drawn with\" is the probability of a "
      "draw, given those before it";
  if (slate.has_kappa()) {
    absl::StrAppend(&text,
                    "; \"inclusion\" is the probability that the item is in "
                    "the slate, given kappa, the greatest perturbed log weight "
                    "of the items left out");
  }
  absl::StrAppend(&text, ".\nDrawn from the ", FlagOf(slate.scope()),
                  " with seed ", slate.seed(), " at sequence ",
                  slate.sequence(), "; this slate has probability ",
                  absl::StrFormat("%.3g", std::exp(slate.log_probability())));
  if (slate.has_kappa()) {
    absl::StrAppend(&text, ", kappa ", FormatNumber(slate.kappa()));
  }
  if (slate.distance() > 0) {
    absl::StrAppend(&text, ". What it was drawn from is within ",
                    FormatShare(slate.distance()),
                    " of the softmax in total variation (estimate)");
  }
  return absl::StrCat(text, ".");
}

std::string PooledSentence(const v1::PooledValue& pooled) {
  const VectorText value = DescribeComponents(
      {pooled.values().data(), static_cast<std::size_t>(pooled.values_size())},
      kMaxPooledShown);
  std::string text = absl::StrCat("Pooled value over the ",
                                  pooled.scope() == v1::WEIGHT_SCOPE_RETURNED
                                      ? "returned items"
                                      : FlagOf(pooled.scope()),
                                  ": ", value.size, ", ", value.first, ".");
  if (pooled.key_as_value_count() > 0) {
    absl::StrAppend(&text, " Keys stand in for the values of ",
                    CountOf(pooled.key_as_value_count(), "item"), ".");
  }
  if (pooled.relative_error() > 0) {
    absl::StrAppend(&text, " Off by up to ",
                    FormatShare(pooled.relative_error()), " (",
                    FlagOf(pooled.method()), ").");
  }
  return text;
}

// Says how the weights were computed.
std::string HowSentence(const v1::AttendResponse& response, bool hard) {
  const bool several = response.heads_size() > 1;
  std::string text = hard ? "Hard: the one best item. " : "";
  // Several heads have a temperature each, which HeadTable shows.
  if (!several) {
    absl::StrAppend(&text, "Temperature ", FormatNumber(response.temperature()),
                    ", ");
  }
  if (several && !response.has_model()) {
    absl::StrAppend(&text, CountOf(response.heads_size(), "head"));
  } else {
    absl::StrAppend(&text, absl::AsciiStrToUpper(FlagOf(response.score_kind())),
                    " over \"", Printable(response.key_field()), "\"");
  }
  if (response.has_model()) {
    absl::StrAppend(&text, " through model ",
                    Printable(response.model().name()), ":",
                    response.model().version());
  }
  if (!hard && IsSoftmax(response) && !response.items().empty()) {
    absl::StrAppend(&text, ". Weights sum to 1 over the ",
                    response.weight_scope() == v1::WEIGHT_SCOPE_RETURNED
                        ? "returned items"
                        : FlagOf(response.weight_scope()));
  }
  return absl::StrCat(text, ".");
}

// Says why there are no items, as far as the reply tells.
std::string NothingEligible(const v1::AttendResponse& response,
                            const std::vector<std::string>& masks) {
  const std::int64_t item_count = response.stats().item_count();
  if (item_count == 0) {
    return "Nothing was eligible: the catalog has no items.\n";
  }
  const std::string field =
      response.key_field().empty()
          ? "a key field of the heads"
          : absl::StrCat("\"", Printable(response.key_field()), "\"");
  if (masks.empty()) {
    return absl::StrCat("Nothing was eligible: none of ",
                        CountOf(item_count, "item"), " has a key in ", field,
                        ".\n");
  }
  return absl::StrCat("Nothing was eligible: of ", CountOf(item_count, "item"),
                      ", none with a key in ", field, " is left by ",
                      ListOf(masks), ".\n");
}

// Says what kept the answer from more items; empty if only the request did.
std::string LimitSentence(v1::LimitReason reason) {
  switch (reason) {
    case v1::LIMIT_REASON_RESULT_CAP:
      return "The cap on results was reached before the mass asked for: raise "
             "--results.\n";
    case v1::LIMIT_REASON_CROWDING:
      return "--max-per leaves no more of the shortlist: raise --shortlist.\n";
    case v1::LIMIT_REASON_INDEX:
      return "The index found no more: raise --recall or --probe-count.\n";
    default:
      return "";
  }
}

}  // namespace

std::string AttendReport(const v1::AttendResponse& response,
                         const AttendReportOptions& options) {
  std::string text;
  if (response.items().empty()) {
    text = NothingEligible(response, options.masks);
  } else {
    text = absl::StrCat(ItemTable(response, options), "\n",
                        MassSentence(response, options.hard), "\n");
  }
  absl::StrAppend(&text, options.style.Dim(HowSentence(response, options.hard)),
                  "\n");
  if (response.has_slate()) {
    absl::StrAppend(&text, SlateSentence(response), "\n");
  }
  absl::StrAppend(&text, LimitSentence(response.limit_reason()));
  if (response.heads_size() > 1) {
    absl::StrAppend(&text, "\n", HeadTable(response, options.style));
  }
  if (!response.unknown_example_ids().empty()) {
    absl::StrAppend(
        &text, "Examples not in the catalog: ",
        Printable(absl::StrJoin(response.unknown_example_ids(), ", ")), "\n");
  }
  if (options.pooled_value && response.has_pooled_value()) {
    absl::StrAppend(&text, PooledSentence(response.pooled_value()), "\n");
  }
  if (response.has_plan()) {
    absl::StrAppend(&text, "\n", PlanReport(response.plan(), options.style));
  }
  return text;
}

}  // namespace attendant
