#include "core/encode/lsi.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {
namespace {

constexpr std::size_t kMinHistory = 5;
constexpr std::size_t kMaxChoices = 2000;

struct HeldOut {
  EventLog rest;  // without ids
  std::vector<Choice> choices;
};

void Tell(const LsiOptions& options, absl::string_view what) {
  if (options.progress) options.progress(what);
}

absl::Status Validate(const EventLog& log, const LsiOptions& options) {
  if (log.events.empty()) return InvalidField("events", "none", "at least one");
  if (options.dim < 1) {
    return InvalidField("dim", absl::StrCat(options.dim), "at least 1");
  }
  if (options.temperature.has_value()) {
    ATTENDANT_RETURN_IF_ERROR(
        ValidateTemperature(*options.temperature, "temperature"));
  }
  const auto customer_count =
      static_cast<std::int64_t>(log.customer_ids.size());
  const auto item_count = static_cast<std::int64_t>(log.item_ids.size());
  for (std::size_t i = 0; i < log.events.size(); ++i) {
    const Event& event = log.events[i];
    if (event.customer < 0 || event.customer >= customer_count ||
        event.item < 0 || event.item >= item_count) {
      return InvalidField(
          absl::StrCat("events[", i, "]"),
          absl::StrCat("customer ", event.customer, ", item ", event.item),
          absl::StrCat("one of ", customer_count, " customers and ", item_count,
                       " items"));
    }
    if (!std::isfinite(event.rating)) {
      return InvalidField(absl::StrCat("events[", i, "].rating"),
                          absl::StrCat(event.rating), "a finite number");
    }
  }
  return absl::OkStatus();
}

// Returns each customer's items in the order of their first events.
std::vector<std::vector<std::int32_t>> Histories(const EventLog& log) {
  std::vector<std::vector<std::int32_t>> histories(log.customer_ids.size());
  absl::flat_hash_set<std::pair<std::int32_t, std::int32_t>> seen;
  for (const Event& event : log.events) {
    if (!seen.emplace(event.customer, event.item).second) continue;
    histories[event.customer].push_back(event.item);
  }
  return histories;
}

// Holds out the last new item of each customer who has enough items, but never
// an item's last customer: nothing could be learnt about that item.
HeldOut HoldOut(const EventLog& log) {
  std::vector<std::vector<std::int32_t>> histories = Histories(log);
  std::vector<std::int32_t> customers_of(log.item_ids.size());
  for (const auto& history : histories) {
    for (const std::int32_t item : history) {
      ++customers_of[item];
    }
  }
  HeldOut held_out;
  std::vector<std::int32_t> target_of(histories.size(), -1);
  for (std::size_t customer = 0; customer < histories.size(); ++customer) {
    std::vector<std::int32_t>& history = histories[customer];
    if (history.size() < kMinHistory) continue;
    const std::int32_t target = history.back();
    std::int32_t& left = customers_of[target];
    if (left < 2) continue;
    --left;
    target_of[customer] = target;
    history.pop_back();
    Choice choice;
    choice.history = std::move(history);
    choice.target = target;
    held_out.choices.push_back(std::move(choice));
  }
  for (const Event& event : log.events) {
    if (target_of[event.customer] == event.item) {
      continue;
    }
    held_out.rest.events.push_back(event);
  }
  held_out.rest.customer_ids.resize(log.customer_ids.size());
  held_out.rest.item_ids.resize(log.item_ids.size());
  return held_out;
}

// Returns at most kMaxChoices of the choices, evenly spaced.
std::vector<Choice> Thin(std::vector<Choice> choices) {
  if (choices.size() <= kMaxChoices) return choices;
  std::vector<Choice> thinned;
  for (std::size_t i = 0; i < kMaxChoices; ++i) {
    thinned.push_back(std::move(choices[i * choices.size() / kMaxChoices]));
  }
  return thinned;
}

double ScaleOf(KeyScale key_scale, double singular_value) {
  switch (key_scale) {
    case KeyScale::kNone:
      return 1;
    case KeyScale::kSingular:
      return singular_value;
    case KeyScale::kInverse:
      return 1 / singular_value;
  }
  return 1;
}

// Fits the keys and singular values; leaves the defaults unchanged.
absl::StatusOr<LsiModel> FitKeys(const EventLog& log,
                                 const LsiOptions& options) {
  ATTENDANT_ASSIGN_OR_RETURN(
      TruncatedSvd svd,
      ComputeTruncatedSvd(EventMatrix(log, options.rating_kind), options.dim));
  for (std::size_t i = 0; i < svd.v.size(); ++i) {
    svd.v[i] *= ScaleOf(options.key_scale,
                        svd.s[i % static_cast<std::size_t>(svd.dim)]);
  }
  LsiModel model;
  model.dim = svd.dim;
  model.keys = std::move(svd.v);
  model.singular_values = std::move(svd.s);
  return model;
}

absl::StatusOr<AttentionDefaults> SearchDefaults(const EventLog& log,
                                                 const LsiOptions& options) {
  HeldOut held_out = HoldOut(log);
  if (held_out.choices.empty()) {
    return InvalidField(
        "events",
        absl::StrCat("no customer with ", kMinHistory,
                     " items whose last new item others have too"),
        "something to hold out, or a temperature");
  }
  Tell(options, "decomposing the events that are not held out");
  ATTENDANT_ASSIGN_OR_RETURN(const LsiModel model,
                             FitKeys(held_out.rest, options));
  const std::vector<float> keys(model.keys.begin(), model.keys.end());
  const std::vector<Choice> choices = Thin(std::move(held_out.choices));
  Tell(options, absl::StrCat("choosing defaults by ", choices.size(),
                             " held-out items"));
  return FitDefaults(
      MatrixView{.data = keys.data(),
                 .row_count = static_cast<std::int64_t>(log.item_ids.size()),
                 .dim = model.dim},
      choices, DefaultsSearch());
}

}  // namespace

SparseMatrix EventMatrix(const EventLog& log, RatingKind kind) {
  std::vector<Event> events = log.events;
  const auto place = [](const Event& event) {
    return std::pair(event.customer, event.item);
  };
  // Stable, so that ratings are always summed in the same order.
  std::ranges::stable_sort(events, [&](const Event& a, const Event& b) {
    return place(a) < place(b);
  });
  SparseMatrix matrix;
  matrix.row_count = static_cast<std::int32_t>(log.customer_ids.size());
  matrix.column_count = static_cast<std::int32_t>(log.item_ids.size());
  for (std::size_t i = 0; i < events.size();) {
    const Event& first = events[i];
    double count = 0;
    double rating_sum = 0;
    for (; i < events.size() && place(events[i]) == place(first); ++i) {
      ++count;
      rating_sum += events[i].rating;
    }
    double value = count;
    if (kind == RatingKind::kLogCount) value = std::log1p(count);
    if (kind == RatingKind::kExplicit) value = rating_sum / count;
    matrix.entries.push_back(
        {.row = first.customer, .column = first.item, .value = value});
  }
  return matrix;
}

absl::StatusOr<LsiModel> FitLsi(const EventLog& log,
                                const LsiOptions& options) {
  ATTENDANT_RETURN_IF_ERROR(Validate(log, options));
  AttentionDefaults defaults;
  if (options.temperature.has_value()) {
    defaults.temperature = *options.temperature;
  } else {
    ATTENDANT_ASSIGN_OR_RETURN(defaults, SearchDefaults(log, options));
  }
  Tell(options, "decomposing all events");
  ATTENDANT_ASSIGN_OR_RETURN(LsiModel model, FitKeys(log, options));
  model.defaults = defaults;
  return model;
}

}  // namespace attendant
