// Answers a query over a snapshot: resolves it to a vector, takes one state
// through all segments, normalises, and says what the answer holds.
#ifndef ATTENDANT_CORE_CATALOG_QUERY_ATTEND_H_
#define ATTENDANT_CORE_CATALOG_QUERY_ATTEND_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/attention/softmax/score.h"
#include "core/base/interrupt.h"
#include "core/catalog/filter/filter.h"
#include "core/catalog/query/attend_trace.h"
#include "core/catalog/segments/snapshot.h"

namespace attendant {

inline constexpr std::int64_t kMaxResultCount = 10000;
inline constexpr std::int64_t kMaxShortlistCount = 100000;
inline constexpr std::int64_t kMaxExampleCount = 10000;
inline constexpr std::int64_t kMaxIdListCount = 100000;
inline constexpr std::int64_t kMaxBiasCount = 16;
inline constexpr std::int64_t kMaxQueryHeadCount = 16;
// heads^2 x shortlist_count: the union of all heads' shortlists is scored in
// every head, and held.
inline constexpr std::int64_t kMaxUnionScores = std::int64_t{1} << 24;

enum class SelectKind { kSoft = 1, kHard = 2, kSample = 3 };
enum class WeightScope { kShortlist = 1, kReturned = 2, kCatalog = 3 };
enum class ScanMode { kAuto = 1, kExact = 2, kIndex = 3 };
enum class MassMethod { kExact = 1, kBound = 2, kEstimate = 3, kUnknown = 4 };

struct Example {
  ItemId id;
  double weight = 1;
};

struct ExamplesQuery {
  std::vector<Example> examples;
  std::optional<CombineKind> combine_kind;
  bool require_all = false;
  bool exclude_examples = true;
};

struct TextQuery {
  std::string text;
};

using QueryForm = std::variant<std::vector<float>, ExamplesQuery, TextQuery>;

// One head of several: a key field with its own query.
struct QueryHead {
  std::string key_field;
  std::optional<QueryForm> query;  // unset: that of the AttendQuery
  std::optional<double> temperature;
};

// What an attribute adds to an item's logit.
struct BiasTerm {
  std::string attribute;
  std::optional<double> factor;             // of a number; 1 if unset
  std::optional<absl::Duration> half_life;  // of a moment
};

// The result_count of a query that states none.
constexpr std::int64_t DefaultResultCount(SelectKind kind, bool has_min_mass) {
  if (kind == SelectKind::kHard) return 1;
  return has_min_mass ? 1000 : 10;
}
// The shortlist_count of a query that states none. With min_mass, result_count
// is a cap and large enough already.
constexpr std::int64_t DefaultShortlistCount(std::int64_t result_count,
                                             bool has_min_mass) {
  return std::max<std::int64_t>(has_min_mass ? result_count : 10 * result_count,
                                100);
}

// Mirrors the wire's AttendRequest; unset means the documented default.
struct AttendQuery {
  QueryForm query;        // an empty vector where every head has its own
  std::string key_field;  // empty: the default
  SelectKind select_kind = SelectKind::kSoft;
  std::optional<std::int64_t> result_count;
  std::optional<std::int64_t> shortlist_count;
  std::optional<double> temperature;
  std::optional<ScoreKind> score_kind;
  std::optional<WeightScope> weight_scope;  // HARD: kReturned or unset
  std::optional<WeightScope> pool_scope;    // HARD: kReturned or unset
  bool omit_pooled_value = false;
  ScanMode scan_mode = ScanMode::kAuto;
  std::optional<std::vector<ItemId>> allow_list;
  std::vector<ItemId> deny_list;
  std::optional<Filter> filter;  // unset: all
  ActivationKind activation_kind = ActivationKind::kSoftmax;
  std::optional<double> min_mass;
  bool with_replacement = false;     // of SAMPLE
  std::optional<std::int64_t> seed;  // of SAMPLE; unset: by chance
  std::vector<BiasTerm> biases;
  std::optional<absl::Time> time;  // what biases take for now; unset: now
  std::vector<QueryHead> heads;    // empty: key_field
  std::vector<double> head_temperatures;
  NamedModel model;  // null: the key field's
  bool include_head_weights = false;
  std::optional<double> recall;
  std::optional<std::int64_t> probe_count;
  std::optional<double> mass_precision;
  std::optional<MassMethod> mass_method;
};

struct AttendedItem {
  RowAddress address;
  double weight = 0;
  float logit = 0;
  float similarity = 0;
  // Of SAMPLE: see Draw.
  std::optional<double> log_weight;
  std::optional<double> log_inclusion_given_threshold;
  // The head in which it weighs most; 0 where there is one.
  int head = 0;
  std::vector<double> head_weights;  // by head, if asked for
};

// value is set unless the method is kUnknown; for kExact all three are equal.
struct Mass {
  MassMethod method = MassMethod::kUnknown;
  double value = 0;
  double lower_bound = 0;
  double upper_bound = 0;
};

// Where a number lies.
struct Interval {
  MassMethod method = MassMethod::kExact;
  double lower_bound = 0;
  double upper_bound = 0;
};

struct PooledValue {
  std::vector<float> values;
  WeightScope scope = WeightScope::kShortlist;
  std::int64_t key_as_value_count = 0;
  MassMethod method = MassMethod::kExact;
  double relative_error = 0;  // 95 % stay within; of the value's norm
};

// What an attention to the catalog is, as far as it is known.
struct AttentionAnswer {
  std::optional<double> log_partition;
  std::optional<Interval> log_partition_interval;
  std::optional<double> entropy;
  std::optional<Interval> entropy_interval;
  std::optional<double> effective_item_count;
  std::optional<Interval> effective_item_count_interval;
  Mass returned_mass;
  Mass shortlist_mass;
};

// The attention of one head.
struct HeadAnswer : AttentionAnswer {
  int key_field = 0;
  ScoreKind score_kind = ScoreKind::kDot;
  double temperature = 1;
  // The value pooled by this head, through W_V; empty if nothing is pooled.
  std::vector<float> output;
};

// A draw as a whole.
struct SlateAnswer {
  std::int64_t seed = 0;
  double log_probability = 0;
  std::optional<double> kappa;
  WeightScope scope = WeightScope::kCatalog;
  // In total variation, between what was drawn from and the softmax: 95 % of
  // queries are no farther. 0 where it was the softmax.
  double distance = 0;
};

// The attention is that of one head; of several only the masses are set, which
// are means, and the rest is in `heads`.
struct AttendAnswer : AttentionAnswer {
  // (logit descending, id ascending); with several heads (weight descending, id
  // ascending); of SAMPLE in the order of draws.
  std::vector<AttendedItem> items;
  std::optional<PooledValue> pooled_value;
  WeightScope weight_scope = WeightScope::kShortlist;
  std::vector<ItemId> unknown_example_ids;
  double temperature = 1;
  ScoreKind score_kind = ScoreKind::kDot;
  int key_field = 0;
  // Keys scored while scanning, summed over heads.
  std::int64_t scored_count = 0;
  // Keys projected for this query alone, summed over heads.
  std::int64_t projected_key_count = 0;
  // Queries that went through a model: at most one a key field.
  std::int64_t projected_query_count = 0;
  std::int64_t eligible_count = 0;
  std::int64_t visited_list_count = 0;
  int shared_query_count = 1;
  bool complete = false;
  bool results_exact = false;
  IndexKind index_kind = IndexKind::kFlat;
  // With a multi-head model, or heads in the query.
  std::vector<HeadAnswer> heads;
  // The outputs of a multi-head model's heads through W_O; empty if nothing is
  // pooled.
  std::vector<float> model_output;
  // result_count was reached before min_mass.
  bool result_cap_reached = false;
  std::optional<SlateAnswer> slate;
  std::optional<absl::Time> time;  // if there were biases
  ActivationKind activation_kind = ActivationKind::kSoftmax;
  ModelName model;
  AttendTrace trace;
};

// Scores every key from its floats when asked to, when the answer needs draws
// that the index can't make, or when logits rank otherwise than the index; by
// the index otherwise, and then again every key where the index knows less of
// the catalog's attention than the query needs: the mass of kCatalog weights
// and of min_mass, mass_precision, a stated mass_method, a proven shortlist. A
// value pooled over kCatalog may be off by 2.5 times mass_precision (0.02 if it
// is not stated) of its norm, unless only the index may answer (kIndex).
//
// kSample draws from the softmax where every key is scored, and else over
// kCatalog from a distribution near to it (see DrawRows): the probabilities are
// those of what was drawn from, SlateAnswer::distance says how near it is.
// Everything masked is an empty answer, not an error.
//
// kCatalog weights of an estimated partition are each off by the same factor,
// which lies in log_partition_interval; over the whole catalog they then sum to
// 1 only up to that.
//
// Errors, naming wire fields of AttendRequest: InvalidArgument (a count
// below 1; a dimension; a non-finite number; zero norm under COSINE; a
// logit that overflows; text without a known term or for a field without an
// encoder; choices that exclude each other; a model or attribute that does not
// fit), NotFound (unknown examples), FailedPrecondition (kIndex, and no index
// can answer), ResourceExhausted (over a limit above), Cancelled,
// DeadlineExceeded. Does not modify the snapshot; thread-safe.
absl::StatusOr<AttendAnswer> Attend(const Snapshot& snapshot,
                                    const AttendQuery& query,
                                    const Interrupt& interrupt);

// One query of several over one snapshot. Neither of the first two is null.
struct AttendTask {
  const AttendQuery* query = nullptr;
  const Interrupt* interrupt = nullptr;
  // Where there is no answer: how far it came, before `answered` is called. May
  // be null.
  AttendTrace* trace = nullptr;
};

// Takes the answer of tasks[task], or why there is none.
using AnswerSink =
    absl::FunctionRef<void(std::size_t task, absl::StatusOr<AttendAnswer>)>;

// Attend for each task, in passes over the keys that they share: the answers
// are the same bytes as if each were asked alone, shared_query_count and trace
// aside, and
// one task's failure or interrupt is its own. Calls `answered` once for each
// task as soon as its answer is made, in any order; those that share no pass
// come last. Holds the masks of all tasks at once.
void AttendTogether(const Snapshot& snapshot, std::span<const AttendTask> tasks,
                    AnswerSink answered);

// The same, with all answers at the end, in the order of the tasks.
std::vector<absl::StatusOr<AttendAnswer>> AttendTogether(
    const Snapshot& snapshot, std::span<const AttendTask> tasks);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_ATTEND_H_
