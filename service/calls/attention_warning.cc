#include "service/calls/attention_warning.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "core/catalog/live/catalog_set.h"
#include "core/catalog/query/attend.h"

namespace attendant {
namespace {

constexpr std::int64_t kMaxSamples = 64;
constexpr std::int64_t kMinSamples = 3;
constexpr std::int64_t kMinKeyCount = 16;
// Maximum number of keys scored for a warning; kMinSamples queries are always
// made.
constexpr std::int64_t kScoredKeys = 3'200'000;
constexpr RowIndex kRowsBetweenChecks = 1 << 16;

// Returns ids of `sample_count` items with a key in the field, spread evenly
// over the rows; fewer if the interrupt fires.
std::vector<ItemId> SampleIds(const Snapshot& snapshot, int field,
                              std::int64_t key_count, std::int64_t sample_count,
                              const Interrupt& interrupt) {
  std::vector<ItemId> ids;
  std::int64_t position = 0;
  for (std::size_t s = 0; s < snapshot.segments.size(); ++s) {
    const SegmentView& view = snapshot.segments[s];
    for (RowIndex row = 0; row < view.row_end; ++row) {
      if (row % kRowsBetweenChecks == 0 && !interrupt.Check().ok()) return ids;
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

// Returns the effective count of the sharpest head: one head that is selective
// is enough. Nothing if it is unknown for any head.
std::optional<double> EffectiveCountOf(const AttendAnswer& answer) {
  if (answer.heads.empty()) return answer.effective_item_count;
  std::optional<double> least;
  for (const HeadAnswer& head : answer.heads) {
    if (!head.effective_item_count.has_value()) return std::nullopt;
    least = std::min(least.value_or(*head.effective_item_count),
                     *head.effective_item_count);
  }
  return least;
}

// Returns the effective count of the sharpest answer. The sharpest, because
// where keys differ in length, as under DOT those of rarely bought items do,
// queries by short keys average at any temperature that suits the others, and
// such queries are rare. The result is meaningless once the interrupt has
// fired.
std::optional<double> LeastEffectiveCount(const Snapshot& snapshot, int field,
                                          std::int64_t key_count,
                                          std::int64_t sample_count,
                                          const Interrupt& interrupt) {
  std::optional<double> least;
  for (ItemId& id :
       SampleIds(snapshot, field, key_count, sample_count, interrupt)) {
    ExamplesQuery examples;
    examples.examples.push_back({std::move(id), 1.0});
    AttendQuery query;
    query.query = std::move(examples);
    query.key_field = snapshot.schema->key_fields[field].name;
    query.result_count = 1;
    query.shortlist_count = 1;
    query.omit_pooled_value = true;
    query.scan_mode = ScanMode::kExact;
    const auto answer = Attend(snapshot, query, interrupt);
    if (!answer.ok()) continue;
    if (const auto count = EffectiveCountOf(*answer)) {
      least = std::min(least.value_or(*count), *count);
    }
  }
  return least;
}

std::string WithCommas(std::int64_t count) {
  const std::string digits = absl::StrCat(count);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text.push_back(',');
    text.push_back(digits[i]);
  }
  return text;
}

std::vector<std::string> WithoutEmpty(const std::vector<std::string>& texts) {
  std::vector<std::string> kept;
  for (const std::string& text : texts) {
    if (!text.empty()) kept.push_back(text);
  }
  return kept;
}

std::int64_t KeyCount(const Snapshot& snapshot) {
  std::int64_t count = 0;
  for (std::size_t f = 0; f < snapshot.schema->key_fields.size(); ++f) {
    count += snapshot.key_count(static_cast<int>(f));
  }
  return count;
}

std::vector<ModelName> ModelNames(const Snapshot& snapshot) {
  std::vector<ModelName> names;
  for (const NamedModel& model : snapshot.models) names.push_back(model.name);
  return names;
}

}  // namespace

AttentionWarnings::Found AttentionWarnings::Find(const Snapshot& snapshot,
                                                 std::vector<std::string> known,
                                                 const Interrupt& interrupt) {
  const auto& key_fields = snapshot.schema->key_fields;
  Found found = {.warnings = std::move(known)};
  found.warnings.resize(key_fields.size());
  for (std::size_t f = 0; f < key_fields.size(); ++f) {
    const int field = static_cast<int>(f);
    const std::int64_t key_count = snapshot.key_count(field);
    if (key_count < kMinKeyCount) {
      found.warnings[f].clear();
      continue;
    }
    const std::int64_t sample_count = std::clamp(
        kScoredKeys / key_count, kMinSamples, std::min(kMaxSamples, key_count));
    const std::optional<double> least = LeastEffectiveCount(
        snapshot, field, key_count, sample_count, interrupt);
    if (!interrupt.Check().ok()) {
      found.is_cut_short = true;
      break;
    }
    found.warnings[f].clear();
    if (!least.has_value() || *least <= 0.5 * static_cast<double>(key_count)) {
      continue;
    }
    const std::string& name = key_fields[f].name;
    found.warnings[f] = absl::StrCat(
        "key field ", name, ": attention is nearly flat: asked by any of ",
        sample_count, " items, it spreads over at least ",
        WithCommas(std::llround(*least)), " of ", WithCommas(key_count),
        "; a temperature below ", key_fields[f].temperature,
        " concentrates it (attendant catalog update CATALOG ", name,
        " --temperature T)");
  }
  return found;
}

bool AttentionWarnings::Fits(const Entry& entry, const Snapshot& snapshot) {
  // A change of defaults creates a new schema object. The model it names
  // becomes active later, without a write, when the keys have been projected by
  // it.
  return entry.schema == snapshot.schema &&
         entry.models == ModelNames(snapshot);
}

bool AttentionWarnings::Stands(const Entry& entry, const Snapshot& snapshot,
                               SteadyTime now, SteadyTime::duration budget) {
  if (!Fits(entry, snapshot)) return false;
  if (entry.found.is_cut_short && budget > 2 * entry.budget) return false;
  const bool is_recent = now - entry.time < std::chrono::minutes(1);
  if (entry.sequence == snapshot.sequence) {
    return is_recent || !entry.found.is_cut_short;
  }
  return is_recent &&
         10 * std::abs(KeyCount(snapshot) - entry.key_count) <= entry.key_count;
}

std::vector<std::string> AttentionWarnings::Of(const Snapshot& snapshot,
                                               const Interrupt& interrupt,
                                               SteadyTime now) {
  const std::string& uid = snapshot.catalog_uid;
  // The rest of the caller's time is left for the reply.
  const SteadyTime::duration budget = std::min<SteadyTime::duration>(
      absl::ToChronoNanoseconds(kBudget), (interrupt.deadline - now) / 2);
  std::vector<std::string> known;
  {
    MutexLock lock(&mutex_);
    const auto entry = entries_.find(uid);
    if (entry != entries_.end() && Fits(entry->second, snapshot)) {
      known = entry->second.found.warnings;
    }
    const bool stands =
        entry != entries_.end() && Stands(entry->second, snapshot, now, budget);
    if (stands || under_way_) return WithoutEmpty(known);
    under_way_ = true;
  }
  const absl::Cleanup done = [&] {
    MutexLock lock(&mutex_);
    under_way_ = false;
  };
  const Interrupt in_budget = {.deadline = now + budget,
                               .cancelled = interrupt.cancelled};
  Found found = Find(snapshot, std::move(known), in_budget);
  std::vector<std::string> warnings = WithoutEmpty(found.warnings);
  // A caller that went away or had no time has computed nothing to store.
  if (!interrupt.Check().ok()) return warnings;
  MutexLock lock(&mutex_);
  // Deleted catalogs leave entries behind.
  if (entries_.size() >= kMaxCatalogs && !entries_.contains(uid)) {
    entries_.erase(
        std::ranges::min_element(entries_, [](const auto& a, const auto& b) {
          return a.second.time < b.second.time;
        }));
  }
  entries_[uid] = {.schema = snapshot.schema,
                   .models = ModelNames(snapshot),
                   .sequence = snapshot.sequence,
                   .key_count = KeyCount(snapshot),
                   .time = now,
                   .budget = budget,
                   .found = std::move(found)};
  return warnings;
}

}  // namespace attendant
