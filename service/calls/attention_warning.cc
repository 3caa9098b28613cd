#include "service/calls/attention_warning.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "core/catalog/attend.h"
#include "core/catalog/catalog_set.h"

namespace attendant {
namespace {

constexpr std::int64_t kMostSamples = 64;
constexpr std::int64_t kLeastSamples = 3;
constexpr std::int64_t kMinKeyCount = 16;
// Keys scored for a warning, but that kLeastSamples are asked for anyway.
constexpr std::int64_t kScoredKeys = 3'200'000;

// Ids of sample_count items with a key in the field, evenly spread over rows.
std::vector<ItemId> SampleIds(const Snapshot& snapshot, int field,
                              std::int64_t key_count,
                              std::int64_t sample_count) {
  std::vector<ItemId> ids;
  std::int64_t position = 0;
  for (std::size_t s = 0; s < snapshot.segments.size(); ++s) {
    const SegmentView& view = snapshot.segments[s];
    for (RowIndex row = 0; row < view.row_end; ++row) {
      const RowAddress address{static_cast<std::int32_t>(s), row};
      if (!view.IsLive(row) || snapshot.KeyOf(address, field).empty()) continue;
      const auto taken = static_cast<std::int64_t>(ids.size());
      if (position * sample_count >= taken * key_count) {
        ids.emplace_back(snapshot.IdOf(address.segment, address.row));
      }
      ++position;
    }
  }
  return ids;
}

// Of the sharpest answer: where keys differ in length, as under DOT those of
// items that few bought do, queries by the short ones are an average at any
// temperature that suits the others, and few ask by them.
std::optional<double> LeastEffectiveCount(const Snapshot& snapshot, int field,
                                          std::int64_t key_count,
                                          std::int64_t sample_count,
                                          const Interrupt& interrupt) {
  std::optional<double> least;
  for (ItemId& id : SampleIds(snapshot, field, key_count, sample_count)) {
    ExamplesQuery examples;
    examples.examples.push_back({std::move(id), 1.0});
    AttendQuery query;
    query.query = std::move(examples);
    query.key_field =
        snapshot.schema->key_fields[static_cast<std::size_t>(field)].name;
    query.result_count = 1;
    query.shortlist_count = 1;
    query.omit_pooled_value = true;
    query.scan_mode = ScanMode::kExact;
    const auto answer = Attend(snapshot, query, interrupt);
    if (answer.ok() && answer->effective_item_count.has_value()) {
      least = std::min(least.value_or(*answer->effective_item_count),
                       *answer->effective_item_count);
    }
  }
  if (!interrupt.Check().ok()) return std::nullopt;
  return least;
}

std::vector<std::string> FindWarnings(const Snapshot& snapshot,
                                      const Interrupt& interrupt) {
  std::vector<std::string> warnings;
  const auto& key_fields = snapshot.schema->key_fields;
  for (int field = 0; field < static_cast<int>(key_fields.size()); ++field) {
    const std::int64_t key_count = snapshot.key_count(field);
    if (key_count < kMinKeyCount) continue;
    const std::int64_t sample_count =
        std::clamp(kScoredKeys / key_count, kLeastSamples,
                   std::min(kMostSamples, key_count));
    const std::optional<double> least = LeastEffectiveCount(
        snapshot, field, key_count, sample_count, interrupt);
    if (!least.has_value() || *least <= 0.5 * static_cast<double>(key_count)) {
      continue;
    }
    const KeyFieldSchema& key_field =
        key_fields[static_cast<std::size_t>(field)];
    warnings.push_back(absl::StrCat(
        "key field ", key_field.name, ": attention is an average: of each of ",
        sample_count, " items as a query, over at least ", std::llround(*least),
        " of ", key_count, " items; a temperature below ",
        key_field.temperature, " is sharper"));
  }
  return warnings;
}

std::int64_t KeyCount(const Snapshot& snapshot) {
  std::int64_t count = 0;
  for (std::size_t f = 0; f < snapshot.schema->key_fields.size(); ++f) {
    count += snapshot.key_count(static_cast<int>(f));
  }
  return count;
}

}  // namespace

bool AttentionWarnings::Stands(const Entry& entry, const Snapshot& snapshot,
                               SteadyTime now) {
  // A change of defaults makes a new schema object.
  if (entry.schema != snapshot.schema) return false;
  if (entry.sequence == snapshot.sequence) return true;
  return now - entry.time < std::chrono::minutes(1) &&
         10 * std::abs(KeyCount(snapshot) - entry.key_count) <= entry.key_count;
}

std::vector<std::string> AttentionWarnings::Of(const Snapshot& snapshot,
                                               const Interrupt& interrupt,
                                               SteadyTime now) {
  const std::string& uid = snapshot.catalog_uid;
  {
    MutexLock lock(&mutex_);
    const auto found = entries_.find(uid);
    const bool stands =
        found != entries_.end() && Stands(found->second, snapshot, now);
    if (stands || !under_way_.insert(uid).second) {
      const bool told =
          found != entries_.end() && found->second.schema == snapshot.schema;
      return told ? found->second.warnings : std::vector<std::string>();
    }
  }
  const absl::Cleanup done = [&] {
    MutexLock lock(&mutex_);
    under_way_.erase(uid);
  };
  std::vector<std::string> warnings = FindWarnings(snapshot, interrupt);
  if (!interrupt.Check().ok()) return warnings;
  MutexLock lock(&mutex_);
  // Deleted catalogs leave entries behind.
  if (entries_.size() >= kMaxCatalogs) entries_.clear();
  entries_[uid] = {snapshot.schema, snapshot.sequence, KeyCount(snapshot), now,
                   warnings};
  return warnings;
}

}  // namespace attendant
