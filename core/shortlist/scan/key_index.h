// KeyIndex: finds the keys that a query attends to most, and reports how many
// were scored. FLAT scores all keys, or those of lists that another index has
// chosen; IVF scores the keys in the nearest lists; HNSW walks a graph of near
// keys and scores those it meets; LSH scores the keys of the nearest buckets;
// PQ ranks all keys by short codes and scores the best.
#ifndef ATTENDANT_CORE_SHORTLIST_SCAN_KEY_INDEX_H_
#define ATTENDANT_CORE_SHORTLIST_SCAN_KEY_INDEX_H_

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/attention/softmax/score.h"
#include "core/attention/softmax/state.h"
#include "core/base/bitmap.h"
#include "core/base/ids.h"
#include "core/base/index_kind.h"
#include "core/base/interrupt.h"
#include "core/base/memory_parts.h"
#include "core/base/minus_infinity.h"
#include "core/base/views.h"
#include "core/shortlist/scan/dead_keys.h"
#include "core/shortlist/scan/key_groups.h"

namespace attendant {

class KnownMasses;
struct IvfTraining;

// The value of each row, for pooling: value_dim floats, or null if a row has
// none. Its key is then pooled instead, and key and value dimensions agree.
class ValueSource {
 public:
  virtual ~ValueSource() = default;
  virtual const float* ValueOf(RowIndex row) const = 0;
  // True if every row with a key in the index pools that key.
  virtual bool PoolsKeys() const { return false; }
};

// A bias that is added to the logits of a segment's rows.
class LogitBias {
 public:
  virtual ~LogitBias() = default;
  // Adds the bias of rows[i] to logits[i], for i in [0, n).
  virtual void AddTo(const RowIndex* rows, std::int64_t n,
                     float* logits) const = 0;
};

// A projection of keys before they are scored: W k + b.
struct KeyProjection {
  MatrixView weight;            // [query dim, key dim]
  std::span<const float> bias;  // [query dim], or empty: none
};

// Target error of the log partition if a sum over all keys is wanted and the
// caller states no precision.
inline constexpr double kUnstatedPrecision = 0.02;

// Goals of a scan that need not be exhaustive.
struct ScanGoals {
  // Mean recall of the k best, in (0, 1]; 1 means proven. 0: the recall that
  // the index was built for.
  double recall = 0;
  // Replaces `recall`, for experts: lists of IVF, candidates of HNSW, buckets
  // of LSH, rescored keys of PQ. 0: unset.
  std::int64_t probe_count = 0;
  // Wanted error of the log partition, which 95 % of queries hold. 0: whatever
  // the scan learns in little more than its own time.
  double mass_precision = 0;
  // Asks for bounds of the partition that cannot be wrong.
  bool certified = false;
};

// A query: what to score and how. Everything that it points to must outlive the
// scan.
struct ScanQuery {
  // [dim], finite; of norm 1 under COSINE; W q under ADDITIVE.
  std::span<const float> query;
  std::span<const float> output_weight;  // [dim], v of ADDITIVE; else empty
  ScoreKind score_kind = ScoreKind::kDot;
  double logit_factor = 1;   // LogitFactor(...)
  std::int32_t segment = 0;  // copied into the candidates
  RowIndex row_end = 0;      // rows >= this are not visible
  // A bitmap does not contain the rows past its end.
  const Bitmap* excluded = nullptr;  // rows that are not eligible, or null
  // The rows of `excluded`, as Kill marked them in the index that is scanned;
  // null: they are only known as rows. Requires that `allowed` is null and all
  // rows are visible.
  const DeadKeys* dead = nullptr;
  const Bitmap* allowed = nullptr;  // null: all; else only these are eligible
  // Number of eligible keys, if it is known without counting.
  std::optional<std::int64_t> eligible_count = std::nullopt;
  const ValueSource* values = nullptr;  // pooled if the state pools
  const LogitBias* bias = nullptr;      // null: none
  // Null: keys are scored as they are. Otherwise each key is projected whenever
  // it is scored.
  const KeyProjection* projection = nullptr;
  bool exhaustive = false;  // score every eligible key, from its floats
  ScanGoals goals;          // if not exhaustive
  // Used to guess the mass of keys that are not scored. Null: the scan uses
  // what is known when it reaches that point.
  const KnownMasses* known_masses = nullptr;
  const Interrupt* interrupt = nullptr;
};

// The estimated error of the values that a scan pooled from codes. The sum of
// exp(logit) x (value - m), over the rows that were not scored from floats, is
// off by a random vector. Let v(i) be the variance of row i's exp(logit) as it
// was taken, and m any vector; the expected square norm of the error is the sum
// of two parts, given as logs:
//   log_weight_variance: sum of v(i), times the mean of |value - m|^2;
//   log_rounding_variance: what the rounding of the values adds.
struct PooledError {
  double log_weight_variance = kMinusInfinity;
  double log_rounding_variance = kMinusInfinity;
  // Mean of these rows' values, weighed by exp(logit).
  std::vector<double> mean;
  double mean_square = 0;  // of the values' norms, weighed alike
};

// Eligible keys that a scan did not score because they hold next to nothing.
struct FarKeys {
  std::int64_t count = 0;
  double log_most = kMinusInfinity;  // upper end of the log of their sum
};

// The outcome of a scan, and what it knows of the sum of exp(logit) over all
// eligible rows in addition to the partition in the state, which is its best
// guess.
struct ScanStats {
  std::int64_t scored_count = 0;
  std::int64_t visited_list_count = 0;
  // True if every eligible key with row < row_end was scored, from its floats
  // or only from its code.
  bool complete = false;
  // If not complete: set if only these keys were not scored.
  std::optional<FarKeys> far = std::nullopt;
  // True if every such key was scored from its floats: no logit in the
  // partition has a coding error.
  bool exact = false;
  // True if the k best are proven to be those of an exhaustive scan.
  bool results_exact = false;
  // False if nothing is known of the rows that were not scored; the partition
  // is then that of the scored rows alone.
  bool knows_mass = false;
  // Logs of the two parts of the variance of the guessed sum; -infinity if the
  // sum is exact. Errors of the first part may be correlated across indexes;
  // the second part is from keys that were drawn in this index.
  double log_variance = kMinusInfinity;
  double log_drawn_variance = kMinusInfinity;
  // Logs of bounds of the sum that cannot be wrong, if `certified`.
  bool certified = false;
  double log_lower = kMinusInfinity;
  double log_upper = std::numeric_limits<double>::infinity();
  // Set if the state pools, unless every value was pooled with its exact
  // weight.
  std::optional<PooledError> pooled_error = std::nullopt;
};

// Work that the scans of one query in several indexes share, and complete
// together at the end.
class ScanCarry {
 public:
  virtual ~ScanCarry() = default;
  // Adds to `state` what the scans left to be guessed for all indexes at once,
  // and updates `stats` accordingly: clears knows_mass, or adds to
  // log_variance. Called once, while the state, the indexes and the masks of
  // all scans still exist.
  virtual void Finish(AttentionState& state, ScanStats& stats) = 0;
};

// One of several queries that share a scan.
struct ScanTask {
  const ScanQuery* query = nullptr;
  AttentionState* state = nullptr;
  // Where the scan may leave work for the scans of the same query in other
  // indexes; null if there are no other indexes.
  std::unique_ptr<ScanCarry>* carry = nullptr;
  absl::StatusOr<ScanStats> stats = ScanStats();  // set by the scan
};

// The tuning that an index got when it was built.
struct IndexTuning {
  std::int64_t list_count = 0;  // 0: the index has no lists
  // ScanGoals::probe_count of a scan without goals; 0: not applicable.
  std::int64_t probe_count = 0;
  // Mean recall of such scans among the best 100 on sample queries; nullopt for
  // an index that is always exact.
  std::optional<double> measured_recall;
};

// Immutable after it is built, except that rows may be appended to a FlatIndex.
// Scan is thread-safe and never waits for a writer.
class KeyIndex {
 public:
  virtual ~KeyIndex() = default;

  virtual IndexKind kind() const = 0;
  virtual std::int64_t dim() const = 0;
  // Returns the key of `row`, or an empty span if the row has none.
  virtual std::span<const float> Key(RowIndex row) const = 0;
  // Returns the subset of `rows` that have a key; bit i is row 64 w + i. Rows
  // that have not been added yet must not be in `rows`.
  virtual std::uint64_t Keyed(std::int64_t w, std::uint64_t rows) const = 0;
  // Returns InverseNorm of the key of `row`; NaN if the row has none.
  virtual float inverse_norm(RowIndex row) const = 0;
  // Returns an upper bound of the norms of the keys (normalised if the index is
  // made for COSINE); rounding errors of their products are proportional to it.
  // If it is not known, returns the bound that no vector of floats can exceed.
  virtual double max_norm() const = 0;

  // Adds the scored rows to `state`. Scans of the same rows by the same kernels
  // give the same logits in every index. Errors, after which `state` is
  // unusable: Cancelled, DeadlineExceeded; InvalidArgument if a logit
  // overflows.
  virtual absl::StatusOr<ScanStats> Scan(const ScanQuery& query,
                                         AttentionState& state) const = 0;

  // Scans each task as Scan does. A task's state and stats are the same bytes
  // as if it were scanned alone. The default scans one task after the other.
  virtual void ScanTogether(std::span<ScanTask> tasks) const {
    for (ScanTask& task : tasks) task.stats = Scan(*task.query, *task.state);
  }

  // Returns groups of the eligible keys, to draw from without scoring every
  // key, or null if the index knows no such groups, scoring every eligible key
  // is as quick, or the query is exhaustive. Leaves out the keys of `known`,
  // whose rows are eligible and whose logits are exact. `query` must outlive
  // the groups; of its `goals` only probe_count and recall matter.
  virtual std::unique_ptr<KeyGroups> GroupKeys(
      const ScanQuery& /*query*/, std::span<const Candidate> /*known*/) const {
    return nullptr;
  }

  virtual IndexTuning tuning() const { return {}; }
  // The training whose lists the rows are assigned to; null if there is none.
  virtual const std::shared_ptr<const IvfTraining>& training() const {
    static const auto& none = *new std::shared_ptr<const IvfTraining>();
    return none;
  }
  // Returns the list of `row` in that training; -1 if the row has no key or
  // there is no training.
  virtual std::int32_t ListOf(RowIndex /*row*/) const { return -1; }

  // Returns what Kill marks, of an index in which no key is dead; null if the
  // index has no lists.
  virtual std::unique_ptr<DeadKeys> NoneDead() const { return nullptr; }
  // Marks the key of `row`, if it has one. Call at most once for a row.
  virtual void Kill(RowIndex /*row*/, DeadKeys& /*dead*/) const {}

  // Bytes of memory that Learn takes while it runs; 0: nothing to learn.
  virtual std::int64_t learning_bytes() const { return 0; }
  // Relearns, from queries that were asked, how accurately answers know the
  // mass of the keys they did not score, for all indexes of the training. Scans
  // may run at the same time. Takes seconds for 1,000,000 keys; one call at a
  // time. Returns false if those queries teach nothing. Errors, which change
  // nothing and leave the learning due: Cancelled, ResourceExhausted.
  virtual absl::StatusOr<bool> Learn(
      const std::atomic<bool>& /*cancelled*/) const {
    return false;
  }

  // Memory of keys, codes and index; keys that lie in a file are `mapped`.
  virtual MemoryParts memory() const = 0;
  std::int64_t memory_bytes() const { return memory().sum(); }
  std::int64_t disk_bytes() const { return memory().mapped; }
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_SCAN_KEY_INDEX_H_
