// The part of CodePass for keys that are not scored from their floats.
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

// Keys that lie close together are rounded alike, so that the variance of the
// sum of their errors exceeds that of as many different keys. The factor is
// measured (docs/mass.md). The factor for equal keys is separate
// (KeyCodes::RepeatsOf).
constexpr double kAlikeKeys = 1.4;
// Relative error of a sum of exps in floats, for gaps up to 16, beyond which
// terms hardly weigh (see SumExps).
constexpr double kSumError = (8 + 16 + 9) * 0x1p-24;
// Keys drawn to correct a sum: at least kMinDraws, and at most kMaxDraws or one
// of kKeysPerMostDraws keys, whichever is more; the latter takes half as long
// as scoring all keys from floats.
constexpr std::int64_t kMinDraws = 64;
constexpr std::int64_t kMaxDraws = 4096;
constexpr std::int64_t kKeysPerMostDraws = 64;
// This many deviations hold 95 % of the means of kMinDraws draws.
constexpr double kDrawnDeviations = 2.1;
// Factor for more draws than errors call for: errors of near keys are alike.
constexpr double kDrawMargin = 1.5;
// If the mean variance of logits exceeds this, the ratios of so few draws are
// too skewed to estimate their own variance.
constexpr double kMaxMeanVariance = 0.3;
// If logits have a variance v with 4 bits because attention is sharp, at most
// about exp(-20 v) of the sums was left to codes, for four sets of 100,000 keys
// up to v = .15.
constexpr double kShareLostPerVariance = 20;
// A draw takes as long as reading the other nibbles of this many keys, for a
// single query.
constexpr std::int64_t kKeysPerDraw = 250;
// Factor for more draws than the first ones call for, if these leave more than
// kMaxLeft of the allowed deviation: an interval of logs is somewhat wider than
// the deviation.
constexpr double kMoreDraws = 1.2;
constexpr double kMaxLeft = 0.95;
// Draws between two checks of the interrupt.
constexpr std::size_t kPollDraws = 4096;
// Number of blocks that are prefetched ahead.
constexpr std::size_t kAheadBlocks = 16;

}  // namespace

// Among keys with equal logits, those whose codes err downwards are not kept,
// so the keys that are not kept weigh too little. Because E[exp(e) 1(e < a)] =
// exp(variance / 2) P(e < a - variance), also counting the kept keys that are
// less than one variance above the threshold makes up for it.
bool CodePass::CountsTwice(std::size_t kept) const {
  // With a precision, keys are drawn from exactly those that were not kept.
  return options_.precision == 0 && kept_near_cut_[kept] != 0;
}

void CodePass::FindNearCut() {
  kept_near_cut_.assign(kept_.size, 0);
  if (options_.bits != CodeBits::k4 || options_.bounds) return;
  std::size_t i = 0;
  for (const auto& [begin, take] : merge_order_) {
    const Taken& taken = taken_[take];
    const std::int64_t end = begin + taken.count;
    for (; i < kept_.size && kept_.positions[i] < end; ++i) {
      const std::int32_t position = kept_.positions[i];
      kept_near_cut_[i] = static_cast<std::uint8_t>(
          taken.bits == CodeBits::k4 &&
          kept_.logits[i] - Variance(position) < threshold_ - Margin(position));
    }
  }
}

SoftmaxPartition CodePass::Rest() {
  SoftmaxPartition rest = partition_;
  rest.count = taken_count_ - static_cast<std::int64_t>(kept_.size);
  if (rest.count == 0) return SoftmaxPartition();
  // Uses the same kernel, so that a term is subtracted as it was added.
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
    const double scale = lists_->codes.scales()[kept_.positions[i]];
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
  // Which keys are kept is random as well; the variance of that is that of the
  // keys counted twice.
  double twice_square = 0;
  for (std::size_t i = 0; i < kept_.size; ++i) {
    if (!CountsTwice(i)) continue;
    const double e = std::exp(double{kept_.logits[i]} - rest.max);
    twice_square += e * e * RepeatsAt(kept_.positions[i]);
  }
  const double rounding = kSumError * partition_.sum;
  // The error that all logits have in common moves the sum as a whole.
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

// Relative deviation of all sums. The variances of the indexes that hold the
// keys add up to the total.
double CodePass::WantedDeviation() const {
  return options_.precision * std::sqrt(options_.key_share) / kDrawnDeviations;
}

// The variance of each ratio is exp(v) - 1 relative to its square, where v is
// the variance of a logit.
double CodePass::DrawsWanted(CodeBits bits, double share) const {
  const double deviation = share / WantedDeviation();
  return kDrawMargin * deviation * deviation * std::expm1(MeanVariance(bits));
}

// The sharper attention is, the more codes err, and the smaller the share of
// the sums that is left to codes.
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

// Draws a key of the block. Returns false if none is left in it.
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
    const RowIndex row = lists_->rows[begin + i];
    const bool takes_part =
        !is_kept && (all_eligible_ || eligible.Bit(row) != 0);
    if (!takes_part) logits[i] = kMinusInfinityF;
  }
  // Keys are drawn from these numbers: they are the probabilities, whatever
  // their rounding.
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
  // The segment is the seed, because segments may hold the same keys in the
  // same order.
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
  // Ratios are relative to what the codes say; a block without a key counts as
  // 0. The other sums are corrected by the same draws: similar keys have
  // similar errors, and so have the gaps of their logits.
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
  // Keys with as little as one draw's share may have no draw, and err like any
  // code; draws of few different keys, many times each, do not show it.
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
  // If everything was kept, the sums still contain the rounding of floats.
  stats.log_variance =
      2 * (partition_.max + std::log(kSumError * partition_.sum));
  if (rest.sum == 0 || log_tail == kMinusInfinityF) return absl::OkStatus();
  const double kept_ratio = log_kept ? std::exp(*log_kept - log_tail) : 0.0;
  const double wanted = DrawsWanted(options_.bits, 1 / (1 + kept_ratio));
  const auto most = static_cast<double>(MostDraws());
  // If too many would be wanted, makes few: they say how far the sums may be
  // off.
  auto count = wanted <= most
                   ? std::max(kMinDraws, static_cast<std::int64_t>(wanted))
                   : kMinDraws;
  Drawn drawn;
  while (true) {
    ATTENDANT_ASSIGN_OR_RETURN(drawn, Draw(count, log_tail, rest.max));
    // Some codes err more than others, and draws are random, so more draws may
    // be needed.
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
  // Deviations of few draws are somewhat greater than they seem (Student).
  const double deviations = kDrawnDeviations / kNormalDeviations;
  const double log_deviation =
      log_tail + 0.5 * std::log(drawn.variance) + std::log(deviations);
  stats.log_drawn_variance = 2 * log_deviation;
  return absl::OkStatus();
}

void CodePass::SetBounds(ScanStats& stats) const {
  // Sums are relative to the greatest upper bound. Below it, those from floats
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
  // Keys scored from floats have rounding errors of their own.
  const double rounding = margin_;
  stats.log_lower =
      LogAdd(log_exact, max + std::log(std::max(0.0, low))) - rounding;
  stats.log_upper =
      LogAdd(log_exact, max + std::log(std::max(0.0, high))) + rounding;
}

// Errors of codes affect the weights of keys, each independently, and their
// values by rounding. Keys next to the threshold that weigh too little are made
// up for by those that count twice. If the values are the keys whose codes give
// the logits, an error affects both at once. With c the covariance of a value's
// error with e, which is the variance of a component times the query, and a the
// bound that e must be below for the key not to be kept,
//   E[exp(e - v/2) error 1(e < a + v)] = c (P(e < a) - density of e at a).
// The first term sums up to the weight of the rest, and the second to the
// weight of the keys around the threshold, per nat.
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
