// Statistics of many answers to one kind of question, and whether they pass:
// one row of a table, and one JSON object. Also the flags that the programs of
// this directory share.
#ifndef ATTENDANT_BENCH_MASS_MASS_CELL_H_
#define ATTENDANT_BENCH_MASS_MASS_CELL_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/catalog/query/attend.h"

namespace attendant {

struct SetFlags {
  std::string directory;
  std::int64_t query_count = 2000;
  std::string json_path;
  std::vector<std::string> sets;
};

// Adds --data, --queries, --json and the names of data sets.
void AddSetFlags(CLI::App& app, std::int64_t least_queries, SetFlags& flags);

// The question that was asked of the same keys repeatedly.
struct MassQuestion {
  std::string keys;
  std::string filter;
  double temperature = 1;
  // "unstated", "learned", "0.02" or "bound"; "min_mass" for min_mass.
  std::string asked;
  double min_mass = 0;
};

// One answer compared with the truth.
struct MassAnswer {
  MassMethod method = MassMethod::kUnknown;
  // Errors of the log partition and of the ends of its interval.
  double error = 0;
  double lower = 0;
  double upper = 0;
  bool holds_returned = false;  // returned_mass holds the exact mass
  double seconds = 0;
  double scored = 0;
  // For min_mass: the size of the returned set, the size of the smallest set
  // with that mass (0: beyond the cap), and the exact mass of the returned set.
  std::size_t size = 0;
  std::size_t smallest = 0;
  double mass = 0;
  double exact_seconds = 0;  // with scan_mode EXACT
};

// A limit that the answers must meet, applied if the cell has enough answers to
// decide.
struct MassBar {
  std::string name;
  bool met = false;
};

// Returns the rounding error of a log partition whose logits are floats of
// about 1 / `temperature`.
double LogRounding(double temperature);

class MassCell {
 public:
  MassCell(MassQuestion question, const std::vector<MassAnswer>& answers);

  const std::vector<MassBar>& bars() const { return bars_; }
  const nlohmann::json& json() const { return json_; }
  // Returns a row of the table that Header begins.
  std::string Row() const;
  static std::string Header(bool min_mass);

 private:
  void Estimates(const std::vector<MassAnswer>& answers);
  void Sets(const std::vector<MassAnswer>& answers);

  MassQuestion question_;
  nlohmann::json json_;
  std::vector<std::string> columns_;
  std::vector<MassBar> bars_;
};

}  // namespace attendant

#endif  // ATTENDANT_BENCH_MASS_MASS_CELL_H_
