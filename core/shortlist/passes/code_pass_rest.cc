// What a pass says of the keys that it did not score from their floats.
#include <algorithm>
#include <cmath>

#include "core/attention/softmax/log_add.h"
#include "core/base/minus_infinity.h"
#include "core/base/normal_deviations.h"
#include "core/base/status.h"
#include "core/kernels/kernels.h"
#include "core/shortlist/passes/code_pass.h"
#include "core/shortlist/scan/eligible_rows.h"
#include "core/shortlist/scan/key_scorer.h"

namespace attendant {
namespace {

// Keys that lie close together are rounded alike, so that their errors add up
// to somewhat more than those of as many others: the factor is measured
// (docs/mass.md). That of equal keys is beside it (KeyCodes::RepeatsOf).
constexpr double kAlikeKeys = 1.4;
// Relative error of a sum of exps in floats, for gaps up to 16, beyond which
// terms hardly weigh (see SumExps).
constexpr double kSumError = (8 + 16 + 9) * 0x1p-24;
// Keys drawn to correct a sum: at least so many, at most these or one of so
// many keys, which takes half as long as to score all of them from floats.
constexpr std::int64_t kMinDraws = 64;
constexpr std::int64_t kMaxDraws = 4096;
constexpr std::int64_t kKeysPerMostDraws = 64;
// So many deviations hold 95 % of the means of kMinDraws.
constexpr double kDrawnDeviations = 2.1;
// Draws beyond those that errors call for: errors of near keys are alike.
constexpr double kDrawMargin = 1.5;
// Beyond this mean variance of logits the ratios of so few draws are too skewed
// for what they say of themselves.
constexpr double kMaxMeanVariance = 0.3;
// Of attention so sharp that logits have a variance v by 4 bits at most some
// exp(-20 v) was left to codes, of four sets of 100,000 keys up to v = .15.
constexpr double kShareLostPerVariance = 20;
// A draw takes as long as the other nibbles of so many keys, for a query alone.
constexpr std::int64_t kKeysPerDraw = 250;
// Draws beyond those that the first ones call for, where these leave more than
// this much of what they may: an interval of logs is somewhat wider than that.
constexpr double kMoreDraws = 1.2;
constexpr double kMaxLeft = 0.95;
// Draws between two looks at the interrupt.
constexpr std::size_t kPollDraws = 4096;
// Blocks ahead of their turn that are asked for.
constexpr std::size_t kAheadBlocks = 16;

}  // namespace

// Of keys with equal logits, those whose codes err downwards are left out of
// what is kept, and weigh too little. As E[exp(e) 1(e < a)] =
// exp(variance / 2) P(e < a - variance), the terms of kept keys that are less
// than a variance above the threshold make up for it.
bool CodePass::CountsTwice(std::size_t kept) const {
  // Where rows are drawn from, what is drawn from is what was not kept, and
  // nothing else.
  return options_.precision == 0 && kept_near_cut_[kept] != 0;
}

void CodePass::FindNearCut() {
  kept_near_cut_.assign(kept_.size, 0);
  if (options_.bits != CodeBits::k4 || options_.certified) return;
  for (std::size_t i = 0; i < kept_.size; ++i) {
    const std::int32_t position = kept_.positions[i];
    kept_near_cut_[i] = static_cast<std::uint8_t>(
        kept_.logits[i] - Variance(position) < threshold_ - Margin(position));
  }
}

SoftmaxPartition CodePass::Rest() {
  SoftmaxPartition rest = partition_;
  rest.count = taken_count_ - static_cast<std::int64_t>(kept_.size);
  if (rest.count == 0) return SoftmaxPartition();
  // By the same kernel, so that a term is taken off as it was added.
  logits_taken_off_.resize(kept_.size);
  std::size_t count = 0;
  for (std::size_t i = 0; i < kept_.size; ++i) {
    logits_taken_off_[count] = kept_.logits[i];
    count += CountsTwice(i) ? 0 : 1;
  }
  const ExpSums kept = ActiveKernels().SumExps(logits_taken_off_.data(),
                                               static_cast<std::int64_t>(count),
                                               rest.max, nullptr);
  rest.sum -= kept.sum;
  rest.sum_gap -= kept.sum_gap;
  rest.sum_square -= kept.sum_square;
  rest.sum = std::max(0.0, rest.sum);
  rest.sum_gap = std::min(0.0, rest.sum_gap);
  rest.sum_square = std::max(0.0, rest.sum_square);
  return rest;
}

double CodePass::RestSquareScale() const {
  const double max_scale = lists_->codes.max_scale();
  if (kept_.size == 0) return max_scale * max_scale;
  double sum = 0;
  for (std::size_t i = 0; i < kept_.size; ++i) {
    const double scale =
        lists_->codes.scales()[static_cast<std::size_t>(kept_.positions[i])];
    sum += scale * scale;
  }
  return std::max(sum / static_cast<double>(kept_.size),
                  lists_->codes.mean_square_scale());
}

double CodePass::RepeatsOf(const Taken& taken) const {
  const std::int64_t end = taken.begin + taken.count;
  double sum = 0;
  std::int64_t list = lists_->ListAt(taken.begin);
  for (std::int64_t begin = taken.begin; begin < end; ++list) {
    const std::int64_t list_end =
        std::min(end, lists_->offsets[static_cast<std::size_t>(list) + 1]);
    sum +=
        static_cast<double>(list_end - begin) * lists_->codes.RepeatsOf(list);
    begin = list_end;
  }
  return sum / static_cast<double>(taken.count);
}

CodePass::Squares CodePass::RestSquares(const SoftmaxPartition& rest) const {
  const bool repeats = lists_->codes.has_repeats();
  Squares squares;
  if (mixed_ || repeats) {
    std::size_t kept = 0;
    for (const auto& [begin, take] : merge_order_) {
      const Taken& taken = taken_[take];
      double square = taken.partition.sum_square *
                      std::exp(2.0 * (double{taken.partition.max} - rest.max));
      const std::int64_t end = taken.begin + taken.count;
      for (; kept < kept_.size && kept_.positions[kept] < end; ++kept) {
        if (CountsTwice(kept)) continue;
        square -= std::exp(2 * (double{kept_.logits[kept]} - rest.max));
      }
      if (repeats) square = std::max(0.0, square) * RepeatsOf(taken);
      (taken.bits == CodeBits::k4 ? squares.coarse : squares.fine) += square;
    }
    if (repeats) return squares;
  } else if (options_.bits == CodeBits::k4) {
    squares.coarse = rest.sum_square;
  }
  squares.coarse = std::clamp(squares.coarse, 0.0, rest.sum_square);
  squares.fine = rest.sum_square - squares.coarse;
  return squares;
}

void CodePass::SetVariance(const SoftmaxPartition& rest,
                           ScanStats& stats) const {
  if (rest.count == 0) return;
  const double square_scale = RestSquareScale();
  const auto factor = [&](CodeBits bits) {
    return std::expm1(coded_.LogitVariancePerSquareScale(bits) * square_scale);
  };
  const Squares squares = RestSquares(rest);
  const double of_codes = squares.coarse * factor(CodeBits::k4) +
                          squares.fine * factor(CodeBits::k8);
  // Which keys are kept is a matter of chance as well: that of those counted
  // twice.
  double twice_square = 0;
  for (std::size_t i = 0; i < kept_.size; ++i) {
    if (!CountsTwice(i)) continue;
    const double e = std::exp(double{kept_.logits[i]} - rest.max);
    twice_square += e * e * RepeatsAt(kept_.positions[i]);
  }
  const double rounding = kSumError * partition_.sum;
  // The logits' own error, common to all, moves the sum as a whole.
  const double common =
      (options_.certified ? coded_.logit_error() : coded_.LogitDeviation()) *
      rest.sum;
  stats.log_variance =
      2.0 * rest.max + std::log(kAlikeKeys * (of_codes + twice_square) +
                                rounding * rounding + common * common);
}

double CodePass::MeanVariance(CodeBits bits) const {
  return coded_.LogitVariancePerSquareScale(bits) *
         lists_->codes.mean_square_scale();
}

// Relative, of all sums. The variances of the indexes that the keys lie in add
// up to that of all.
double CodePass::WantedDeviation() const {
  return options_.precision * std::sqrt(options_.key_share) / kDrawnDeviations;
}

// Each ratio varies by exp(v) - 1 relative to its square, v being the variance
// of a logit.
double CodePass::DrawsWanted(CodeBits bits, double share) const {
  const double deviation = share / WantedDeviation();
  return kDrawMargin * deviation * deviation * std::expm1(MeanVariance(bits));
}

// What is left to codes is less of the sums the sharper attention is, and so
// the more codes err.
bool CodePass::DrawsSuffice(CodeBits bits) const {
  const double variance = MeanVariance(bits);
  const double likely_share =
      options_.key_share * std::exp(-kShareLostPerVariance * variance);
  return variance <= kMaxMeanVariance &&
         DrawsWanted(bits, likely_share) <=
             static_cast<double>(kMinDraws +
                                 lists_->key_count() / kKeysPerDraw);
}

bool CodePass::FewestDrawsSuffice(CodeBits bits) const {
  return DrawsWanted(bits, 1) <= static_cast<double>(kMinDraws);
}

std::int64_t CodePass::MostDraws() const {
  return std::max(kMaxDraws, lists_->key_count() / kKeysPerMostDraws);
}

// Draws a key of the block. False if none is left there.
bool CodePass::DrawKey(const TailSample::Draw& draw, std::int32_t& position,
                       double& log_probability) const {
  const std::int64_t begin = draw.block * kCodeRows;
  const std::int64_t count = std::min(kCodeRows, lists_->key_count() - begin);
  float logits[kCodeRows];
  const CodeQuery query = coded_.view();
  lists_->codes.Logits({&query, 1}, options_.bits, draw.block, 1, kCodeRows,
                       logits);
  Correct(lists_->ListAt(begin), begin, count, logits);
  const EligibleRows eligible(*query_);
  const auto kept_end =
      kept_.positions.begin() + static_cast<std::ptrdiff_t>(kept_.size);
  auto kept = std::lower_bound(kept_.positions.begin(), kept_end,
                               static_cast<std::int32_t>(begin));
  for (std::int64_t i = 0; i < count; ++i) {
    const bool is_kept = kept != kept_end && *kept == begin + i;
    if (is_kept) ++kept;
    const RowIndex row = lists_->rows[static_cast<std::size_t>(begin + i)];
    const bool takes_part =
        !is_kept && (all_eligible_ || eligible.Bit(row) != 0);
    if (!takes_part) logits[i] = kMinusInfinityF;
  }
  // What is drawn from: whatever their rounding, these are the probabilities.
  float exps[kCodeRows];
  const float max = ActiveKernels().Max(logits, count);
  if (max == kMinusInfinityF) return false;
  ActiveKernels().SumExps(logits, count, max, exps);
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += exps[i];
  double left = draw.uniform * sum;
  std::int64_t chosen = -1;
  for (std::int64_t i = 0; i < count; ++i) {
    if (exps[i] == 0) continue;
    chosen = i;
    if (left < exps[i]) break;
    left -= exps[i];
  }
  position = static_cast<std::int32_t>(begin + chosen);
  log_probability = draw.log_probability + std::log(exps[chosen] / sum);
  return true;
}

absl::StatusOr<CodePass::Drawn> CodePass::Draw(std::int64_t count,
                                               double log_tail, float max) {
  // Segments may hold the same keys in the same order.
  tail_.DrawBlocks(count, static_cast<std::uint64_t>(query_->segment), draws_);
  drawn_.clear();
  log_probabilities_.clear();
  for (std::size_t j = 0; j < draws_.size(); ++j) {
    if (j > 0 && j % kPollDraws == 0) ATTENDANT_RETURN_IF_ERROR(Poll());
    if (j + kAheadBlocks < draws_.size()) {
      lists_->codes.PrefetchBlock(draws_[j + kAheadBlocks].block,
                                  options_.bits);
    }
    std::int32_t position = 0;
    double log_probability = 0;
    if (!DrawKey(draws_[j], position, log_probability)) continue;
    drawn_.push_back(position);
    log_probabilities_.push_back(log_probability);
  }
  KeyScorer scorer(*query_);
  ATTENDANT_RETURN_IF_ERROR(ScoreFloats(drawn_, scorer));
  // Ratios relative to what the codes say; a block without a key counts as 0.
  // What else the sums hold is corrected by the same draws: keys that are alike
  // err alike, and the gaps of their logits with them.
  Drawn drawn;
  double square_sum = 0;
  for (std::size_t j = 0; j < drawn_.size(); ++j) {
    const double by_code = log_probabilities_[j] + log_tail - max;
    const double by_floats = double{logits_[j]} - max;
    const double ratio = std::exp(by_floats - by_code);
    drawn.mean += ratio;
    square_sum += ratio * ratio;
    drawn.gap_error += ratio * by_floats - by_code;
    drawn.square_error += ratio * std::exp(by_floats) - std::exp(by_code);
  }
  const auto n = static_cast<double>(draws_.size());
  drawn.mean /= n;
  drawn.gap_error /= n;
  drawn.square_error /= n;
  // What has as little as one draw's share may have none, and err as any code:
  // draws of few different keys, many times each, don't show it.
  const double undrawn = drawn.mean / n;
  drawn.variance =
      std::max(0.0, square_sum / n - drawn.mean * drawn.mean) / (n - 1) +
      undrawn * undrawn * std::expm1(MeanVariance(options_.bits));
  return drawn;
}

absl::Status CodePass::CorrectRest(std::optional<double> log_kept,
                                   SoftmaxPartition& rest, ScanStats& stats) {
  tail_.Remove({kept_.positions.data(), kept_.size},
               {kept_.logits.data(), kept_.size});
  const double log_tail = tail_.LogSum();
  // Sums of floats leave their rounding where everything was kept.
  stats.log_variance =
      2 * (partition_.max + std::log(kSumError * partition_.sum));
  if (rest.sum == 0 || log_tail == kMinusInfinityF) return absl::OkStatus();
  const double kept_ratio = log_kept ? std::exp(*log_kept - log_tail) : 0.0;
  const double wanted = DrawsWanted(options_.bits, 1 / (1 + kept_ratio));
  const auto most = static_cast<double>(MostDraws());
  // Too many are not made: the few say how far the sums may be off.
  auto count = wanted <= most
                   ? std::max(kMinDraws, static_cast<std::int64_t>(wanted))
                   : kMinDraws;
  Drawn drawn;
  while (true) {
    ATTENDANT_ASSIGN_OR_RETURN(drawn, Draw(count, log_tail, rest.max));
    // Not all codes err as much as others, and chance has its part.
    const double left = std::sqrt(drawn.variance) / (drawn.mean + kept_ratio) /
                        WantedDeviation();
    const double more = kMoreDraws * static_cast<double>(count) * left * left;
    if (!(left > kMaxLeft) || more > most) break;
    count = static_cast<std::int64_t>(more);
  }
  const double tail = std::exp(log_tail - rest.max);
  rest.sum = tail * drawn.mean;
  rest.sum_gap = std::min(0.0, rest.sum_gap + tail * drawn.gap_error);
  rest.sum_square = std::max(0.0, rest.sum_square + tail * drawn.square_error);
  // Deviations of few draws are somewhat more than they seem (Student).
  const double deviations = kDrawnDeviations / kNormalDeviations;
  const double log_deviation =
      log_tail + 0.5 * std::log(drawn.variance) + std::log(deviations);
  stats.log_drawn_variance = 2 * log_deviation;
  return absl::OkStatus();
}

void CodePass::SetBounds(ScanStats& stats) const {
  // Sums relative to the greatest upper bound, beyond which those from floats
  // may be too small for a double.
  const double max = upper_.max;
  double log_exact = kMinusInfinity;
  double low = lower_.sum * std::exp(lower_.max - max) * (1 - kSumError);
  double high = upper_.sum * (1 + kSumError);
  for (std::size_t i = 0; i < kept_.size; ++i) {
    const double margin = Margin(kept_.positions[i]);
    log_exact = LogAdd(log_exact, logits_[i]);
    low -= std::exp(kept_.logits[i] - margin - max);
    high -= std::exp(kept_.logits[i] + margin - max);
  }
  stats.certified = true;
  // What is scored from floats has rounding of its own.
  const double rounding = margin_;
  stats.log_lower =
      LogAdd(log_exact, max + std::log(std::max(0.0, low))) - rounding;
  stats.log_upper =
      LogAdd(log_exact, max + std::log(std::max(0.0, high))) + rounding;
}

// Errors of codes move the weights of keys, each for itself, and rounding their
// values. What weighs too little next to the cut is made up for as where keys
// count twice. Where the values are the keys whose codes the logits were taken
// from, an error moves both at once: with c the covariance of a value's error
// with e, the variance of a component times the query, and a what e must be
// below for the key not to be kept,
//   E[exp(e - v/2) error 1(e < a + v)] = c (P(e < a) - density of e at a),
// where the first sums up to what the rest weighs, and the other to what keys
// weigh around the cut, for each nat.
PooledError CodePass::PoolRest(const SoftmaxPartition& rest) {
  constexpr double kStep = 16;  // of a code of 4 bits
  constexpr double kOfStep = kStep * kStep / 12;
  const ListValues& values = *options_.values;
  removed_positions_.clear();
  removed_logits_.clear();
  double around_cut = 0;  // relative to rest.max
  for (std::size_t i = 0; i < kept_.size; ++i) {
    if (kept_near_cut_[i] != 0) {
      around_cut += std::exp(double{kept_.logits[i]} - rest.max) /
                    Variance(kept_.positions[i]);
    } else {
      removed_positions_.push_back(kept_.positions[i]);
      removed_logits_.push_back(kept_.logits[i]);
    }
  }
  pool_.Remove(removed_positions_, removed_logits_);
  const ValuePool::Rest& pooled = pool_.Take();
  value_sum_.assign(static_cast<std::size_t>(values.dim()), 0);
  PooledError error;
  if (pooled.empty || rest.sum == 0) return error;
  error.mean = pooled.mean;
  if (values.are_keys() && options_.bits == CodeBits::k4) {
    const double moved = query_->logit_factor * kOfStep *
                         pooled.means.scale_square_norm *
                         (1 - std::min(1.0, around_cut / rest.sum));
    for (std::size_t d = 0; d < error.mean.size(); ++d) {
      error.mean[d] -= moved * query_->query[d];
    }
  }
  for (std::size_t d = 0; d < error.mean.size(); ++d) {
    value_sum_[d] = rest.sum * error.mean[d];
  }
  error.mean_square = pooled.means.square;
  const double variance =
      coded_.LogitVariancePerSquareScale(options_.bits) * RestSquareScale();
  const Squares squares = RestSquares(rest);
  const double log_square =
      2.0 * rest.max + std::log(kAlikeKeys * (squares.coarse + squares.fine));
  error.log_weight_variance = LogAdd(
      log_square + std::log(std::expm1(variance)), pooled.log_rounding_square);
  error.log_rounding_variance =
      log_square + std::log(static_cast<double>(values.dim()) * kOfStep *
                            pooled.means.scale_square_norm_square);
  return error;
}

}  // namespace attendant
