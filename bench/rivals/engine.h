// Common interface of search engines, ours and others': build an index over a
// data set, and answer queries with the 100 best keys, their weights, and what
// the engine knows of the partition.
#ifndef ATTENDANT_BENCH_RIVALS_ENGINE_H_
#define ATTENDANT_BENCH_RIVALS_ENGINE_H_

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/data/data_set.h"
#include "bench/data/ground_truth.h"

namespace attendant {

struct Answer {
  std::array<std::int32_t, kTruthCount> rows;  // best first; -1: none
  std::array<float, kTruthCount> weights;      // softmax over the rows, sum 1
  // Log partition of the whole catalog if the engine knows it; otherwise of the
  // rows.
  double log_partition = 0;
  // Standard deviation of the error of the partition, relative to the
  // partition, as the engine states it. NaN if it states none.
  double stated_error = std::numeric_limits<double>::quiet_NaN();
};

// A way to answer batches of queries on two cores.
struct BatchMode {
  std::string name;
  int caller_threads = 2;  // threads that call Search
  int engine_threads = 1;  // started by the engine per call
  // Queries per call: a divisor or a multiple of 64, at most the number of
  // queries.
  std::int64_t at_a_time = 64;
};

struct BuildReport {
  double seconds = 0;  // of the build, even if now read from a file
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Names the code's origin and how it was compiled.
  virtual std::string version() const = 0;

  // Makes the index of `configuration` current, building it unless it exists.
  // May store it in files whose names begin with `cache`, for another process
  // to read.
  virtual absl::StatusOr<BuildReport> Build(const std::string& configuration,
                                            const DataSet& data,
                                            const std::string& cache) = 0;

  // Least effort that makes sense (1 list, 100 candidates), and the most.
  struct EffortRange {
    std::int64_t least = 1;
    std::int64_t most = 1;
  };
  virtual EffortRange efforts() const = 0;
  virtual std::vector<BatchMode> batch_modes() const = 0;

  // Sets the effort and threads of the following searches. Call it only while
  // no other thread is searching.
  virtual void Prepare(std::int64_t effort, int engine_threads) = 0;

  // Answers `count` queries, stored contiguously. Callable from any thread.
  virtual void Search(const float* queries, std::int64_t count,
                      Answer* answers) = 0;
};

// Sets weights and log_partition from the best rows' logits: the separate
// softmax that an engine without mass needs. `count` <= kTruthCount.
void WeighRows(const float* logits, std::int64_t count, Answer& answer);

// Reads commands from standard input and answers each with a line of JSON, so
// that a driver can alternate between engines:
//   build CONFIGURATION
//   tune RECALL                 the least effort that reaches it
//   check EFFORT                recall and mass over the queries
//   check-batch MODE EFFORT     recall of answers in batches
//   single EFFORT SECONDS       one query at a time, one core
//   batch MODE EFFORT SECONDS   in batches, two cores
//   version                     what the engine is
// Commands use the configuration of the last build. Arguments: --data DIRECTORY
// --set NAME --queries COUNT (at least 64) --temperature T.
int RunEngine(int argc, char** argv, const std::string& engine_name,
              Engine& engine);

// Temperature of the run.
double Temperature();

}  // namespace attendant

#endif  // ATTENDANT_BENCH_RIVALS_ENGINE_H_
