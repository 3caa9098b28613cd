#include "core/catalog/query/draw_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/attention/sampling/group_sampling.h"
#include "core/attention/softmax/log_add.h"
#include "core/attention/softmax/state.h"
#include "core/base/minus_infinity.h"
#include "core/base/status.h"
#include "core/catalog/query/segment_query.h"
#include "core/shortlist/scan/key_groups.h"

namespace attendant {
namespace {

// All eligible rows. Rows with known logits are items of their own; the others
// are in the groups of their indexes.
class SnapshotGroups : public ItemGroups {
 public:
  SnapshotGroups(const Snapshot& snapshot, const QueryPlan& plan,
                 const Interrupt& interrupt)
      : snapshot_(snapshot), plan_(plan), interrupt_(interrupt) {}

  // Call once.
  absl::Status AddAll(std::span<const Candidate> shortlist) {
    std::vector<Candidate> known;
    for (std::size_t i = 0; i < snapshot_.segments.size(); ++i) {
      known.clear();
      for (const Candidate& candidate : shortlist) {
        if (candidate.segment == static_cast<std::int32_t>(i)) {
          known.push_back(candidate);
        }
      }
      ATTENDANT_RETURN_IF_ERROR(interrupt_.Check());
      ATTENDANT_RETURN_IF_ERROR(AddSegment(i, known));
    }
    return absl::OkStatus();
  }

  std::span<const double> log_masses() const override { return log_masses_; }
  std::span<const std::int64_t> item_counts() const override {
    return item_counts_;
  }
  std::span<const std::uint64_t> noise_keys() const override {
    return noise_keys_;
  }

  absl::Status Open(std::size_t group, GroupItems& items) override {
    ATTENDANT_RETURN_IF_ERROR(interrupt_.Check());
    std::vector<RowIndex>& rows = opened_[group];
    const Place& place = places_[group];
    place.groups->Open(place.group, rows, items.log_weights);
    const RowTable& table = *snapshot_.segments[place.segment].segment->rows;
    items.noise_keys.clear();
    items.noise_keys.reserve(rows.size());
    for (const RowIndex row : rows) {
      items.noise_keys.push_back(table.IdHash(row));
    }
    return absl::OkStatus();
  }

  // Returns the row of a group's item. A group with several items must be open.
  RowAddress AddressOf(std::size_t group, std::int64_t item) {
    const Place& place = places_[group];
    if (place.groups == nullptr) return {place.segment, place.row};
    std::vector<RowIndex>& rows = opened_[group];
    if (rows.empty()) {
      std::vector<float> unused;
      place.groups->Open(place.group, rows, unused);
    }
    return {place.segment, rows[item]};
  }

  // An estimate; see DrawnRows. With Z_Q = exp(log_mass) the sum of all weights
  // w and Z the sum of exp(logit), the distance is the sum of max(0, w / Z_Q -
  // exp(logit) / Z), which grows with Z.
  double Distance(double log_mass) const {
    if (groups_.empty()) return 0;
    double log_shortfall = kMinusInfinity;
    for (const auto& groups : groups_) {
      log_shortfall = LogAdd(log_shortfall, groups->log_shortfall());
    }
    const double growth = 1 + std::exp(log_shortfall - log_mass);
    double known = 0;  // share of the rows with known logits
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (places_[i].groups == nullptr) {
        known += std::exp(log_masses_[i] - log_mass);
      }
    }
    double distance = known * (1 - 1 / growth);
    for (const auto& groups : groups_) {
      distance += std::exp(groups->LogExcess(growth) - log_mass);
    }
    return std::min(1.0, distance);
  }

  std::int64_t scored_count() const {
    std::int64_t count = scored_count_;
    for (const auto& groups : groups_) count += groups->scored_count();
    return count;
  }

 private:
  // A single row, or a group.
  struct Place {
    std::int32_t segment = 0;
    RowIndex row = 0;
    KeyGroups* groups = nullptr;
    std::size_t group = 0;
  };

  absl::Status AddSegment(std::size_t i, std::span<const Candidate> known) {
    const PlannedHead& planned = plan_.heads.front();
    const KeyIndex& index = snapshot_.segments[i].segment->IndexOf(
        planned.field, planned.stored_head);
    SegmentQuery& query =
        queries_.emplace_back(snapshot_, plan_, planned, i, interrupt_);
    query.scan.goals = plan_.goals;
    std::unique_ptr<KeyGroups> groups = index.GroupKeys(query.scan, known);
    if (groups != nullptr) {
      AddRows(known);
      AddGroups(static_cast<std::int32_t>(i), *groups);
      groups_.push_back(std::move(groups));
      return absl::OkStatus();
    }
    AttentionState state(plan_.masks.EligibleCount(i, planned.field),
                         &snapshot_);
    query.scan.exhaustive = true;
    ATTENDANT_ASSIGN_OR_RETURN(const ScanStats stats,
                               index.Scan(query.scan, state));
    scored_count_ += stats.scored_count;
    AddRows(state.top().candidates());
    return absl::OkStatus();
  }

  void AddRows(std::span<const Candidate> rows) {
    for (const Candidate& candidate : rows) {
      log_masses_.push_back(candidate.logit);
      item_counts_.push_back(1);
      noise_keys_.push_back(
          snapshot_.segments[candidate.segment].segment->rows->IdHash(
              candidate.row));
      places_.push_back({.segment = candidate.segment, .row = candidate.row});
    }
  }

  void AddGroups(std::int32_t segment, KeyGroups& groups) {
    // Distinguishes groups from single rows: ids are unlikely to have such
    // hashes.
    constexpr std::uint64_t kGroup = 0xbb67ae8584caa73bu;
    for (std::size_t g = 0; g < groups.groups().size(); ++g) {
      const KeyGroup& group = groups.groups()[g];
      log_masses_.push_back(group.log_mass);
      item_counts_.push_back(group.key_count);
      noise_keys_.push_back(kGroup ^
                            (static_cast<std::uint64_t>(segment) << 40 |
                             static_cast<std::uint64_t>(group.id)));
      places_.push_back({.segment = segment, .groups = &groups, .group = g});
    }
  }

  const Snapshot& snapshot_;
  const QueryPlan& plan_;
  const Interrupt& interrupt_;
  std::deque<SegmentQuery> queries_;  // referenced by the groups
  std::vector<std::unique_ptr<KeyGroups>> groups_;
  std::int64_t scored_count_ = 0;
  std::vector<double> log_masses_;
  std::vector<std::int64_t> item_counts_;
  std::vector<std::uint64_t> noise_keys_;
  std::vector<Place> places_;
  absl::flat_hash_map<std::size_t, std::vector<RowIndex>> opened_;
};

}  // namespace

absl::StatusOr<DrawnRows> DrawRows(const Snapshot& snapshot,
                                   const QueryPlan& plan,
                                   std::span<const Candidate> shortlist,
                                   const Interrupt& interrupt) {
  SnapshotGroups groups(snapshot, plan, interrupt);
  ATTENDANT_RETURN_IF_ERROR(groups.AddAll(shortlist));
  const auto seed = static_cast<std::uint64_t>(plan.seed);
  ATTENDANT_ASSIGN_OR_RETURN(
      GroupSlate drawn,
      plan.with_replacement
          ? SampleGroupsWithReplacement(groups, plan.result_count, seed)
          : SampleGroupsWithoutReplacement(groups, plan.result_count, seed));
  DrawnRows answer;
  for (std::size_t d = 0; d < drawn.items.size(); ++d) {
    const auto group = static_cast<std::size_t>(drawn.slate.draws[d].index);
    answer.rows.push_back(groups.AddressOf(group, drawn.items[d]));
  }
  answer.slate = std::move(drawn.slate);
  answer.distance = groups.Distance(drawn.log_mass);
  answer.scored_count = groups.scored_count();
  return answer;
}

}  // namespace attendant
