// One way to find the keys that a query attends to most, and to say how many
// were scored. FLAT scores all, or those of lists chosen elsewhere; IVF scores
// those in the nearest lists; HNSW walks a graph of near keys, and scores those
// it meets; LSH scores those of the nearest buckets; PQ ranks all by short
// codes, and scores the best.
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
#include "core/shortlist/scan/key_groups.h"

namespace attendant {

class KnownMasses;
struct IvfTraining;

// The value of each row, for pooling: value_dim floats, or null where a row has
// none (its key is pooled instead; the dimensions agree then).
class ValueSource {
 public:
  virtual ~ValueSource() = default;
  virtual const float* ValueOf(RowIndex row) const = 0;
  // True if every row with a key in the index pools that key.
  virtual bool PoolsKeys() const { return false; }
};

// What is added to the logits of a segment's rows.
class LogitBias {
 public:
  virtual ~LogitBias() = default;
  // Adds the bias of rows[i] to logits[i], for n rows.
  virtual void AddTo(const RowIndex* rows, std::int64_t n,
                     float* logits) const = 0;
};

// What keys go through before they are scored: W k + b.
struct KeyProjection {
  MatrixView weight;            // [query dim, key dim]
  std::span<const float> bias;  // [query dim], or empty: none
};

// The error of the log partition that is aimed at where a sum over all keys is
// wanted, and none is stated.
inline constexpr double kUnstatedPrecision = 0.02;

// How far a scan that need not be exhaustive looks.
struct ScanGoals {
  // Mean recall of the k best, in (0, 1]; 0: what the index was built for. 1:
  // proven.
  double recall = 0;
  // In place of recall, for experts: lists of IVF, candidates of HNSW, buckets
  // of LSH, rescored keys of PQ. 0: unset.
  std::int64_t probe_count = 0;
  // Wanted error of the log partition, which 95 % of queries hold; 0: whatever
  // the scan can know in little more than its time.
  double mass_precision = 0;
  // Bounds of the partition that can't be wrong.
  bool certified = false;
};

// What to score and how. Everything pointed to must outlive the scan.
struct ScanQuery {
  // [dim], finite; of norm 1 for COSINE; W q for ADDITIVE.
  std::span<const float> query;
  std::span<const float> output_weight;  // [dim], v of ADDITIVE; else empty
  ScoreKind score_kind = ScoreKind::kDot;
  double logit_factor = 1;   // LogitFactor(...)
  std::int32_t segment = 0;  // goes into the candidates
  RowIndex row_end = 0;      // rows at and past this are not visible
  // Rows past the end of a bitmap are not in it.
  const Bitmap* excluded = nullptr;  // rows not eligible, or null
  const Bitmap* allowed = nullptr;   // if not null, only these are eligible
  // How many keys are eligible, where that is known without counting.
  std::optional<std::int64_t> eligible_count = std::nullopt;
  const ValueSource* values = nullptr;  // pooled if the state pools
  const LogitBias* bias = nullptr;      // null: none
  // Null: keys are scored as they are. Else every key is projected anew.
  const KeyProjection* projection = nullptr;
  bool exhaustive = false;  // score every eligible key, from its floats
  ScanGoals goals;          // if not exhaustive
  // By what the mass of keys that are not scored is guessed; null: by what is
  // known when the scan comes to it.
  const KnownMasses* known_masses = nullptr;
  const Interrupt* interrupt = nullptr;
};

// What a scan knows of the error of the values that it pooled from codes. Over
// the rows that were not scored from floats, with v(i) the variance of row i's
// exp(logit) as it was taken, and m any vector, the sum of exp(logit) x
// (value - m) is off by a random vector whose square norm is
//   log_weight_variance: sum of v(i), times the mean of |value - m|^2,
//   log_rounding_variance: and by what the values' own rounding adds.
struct PooledError {
  double log_weight_variance = kMinusInfinity;
  double log_rounding_variance = kMinusInfinity;
  // Of these rows' values, weighed by exp(logit).
  std::vector<double> mean;
  double mean_square = 0;  // of their norms
};

// What a scan knows of the sum of exp(logit) over all eligible rows, besides
// the partition it left in the state, which is its best guess.
struct ScanStats {
  std::int64_t scored_count = 0;
  std::int64_t visited_list_count = 0;
  // Every eligible key with row < row_end was scored, if only from its code.
  bool complete = false;
  // Every one from its floats: no logit of the partition is off.
  bool exact = false;
  // The k best are proven to be those of an exhaustive scan.
  bool results_exact = false;
  // False: nothing is known of what was not scored, and the partition is that
  // of the scored rows alone.
  bool knows_mass = false;
  // Logs of what the variance of the guessed sum is made of; -infinity if it is
  // exact. Those of the first may be off the same way in several indexes, the
  // second is of keys that were drawn in this one.
  double log_variance = kMinusInfinity;
  double log_drawn_variance = kMinusInfinity;
  // Logs of bounds of the sum that can't be wrong, if certified.
  bool certified = false;
  double log_lower = kMinusInfinity;
  double log_upper = std::numeric_limits<double>::infinity();
  // Where the state pools: nothing if every value was, times its exact weight.
  std::optional<PooledError> pooled_error = std::nullopt;
};

// What the scans of one query in several indexes share, and do at the end.
class ScanCarry {
 public:
  virtual ~ScanCarry() = default;
  // Adds to the state what the scans left to be guessed for all indexes at
  // once, and to `stats` what is then known of it: clears knows_mass, or adds
  // to log_variance. Once; the state, the indexes and the masks of all scans
  // are still there.
  virtual void Finish(AttentionState& state, ScanStats& stats) = 0;
};

// One query of several that share a scan.
struct ScanTask {
  const ScanQuery* query = nullptr;
  AttentionState* state = nullptr;
  // Where a scan leaves something to those of the same query in other indexes,
  // if it does; null: there are none.
  std::unique_ptr<ScanCarry>* carry = nullptr;
  absl::StatusOr<ScanStats> stats = ScanStats();  // set by the scan
};

// How an index was tuned when it was built.
struct IndexTuning {
  std::int64_t list_count = 0;  // 0: it has no lists
  // ScanGoals::probe_count of a scan without goals; 0: there is no such thing.
  std::int64_t probe_count = 0;
  // Mean recall of such scans among the best 100 on sample queries; nothing for
  // an index that is always exact.
  std::optional<double> measured_recall;
};

// Immutable after it is built; see also FlatIndex, which rows may be appended
// to. Scan is thread-safe and waits for no writer.
class KeyIndex {
 public:
  virtual ~KeyIndex() = default;

  virtual IndexKind kind() const = 0;
  virtual std::int64_t dim() const = 0;
  // The key of a row, or an empty span if the row has none.
  virtual std::span<const float> Key(RowIndex row) const = 0;
  // Those of `rows` that have a key, bit i being row 64 w + i. Rows that are
  // not there yet must not be among them.
  virtual std::uint64_t Keyed(std::int64_t w, std::uint64_t rows) const = 0;
  // InverseNorm of the key of a row; NaN if the row has none.
  virtual float inverse_norm(RowIndex row) const = 0;
  // At least the greatest norm of the keys, normalised where the index is made
  // for COSINE: what the rounding of their products is a part of. Where it is
  // not known, what none of floats can pass.
  virtual double max_norm() const = 0;

  // Adds the scored rows to `state`. A scan of the same rows by the same
  // kernels gives the same logits from every index. Errors: Cancelled,
  // DeadlineExceeded; InvalidArgument if a logit overflows. `state` is then
  // unusable.
  virtual absl::StatusOr<ScanStats> Scan(const ScanQuery& query,
                                         AttentionState& state) const = 0;

  // As Scan for each task, whose state and stats are the same bytes as if it
  // were scanned alone. By default one after the other.
  virtual void ScanTogether(std::span<ScanTask> tasks) const {
    for (ScanTask& task : tasks) task.stats = Scan(*task.query, *task.state);
  }

  // Groups of the eligible keys, but for those of `known`, whose candidates'
  // logits are exact and which are eligible: to draw from without scoring every
  // key. `query` must outlive them, and its `goals` other than probe_count and
  // recall do not matter. Null where the index knows of no such groups, scoring
  // every eligible key is as quick, or the query is exhaustive.
  virtual std::unique_ptr<KeyGroups> GroupKeys(
      const ScanQuery& /*query*/, std::span<const Candidate> /*known*/) const {
    return nullptr;
  }

  virtual IndexTuning tuning() const { return {}; }
  // The training in whose lists rows are; null: they are in none.
  virtual const std::shared_ptr<const IvfTraining>& training() const {
    static const auto& none = *new std::shared_ptr<const IvfTraining>();
    return none;
  }
  // The list of a row there; -1: it has no key, or there is no training.
  virtual std::int32_t ListOf(RowIndex /*row*/) const { return -1; }

  // Memory that Learn takes while it lasts; 0: there is nothing to learn.
  virtual std::int64_t learning_bytes() const { return 0; }
  // Learns anew, from queries that were asked, how far answers know the mass of
  // what they did not score: for all indexes of the training, beside their
  // scans. Takes seconds for 1,000,000 keys; one call at a time. False: those
  // queries say nothing. Errors: Cancelled, ResourceExhausted; all is then as
  // before, and as much due.
  virtual absl::StatusOr<bool> Learn(
      const std::atomic<bool>& /*cancelled*/) const {
    return false;
  }

  // Keys, codes and index; keys that lie in a file are `mapped`.
  virtual MemoryParts memory() const = 0;
  std::int64_t memory_bytes() const { return memory().sum(); }
  std::int64_t disk_bytes() const { return memory().mapped; }
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_SCAN_KEY_INDEX_H_
