#include "core/shortlist/passes/code_pass.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>

#include "core/attention/softmax/log_add.h"
#include "core/base/minus_infinity.h"
#include "core/base/status.h"
#include "core/kernels/kernels.h"
#include "core/kernels/prefetch.h"
#include "core/kernels/select.h"
#include "core/shortlist/scan/eligible_rows.h"
#include "core/shortlist/scan/key_scorer.h"

namespace attendant {
namespace {

// Standard deviations that a code is assumed to err by at most, if nothing has
// to be proven; one of 500 keys errs by more.
constexpr double kDeviations = 3;
// If the variance of a logit, or the error common to all logits, exceeds these,
// codes say too little of exp(logit).
constexpr double kMaxVariance = 0.5;
constexpr double kMaxCommonError = 0.5;
// Greatest variance of a logit if keys are drawn by their codes.
constexpr double kMaxDrawnVariance = 1;
// 8 bits of a query suffice in combination with 4 bits of a key if they move
// logits by no more than this.
constexpr double kMaxQueryDeviation = 0.05;
// Kept keys that may accumulate beyond the number wanted.
constexpr std::size_t kWaiting = 256;
// Keys that are scored at once, and keys that are prefetched ahead.
constexpr std::size_t kTogether = 8;
constexpr std::size_t kAhead = 2 * kTogether;
// Keys scored from floats between two checks of the interrupt.
constexpr std::size_t kPollKeys = 4096;
static_assert(kPollKeys % kTogether == 0);

// Returns the k-th greatest number, or, if not `last`, possibly a number below
// it.
float Kth(std::span<const float> numbers, std::int64_t k, bool last) {
  return last ? KthGreatest(numbers, k)
              : NearKthGreatest(numbers, k, k + k / 4);
}

}  // namespace

bool CodePass::Start(const ScanQuery& query, const InvertedLists& lists,
                     std::int64_t k, bool all_eligible,
                     const CodePassOptions& options, const CodedQuery* coded) {
  query_ = &query;
  lists_ = &lists;
  k_ = k;
  all_eligible_ = all_eligible;
  options_ = options;
  const bool is_coded =
      coded != nullptr
          ? coded_.EncodeAs(*coded, lists.codes)
          : coded_.Encode(lists.codes, query.query, query.logit_factor);
  if (!is_coded) return false;
  if (options_.few_codes && options_.precision > 0 &&
      FewestDrawsSuffice(CodeBits::k8)) {
    options_.bits = CodeBits::k8;
    if (options_.values == nullptr) options_.rescore_count = 0;
  }
  if (!MayRead(options_.bits)) return false;
  if (options_.bits == CodeBits::k4 && !options.certified &&
      options.values == nullptr &&
      coded_.LogitDeviation(QueryBits::k8) <= kMaxQueryDeviation) {
    coded_.Read(QueryBits::k8);
  }
  Read(options_.bits);
  keeps_all_ = false;
  mixed_ = false;
  partition_ = lower_ = upper_ = SoftmaxPartition();
  taken_.clear();
  tail_.Start();
  if (options.values != nullptr) pool_.Start(lists, *options.values);
  taken_count_ = 0;
  threshold_ = kMinusInfinityF;
  pooled_.clear();
  kept_.size = 0;
  capacity_ =
      2 * static_cast<std::size_t>(std::max(k, options_.rescore_count)) +
      kWaiting;
  MakeRoom();
  return std::isfinite(max_margin_);
}

bool CodePass::MayRead(CodeBits bits) const {
  const double max_scale = lists_->codes.max_scale();
  // Bound of the query's product with the mean of a list.
  const double product = coded_.norm() * lists_->max_norm();
  const bool draws_by_4 = options_.precision > 0 && bits == CodeBits::k4;
  // Pooling uses codes without correction.
  const double max_variance = draws_by_4 && options_.values == nullptr
                                  ? kMaxDrawnVariance
                                  : kMaxVariance;
  return std::max(1.0, query_->logit_factor) * product < KeyCodes::kMaxNorm &&
         coded_.LogitVariancePerSquareScale(bits) * max_scale * max_scale <=
             max_variance &&
         coded_.logit_error() <= kMaxCommonError &&
         (!draws_by_4 || DrawsSuffice(bits));
}

void CodePass::Read(CodeBits bits) {
  mixed_ |= bits != options_.bits;
  options_.bits = bits;
  const double max_scale = lists_->codes.max_scale();
  const double variance = coded_.LogitVariancePerSquareScale(bits);
  half_variance_ = static_cast<float>(variance / 2);
  correction_ = options_.bounds ? 0 : half_variance_;
  // A proof's margin also covers the correction of the logit.
  const double margin_per_scale =
      options_.certified
          ? coded_.LogitErrorPerScale(bits) + correction_ * max_scale
          : kDeviations * std::sqrt(variance);
  // Rounded up to floats.
  constexpr double kUp = 1 + 0x1p-20;
  margin_per_scale_ = static_cast<float>(kUp * margin_per_scale);
  // Products with lists' means are rounded, as are logits from floats.
  const double query_error = options_.certified
                                 ? coded_.logit_error()
                                 : kDeviations * coded_.LogitDeviation();
  margin_ = static_cast<float>(
      kUp * (query_error + 2 * kDotRounding * std::abs(query_->logit_factor) *
                               coded_.norm() * lists_->max_norm()));
  max_margin_ = static_cast<float>(
      kUp * (margin_per_scale_ * max_scale + double{margin_}));
}

void CodePass::SetListProduct(std::int64_t list, float product) {
  SetListLogit(list, product * static_cast<float>(query_->logit_factor));
}

void CodePass::SetListLogit(std::int64_t list, float logit) {
  list_logits_.resize(static_cast<std::size_t>(lists_->list_count()));
  list_logits_[list] = logit;
}

void CodePass::ScoreList(std::int64_t list) {
  float product = 0;
  ActiveKernels().DotRows(query_->query.data(),
                          lists_->means->means.data() + list * lists_->dim, 1,
                          lists_->dim, &product);
  SetListProduct(list, product);
}

void CodePass::ScoreAllLists(std::span<CodePass* const> passes) {
  if (passes.empty()) return;
  const InvertedLists& lists = *passes[0]->lists_;
  const auto list_count = static_cast<std::size_t>(lists.list_count());
  const auto dim = static_cast<std::size_t>(lists.dim);
  thread_local std::vector<float> queries;
  thread_local std::vector<float> products;
  queries.resize(passes.size() * dim);
  products.resize(passes.size() * list_count);
  for (std::size_t i = 0; i < passes.size(); ++i) {
    std::ranges::copy(passes[i]->query_->query,
                      queries.begin() + static_cast<std::ptrdiff_t>(i * dim));
  }
  ActiveKernels().DotRowsMulti(queries.data(),
                               static_cast<std::int64_t>(passes.size()),
                               lists.means->means.data(), lists.list_count(),
                               lists.dim, products.data());
  for (std::size_t i = 0; i < passes.size(); ++i) {
    CodePass& pass = *passes[i];
    const auto factor = static_cast<float>(pass.query_->logit_factor);
    pass.list_logits_.resize(list_count);
    for (std::size_t list = 0; list < list_count; ++list) {
      pass.list_logits_[list] = products[i * list_count + list] * factor;
    }
  }
}

float CodePass::Correct(std::int64_t list, std::int64_t begin,
                        std::int64_t count, float* logits) const {
  const Kernels& kernels = ActiveKernels();
  const float* scales = lists_->codes.scales().data() + begin;
  float greatest = kMinusInfinityF;
  for (std::int64_t i = 0; i < count; ++list) {
    const std::int64_t end = std::min(
        count, lists_->offsets[static_cast<std::size_t>(list) + 1] - begin);
    if (end <= i) continue;
    greatest = std::max(
        greatest, kernels.CorrectMax(scales + i, correction_,
                                     list_logits_[list], end - i, logits + i));
    i = end;
  }
  return greatest;
}

absl::Status CodePass::Poll() const {
  return query_->interrupt == nullptr ? absl::OkStatus()
                                      : query_->interrupt->Check();
}

void CodePass::Take(std::int64_t list, std::int64_t begin, std::int64_t count,
                    float* logits) {
  float greatest = Correct(list, begin, count, logits);
  std::int64_t eligible_count = count;
  if (!all_eligible_) {
    eligible_count = LeaveEligible(begin, count, logits);
    if (eligible_count == 0) {
      if (options_.precision == 0) return;
      std::fill_n(logits, count, 0.0f);
      tail_.Add(logits, count, kMinusInfinityF);
      return;
    }
    if (eligible_count < count) greatest = ActiveKernels().Max(logits, count);
  }
  taken_count_ += eligible_count;
  if (options_.bounds) TakeBounds(begin, count, logits);
  if (k_ > 0 || options_.rescore_count > 0) {
    const std::int64_t wanted = std::max(k_, options_.rescore_count);
    if (threshold_ == kMinusInfinityF && eligible_count >= 2 * wanted) {
      SetThreshold({logits, static_cast<std::size_t>(count)}, wanted);
    }
    Keep(begin, count, logits, greatest);
  }
  taken_.push_back({.begin = begin,
                    .count = count,
                    .list = list,
                    .bits = options_.bits,
                    .partition = {}});
  SoftmaxPartition& partition = taken_.back().partition;
  const bool samples = options_.precision > 0;
  const bool pools = options_.values != nullptr;
  partition.Add(logits, count, greatest, samples || pools ? logits : nullptr);
  if (samples) tail_.Add(logits, count, partition.max);
  if (pools) pool_.Add(list, begin, count, logits, partition.max);
}

// Uses no branch for other masks than dead keys, because whether a row is
// eligible cannot be predicted.
std::int64_t CodePass::LeaveEligible(std::int64_t begin, std::int64_t count,
                                     float* logits) const {
  if (query_->dead != nullptr) {
    return query_->dead->LeaveLive(begin, count, logits);
  }
  const EligibleRows eligible(*query_);
  const RowIndex* rows = lists_->rows.data() + begin;
  constexpr auto kMinusInfinityBits =
      std::bit_cast<std::uint32_t>(kMinusInfinityF);
  std::int64_t eligible_count = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bit = static_cast<std::uint32_t>(eligible.Bit(rows[i]));
    const auto logit = std::bit_cast<std::uint32_t>(logits[i]);
    logits[i] = std::bit_cast<float>((logit & (0 - bit)) |
                                     (kMinusInfinityBits & (bit - 1)));
    eligible_count += bit;
  }
  return eligible_count;
}

void CodePass::Keep(std::int64_t begin, std::int64_t count, const float* logits,
                    float greatest) {
  // Never keeps a key that is not eligible, even while there is no threshold.
  const float least =
      std::max(threshold_ - max_margin_, std::numeric_limits<float>::lowest());
  if (greatest < least) return;
  positions_.resize(static_cast<std::size_t>(kTakeKeys));
  const std::int64_t found =
      ActiveKernels().SelectAtLeast(logits, count, least, positions_.data());
  const float* scales = lists_->codes.scales().data() + begin;
  for (std::int64_t i = 0; i < found; ++i) {
    const std::int32_t at = positions_[i];
    const float margin = margin_per_scale_ * scales[at] + margin_;
    const float upper = logits[at] + margin;
    kept_.logits[kept_.size] = logits[at];
    kept_.margins[kept_.size] = margin;
    kept_.uppers[kept_.size] = upper;
    kept_.positions[kept_.size] = static_cast<std::int32_t>(begin) + at;
    kept_.size += upper >= threshold_ ? 1 : 0;
  }
  if (kept_.size >= capacity_) Shrink(false);
}

float CodePass::LeastOfBest() {
  Shrink(false);
  return threshold_;
}

double CodePass::LogTaken() const {
  double log_sum = kMinusInfinity;
  for (const Taken& taken : taken_) {
    log_sum =
        LogAdd(log_sum, taken.partition.max + std::log(taken.partition.sum));
  }
  return log_sum;
}

// Called while there is no threshold, for the keys of one take: sets the
// threshold by which Shrink would leave keys out.
void CodePass::SetThreshold(std::span<const float> logits,
                            std::int64_t wanted) {
  threshold_ = NearKthGreatest(logits, wanted, wanted + wanted / 4) -
               (options_.certified ? max_margin_ : 0);
}

void CodePass::MakeRoom() {
  const std::size_t room = capacity_ + static_cast<std::size_t>(kTakeKeys);
  if (kept_.logits.size() >= room) return;
  kept_.logits.resize(room);
  kept_.margins.resize(room);
  kept_.uppers.resize(room);
  kept_.positions.resize(room);
}

void CodePass::TakeBounds(std::int64_t begin, std::int64_t count,
                          const float* logits) {
  alignas(64) float bounds[kTakeKeys];
  const float* scales = lists_->codes.scales().data() + begin;
  for (const float sign : {-1.0f, 1.0f}) {
    for (std::int64_t i = 0; i < count; ++i) {
      bounds[i] = logits[i] + sign * (margin_per_scale_ * scales[i] + margin_);
    }
    (sign < 0 ? lower_ : upper_).Add(bounds, count, nullptr);
  }
}

// A key whose code is g deviations below the k-th best is one of the k best
// with the probability that a normal number exceeds g. Leaves out the farthest
// keys, as long as their probabilities add up to no more than lost_count.
// Counts the keys below each step again, with kernels: sorting the keys into
// bins takes a branch per key that cannot be predicted, and took more than
// three times as long.
void CodePass::NarrowMargins() {
  // With this many keys the error of the k-th best code averages out.
  constexpr std::int64_t kMinLosing = 20;
  if (options_.lost_count == 0 || options_.certified ||
      options_.rescore_count > 0 || k_ < kMinLosing ||
      k_ > static_cast<std::int64_t>(kept_.size)) {
    return;
  }
  constexpr int kSteps = 8;  // per deviation
  constexpr auto kBins = static_cast<int>(kSteps * kDeviations);
  static const std::array<double, kBins + 1> chances = [] {
    std::array<double, kBins + 1> above = {};
    for (std::size_t bin = 1; bin <= kBins; ++bin) {
      above[bin] = 0.5 * std::erfc(static_cast<double>(bin - 1) / kSteps /
                                   std::numbers::sqrt2);
    }
    return above;
  }();
  constexpr float kMinMargin = 1e-30f;  // divides
  const auto size = static_cast<std::int64_t>(kept_.size);
  // Number of steps below the k-th best.
  places_.resize(std::max(places_.size(), kept_.size));
  for (std::size_t i = 0; i < kept_.size; ++i) {
    places_[i] = (threshold_ - kept_.logits[i]) *
                 (float{kBins} / (kept_.margins[i] + kMinMargin));
  }
  const auto count_below = [&](int steps) {
    return ActiveKernels().CountAtLeast(places_.data(), size,
                                        static_cast<float>(steps));
  };
  // If keys lie closer together than their codes err, codes do not tell which
  // are the best.
  if (2 * (size - count_below(-kSteps)) < k_) return;
  double lost = 0;
  int bin = kBins;
  std::int64_t left_out = count_below(kBins);  // by their margins
  for (; bin > 0; --bin) {
    const std::int64_t below = count_below(bin - 1);
    lost += static_cast<double>(below - left_out) * chances[bin];
    if (lost > options_.lost_count) break;
    left_out = below;
  }
  const float share = static_cast<float>(bin) / float{kBins};
  margin_per_scale_ *= share;
  margin_ *= share;
  max_margin_ *= share;
  for (std::size_t i = 0; i < kept_.size; ++i) {
    kept_.margins[i] *= share;
    kept_.uppers[i] = kept_.logits[i] + kept_.margins[i];
  }
}

// Keeps the keys that may be among the k best, given a lower bound of the k
// best, and the rescore_count best.
void CodePass::Shrink(bool last) {
  const auto size = static_cast<std::int64_t>(kept_.size);
  const std::span<const float> logits(kept_.logits.data(), kept_.size);
  const std::span<const float> uppers(kept_.uppers.data(), kept_.size);
  float least = std::numeric_limits<float>::infinity();
  if (k_ > size) {
    least = kMinusInfinityF;
  } else if (k_ > 0 && options_.certified) {
    lowers_.resize(kept_.size);
    for (std::size_t i = 0; i < kept_.size; ++i) {
      lowers_[i] = kept_.logits[i] - kept_.margins[i];
    }
    least = Kth(lowers_, k_, last);
  } else if (k_ > 0) {
    // Errors are as often positive as negative, so without a proof the k-th
    // best code represents the k-th best key.
    least = Kth(logits, k_, last);
  }
  if (options_.rescore_count > k_) {
    least = std::min(least, options_.rescore_count <= size
                                ? Kth(uppers, options_.rescore_count, last)
                                : kMinusInfinityF);
  }
  threshold_ = std::max(threshold_, least);
  if (last) NarrowMargins();
  positions_.resize(std::max(positions_.size(), kept_.size));
  kept_.size = static_cast<std::size_t>(ActiveKernels().SelectAtLeast(
      uppers.data(), size, threshold_, positions_.data()));
  for (std::size_t i = 0; i < kept_.size; ++i) {
    const auto from = static_cast<std::size_t>(positions_[i]);
    kept_.logits[i] = kept_.logits[from];
    kept_.margins[i] = kept_.margins[from];
    kept_.uppers[i] = kept_.uppers[from];
    kept_.positions[i] = kept_.positions[from];
  }
  capacity_ = std::max(capacity_, 2 * kept_.size);
  MakeRoom();
}

// Sorts the kept keys by position, the order in which sums are added up. The
// keys of one take are in order already, and follow the order of the takes, so
// only the takes are sorted.
void CodePass::SortKept() {
  const auto end =
      kept_.positions.begin() + static_cast<std::ptrdiff_t>(kept_.size);
  if (std::is_sorted(kept_.positions.begin(), end)) return;
  runs_.clear();
  std::size_t kept = 0;
  for (const Taken& taken : taken_) {
    const std::size_t first = kept;
    while (kept < kept_.size && kept_.positions[kept] >= taken.begin &&
           kept_.positions[kept] < taken.begin + taken.count) {
      ++kept;
    }
    if (kept > first) runs_.push_back({taken.begin, first, kept});
  }
  std::ranges::sort(
      runs_, [](const Run& a, const Run& b) { return a.begin < b.begin; });
  sorted_positions_.resize(kept_.size);
  sorted_logits_.resize(kept_.size);
  std::size_t to = 0;
  for (const Run& run : runs_) {
    for (std::size_t i = run.first; i < run.last; ++i, ++to) {
      sorted_positions_[to] = kept_.positions[i];
      sorted_logits_[to] = kept_.logits[i];
    }
  }
  std::copy(sorted_positions_.begin(), sorted_positions_.end(),
            kept_.positions.begin());
  std::copy(sorted_logits_.begin(), sorted_logits_.end(), kept_.logits.begin());
}

// Adds up in the order of keys, whatever the order of the takes.
void CodePass::MergeTaken() {
  takes_.clear();
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    takes_.emplace_back(taken_[i].begin, i);
  }
  // A single query takes the best lists first, and then the others in order.
  auto middle = takes_.end();
  while (middle != takes_.begin() &&
         (middle == takes_.end() || *std::prev(middle) < *middle)) {
    --middle;
  }
  std::sort(takes_.begin(), middle);
  merge_order_.resize(takes_.size());
  std::merge(takes_.begin(), middle, middle, takes_.end(),
             merge_order_.begin());
  maxima_.clear();
  for (const auto& [begin, i] : merge_order_) {
    maxima_.push_back(taken_[i].partition.max);
  }
  partition_ = SoftmaxPartition();
  if (maxima_.empty()) return;
  const auto n = static_cast<std::int64_t>(maxima_.size());
  partition_.max = ActiveKernels().Max(maxima_.data(), n);
  factors_.resize(maxima_.size());
  ActiveKernels().Exps(maxima_.data(), n, partition_.max, factors_.data());
  for (std::size_t m = 0; m < maxima_.size(); ++m) {
    const SoftmaxPartition& part = taken_[merge_order_[m].second].partition;
    const double factor = factors_[m];
    const double raise = double{part.max} - partition_.max;
    partition_.count += part.count;
    partition_.sum += factor * part.sum;
    partition_.sum_gap += factor * (part.sum_gap + raise * part.sum);
    partition_.sum_square += factor * factor * part.sum_square;
  }
}

double CodePass::LogSum(std::span<const float> list_scores, float most) const {
  double sum = 0;
  for (std::size_t m = 0; m < merge_order_.size(); ++m) {
    const Taken& taken = taken_[merge_order_[m].second];
    if (list_scores[taken.list] <= most) {
      sum += factors_[m] * taken.partition.sum;
    }
  }
  return sum > 0 ? partition_.max + std::log(sum) : kMinusInfinity;
}

absl::Status CodePass::RescoreKept(AttentionState& state) {
  KeyScorer scorer(*query_);
  ATTENDANT_RETURN_IF_ERROR(scorer.Validate());
  ATTENDANT_RETURN_IF_ERROR(
      ScoreFloats({kept_.positions.data(), kept_.size}, scorer));
  if (options_.values != nullptr) FindKeptValues();
  if (kept_.size > 0) {
    state.Add(query_->segment, rows_, logits_, similarities_, pooled_);
  }
  return absl::OkStatus();
}

void CodePass::FindKeptValues() {
  pooled_.resize(kept_.size);
  for (std::size_t i = 0; i < kept_.size; ++i) {
    const float* value =
        query_->values == nullptr ? nullptr : query_->values->ValueOf(rows_[i]);
    if (value == nullptr) {
      value = lists_->key_view().Row(kept_.positions[i]).data();
    }
    PrefetchRow(value, options_.values->dim());
    pooled_[i] = value;
  }
}

// Sets rows_, similarities_ and logits_.
absl::Status CodePass::ScoreFloats(std::span<const std::int32_t> positions,
                                   KeyScorer& scorer) {
  const std::size_t count = positions.size();
  rows_.resize(count);
  similarities_.resize(count);
  logits_.resize(count);
  lists_->keys.Await(positions, lists_->dim);
  for (std::size_t i = 0; i < std::min(kAhead, count); ++i) {
    lists_->Prefetch(positions[i]);
  }
  for (std::size_t i = 0; i < count; i += kTogether) {
    if (i > 0 && i % kPollKeys == 0) ATTENDANT_RETURN_IF_ERROR(Poll());
    const std::size_t end = std::min(i + kTogether, count);
    const std::size_t soon = std::min(end + kAhead, count);
    for (std::size_t next = i + kAhead; next < soon; ++next) {
      lists_->Prefetch(positions[next]);
    }
    for (std::size_t j = i; j < end; ++j) {
      rows_[j] = lists_->rows[positions[j]];
    }
    scorer.SimilaritiesAt(lists_->keys.data(), lists_->inverse_norms.data(),
                          positions.subspan(i, end - i), &similarities_[i]);
  }
  return scorer.Logits(similarities_.data(), rows_.data(),
                       static_cast<std::int64_t>(count), logits_.data());
}

absl::Status CodePass::Finish(bool complete, AttentionState& state,
                              ScanStats& stats) {
  Shrink(true);
  SortKept();
  MergeTaken();
  FindNearCut();
  ATTENDANT_RETURN_IF_ERROR(RescoreKept(state));
  SoftmaxPartition rest = Rest();
  if (options_.precision > 0 && rest.count > 0) {
    ATTENDANT_RETURN_IF_ERROR(
        CorrectRest(state.partition().LogPartition(), rest, stats));
  } else {
    SetVariance(rest, stats);
  }
  value_sum_.clear();
  if (options_.values != nullptr && rest.count > 0) {
    stats.pooled_error = PoolRest(rest);
  }
  state.AddUnkept(rest, value_sum_);
  stats.scored_count = taken_count_;
  stats.complete = complete;
  stats.knows_mass = complete;
  stats.exact = complete && rest.count == 0;
  stats.results_exact = complete && (options_.certified || stats.exact);
  if (stats.exact || taken_count_ == 0) return absl::OkStatus();
  if (options_.bounds && complete) SetBounds(stats);
  return absl::OkStatus();
}

}  // namespace attendant
