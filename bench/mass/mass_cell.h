// What many answers to one kind of question were worth, and whether that is
// enough: a line of a table, and an object of JSON. Beside that, what the
// programs of this directory are asked by.
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

// --data, --queries, --json and the names of sets.
void AddSetFlags(CLI::App& app, std::int64_t least_queries, SetFlags& flags);

// What was asked of the same keys over and over.
struct MassQuestion {
  std::string keys;
  std::string filter;
  double temperature = 1;
  // "unstated", "learned", "0.02", "bound"; of min_mass: "min_mass"
  std::string asked;
  double min_mass = 0;
};

// One answer, less the truth.
struct MassAnswer {
  MassMethod method = MassMethod::kUnknown;
  // Of the log partition, and of the ends of its interval.
  double error = 0;
  double lower = 0;
  double upper = 0;
  bool holds_returned = false;  // returned_mass holds the exact mass
  double seconds = 0;
  double scored = 0;
  // Of min_mass: the size of the set, of the smallest that holds so much (0:
  // beyond the cap), and what the set really holds.
  std::size_t size = 0;
  std::size_t smallest = 0;
  double mass = 0;
  double exact_seconds = 0;  // of the same with scan_mode EXACT
};

// What an answer is held to, if the cell has answers enough to say.
struct MassBar {
  std::string name;
  bool met = false;
};

// Rounding of a log partition whose logits are floats of about 1 / temperature.
double LogRounding(double temperature);

class MassCell {
 public:
  MassCell(MassQuestion question, const std::vector<MassAnswer>& answers);

  const std::vector<MassBar>& bars() const { return bars_; }
  const nlohmann::json& json() const { return json_; }
  // A row of the table that Header begins.
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
