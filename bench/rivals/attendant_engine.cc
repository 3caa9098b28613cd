// Our indexes. Configurations: INDEX or INDEX MODE, where INDEX is flat, ivf,
// ivf:LISTS or ivf-disk, whose floats are in a file, and MODE defines the
// effort:
//   (none)  lists to visit
//   asked   1,000 times the requested recall
//   proven  ignored: the best are proven, the partition within 0.001
//   stated  ignored: the partition within 0.02
//   exact   ignored: every key is scored from its floats
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "bench/rivals/engine.h"
#include "core/attention/softmax/state.h"
#include "core/base/status.h"
#include "core/shortlist/ivf/ivf_index.h"
#include "core/shortlist/kinds/flat_index.h"
#include "core/storage/files/unlinked_files.h"

namespace attendant {
namespace {

class NoIds : public IdResolver {
 public:
  absl::string_view IdOf(std::int32_t, RowIndex) const override { return {}; }
};

// kRecall: efforts are thousandths of a recall. kTuned: efforts are recalls
// ever closer to 1, as others are tuned by lists or candidates.
enum class Goal { kProbes, kRecall, kTuned, kProven, kStated, kExact };

// Raising the effort by this many halves what is missed.
constexpr std::int64_t kEffortsOfHalf = 16;

struct BuiltIndex {
  std::unique_ptr<KeyIndex> index;
  double seconds = 0;
};

// `files`: where ivf-disk stores its floats.
absl::StatusOr<std::unique_ptr<KeyIndex>> MakeIndex(absl::string_view name,
                                                    const DataSet& data,
                                                    ScratchFiles& files) {
  const std::int64_t count = data.keys.row_count();
  if (name == "flat") {
    auto flat = std::make_unique<FlatIndex>(data.dim, count);
    for (std::int64_t row = 0; row < count; ++row) {
      flat->Append(data.keys.Row(row));
    }
    return flat;
  }
  IvfOptions options;
  if (name == "ivf-disk") options.key_files = &files;
  if (name != "ivf" && name != "ivf-disk" &&
      (!absl::ConsumePrefix(&name, "ivf:") ||
       !absl::SimpleAtoi(name, &options.list_count))) {
    return absl::InvalidArgumentError(absl::StrCat("no index ", name));
  }
  options.thread_count = 2;  // as the other engines
  std::vector<std::span<const float>> keys;
  for (std::int64_t row = 0; row < count; ++row) {
    keys.push_back(data.keys.Row(row));
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      std::unique_ptr<IvfIndex> ivf,
      IvfIndex::Build(keys, data.dim, ScoreKind::kDot, options));
  return ivf;
}

class AttendantEngine : public Engine {
 public:
  std::string version() const override { return "this tree"; }

  absl::StatusOr<BuildReport> Build(const std::string& configuration,
                                    const DataSet& data,
                                    const std::string& cache) override {
    const std::vector<std::string> parts = absl::StrSplit(configuration, ' ');
    const std::string mode = parts.size() > 1 ? parts[1] : "";
    if (mode == "asked") {
      goal_ = Goal::kRecall;
    } else if (mode == "tuned") {
      goal_ = Goal::kTuned;
    } else if (mode == "proven") {
      goal_ = Goal::kProven;
    } else if (mode == "stated") {
      goal_ = Goal::kStated;
    } else if (mode == "exact") {
      goal_ = Goal::kExact;
    } else if (mode.empty()) {
      goal_ = Goal::kProbes;
    } else {
      return absl::InvalidArgumentError(absl::StrCat("no mode ", mode));
    }
    BuiltIndex& built = built_[parts[0]];
    if (built.index == nullptr) {
      const auto start = std::chrono::steady_clock::now();
      UnlinkedFiles files(cache + ".keys");
      ATTENDANT_ASSIGN_OR_RETURN(built.index, MakeIndex(parts[0], data, files));
      built.seconds = std::chrono::duration<double>(
                          std::chrono::steady_clock::now() - start)
                          .count();
    }
    index_ = built.index.get();
    key_count_ = data.keys.row_count();
    list_count_ = 1;
    if (const auto* ivf = dynamic_cast<const IvfIndex*>(index_)) {
      list_count_ = ivf->list_count();
    }
    return BuildReport{.seconds = built.seconds};
  }

  EffortRange efforts() const override {
    switch (goal_) {
      case Goal::kProbes:
        return {1, list_count_};
      case Goal::kRecall:
        return {500, 999};
      case Goal::kTuned:
        return {kEffortsOfHalf, 12 * kEffortsOfHalf};
      default:
        return {1, 1};
    }
  }

  std::vector<BatchMode> batch_modes() const override { return {{"together"}}; }

  void Prepare(std::int64_t effort, int) override {
    goals_ = {};
    if (goal_ == Goal::kProbes) goals_.probe_count = effort;
    if (goal_ == Goal::kRecall) {
      goals_.recall = static_cast<double>(effort) / 1000;
    }
    if (goal_ == Goal::kTuned) {
      goals_.recall = 1 - std::exp2(-static_cast<double>(effort) /
                                    static_cast<double>(kEffortsOfHalf));
    }
    if (goal_ == Goal::kStated) goals_.mass_precision = 0.02;
    if (goal_ == Goal::kProven) {
      goals_.recall = 1;
      goals_.mass_precision = 0.001;
    }
  }

  void Search(const float* queries, std::int64_t count,
              Answer* answers) override {
    static const NoIds ids;
    const std::size_t dim = static_cast<std::size_t>(index_->dim());
    std::vector<ScanQuery> scans(static_cast<std::size_t>(count));
    std::vector<AttentionState> states;
    states.reserve(scans.size());
    std::vector<ScanTask> tasks(scans.size());
    for (std::size_t q = 0; q < scans.size(); ++q) {
      scans[q].query = {queries + q * dim, dim};
      scans[q].logit_factor =
          LogitFactor(ScoreKind::kDot, index_->dim(), Temperature());
      scans[q].row_end = static_cast<RowIndex>(key_count_);
      scans[q].exhaustive = goal_ == Goal::kExact;
      scans[q].goals = goals_;
      states.emplace_back(kTruthCount, &ids);
      tasks[q].query = &scans[q];
      tasks[q].state = &states[q];
    }
    if (count == 1) {
      tasks[0].stats = index_->Scan(scans[0], states[0]);
    } else {
      index_->ScanTogether(tasks);
    }
    for (std::size_t q = 0; q < tasks.size(); ++q) {
      if (!tasks[q].stats.ok()) std::abort();
      Fill(*tasks[q].stats, states[q], answers[q]);
    }
  }

 private:
  static void Fill(const ScanStats& stats, const AttentionState& state,
                   Answer& answer) {
    float logits[kTruthCount];
    const std::vector<Candidate> best = state.top().Sorted();
    answer.rows.fill(-1);
    for (std::size_t i = 0; i < best.size(); ++i) {
      answer.rows[i] = static_cast<std::int32_t>(best[i].row);
      logits[i] = best[i].logit;
    }
    WeighRows(logits, static_cast<std::int64_t>(best.size()), answer);
    answer.log_partition = *state.partition().LogPartition();
    answer.stated_error =
        stats.knows_mass
            ? std::exp(stats.log_variance / 2 - answer.log_partition)
            : std::numeric_limits<double>::quiet_NaN();
  }

  std::map<std::string, BuiltIndex> built_;  // by the name of the index
  const KeyIndex* index_ = nullptr;
  std::int64_t key_count_ = 0;
  std::int64_t list_count_ = 1;
  Goal goal_ = Goal::kProbes;
  ScanGoals goals_;
};

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) {
  attendant::AttendantEngine engine;
  return attendant::RunEngine(argc, argv, "attendant", engine);
}
