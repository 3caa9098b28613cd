#include "core/shortlist/scan/shared_scan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/base/aligned_buffer.h"
#include "core/base/status.h"
#include "core/kernels/kernels.h"
#include "core/shortlist/scan/eligible_rows.h"
#include "core/shortlist/scan/row_scan.h"

namespace attendant {
namespace {

// Most queries of one pass. More would need more room for products than the
// second-level cache has, and save nothing, because the time to read keys is a
// small part already.
constexpr std::size_t kMaxTogether = 64;
// Keys whose products with all queries are held at once: as many as a state
// takes at once, so that no copy is needed.
constexpr std::int64_t kSlabKeys = RowScan::kBlockRows;
// A task in progress, and its scan.
struct Member {
  Member(ScanTask& scan_task, const StoredKeys& keys)
      : task(&scan_task),
        scan(*scan_task.query, *scan_task.state),
        scorer(*scan_task.query) {
    const ScanQuery& query = *scan_task.query;
    sees_all = query.excluded == nullptr && query.allowed == nullptr &&
               query.row_end >= keys.row_end;
  }

  ScanTask* task;
  RowScan scan;
  KeyScorer scorer;
  bool sees_all = false;  // every row is eligible
  bool shares = false;
  absl::Status status;
};

bool SeesEnough(const ScanQuery& query, const StoredKeys& keys) {
  const std::int64_t enough =
      (keys.row_end + kRowsPerEligible - 1) / kRowsPerEligible;
  if (query.eligible_count) return *query.eligible_count >= enough;
  const EligibleRows eligible(query);
  std::int64_t count = 0;
  for (std::int64_t w = 0; count < enough && 64 * w < keys.row_end; ++w) {
    count += std::popcount(eligible.Word(w));
  }
  return count >= enough;
}

// One pass of at most kMaxTogether tasks.
class Pass {
 public:
  Pass(const StoredKeys& keys, std::span<ScanTask* const> tasks) : keys_(keys) {
    members_.reserve(tasks.size());
    for (ScanTask* task : tasks) {
      Member& member = members_.emplace_back(*task, keys);
      member.status = member.scan.Start();
    }
    // A single query scans by itself, which prefetches keys.
    if (members_.size() < 2) return;
    std::vector<Member*> sharing;
    for (Member& member : members_) {
      if (!member.status.ok() || !KeyScorer::TakesDots(*member.task->query)) {
        continue;
      }
      sharing.push_back(&member);
    }
    if (sharing.size() < 2) return;
    std::erase_if(sharing, [&keys](const Member* member) {
      return !member->sees_all && !SeesEnough(*member->task->query, keys);
    });
    if (sharing.size() < 2) return;
    for (Member* member : sharing) member->shares = true;
    GatherQueries();
  }

  void Run() {
    for (std::int64_t begin = 0; begin < keys_.key_count; begin += kSlabKeys) {
      TakeSlab(begin, std::min(kSlabKeys, keys_.key_count - begin));
    }
    for (Member& member : members_) {
      if (member.status.ok()) member.status = member.scan.Finish();
      if (!member.status.ok()) {
        member.task->stats = member.status;
        continue;
      }
      member.task->stats = ScanStats{.scored_count = member.scan.scored_count(),
                                     .complete = true,
                                     .exact = true,
                                     .results_exact = true,
                                     .knows_mass = true};
    }
  }

 private:
  // Copies the vectors of the queries that share the pass, one after the other.
  void GatherQueries() {
    queries_.clear();
    sharing_.clear();
    for (Member& member : members_) {
      if (!member.shares || !member.status.ok()) continue;
      const std::span<const float> query = member.task->query->query;
      queries_.insert(queries_.end(), query.begin(), query.end());
      sharing_.push_back(&member);
    }
  }

  void TakeSlab(std::int64_t begin, std::int64_t count) {
    KeyRun run = {.keys = keys_.keys + begin * keys_.dim,
                  .inverse_norms = keys_.inverse_norms + begin,
                  .first_row = static_cast<RowIndex>(begin),
                  .count = count};
    if (keys_.rows != nullptr) run.rows = keys_.rows + begin;
    for (Member& member : members_) {
      if (!member.shares && member.status.ok()) Take(run, member);
    }
    if (sharing_.empty()) return;
    RowIndex rows[kSlabKeys];
    if (keys_.rows == nullptr) {
      std::iota(rows, rows + count, run.first_row);
      run.rows = rows;
    }
    run.all_keyed = std::none_of(run.inverse_norms, run.inverse_norms + count,
                                 [](float norm) { return std::isnan(norm); });
    thread_local AlignedBuffer<float> products(kMaxTogether * kSlabKeys);
    ActiveKernels().DotRowsMulti(queries_.data(),
                                 static_cast<std::int64_t>(sharing_.size()),
                                 run.keys, count, keys_.dim, products.data());
    bool all_well = true;
    for (std::size_t m = 0; m < sharing_.size(); ++m) {
      float* similarities =
          products.data() + static_cast<std::int64_t>(m) * count;
      sharing_[m]->scorer.FromDots(run.inverse_norms, count, similarities);
      run.similarities = similarities;
      Take(run, *sharing_[m]);
      all_well &= sharing_[m]->status.ok();
    }
    if (!all_well) GatherQueries();
  }

  void Take(const KeyRun& run, Member& member) const {
    member.status = keys_.rows == nullptr
                        ? member.scan.ScanConsecutive(run)
                        : member.scan.Scan(run, member.sees_all);
  }

  const StoredKeys& keys_;
  absl::InlinedVector<Member, 1> members_;
  std::vector<Member*> sharing_;
  std::vector<float> queries_;  // of sharing_, [size, dim]
};

}  // namespace

void ScanEveryKey(const StoredKeys& keys, std::span<ScanTask* const> tasks) {
  for (std::size_t first = 0; first < tasks.size(); first += kMaxTogether) {
    Pass(keys,
         tasks.subspan(first, std::min(kMaxTogether, tasks.size() - first)))
        .Run();
  }
}

absl::StatusOr<ScanStats> ScanAlone(const KeyIndex& index,
                                    const ScanQuery& query,
                                    AttentionState& state) {
  ScanTask task = {.query = &query, .state = &state};
  index.ScanTogether({&task, 1});
  return std::move(task.stats);
}

}  // namespace attendant
