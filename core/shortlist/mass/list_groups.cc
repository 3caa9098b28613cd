#include "core/shortlist/mass/list_groups.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "core/attention/softmax/log_add.h"
#include "core/base/minus_infinity.h"
#include "core/base/normal_deviations.h"
#include "core/kernels/kernels.h"
#include "core/kernels/select.h"
#include "core/shortlist/mass/drawn_lists.h"

namespace attendant {
namespace {

// If the variance of a logit exceeds this, its code says too little of
// exp(logit).
constexpr double kMaxCodeVariance = 0.5;
// 95 % of means of kDraws skewed draws are below this many deviations.
constexpr double kOneSided = 2;

double NormalBelow(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

// Returns E max(0, 1 - x) for a log-normal x with this mean, whose log has this
// variance.
double MeanBelowOne(double mean, double variance) {
  if (mean <= 0) return 1;
  if (variance <= 0) return std::max(0.0, 1 - mean);
  const double deviation = std::sqrt(variance);
  const double d = (std::log(mean) - variance / 2) / deviation;
  return std::max(0.0, NormalBelow(-d) - mean * NormalBelow(-d - deviation));
}

}  // namespace

std::unique_ptr<ListGroups> ListGroups::Make(ListGroupsInput input) {
  std::unique_ptr<ListGroups> groups(new ListGroups(std::move(input)));
  if (!groups->Start()) return nullptr;
  return groups;
}

bool ListGroups::Start() {
  const InvertedLists& lists = *input_.lists;
  if (!coded_.Encode(lists.codes, input_.query->query,
                     input_.query->logit_factor)) {
    return false;
  }
  variance_per_square_scale_ = coded_.LogitVariancePerSquareScale(CodeBits::k8);
  const double max_scale = lists.codes.max_scale();
  if (variance_per_square_scale_ * max_scale * max_scale > kMaxCodeVariance) {
    return false;
  }
  scored_of_list_.assign(static_cast<std::size_t>(lists.list_count()), -1);
  const std::vector<std::int32_t> visited = ChooseLists();
  for (const std::int32_t list : visited) AddScored(list);
  std::vector<float> log_predicted;
  const VisitedMass mass = Visited(visited);
  input_.unscored_mass->PredictLists(lists, mass, log_predicted);
  for (std::size_t l = 0; input_.masked && l < log_predicted.size(); ++l) {
    if (log_predicted[l] == kMinusInfinityF) continue;
    log_predicted[l] += static_cast<float>(
        std::log(static_cast<double>(input_.eligible_counts[l]) /
                 static_cast<double>(lists.offsets[l + 1] - lists.offsets[l])));
  }
  log_unseen_ = input_.unscored_mass->LogUnseen(mass);
  DrawLists(log_predicted);
  Calibrate(log_predicted);
  return MakeGroups(log_predicted);
}

// Returns the lists that a query visits, and those that hold known keys.
std::vector<std::int32_t> ListGroups::ChooseLists() {
  const InvertedLists& lists = *input_.lists;
  const std::int64_t stride =
      (lists.list_count() + kCodeRows - 1) / kCodeRows * kCodeRows;
  scores_.resize(static_cast<std::size_t>(stride));
  const double norm = Norm(input_.query->query);
  const CodeQuery unit = coded_.WithFactor(norm > 0 ? 1 / norm : 0);
  lists.means->ScoreListsByCode({&unit, 1}, CodeBits::k8, stride,
                                scores_.data());
  scores_.resize(static_cast<std::size_t>(lists.list_count()));
  std::vector<std::int32_t> chosen;
  SelectBest(scores_, std::min(input_.probe_count, lists.list_count()), chosen);
  for (const KnownKey& key : input_.known) {
    chosen.push_back(static_cast<std::int32_t>(lists.ListAt(key.position)));
  }
  std::ranges::sort(chosen);
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

std::span<const KnownKey> ListGroups::KnownOf(std::int64_t list) const {
  const auto l = static_cast<std::size_t>(list);
  const auto is_before = [](const KnownKey& key, std::int64_t position) {
    return key.position < position;
  };
  const auto begin = std::lower_bound(input_.known.begin(), input_.known.end(),
                                      input_.lists->offsets[l], is_before);
  const auto end = std::lower_bound(begin, input_.known.end(),
                                    input_.lists->offsets[l + 1], is_before);
  return {begin, end};
}

void ListGroups::ScoreList(std::int64_t list, std::vector<RowIndex>& rows,
                           std::vector<float>& logits) {
  const InvertedLists& lists = *input_.lists;
  const std::int64_t begin = lists.offsets[list];
  const std::int64_t end = lists.offsets[static_cast<std::size_t>(list) + 1];
  const std::int64_t first_block = begin / kCodeRows;
  const std::int64_t block_count =
      (end + kCodeRows - 1) / kCodeRows - first_block;
  block_logits_.resize(static_cast<std::size_t>(block_count * kCodeRows));
  lists.codes.Logits({&coded_.view(), 1}, CodeBits::k8, first_block,
                     block_count, block_count * kCodeRows,
                     block_logits_.data());
  float list_logit = 0;
  ActiveKernels().DotRows(input_.query->query.data(),
                          lists.means->means.data() + list * lists.dim, 1,
                          lists.dim, &list_logit);
  list_logit *= static_cast<float>(input_.query->logit_factor);
  const float* of_list =
      block_logits_.data() + (begin - first_block * kCodeRows);
  const float* scales = lists.codes.scales().data() + begin;
  const RowIndex* list_rows = lists.rows.data() + begin;
  const auto half_variance = static_cast<float>(variance_per_square_scale_ / 2);
  const auto count = static_cast<std::size_t>(end - begin);
  const std::size_t first = logits.size();
  rows.resize(first + count);
  logits.resize(first + count);
  square_scales_.resize(count);
  float* to_logits = logits.data() + first;
  for (std::size_t i = 0; i < count; ++i) {
    square_scales_[i] = scales[i] * scales[i];
    // The mean of exp(error) is exp(variance / 2).
    to_logits[i] = of_list[i] + list_logit - half_variance * square_scales_[i];
  }
  std::copy_n(list_rows, count,
              rows.begin() + static_cast<std::ptrdiff_t>(first));
  LeaveOut(list, first, rows, logits);
  scored_count_ += end - begin;
}

void ListGroups::LeaveOut(std::int64_t list, std::size_t first,
                          std::vector<RowIndex>& rows,
                          std::vector<float>& logits) {
  std::span<const KnownKey> known = KnownOf(list);
  if (known.empty() && !input_.masked) return;
  const std::int64_t begin = input_.lists->offsets[list];
  std::size_t kept = 0;
  for (std::size_t i = 0; i < square_scales_.size(); ++i) {
    if (!known.empty() &&
        known.front().position == begin + static_cast<std::int64_t>(i)) {
      known = known.subspan(1);
      continue;
    }
    if (input_.masked && eligible_.Bit(rows[first + i]) == 0) continue;
    rows[first + kept] = rows[first + i];
    logits[first + kept] = logits[first + i];
    square_scales_[kept++] = square_scales_[i];
  }
  rows.resize(first + kept);
  logits.resize(first + kept);
  square_scales_.resize(kept);
}

const ListGroups::ScoredList& ListGroups::AddScored(std::int64_t list) {
  scored_of_list_[list] = static_cast<std::int32_t>(scored_.size());
  ScoredList& scored = scored_.emplace_back();
  scored.list = list;
  scored.begin = rows_.size();
  ScoreList(list, rows_, logits_);
  scored.end = rows_.size();
  scored.log_sum = kMinusInfinity;
  if (scored.begin == scored.end) return scored;
  const Kernels& kernels = ActiveKernels();
  const float* logits = logits_.data() + scored.begin;
  const auto count = static_cast<std::int64_t>(scored.end - scored.begin);
  const float max = kernels.Max(logits, count);
  exps_.resize(static_cast<std::size_t>(count));
  const double sum = kernels.SumExps(logits, count, max, exps_.data()).sum;
  double weighted = 0;
  for (std::size_t i = 0; i < exps_.size(); ++i) {
    weighted += double{exps_[i]} * square_scales_[i];
  }
  scored.log_sum = max + std::log(sum);
  scored.variance = variance_per_square_scale_ * weighted / sum;
  return scored;
}

VisitedMass ListGroups::Visited(std::span<const std::int32_t> visited) const {
  VisitedMass mass;
  mass.query = input_.query->query;
  mass.logit_factor = input_.query->logit_factor;
  mass.coded = &coded_;
  mass.scores = scores_;
  mass.lists = visited;
  mass.log_sum = mass.log_farther_sum = kMinusInfinity;
  const float farther = FartherScore(scores_, visited);
  std::int64_t eligible_count = 0;
  for (const std::int64_t count : input_.eligible_counts) {
    eligible_count += count;
  }
  mass.rest_count = eligible_count;
  for (std::size_t i = 0; i < visited.size(); ++i) {
    const auto l = static_cast<std::size_t>(visited[i]);
    double log_sum = scored_[i].log_sum;
    for (const KnownKey& key : KnownOf(visited[i])) {
      log_sum = LogAdd(log_sum, key.logit);
    }
    mass.log_sum = LogAdd(mass.log_sum, log_sum);
    if (scores_[l] <= farther) {
      mass.log_farther_sum = LogAdd(mass.log_farther_sum, log_sum);
    }
    mass.rest_count -= input_.eligible_counts[l];
  }
  mass.masked = input_.masked;
  mass.eligible_rate = input_.key_share * static_cast<double>(eligible_count) /
                       static_cast<double>(input_.lists->key_count());
  return mass;
}

// Scores the lists predicted to hold most, and draws others systematically,
// with one uniform number for all draws.
void ListGroups::DrawLists(std::vector<float>& log_predicted) {
  const auto list_count = static_cast<std::int64_t>(log_predicted.size());
  std::vector<std::int32_t> most;
  SelectBest(log_predicted, MostOf(list_count), most);
  for (const std::int32_t list : most) {
    float& log_mass = log_predicted[list];
    if (log_mass == kMinusInfinityF) continue;
    AddScored(list);
    log_mass = kMinusInfinityF;
  }
  max_predicted_ = ActiveKernels().Max(log_predicted.data(), list_count);
  if (max_predicted_ == kMinusInfinityF) return;
  std::vector<float> weights(log_predicted.size());
  for (std::size_t l = 0; l < weights.size(); ++l) {
    weights[l] = kTemper * (log_predicted[l] - max_predicted_);
  }
  const double total =
      ActiveKernels()
          .SumExps(weights.data(), list_count, 0, weights.data())
          .sum;
  const double step = total / static_cast<double>(kDraws);
  double target = step * UniformOf(input_.query->query);
  double passed = 0;
  for (std::size_t l = 0; l < weights.size(); ++l) {
    passed += weights[l];
    if (passed <= target) continue;
    while (target < passed) target += step;
    AddDrawn(static_cast<std::int64_t>(l), std::min(1.0, weights[l] / step),
             log_predicted[l]);
    log_predicted[l] = kMinusInfinityF;
  }
}

// A list drawn with probability p represents 1 / p - 1 lists that were not
// drawn.
void ListGroups::AddDrawn(std::int64_t list, double probability,
                          float log_predicted) {
  const ScoredList& scored = AddScored(list);
  const double weight =
      std::exp(double{log_predicted} - max_predicted_) * (1 / probability - 1);
  if (weight <= 0) return;
  drawn_.push_back({.weight = weight,
                    .ratio = std::exp(scored.log_sum - log_predicted),
                    .variance = scored.variance});
}

template <typename Function>
ListGroups::Mean ListGroups::MeanOfDrawn(Function function) const {
  double weight = 0;
  double square_weight = 0;
  double sum = 0;
  for (const DrawnList& drawn : drawn_) {
    weight += drawn.weight;
    square_weight += drawn.weight * drawn.weight;
    sum += drawn.weight * function(drawn);
  }
  Mean mean = {.value = sum / weight};
  double square_sum = 0;
  for (const DrawnList& drawn : drawn_) {
    const double off = drawn.weight * (function(drawn) - mean.value);
    square_sum += off * off;
  }
  // Effective number of draws: this many draws of equal weight would say as
  // much.
  const double count = weight * weight / square_weight;
  mean.deviation =
      count > 1
          ? std::sqrt(square_sum / (weight * weight) * count / (count - 1))
          : std::numeric_limits<double>::infinity();
  return mean;
}

void ListGroups::Calibrate(std::span<const float> log_predicted) {
  const auto list_count = static_cast<std::int64_t>(log_predicted.size());
  log_rest_ = log_shortfall_ = kMinusInfinity;
  const float max = ActiveKernels().Max(log_predicted.data(), list_count);
  if (max == kMinusInfinityF) return;
  Mean ratio = {.value = 1, .deviation = 0};
  if (!drawn_.empty()) {
    ratio = MeanOfDrawn([](const DrawnList& drawn) { return drawn.ratio; });
  }
  mean_ratio_ = ratio.value;
  const double log_sum = max + std::log(ActiveKernels()
                                            .SumExps(log_predicted.data(),
                                                     list_count, max, nullptr)
                                            .sum);
  log_rest_ = log_sum + std::log(ratio.value);
  log_shortfall_ =
      std::log(kNormalDeviations) +
      LogAdd(2 * (log_sum + std::log(kDrawDeviations * ratio.deviation)),
             2 * log_unseen_) /
          2;
}

bool ListGroups::MakeGroups(std::span<const float> log_predicted) {
  for (std::size_t l = 0; l < log_predicted.size(); ++l) {
    KeyGroup group;
    group.id = static_cast<std::int64_t>(l);
    if (scored_of_list_[l] >= 0) {
      const ScoredList& scored = scored_[scored_of_list_[l]];
      group.key_count = static_cast<std::int64_t>(scored.end - scored.begin);
      group.log_mass = scored.log_sum;
    } else {
      group.key_count = input_.eligible_counts[l];
      group.log_mass = log_predicted[l] + std::log(mean_ratio_);
    }
    if (group.key_count == 0) continue;
    if (!std::isfinite(group.log_mass)) return false;
    groups_.push_back(group);
  }
  return std::isfinite(mean_ratio_) && !std::isnan(log_shortfall_);
}

void ListGroups::Open(std::size_t group, std::vector<RowIndex>& rows,
                      std::vector<float>& log_shares) {
  const std::int64_t list = groups_[group].id;
  rows.clear();
  log_shares.clear();
  const std::int32_t at = scored_of_list_[list];
  if (at < 0) {
    ScoreList(list, rows, log_shares);
    return;
  }
  const ScoredList& scored = scored_[at];
  const auto begin = static_cast<std::ptrdiff_t>(scored.begin);
  const auto end = static_cast<std::ptrdiff_t>(scored.end);
  rows.assign(rows_.begin() + begin, rows_.begin() + end);
  log_shares.assign(logits_.begin() + begin, logits_.begin() + end);
}

// Keys are drawn by their weights w. exp(logit) / w is log-normal, with mean 1
// if w is from codes, or with its list's ratio as mean if w was predicted.
double ListGroups::LogExcess(double growth) const {
  double log_excess = kMinusInfinity;
  for (const ScoredList& scored : scored_) {
    log_excess = LogAdd(
        log_excess,
        scored.log_sum + std::log(MeanBelowOne(1 / growth, scored.variance)));
  }
  if (log_rest_ == kMinusInfinity) return log_excess;
  // If no draw met the rest, nothing is known of it; it is then small.
  double share = 1;
  if (!drawn_.empty()) {
    const Mean below = MeanOfDrawn([&](const DrawnList& drawn) {
      return MeanBelowOne(drawn.ratio / (mean_ratio_ * growth), drawn.variance);
    });
    share = std::min(1.0, below.value + kOneSided * below.deviation);
  }
  return LogAdd(log_excess, log_rest_ + std::log(share));
}

}  // namespace attendant
