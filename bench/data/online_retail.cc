#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/data/gzip.h"
#include "bench/data/source.h"
#include "core/base/status.h"
#include "core/encode/lsi.h"

namespace attendant {
namespace {

constexpr std::int64_t kDim = 64;

// Parses lines of customer, item, time; the first line has the names.
EventLog ParseEvents(const std::string& csv) {
  EventLog log;
  std::map<std::string, std::int32_t> customers;
  std::map<std::string, std::int32_t> items;
  const auto number = [](const std::string& id,
                         std::map<std::string, std::int32_t>& numbers,
                         std::vector<std::string>& ids) {
    const auto [at, is_new] =
        numbers.emplace(id, static_cast<std::int32_t>(ids.size()));
    if (is_new) ids.push_back(id);
    return at->second;
  };
  bool header = true;
  for (const absl::string_view line :
       absl::StrSplit(csv, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields = absl::StrSplit(line, ',');
    if (!std::exchange(header, false) && fields.size() == 3) {
      log.events.push_back(
          {.customer = number(fields[0], customers, log.customer_ids),
           .item = number(fields[1], items, log.item_ids)});
    }
  }
  return log;
}

}  // namespace

absl::StatusOr<Vectors> ReadOnlineRetail() {
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::string csv,
      ReadGzip(absl::StrCat(ATTENDANT_SOURCE_DIR,
                            "/examples/online_retail/events.csv.gz")));
  const EventLog log = ParseEvents(csv);
  // A given temperature avoids the search for one.
  ATTENDANT_ASSIGN_OR_RETURN(const LsiModel model,
                             FitLsi(log, {.dim = kDim,
                                          .key_scale = KeyScale::kSingular,
                                          .temperature = 1,
                                          .progress = nullptr}));
  Vectors vectors;
  vectors.dim = model.dim;
  vectors.keys.assign(model.keys.begin(), model.keys.end());
  NormaliseRows(model.dim, vectors.keys);
  std::vector<std::set<std::int32_t>> histories(log.customer_ids.size());
  for (const Event& event : log.events) {
    histories[event.customer].insert(event.item);
  }
  histories.resize(std::min<std::size_t>(histories.size(), kDataQueryCount));
  for (const std::set<std::int32_t>& history : histories) {
    std::vector<float> query(static_cast<std::size_t>(model.dim));
    for (const std::int32_t item : history) {
      for (std::size_t d = 0; d < query.size(); ++d) {
        query[d] +=
            vectors.keys[static_cast<std::size_t>(item) * query.size() + d];
      }
    }
    vectors.queries.insert(vectors.queries.end(), query.begin(), query.end());
  }
  NormaliseRows(model.dim, vectors.queries);
  return vectors;
}

}  // namespace attendant
