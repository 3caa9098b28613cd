// Compares what answers state about the catalog's attention with exact sums in
// double precision:
//   mass_benchmark [--data DIRECTORY] [--queries COUNT] [--ask WAY[,WAY...]]
//       [--json FILE] [--check] SET...
// WAY is unstated, learned, 0.02, bound or min_mass; the default is all.
// "Learned" requests no precision either, but its index first learned from
// other queries of the set, as many as it keeps (LearnedMass). Prints one row
// for each data set, filter, temperature and way, with the bars that it misses;
// then how many cells met each bar. See docs/mass.md.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/data/data_set.h"
#include "bench/data/ground_truth.h"
#include "bench/mass/exact_mass.h"
#include "bench/mass/mass_cell.h"
#include "bench/mass/one_segment.h"
#include "core/base/status.h"
#include "core/catalog/query/attend.h"
#include "core/catalog/segments/dead_rows.h"
#include "core/shortlist/ivf/ivf_index.h"
#include "core/shortlist/ivf/ivf_training.h"

namespace attendant {
namespace {

constexpr std::int64_t kReturnCount = 100;
constexpr double kMinMasses[] = {0.5, 0.8, 0.9, 0.95, 0.99};

enum class Filtering { kNone, kFilter, kDeletes };
struct Population {
  const char* name;
  Filtering filtering;
  double share;  // of rows that pass the filter
};
constexpr Population kPopulations[] = {
    {"all", Filtering::kNone, 1},
    {"0.1", Filtering::kFilter, 0.1},
    {"0.001", Filtering::kFilter, 0.001},
    {"20 % deleted", Filtering::kDeletes, 0.8}};

constexpr char kUnstated[] = "unstated";
constexpr char kLearned[] = "learned";

struct Way {
  std::string name;
  double min_mass = 0;

  bool IsLearned() const { return name == kLearned; }
};

std::vector<Way> WaysOf(const std::vector<std::string>& names) {
  std::vector<Way> ways;
  for (const std::string& name : names) {
    if (name != "min_mass") {
      ways.push_back({name});
      continue;
    }
    for (const double mass : kMinMasses) ways.push_back({name, mass});
  }
  return ways;
}

// A catalog of one segment under an IVF index. The attribute "place" of an item
// is uniform in [0, 1), so that filters and deletes can select a given share.
class Catalog {
 public:
  static absl::StatusOr<Catalog> Make(const DataSet& data) {
    const MatrixView keys = data.key_view();
    Catalog catalog;
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> uniform;
    auto rows = std::make_shared<RowTable>(0, keys.row_count);
    std::vector<std::span<const float>> spans;
    for (std::int64_t r = 0; r < keys.row_count; ++r) {
      spans.push_back(keys.Row(r));
      catalog.places_.push_back(uniform(random));
      rows->Append(absl::StrCat(r), {}, {{0, catalog.places_.back()}});
    }
    ATTENDANT_ASSIGN_OR_RETURN(
        std::unique_ptr<IvfIndex> index,
        IvfIndex::Build(spans, data.dim, ScoreKind::kDot, {}));
    std::cerr << data.name << ": " << keys.row_count << " keys, "
              << index->list_count() << " lists, " << index->probe_count()
              << " visited" << std::endl;
    catalog.whole_ = MakeSnapshot(std::move(rows), std::move(index),
                                  {{"place", AttributeType::kDouble}});
    return catalog;
  }

  // Lets the index learn from queries [begin, end).
  absl::Status LearnFrom(const MatrixFile<float>& queries, std::int64_t begin,
                         std::int64_t end) const {
    const KeyIndex& index = *whole_.segments[0].segment->indexes[0];
    LearnedMass& mass = *index.training()->mass;
    mass.KeepOthers();  // as measured
    for (std::int64_t q = begin; q < end; ++q) mass.Asked(queries.Row(q));
    return index.Learn(std::atomic<bool>(false)).status();
  }

  // Returns the rows that pass; null if all do.
  std::unique_ptr<Bitmap> AllowedIn(const Population& population) const {
    if (population.filtering == Filtering::kNone) return nullptr;
    auto allowed =
        std::make_unique<Bitmap>(static_cast<std::int64_t>(places_.size()));
    for (std::size_t r = 0; r < places_.size(); ++r) {
      if (places_[r] < population.share) {
        allowed->Set(static_cast<std::int64_t>(r));
      }
    }
    return allowed;
  }

  // Returns the snapshot that answers for the population.
  Snapshot SnapshotOf(const Population& population) const {
    Snapshot snapshot = whole_;
    if (population.filtering != Filtering::kDeletes) return snapshot;
    SegmentView& view = snapshot.segments[0];
    auto dead = std::make_shared<Bitmap>(view.row_end);
    for (RowIndex row = 0; row < view.row_end; ++row) {
      if (places_[row] < population.share) continue;
      dead->Set(row);
      --view.live_count;
    }
    view.live_key_counts[0] = view.live_count;
    SetDead(view, std::move(dead));
    return snapshot;
  }

 private:
  std::vector<double> places_;
  Snapshot whole_;
};

AttendQuery QueryOf(std::span<const float> vector, const Population& population,
                    double temperature, const Way& way) {
  AttendQuery query;
  query.query = std::vector<float>(vector.begin(), vector.end());
  query.temperature = temperature;
  query.omit_pooled_value = true;
  query.result_count = way.min_mass > 0 ? kMaxResultCount : kReturnCount;
  query.shortlist_count = query.result_count;
  if (population.filtering == Filtering::kFilter) {
    query.filter =
        Filter::Compare("place", ComparisonKind::kLess, population.share);
  }
  if (way.name == "0.02") query.mass_precision = 0.02;
  if (way.name == "bound") query.mass_method = MassMethod::kBound;
  if (way.min_mass > 0) query.min_mass = way.min_mass;
  return query;
}

// Returns the thread's processor time, because others may share the machine.
double ThreadSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

std::pair<AttendAnswer, double> Timed(const Snapshot& snapshot,
                                      const AttendQuery& query) {
  const double start = ThreadSeconds();
  absl::StatusOr<AttendAnswer> answer = Attend(snapshot, query, Interrupt());
  const double elapsed = ThreadSeconds() - start;
  if (!answer.ok()) {
    std::cerr << answer.status() << "\n";
    std::exit(1);
  }
  return {*std::move(answer), elapsed};
}

MassAnswer Judge(const AttendAnswer& answer, double seconds,
                 const ExactMass& exact, const Way& way) {
  MassAnswer judged;
  judged.seconds = seconds;
  judged.scored = static_cast<double>(answer.scored_count);
  judged.method = answer.returned_mass.method;
  for (const AttendedItem& item : answer.items) {
    judged.mass += exact.WeightOf(item.address.row);
  }
  if (answer.log_partition) {
    judged.error = *answer.log_partition - exact.log_partition();
    judged.lower =
        answer.log_partition_interval->lower_bound - exact.log_partition();
    judged.upper =
        answer.log_partition_interval->upper_bound - exact.log_partition();
  }
  const double rounding = LogRounding(answer.temperature);
  judged.holds_returned =
      answer.returned_mass.lower_bound <= judged.mass * (1 + rounding) &&
      judged.mass * (1 - rounding) <= answer.returned_mass.upper_bound;
  if (way.min_mass > 0) {
    judged.size = answer.items.size();
    judged.smallest = exact.SmallestSet(way.min_mass);
  }
  return judged;
}

// Answers to the queries of one data set, by population, temperature and way.
class Measurement {
 public:
  Measurement(const DataSet& data, const Catalog& catalog,
              std::vector<Way> ways)
      : data_(data),
        ways_(std::move(ways)),
        asks_for_sets_(std::ranges::any_of(
            ways_, [](const Way& way) { return way.min_mass > 0; })) {
    for (const Population& population : kPopulations) {
      allowed_.push_back(catalog.AllowedIn(population));
      snapshots_.push_back(catalog.SnapshotOf(population));
    }
    answers_.resize(std::size(kPopulations) * kTemperatures.size() *
                    ways_.size());
  }

  // Returns whether some way needs an index that learned from queries or, if
  // `learned` is false, one that did not.
  bool HasWays(bool learned) const {
    return std::ranges::any_of(ways_, [learned](const Way& way) {
      return way.IsLearned() == learned;
    });
  }

  // Asks the query in those ways.
  void Ask(std::span<const float> query, bool learned) {
    const std::vector<double> similarities = ScoreAll(query, data_.key_view());
    for (std::size_t p = 0; p < std::size(kPopulations); ++p) {
      ExactMass exact(similarities, allowed_[p].get(),
                      asks_for_sets_ && !learned ? kMaxResultCount : 1);
      for (std::size_t t = 0; t < kTemperatures.size(); ++t) {
        exact.SetTemperature(kTemperatures[t]);
        double exact_seconds = 0;
        for (std::size_t w = 0; w < ways_.size(); ++w) {
          const Way& way = ways_[w];
          if (way.IsLearned() != learned) continue;
          AttendQuery asked =
              QueryOf(query, kPopulations[p], kTemperatures[t], way);
          const auto [answer, seconds] = Timed(snapshots_[p], asked);
          MassAnswer judged = Judge(answer, seconds, exact, way);
          if (way.min_mass > 0) {
            // The time hardly depends on the mass.
            if (exact_seconds == 0) {
              asked.scan_mode = ScanMode::kExact;
              exact_seconds = Timed(snapshots_[p], asked).second;
            }
            judged.exact_seconds = exact_seconds;
          }
          AnswersOf(p, t, w).push_back(judged);
        }
      }
    }
  }

  std::vector<MassCell> Cells() {
    std::vector<MassCell> cells;
    for (std::size_t p = 0; p < std::size(kPopulations); ++p) {
      for (std::size_t w = 0; w < ways_.size(); ++w) {
        for (std::size_t t = 0; t < kTemperatures.size(); ++t) {
          cells.emplace_back(MassQuestion{.keys = data_.name,
                                          .filter = kPopulations[p].name,
                                          .temperature = kTemperatures[t],
                                          .asked = ways_[w].name,
                                          .min_mass = ways_[w].min_mass},
                             AnswersOf(p, t, w));
        }
      }
    }
    return cells;
  }

 private:
  std::vector<MassAnswer>& AnswersOf(std::size_t population,
                                     std::size_t temperature, std::size_t way) {
    return answers_[(population * kTemperatures.size() + temperature) *
                        ways_.size() +
                    way];
  }

  const DataSet& data_;
  const std::vector<Way> ways_;
  const bool asks_for_sets_;
  std::vector<std::unique_ptr<Bitmap>> allowed_;  // by population
  std::vector<Snapshot> snapshots_;
  std::vector<std::vector<MassAnswer>> answers_;
};

struct Options : SetFlags {
  std::vector<std::string> ways = {kUnstated, kLearned, "0.02", "bound",
                                   "min_mass"};
  bool check = false;
};

// For each bar, over all cells: how many there are and how many missed it.
using Tally = std::map<std::string, std::pair<int, int>>;

absl::Status Run(const std::string& name, const Options& options, Tally& tally,
                 nlohmann::json& json) {
  ATTENDANT_ASSIGN_OR_RETURN(const DataSet data,
                             LoadDataSet(name, options.directory));
  ATTENDANT_ASSIGN_OR_RETURN(const Catalog catalog, Catalog::Make(data));
  Measurement measurement(data, catalog, WaysOf(options.ways));
  const std::int64_t query_count =
      std::min(options.query_count, data.queries.row_count());
  const auto ask = [&](std::int64_t begin, std::int64_t end, bool learned) {
    for (std::int64_t q = begin; q < end; ++q) {
      measurement.Ask(data.queries.Row(q), learned);
    }
  };
  if (measurement.HasWays(/*learned=*/false)) {
    ask(0, query_count, /*learned=*/false);
  }
  if (measurement.HasWays(/*learned=*/true)) {
    // All queries are measured, and none by an index that learned from it.
    const std::int64_t cut = std::max(
        query_count / 2, query_count - std::int64_t{LearnedMass::kKeptQueries});
    ATTENDANT_RETURN_IF_ERROR(
        catalog.LearnFrom(data.queries, cut, query_count));
    ask(0, cut, /*learned=*/true);
    ATTENDANT_RETURN_IF_ERROR(
        catalog.LearnFrom(data.queries, 0, query_count - cut));
    ask(cut, query_count, /*learned=*/true);
  }
  const std::vector<MassCell> cells = measurement.Cells();
  for (const bool min_mass : {false, true}) {
    bool any = false;
    for (const MassCell& cell : cells) {
      if (cell.json().contains("min_mass") != min_mass) continue;
      if (!any) std::cout << MassCell::Header(min_mass) << "\n";
      any = true;
      std::cout << cell.Row() << "\n";
      json.push_back(cell.json());
      for (const MassBar& bar : cell.bars()) {
        auto& [count, missed] = tally[absl::StrCat(
            cell.json()["asked"].get<std::string>(), ": ", bar.name)];
        ++count;
        missed += bar.met ? 0 : 1;
      }
    }
    std::cout << std::endl;
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("What answers say of mass, against exact sums",
               "mass_benchmark");
  AddSetFlags(app, /*least_queries=*/20, options);
  app.add_option("--ask", options.ways, "Ways to ask")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(options.ways));
  app.add_flag("--check", options.check, "Fail if a bar is missed");
  CLI11_PARSE(app, argc, argv);

  Tally tally;
  nlohmann::json json = nlohmann::json::array();
  for (const std::string& name : options.sets) {
    const absl::Status status = Run(name, options, tally, json);
    if (!status.ok()) {
      std::cerr << status << "\n";
      return 1;
    }
  }
  bool all_met = true;
  for (const auto& [bar, cells] : tally) {
    const auto& [count, missed] = cells;
    all_met = all_met && missed == 0;
    std::cout << (missed == 0 ? "met     " : "MISSED  ") << bar << ": in "
              << count - missed << " of " << count << " cells\n";
  }
  if (!options.json_path.empty()) {
    std::ofstream file(options.json_path);
    const char* before = "[\n";
    for (const nlohmann::json& cell : json) {
      file << before << cell;
      before = ",\n";
    }
    file << "\n]\n";
  }
  return options.check && !all_met ? 1 : 0;
}

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) { return attendant::Main(argc, argv); }
