// Answers a query over a snapshot: resolves it to a vector, accumulates one
// state over all segments, normalises, and reports how much of the catalog's
// attention the answer holds.
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
inline constexpr std::int64_t kMaxCrowdingLimitCount = 4;
inline constexpr std::int64_t kMaxQueryHeadCount = 16;
// Limit of heads^2 x shortlist_count, since the union of all heads' shortlists
// is scored in every head and kept in memory.
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
  std::optional<QueryForm> query;  // unset: the query of AttendQuery
  std::optional<double> temperature;
  std::optional<double> weight;  // in the mean over heads; 1 if unset
};

// A term added to an item's logit, computed from an attribute.
struct BiasTerm {
  std::string attribute;
  std::optional<double> factor;             // for a number; 1 if unset
  std::optional<absl::Duration> half_life;  // for a timestamp
};

// Limits how many returned items have the same value of an attribute.
struct CrowdingLimit {
  std::string attribute;
  std::int64_t max_count = 0;
};

// What kept an answer from more items.
enum class LimitReason {
  kNone = 0,  // nothing but the query
  kResultCap = 1,
  kCrowding = 2,
  kIndex = 3,
};

// The default result_count.
constexpr std::int64_t DefaultResultCount(SelectKind kind, bool has_min_mass) {
  if (kind == SelectKind::kHard) return 1;
  return has_min_mass ? 1000 : 10;
}
// The default shortlist_count. With min_mass, result_count is a cap and already
// large enough.
constexpr std::int64_t DefaultShortlistCount(std::int64_t result_count,
                                             bool has_min_mass) {
  return std::max<std::int64_t>(has_min_mass ? result_count : 10 * result_count,
                                100);
}

// Mirrors the wire's AttendRequest, which documents ranges and defaults. An
// unset member means the documented default.
struct AttendQuery {
  QueryForm query;        // an empty vector if every head has its own
  std::string key_field;  // empty: the default field
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
  std::optional<Filter> filter;  // unset: all items
  ActivationKind activation_kind = ActivationKind::kSoftmax;
  std::optional<double> min_mass;
  bool with_replacement = false;     // for SAMPLE
  std::optional<std::int64_t> seed;  // for SAMPLE; unset: chosen randomly
  std::vector<BiasTerm> biases;
  std::optional<absl::Time> time;  // current time for biases; unset: the clock
  std::vector<QueryHead> heads;    // empty: one head over key_field
  std::vector<double> head_temperatures;
  NamedModel model;  // null: the key field's
  bool include_head_weights = false;
  std::vector<CrowdingLimit> crowding_limits;
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
  // For SAMPLE; see Draw.
  std::optional<double> log_weight;
  std::optional<double> log_inclusion_given_threshold;
  // The head that the item owes most of its weight to; 0 if there is one head.
  int head = 0;
  std::vector<double> head_weights;  // by head, if requested
};

// The numbers are meaningful unless the method is kUnknown. For kExact all
// three are equal.
struct Mass {
  MassMethod method = MassMethod::kUnknown;
  double value = 0;
  double lower_bound = 0;
  double upper_bound = 0;
};

// An interval that contains a number.
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
  double relative_error = 0;  // of the norm; holds for 95 % of values
};

// The attention over the catalog, as far as it is known.
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
  double share = 1;  // in the mean over heads
  ScoreKind score_kind = ScoreKind::kDot;
  double temperature = 1;
  // The value pooled by this head, projected by W_V; empty if nothing is
  // pooled.
  std::vector<float> output;
};

// A draw as a whole.
struct SlateAnswer {
  std::int64_t seed = 0;
  double log_probability = 0;
  std::optional<double> kappa;
  WeightScope scope = WeightScope::kCatalog;
  // Total variation distance between the distribution drawn from and the
  // softmax. An upper end that holds for 95 % of queries; 0 if items were drawn
  // from the softmax.
  double distance = 0;
};

// The AttentionAnswer is that of the only head. With several heads only its
// masses are set, as means over heads; the rest is in `heads`.
struct AttendAnswer : AttentionAnswer {
  // Ordered by (logit descending, id ascending); with several heads by (weight
  // descending, id ascending); for SAMPLE in the order of draws.
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
  // Queries projected by a model: at most one per key field.
  std::int64_t projected_query_count = 0;
  std::int64_t eligible_count = 0;
  std::int64_t visited_list_count = 0;
  int shared_query_count = 1;
  bool complete = false;
  bool results_exact = false;
  IndexKind index_kind = IndexKind::kFlat;
  // Set with a multi-head model or with heads in the query.
  std::vector<HeadAnswer> heads;
  // The concatenated outputs of a multi-head model's heads, projected by W_O;
  // empty if nothing is pooled.
  std::vector<float> model_output;
  LimitReason limit_reason = LimitReason::kNone;
  std::optional<SlateAnswer> slate;
  std::optional<absl::Time> time;  // set if there were biases
  ActivationKind activation_kind = ActivationKind::kSoftmax;
  ModelName model;
  AttendTrace trace;
};

// Answers a query over `snapshot`.
//
// Scores every key from its floats if the query asks for it, needs draws that
// the index cannot make, or ranks differently from the index. Otherwise scans
// the index, and then every key if the index knows less of the catalog's
// attention than the query needs: the mass for kCatalog weights and min_mass,
// mass_precision, a stated mass_method, or a proven shortlist. A value pooled
// over kCatalog may be off by 2.5 times mass_precision (default 0.02) of its
// norm, unless only the index may answer (kIndex).
//
// kSample draws from the softmax if every key is scored. Otherwise it draws
// over kCatalog from a distribution close to the softmax (see DrawRows): the
// probabilities are those of that distribution, and SlateAnswer::distance says
// how close it is. If everything is masked, the answer is empty, which is not
// an error.
//
// kCatalog weights under an estimated partition are all off by one common
// factor, which lies within log_partition_interval. Over the whole catalog they
// sum to 1 only up to that factor.
//
// Errors, naming wire fields of AttendRequest: InvalidArgument (a count below
// 1; a wrong dimension; a non-finite number; zero norm under COSINE; a logit
// that overflows; text without a known term or for a field without an encoder;
// choices that exclude each other; a model or attribute that does not fit),
// NotFound (unknown examples), FailedPrecondition (kIndex, and no index can
// answer), ResourceExhausted (over a limit above), Cancelled, DeadlineExceeded.
// Does not modify the snapshot; thread-safe.
absl::StatusOr<AttendAnswer> Attend(const Snapshot& snapshot,
                                    const AttendQuery& query,
                                    const Interrupt& interrupt);

// One of several queries over one snapshot. `query` and `interrupt` must not be
// null.
struct AttendTask {
  const AttendQuery* query = nullptr;
  const Interrupt* interrupt = nullptr;
  // If not null and the task fails: receives the progress so far, before
  // `answered` is called.
  AttendTrace* trace = nullptr;
};

// Receives the answer of tasks[task], or the error that prevented it.
using AnswerSink =
    absl::FunctionRef<void(std::size_t task, absl::StatusOr<AttendAnswer>)>;

// Calls Attend for each task, in shared passes over the keys. Each answer has
// the same bytes as if it were computed alone, except shared_query_count and
// trace; a failure or interrupt affects only its own task. Calls `answered`
// once for each task as soon as its answer is ready, in any order; tasks that
// share no pass come last. Holds the masks of all tasks at once.
void AttendTogether(const Snapshot& snapshot, std::span<const AttendTask> tasks,
                    AnswerSink answered);

// Returns all answers at the end, in the order of the tasks.
std::vector<absl::StatusOr<AttendAnswer>> AttendTogether(
    const Snapshot& snapshot, std::span<const AttendTask> tasks);

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_QUERY_ATTEND_H_
