#include "bench/mass/mass_cell.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "bench/data/data_set.h"

namespace attendant {
namespace {

// The interval score of Gneiting and Raftery (2007) for 95 %.
constexpr double kAlpha = 0.05;
// A share of fewer answers proves nothing.
constexpr std::size_t kMinAnswers = 20;
// Largest share of answers of unknown method; these count for no other bar.
constexpr double kMaxUnknown = 0.01;

double Percentile(std::vector<double> numbers, double share) {
  if (numbers.empty()) return 0;
  const auto nth = static_cast<std::ptrdiff_t>(
      share * static_cast<double>(numbers.size() - 1));
  std::nth_element(numbers.begin(), numbers.begin() + nth, numbers.end());
  return numbers[nth];
}

template <typename Is>
double Share(const std::vector<MassAnswer>& answers, Is is) {
  if (answers.empty()) return 0;
  return static_cast<double>(std::ranges::count_if(answers, is)) /
         static_cast<double>(answers.size());
}

template <typename Of>
std::vector<double> Each(const std::vector<MassAnswer>& answers, Of of) {
  std::vector<double> numbers;
  for (const MassAnswer& answer : answers) numbers.push_back(of(answer));
  return numbers;
}

}  // namespace

void AddSetFlags(CLI::App& app, std::int64_t least_queries, SetFlags& flags) {
  flags.directory = kDataDirectory;
  app.option_defaults()->always_capture_default();
  app.add_option("--data", flags.directory, "Where data sets are made");
  app.add_option("--queries", flags.query_count, "Of each set")
      ->check(CLI::Range(least_queries, std::int64_t{1} << 32));
  app.add_option("--json", flags.json_path, "File for what was measured");
  app.add_option("SET", flags.sets, "Sets of bench/data")->required();
}

double LogRounding(double temperature) { return 0x1p-20 / temperature; }

MassCell::MassCell(MassQuestion question,
                   const std::vector<MassAnswer>& answers)
    : question_(std::move(question)) {
  json_ = {{"keys", question_.keys},
           {"filter", question_.filter},
           {"temperature", question_.temperature},
           {"asked", question_.asked},
           {"queries", answers.size()},
           {"exact", Share(answers,
                           [](const MassAnswer& answer) {
                             return answer.method == MassMethod::kExact;
                           })},
           {"microseconds",
            1e6 * Percentile(Each(answers, [](auto& a) { return a.seconds; }),
                             0.5)}};
  columns_ = {question_.keys, question_.filter,
              absl::StrCat(question_.temperature)};
  if (question_.min_mass > 0) {
    Sets(answers);
  } else {
    Estimates(answers);
  }
  for (const MassBar& bar : bars_) json_["bars"][bar.name] = bar.met;
}

void MassCell::Estimates(const std::vector<MassAnswer>& answers) {
  const double rounding = LogRounding(question_.temperature);
  std::vector<MassAnswer> known;
  std::copy_if(answers.begin(), answers.end(), std::back_inserter(known),
               [](const MassAnswer& answer) {
                 return answer.method != MassMethod::kUnknown;
               });
  const bool bound = question_.asked == "bound";
  const double covered = Share(known, [&](const MassAnswer& answer) {
    // Bounds account for rounding; the logits of the others are floats.
    const double slack = answer.method == MassMethod::kBound ? 0 : rounding;
    return answer.lower <= slack && -slack <= answer.upper;
  });
  const double returned_covered = Share(
      known, [](const MassAnswer& answer) { return answer.holds_returned; });
  const std::vector<double> errors =
      Each(known, [](auto& a) { return std::abs(a.error); });
  const double p95 = Percentile(errors, 0.95);
  const double worst = errors.empty() ? 0 : *std::ranges::max_element(errors);
  const double width =
      Percentile(Each(known, [](auto& a) { return a.upper - a.lower; }), 0.5);
  double score = 0;
  double scored = 0;
  for (const MassAnswer& answer : known) {
    score += answer.upper - answer.lower +
             2 / kAlpha * std::max(0.0, answer.lower) +
             2 / kAlpha * std::max(0.0, -answer.upper);
    scored += answer.scored;
  }
  const auto count =
      static_cast<double>(std::max<std::size_t>(1, known.size()));
  const double unknown =
      1 - static_cast<double>(known.size()) /
              static_cast<double>(std::max<std::size_t>(1, answers.size()));
  json_.update({{"error_p95", p95},
                {"error_worst", worst},
                {"covered", covered},
                {"returned_mass_covered", returned_covered},
                {"width", width},
                {"interval_score", score / count},
                {"unknown", unknown},
                {"scored", scored / count}});
  columns_.insert(
      columns_.end(),
      {question_.asked, absl::StrFormat("%.5f", p95),
       absl::StrFormat("%.5f", worst), absl::StrFormat("%.4f", covered),
       absl::StrFormat("%.4f", returned_covered),
       absl::StrFormat("%.5f", width),
       p95 > rounding ? absl::StrFormat("%.2f", width / p95) : "",
       absl::StrFormat("%.4f", score / count),
       absl::StrFormat("%.0f %%", 100 * json_["exact"].get<double>()),
       absl::StrFormat("%.0f %%", 100 * unknown),
       absl::StrFormat("%.0f", scored / count),
       absl::StrFormat("%.1f", json_["microseconds"].get<double>())});
  bars_.push_back({"unknown <= 1 %", unknown <= kMaxUnknown});
  if (known.size() < kMinAnswers) return;
  if (bound) {
    bars_.push_back({"bound never fails", covered == 1});
    // Half of an interval's width; the bar applies at one temperature.
    if (question_.temperature == 0.1) {
      bars_.push_back({"half-width <= 0.5 at 0.1", width / 2 <= 0.5});
    }
  } else {
    bars_.push_back({"covered >= 93 %", covered >= 0.93});
    bars_.push_back({"width <= 4 x p95", width <= 4 * std::max(p95, rounding)});
  }
  if (question_.asked == "0.02") {
    bars_.push_back({"p95 <= 0.02", p95 <= 0.02});
    bars_.push_back({"worst <= 0.1", worst <= 0.1});
  }
  if (bound) {
    bars_.push_back({"returned mass never fails", returned_covered == 1});
  } else {
    bars_.push_back(
        {"returned mass covered >= 93 %", returned_covered >= 0.93});
  }
}

void MassCell::Sets(const std::vector<MassAnswer>& answers) {
  const double wanted = question_.min_mass;
  std::vector<MassAnswer> reachable;
  std::copy_if(answers.begin(), answers.end(), std::back_inserter(reachable),
               [](const MassAnswer& answer) { return answer.smallest > 0; });
  const double capped = Share(
      answers, [](const MassAnswer& answer) { return answer.smallest == 0; });
  const double held = Share(reachable, [&](const MassAnswer& answer) {
    return answer.mass >= wanted;
  });
  const double ratio = Percentile(Each(reachable,
                                       [](auto& a) {
                                         return static_cast<double>(a.size) /
                                                static_cast<double>(a.smallest);
                                       }),
                                  0.5);
  const double smallest = Percentile(
      Each(reachable, [](auto& a) { return static_cast<double>(a.smallest); }),
      0.5);
  const double time = Percentile(
      Each(answers, [](auto& a) { return a.seconds / a.exact_seconds; }), 0.5);
  const double returned_covered = Share(
      answers, [](const MassAnswer& answer) { return answer.holds_returned; });
  json_.update({{"min_mass", wanted},
                {"capped", capped},
                {"held", held},
                {"size_ratio", ratio},
                {"smallest", smallest},
                {"returned_mass_covered", returned_covered},
                {"time_of_exact", time}});
  columns_.insert(
      columns_.end(),
      {absl::StrCat(wanted), absl::StrFormat("%.0f %%", 100 * capped),
       absl::StrFormat("%.4f", held), absl::StrFormat("%.3f", ratio),
       absl::StrFormat("%.0f", smallest),
       absl::StrFormat("%.4f", returned_covered),
       absl::StrFormat("%.0f %%", 100 * json_["exact"].get<double>()),
       absl::StrFormat("%.2f", time)});
  bars_.push_back({"returned mass covered >= 93 %", returned_covered >= 0.93});
  if (reachable.size() < kMinAnswers) return;
  bars_.push_back({"holds min_mass on >= 95 %", held >= 0.95});
  if (wanted > 0.9) {
    bars_.push_back({"size <= 1.25 of the smallest", ratio <= 1.25});
  } else {
    bars_.push_back({"size <= 1.1 of the smallest", ratio <= 1.1});
  }
}

std::string MassCell::Row() const {
  std::vector<std::string> missed;
  for (const MassBar& bar : bars_) {
    if (!bar.met) missed.push_back(bar.name);
  }
  return absl::StrCat("| ", absl::StrJoin(columns_, " | "), " | ",
                      missed.empty()
                          ? "pass"
                          : absl::StrCat("MISS: ", absl::StrJoin(missed, ", ")),
                      " |");
}

std::string MassCell::Header(bool min_mass) {
  const std::vector<std::string> columns =
      min_mass ? std::vector<std::string>{"keys",
                                          "filter",
                                          "temperature",
                                          "min_mass",
                                          "beyond the cap",
                                          "held",
                                          "size / smallest",
                                          "smallest",
                                          "returned mass covered",
                                          "exact",
                                          "time / exact",
                                          "bars"}
               : std::vector<std::string>{"keys",
                                          "filter",
                                          "temperature",
                                          "asked",
                                          "error p95",
                                          "worst",
                                          "covered",
                                          "returned mass covered",
                                          "median width",
                                          "width / p95",
                                          "interval score",
                                          "exact",
                                          "unknown",
                                          "scored",
                                          "us",
                                          "bars"};
  std::string rule = "|";
  for (std::size_t i = 0; i < columns.size(); ++i) rule += "---|";
  return absl::StrCat("| ", absl::StrJoin(columns, " | "), " |\n", rule);
}

}  // namespace attendant
