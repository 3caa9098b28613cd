#include "core/shortlist/mass/unscored_mass.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/softmax/log_add.h"
#include "core/base/minus_infinity.h"
#include "core/base/status.h"
#include "core/kernels/kernels.h"
#include "core/kernels/select.h"
#include "core/shortlist/mass/drawn_lists.h"

namespace attendant {
namespace {

constexpr auto kBlockRows = static_cast<std::size_t>(kCodeRows);
// 4 bits suffice: the choice of blocks contributes more variance than the
// codes.
constexpr CodeBits kBits = CodeBits::k4;
// A prediction whose deviation is below that of draws, which is about this, is
// used without draws.
constexpr double kMaxLogDeviation = 0.2;
constexpr double kMaxOtherSpread = 0.1;
// Dead keys that are predicted to have held more than this share would make
// intervals wider than those of draws, at flat temperatures first.
constexpr double kMaxDeadShare = 0.1;
// Deviation of the mass of dead keys as a share of what it is predicted to have
// been: they need not have been like the other keys of their lists.
constexpr double kDeadDeviation = 0.25;

struct BlockDraw {
  const ListPart* part = nullptr;
  std::int64_t list = 0;
  std::int64_t begin = 0;  // keys of the list in one block
  std::int64_t count = 0;
  double inverse_probability = 0;
};

// Sets the block of a list that holds the key at `place`, a share of the list,
// and the inverse of its probability within the list. Prefetches its codes.
void DrawBlock(double place, BlockDraw& draw) {
  const InvertedLists& lists = *draw.part->lists;
  const auto l = static_cast<std::size_t>(draw.list);
  const std::int64_t begin = lists.offsets[l];
  const std::int64_t end = lists.offsets[l + 1];
  const std::int64_t position = std::clamp(
      begin +
          static_cast<std::int64_t>(place * static_cast<double>(end - begin)),
      begin, end - 1);
  const std::int64_t block = position / kCodeRows * kCodeRows;
  draw.begin = std::max(begin, block);
  draw.count = std::min(end, block + kCodeRows) - draw.begin;
  draw.inverse_probability =
      static_cast<double>(end - begin) / static_cast<double>(draw.count);
  lists.codes.PrefetchBlock(block / kCodeRows, kBits);
  lists.codes.PrefetchScales(draw.begin, draw.begin + draw.count);
  lists.PrefetchMean(draw.list);
}

// Returns the sum over the keys of a part that are not known to be dead of
// their expected exp(logit), which is of_key by list.
double SumOfPart(const ListPart& part, std::span<const float> of_key) {
  float sum = 0;
  ActiveKernels().DotRows(of_key.data(), part.counts().data(), 1,
                          static_cast<std::int64_t>(of_key.size()), &sum);
  return sum;
}

double SumOfParts(std::span<const ListPart> parts,
                  std::span<const float> of_key) {
  double sum = 0;
  for (const ListPart& part : parts) sum += SumOfPart(part, of_key);
  return sum;
}

// As SumOfPart, for the eligible rows of a growing part.
double SumOfGrowing(const GrowingPart& part, std::span<const float> of_key) {
  double sum = 0;
  const auto row_end = static_cast<std::int64_t>(part.list_of.size());
  for (std::int64_t w = 0; 64 * w < row_end; ++w) {
    for (std::uint64_t word = part.eligible.Word(w); word != 0;
         word &= word - 1) {
      const std::int32_t list = part.list_of[64 * w + std::countr_zero(word)];
      if (list >= 0) sum += of_key[list];
    }
  }
  return sum;
}

// Draws blocks from the lists of the parts, in order, one every `step_`.
class BlockDraws {
 public:
  BlockDraws(std::span<const float> of_key, double total, double uniform,
             std::int64_t most)
      : of_key_(of_key),
        most_(most),
        total_(total),
        step_(total / static_cast<double>(most)),
        target_(step_ * uniform) {}

  std::span<const BlockDraw> draws() const {
    return {draws_, static_cast<std::size_t>(count_)};
  }

  void DrawFrom(const ListPart& part) {
    const double begin = passed_;
    passed_ += SumOfPart(part, of_key_);
    if (passed_ <= target_) return;
    const float* counts = part.counts().data();
    const auto list_count = static_cast<std::int64_t>(of_key_.size());
    thread_local std::vector<float> chunk_sums;
    chunk_sums.resize(static_cast<std::size_t>((list_count - 1) / kChunk + 1));
    ActiveKernels().DotChunks(counts, of_key_.data(), list_count,
                              chunk_sums.data());
    double before = begin;  // sum of the lists passed so far
    for (std::size_t c = 0; c < chunk_sums.size(); ++c) {
      const double end = before + chunk_sums[c];
      const std::int64_t first = static_cast<std::int64_t>(c) * kChunk;
      const std::int64_t last = std::min(list_count, first + kChunk);
      for (std::int64_t l = first; l < last && target_ < end; ++l) {
        const double weight = counts[l] * of_key_[l];
        Draw(part, l, weight, before);
        before += weight;
      }
      before = end;
    }
  }

 private:
  void Draw(const ListPart& part, std::int64_t list, double weight,
            double before) {
    // Differently rounded sums may leave a target just before a list that has
    // nothing to draw.
    if (weight <= 0) return;
    for (; target_ < before + weight && count_ < most_; target_ += step_) {
      BlockDraw& draw = draws_[count_++];
      draw.part = &part;
      draw.list = list;
      DrawBlock(std::max(0.0, target_ - before) / weight, draw);
      draw.inverse_probability *= total_ / weight;
    }
  }

  const std::span<const float> of_key_;
  const std::int64_t most_;
  const double total_;
  const double step_;
  double target_;
  double passed_ = 0;  // sum of the parts passed so far
  std::int64_t count_ = 0;
  BlockDraw draws_[UnscoredMass::kDraws];
};

// Sets the logits of drawn blocks of one part, 16 each; keys that are not
// eligible, or are of another list, get -infinity. Returns how many blocks hold
// an eligible key.
std::int64_t ScoreBlocks(const VisitedMass& visited,
                         std::span<const BlockDraw> draws, float* logits) {
  const ListPart& part = *draws[0].part;
  const InvertedLists& lists = *part.lists;
  const auto count = static_cast<std::int64_t>(draws.size());
  std::int32_t blocks[UnscoredMass::kDraws];
  std::int32_t list_of[UnscoredMass::kDraws];
  for (std::size_t i = 0; i < draws.size(); ++i) {
    blocks[i] = static_cast<std::int32_t>(draws[i].begin / kCodeRows);
    list_of[i] = static_cast<std::int32_t>(draws[i].list);
  }
  // Uses all bits of the query, however few the pass reads.
  lists.codes.LogitsAt(visited.coded->WithFactor(visited.logit_factor), blocks,
                       count, logits);
  // Computes products from floats, since scores may come from 4 bits.
  float products[UnscoredMass::kDraws];
  ActiveKernels().DotRowsAt(visited.query.data(), lists.means->means.data(),
                            list_of, count, lists.dim, products);
  const auto factor = static_cast<float>(visited.logit_factor);
  const auto correction =
      static_cast<float>(visited.coded->LogitVariancePerSquareScale(kBits) / 2);
  std::int64_t eligible_count = 0;
  for (std::size_t i = 0; i < draws.size(); ++i) {
    const BlockDraw& draw = draws[i];
    const std::int64_t first = draw.begin / kCodeRows * kCodeRows;
    const float list_logit = products[i] * factor;
    const float* __restrict scales = lists.codes.scales().data() + first;
    float* __restrict of_block = logits + i * kBlockRows;
    for (std::int64_t r = 0; r < kCodeRows; ++r) {
      of_block[r] += list_logit - correction * scales[r] * scales[r];
    }
    std::fill(of_block, of_block + (draw.begin - first), kMinusInfinityF);
    std::fill(of_block + (draw.begin + draw.count - first),
              of_block + kCodeRows, kMinusInfinityF);
    std::int64_t eligible = draw.count;
    if (part.dead != nullptr) {
      eligible = part.dead->LeaveLive(draw.begin, draw.count,
                                      of_block + (draw.begin - first));
    } else if (part.eligible != nullptr) {
      for (std::int64_t p = draw.begin; p < draw.begin + draw.count; ++p) {
        const RowIndex row = lists.rows[p];
        if (part.eligible->Bit(row) != 0) continue;
        of_block[p - first] = kMinusInfinityF;
        --eligible;
      }
    }
    eligible_count += eligible > 0 ? 1 : 0;
  }
  return eligible_count;
}

}  // namespace

std::int64_t UnscoredMass::memory_bytes() const {
  return static_cast<std::int64_t>(sizeof(float) * (variances_.size() +
                                                    mean_shares_.size() +
                                                    directions_.size()) +
                                   sizeof(Measures) * measures_.size()) +
         direction_codes_.memory_bytes();
}

void UnscoredMass::Save(ByteSink& sink) const {
  sink.Put(usable_);
  if (!usable_) return;
  sink.Put(key_norm_);
  sink.Put(square_distance_);
  sink.PutArray(std::span<const float>(variances_));
  sink.PutArray(std::span<const float>(mean_shares_));
  sink.PutArray(directions_.span());
  for (const Measures& measures : measures_) {
    sink.PutArray(std::span<const Measure>(measures));
  }
}

UnscoredMass UnscoredMass::Load(ByteSource& source, std::int64_t list_count,
                                std::int64_t dim, std::uint64_t seed) {
  UnscoredMass mass;
  if (!source.Get<bool>()) return mass;
  mass.dim_ = dim;
  mass.key_norm_ = source.Get<double>();
  mass.square_distance_ = source.Get<double>();
  mass.variances_ = source.GetArray<std::vector<float>>();
  mass.mean_shares_ = source.GetArray<std::vector<float>>();
  mass.directions_ = source.GetArray<AlignedBuffer<float>>();
  const auto lists = static_cast<std::size_t>(list_count);
  bool fits = mass.variances_.size() == lists &&
              mass.mean_shares_.size() == lists &&
              mass.direction_count() <= kMaxDirections;
  for (int i = 0; i < kLearnedRates * kSharpnessCount; ++i) {
    mass.measures_.push_back(source.GetArray<Measures>());
    fits &= !mass.measures_.back().empty();
  }
  if (!fits) source.Fail(absl::DataLossError("what it says of masses is none"));
  if (!source.status().ok()) return mass;
  mass.usable_ = true;
  mass.CodeDirections(seed);
  return mass;
}

void UnscoredMass::CodeDirections(std::uint64_t seed) {
  direction_codes_ =
      KeyCodes({directions_.data(), direction_count(), dim_}, {}, seed);
}

UnscoredMass::Measure UnscoredMass::Measure::Mix(const Measure& a,
                                                 const Measure& b,
                                                 double share_of_b) {
  const auto mix = [share_of_b](double of_a, double of_b) {
    return (1 - share_of_b) * of_a + share_of_b * of_b;
  };
  return {mix(a.height, b.height), mix(a.log_bias, b.log_bias),
          mix(a.log_deviation, b.log_deviation),
          mix(a.unseen_factor, b.unseen_factor)};
}

double UnscoredMass::HeightOf(const VisitedMass& visited, double sharpness) {
  return (visited.log_sum - std::log(visited.eligible_rate)) / sharpness;
}

UnscoredMass::Measure UnscoredMass::MeasureAt(const Measures& measures,
                                              double height) {
  std::size_t next = 0;
  while (next < measures.size() && measures[next].height < height) ++next;
  if (next == 0) return measures.front();
  if (next == measures.size()) return measures.back();
  const Measure& low = measures[next - 1];
  const Measure& high = measures[next];
  return Measure::Mix(low, high,
                      (height - low.height) / (high.height - low.height));
}

UnscoredMass::Trust UnscoredMass::TrustAt(const VisitedMass& visited) const {
  const double sharpness =
      visited.coded->norm() * visited.logit_factor * key_norm_;
  const double height = HeightOf(visited, sharpness);
  // Both on the scale on which they were measured.
  const double place = std::clamp(std::log2(sharpness / kMinSharpness), 0.0,
                                  static_cast<double>(kSharpnessCount - 1));
  const double rate = std::clamp(-std::log2(visited.eligible_rate) / 2, 0.0,
                                 static_cast<double>(kLearnedRates - 1));
  const auto measured = [&](double of_rate, double of_place) {
    return MeasureAt(
        measures_[static_cast<std::size_t>(of_rate) * kSharpnessCount +
                  static_cast<std::size_t>(of_place)],
        height);
  };
  const auto at_rate = [&](double of_rate) {
    return Measure::Mix(measured(of_rate, std::floor(place)),
                        measured(of_rate, std::ceil(place)),
                        place - std::floor(place));
  };
  const Measure measure = rate == 0 ? at_rate(0)
                                    : Measure::Mix(at_rate(std::floor(rate)),
                                                   at_rate(std::ceil(rate)),
                                                   rate - std::floor(rate));
  const double beyond = std::max(
      1.0, sharpness / (kMinSharpness * std::exp2(kSharpnessCount - 1)));
  return {.log_bias = beyond * measure.log_bias,
          .log_deviation = beyond * measure.log_deviation,
          .log_unseen_factor = beyond * std::log(measure.unseen_factor)};
}

void UnscoredMass::PredictLists(const InvertedLists& lists,
                                const VisitedMass& visited,
                                std::vector<float>& log_sums) const {
  Predict(*lists.means, lists.log_counts, visited, log_sums);
}

void UnscoredMass::Predict(const ListMeans& means,
                           std::span<const float> log_counts,
                           const VisitedMass& visited,
                           std::vector<float>& log_sums) const {
  const auto factor = static_cast<float>(visited.logit_factor);
  const auto norm = static_cast<float>(visited.coded->norm());
  // The errors of codes average out.
  static_assert(kMaxDirections % kCodeRows == 0);
  const std::int64_t count = direction_codes_.key_count();
  const CodeQuery query = visited.coded->WithFactor(factor, QueryBits::k8);
  float logits[kMaxDirections];
  direction_codes_.Logits({&query, 1}, CodeBits::k8, 0,
                          (count + kCodeRows - 1) / kCodeRows, kMaxDirections,
                          logits);
  const double deviation = Norm({logits, static_cast<std::size_t>(count)});
  const auto spread =
      static_cast<float>(deviation * deviation /
                         static_cast<double>(std::max<std::int64_t>(1, count)));
  log_sums.resize(log_counts.size());
  ActiveKernels().NormalLogSums({means.reaches.data(), log_counts.data(),
                                 mean_shares_.data(), variances_.data()},
                                visited.scores.data(), factor * norm, spread,
                                static_cast<std::int64_t>(log_sums.size()),
                                log_sums.data());
  for (const std::int32_t list : visited.lists) {
    log_sums[list] = kMinusInfinityF;
  }
}

UnscoredMass::Prediction UnscoredMass::PredictParts(
    std::span<const ListPart> parts, const VisitedMass& visited) const {
  thread_local std::vector<float> log_sums;
  thread_local std::vector<float> log_counts;
  const InvertedLists& first = *parts[0].lists;
  if (parts.size() == 1 && visited.growing.empty()) {
    PredictLists(first, visited, log_sums);
    return {first.log_counts, log_sums};
  }
  // Growing rows are only in lists that were learned from some key.
  log_counts.resize(first.log_counts.size());
  for (std::size_t l = 0; l < log_counts.size(); ++l) {
    log_counts[l] = ListMeans::IsPromise(first.means->reaches[l]) ? 0 : -1;
  }
  for (const ListPart& part : parts) {
    for (std::size_t l = 0; l < log_counts.size(); ++l) {
      log_counts[l] = std::max(log_counts[l], part.lists->log_counts[l]);
    }
  }
  Predict(*first.means, log_counts, visited, log_sums);
  return {log_counts, log_sums};
}

// Sets of_key to exp(power log M_l - max) per key of each list, if the list has
// as many keys as it is predicted for.
void UnscoredMass::Prediction::ExpsOfKeys(float power, float max,
                                          std::vector<float>& of_key) const {
  of_key.resize(log_sums.size());
  ActiveKernels().ExpsPerKey(log_sums.data(), log_counts.data(),
                             static_cast<std::int64_t>(log_sums.size()), power,
                             max, of_key.data());
}

float UnscoredMass::Prediction::Max() const {
  return ActiveKernels().Max(log_sums.data(),
                             static_cast<std::int64_t>(log_sums.size()));
}

UnscoredMass::ListExps UnscoredMass::Prediction::Exps() const {
  thread_local std::vector<float> of_list;
  ListExps exps;
  exps.max = Max();
  if (exps.max == kMinusInfinityF) return exps;
  of_list.resize(log_sums.size());
  exps.sum =
      ActiveKernels()
          .SumExps(log_sums.data(), static_cast<std::int64_t>(log_sums.size()),
                   exps.max, of_list.data())
          .sum;
  exps.of_list = of_list;
  return exps;
}

double UnscoredMass::LogSum(std::span<const float> log_sums) {
  const Kernels& kernels = ActiveKernels();
  const auto count = static_cast<std::int64_t>(log_sums.size());
  const float max = kernels.Max(log_sums.data(), count);
  if (max == kMinusInfinityF) return kMinusInfinity;
  return max +
         std::log(kernels.SumExps(log_sums.data(), count, max, nullptr).sum);
}

double UnscoredMass::LogPredictedSum(std::span<const ListPart> parts,
                                     const Prediction& prediction,
                                     const ListExps& exps) {
  if (exps.empty()) return kMinusInfinity;
  if (parts.size() == 1 && parts[0].dead == nullptr &&
      prediction.log_counts.data() == parts[0].lists->log_counts.data()) {
    return exps.max + std::log(exps.sum);
  }
  thread_local std::vector<float> of_key;
  prediction.ExpsOfKeys(1, exps.max, of_key);
  return exps.max + std::log(SumOfParts(parts, of_key));
}

double UnscoredMass::DeadShare(std::span<const ListPart> parts,
                               const Prediction& prediction) {
  const auto has_dead = [](const ListPart& part) {
    return part.dead != nullptr;
  };
  if (std::ranges::none_of(parts, has_dead)) return 0;
  const float max = prediction.Max();
  if (max == kMinusInfinityF) return 0;
  thread_local std::vector<float> of_key;
  prediction.ExpsOfKeys(1, max, of_key);
  double sum = 0;
  for (ListPart part : parts) {
    part.dead = nullptr;
    sum += SumOfPart(part, of_key);
  }
  return sum > 0 ? std::max(0.0, 1 - SumOfParts(parts, of_key) / sum) : 0;
}

double UnscoredMass::LogScoreVariance(const ListMeans& means,
                                      const VisitedMass& visited,
                                      const ListExps& exps) {
  if (exps.empty() || !means.codes.usable()) return kMinusInfinity;
  // For each list, its mass times the scale of its mean's code.
  thread_local std::vector<float> scaled;
  const std::size_t count = exps.of_list.size();
  scaled.resize(count);
  const float* __restrict scales = means.codes.scales().data();
  const float* __restrict of_list = exps.of_list.data();
  float* __restrict to = scaled.data();
  for (std::size_t l = 0; l < count; ++l) to[l] = of_list[l] * scales[l];
  float square_sum = 0;
  ActiveKernels().DotRows(to, to, 1, static_cast<std::int64_t>(count),
                          &square_sum);
  const double variance =
      visited.coded->LogitVariancePerSquareScale(CodeBits::k4);
  return 2.0 * exps.max + std::log(variance * square_sum);
}

// Draws systematically, with one uniform number for all draws, so that lists
// which hold much are drawn about as often as expected.
UnscoredMass::Draws UnscoredMass::Draw(std::span<const ListPart> parts,
                                       const VisitedMass& visited,
                                       const Prediction& prediction,
                                       std::int64_t most) {
  const Kernels& kernels = ActiveKernels();
  thread_local std::vector<float> of_key;
  const float max = prediction.Max();
  Draws draws;
  if (max == kMinusInfinityF) return draws;
  prediction.ExpsOfKeys(kTemper, kTemper * max, of_key);
  BlockDraws drawn(of_key, SumOfParts(parts, of_key), UniformOf(visited.query),
                   most);
  for (const ListPart& part : parts) drawn.DrawFrom(part);
  const std::span<const BlockDraw> blocks = drawn.draws();
  if (blocks.empty()) return draws;

  alignas(64) float logits[kDraws * kCodeRows];
  for (std::size_t b = 0; b < blocks.size();) {
    std::size_t end = b + 1;
    while (end < blocks.size() && blocks[end].part == blocks[b].part) ++end;
    draws.eligible_count += ScoreBlocks(visited, blocks.subspan(b, end - b),
                                        logits + b * kBlockRows);
    b = end;
  }
  if (draws.eligible_count == 0) return draws;
  draws.max =
      kernels.Max(logits, static_cast<std::int64_t>(blocks.size()) * kCodeRows);
  double step_sum = 0;  // of squared successive differences
  double last = 0;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const ExpSums sums =
        kernels.SumExps(logits + b * kBlockRows, kCodeRows, draws.max, nullptr);
    const double of_draw = blocks[b].inverse_probability * sums.sum;
    draws.sum += of_draw;
    draws.sum_gap += blocks[b].inverse_probability * sums.sum_gap;
    draws.sum_square += blocks[b].inverse_probability * sums.sum_square;
    if (b > 0) step_sum += (of_draw - last) * (of_draw - last);
    last = of_draw;
  }
  const auto n = static_cast<double>(blocks.size());
  draws.sum /= n;
  draws.sum_gap /= n;
  draws.sum_square /= n;
  // Successive draws are of adjacent lists, which are alike: differences
  // between distant lists are not random (Wolter 2007, ch. 8, on systematic
  // sampling).
  draws.deviation = std::sqrt(step_sum / (2 * n) / (n - 1));
  return draws;
}

double UnscoredMass::LogUnseen(const VisitedMass& visited, const Trust& trust) {
  return trust.log_unseen_factor +
         (visited.log_sum + visited.log_farther_sum) / 2;
}

// Under a mask the eligible share of each list is not known, and may depend on
// the list.
bool UnscoredMass::UsesPrediction(const VisitedMass& visited,
                                  const Trust& trust) {
  return !visited.masked && trust.log_deviation < kMaxLogDeviation;
}

bool UnscoredMass::LieAlike(const VisitedMass& visited) const {
  if (visited.square_distance == 0 || square_distance_ == 0) return true;
  return std::abs(visited.square_distance / square_distance_ - 1) <
         kMaxOtherSpread;
}

SoftmaxPartition UnscoredGuess::partition() const {
  if (count == 0) return SoftmaxPartition();
  const auto max = static_cast<float>(log_sum);
  const double sum = std::exp(log_sum - max);
  return {.count = count,
          .max = max,
          .sum = sum,
          .sum_gap = sum * std::min(0.0, mean_logit - max),
          .sum_square = sum * std::exp(std::min(0.0, log_mean_exp - max))};
}

UnscoredGuess UnscoredMass::GuessByDraws(const VisitedMass& visited,
                                         const Draws& draws,
                                         const Trust& trust) {
  return {.count = visited.rest_count,
          .log_sum = draws.max + std::log(draws.sum),
          .log_variance = 2 * LogAdd(draws.max + std::log(kDrawDeviations *
                                                          draws.deviation),
                                     LogUnseen(visited, trust)),
          .mean_logit = draws.max + draws.sum_gap / draws.sum,
          .log_mean_exp = draws.max + std::log(draws.sum_square / draws.sum)};
}

UnscoredGuess UnscoredMass::GuessByPrediction(const VisitedMass& visited,
                                              double log_predicted,
                                              const Trust& trust) {
  const double log_sum = log_predicted + trust.log_bias;
  return {.count = visited.rest_count,
          .log_sum = log_sum,
          .log_variance = 2 * LogAdd(log_sum + std::log(trust.log_deviation),
                                     LogUnseen(visited, trust))};
}

// If the logits of a list are normal with mean m and variance s^2, their mean
// weighted by exp is m + s^2, and the sum of squared exps is n exp(2 m + 2
// s^2). In terms of log M these are 2 log M - 2 log n - m, and exp(4 log M - 3
// log n - 2 m). Neither may exceed what a single key of mass M would give.
void UnscoredMass::SetMeans(const ListMeans& means, const VisitedMass& visited,
                            const Prediction& prediction, const ListExps& exps,
                            UnscoredGuess& guess) const {
  if (exps.empty()) return;
  thread_local std::vector<float> log_squares;
  const auto count = static_cast<std::int64_t>(exps.of_list.size());
  log_squares.resize(exps.of_list.size());
  const Kernels& kernels = ActiveKernels();
  const auto unit =
      static_cast<float>(visited.logit_factor * visited.coded->norm());
  const double mean_sum = kernels.NormalSquares(
      {means.reaches.data(), prediction.log_counts.data(), mean_shares_.data(),
       variances_.data()},
      visited.scores.data(), unit, prediction.log_sums.data(),
      exps.of_list.data(), exps.max, count, log_squares.data());
  const float max_square = kernels.Max(log_squares.data(), count);
  guess.mean_logit = exps.max + mean_sum / exps.sum;
  guess.log_mean_exp =
      max_square +
      std::log(
          kernels.SumExps(log_squares.data(), count, max_square, nullptr).sum) -
      (exps.max + std::log(exps.sum));
}

UnscoredGuess UnscoredMass::GuessOfLists(const ListPart& part,
                                         const VisitedMass& visited,
                                         std::span<const std::int32_t> lists,
                                         std::span<float> log_sums) const {
  thread_local std::vector<float> of_lists;
  of_lists.clear();
  for (const std::int32_t list : lists) of_lists.push_back(log_sums[list]);
  std::ranges::fill(log_sums, kMinusInfinityF);
  UnscoredGuess guess;
  double count = 0;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    log_sums[lists[i]] = of_lists[i];
    count += part.counts()[lists[i]];
  }
  const Prediction prediction = {part.lists->log_counts, log_sums};
  const ListExps exps = prediction.Exps();
  guess.count = static_cast<std::int64_t>(count);
  guess.log_sum = LogPredictedSum({&part, 1}, prediction, exps);
  SetMeans(*part.lists->means, visited, prediction, exps, guess);
  return guess;
}

void UnscoredMass::AddGrowing(std::span<const ListPart> parts,
                              std::span<const GrowingPart> growing,
                              const Prediction& prediction,
                              UnscoredGuess& guess) {
  thread_local std::vector<float> of_key;
  prediction.ExpsOfKeys(1, prediction.Max(), of_key);
  double sum = 0;
  std::int64_t count = 0;
  for (const GrowingPart& part : growing) {
    sum += SumOfGrowing(part, of_key);
    count += part.rest_count;
  }
  const double share = sum / SumOfParts(parts, of_key);
  guess.log_variance = LogAdd(guess.log_variance + 2 * std::log1p(share),
                              2 * (guess.log_sum + std::log(share)));
  guess.count += count;
  guess.log_sum += std::log1p(share);
}

bool UnscoredMass::Guess(std::span<const ListPart> parts,
                         const VisitedMass& visited,
                         UnscoredGuess& guess) const {
  if (visited.rest_count == 0) {
    // The growing rows cannot be guessed from anything.
    if (!visited.growing.empty()) return false;
    guess = UnscoredGuess();
    return true;
  }
  if (!usable_) return false;
  const Prediction prediction = PredictParts(parts, visited);
  Trust trust = TrustAt(visited);
  const double dead_share = DeadShare(parts, prediction);
  trust.log_deviation =
      std::hypot(trust.log_deviation, kDeadDeviation * dead_share);
  if (LieAlike(visited) && dead_share <= kMaxDeadShare &&
      UsesPrediction(visited, trust)) {
    const ListExps exps = prediction.Exps();
    guess = GuessByPrediction(visited, LogPredictedSum(parts, prediction, exps),
                              trust);
    const ListMeans& means = *parts[0].lists->means;
    guess.log_variance =
        LogAdd(guess.log_variance,
               2 * trust.log_bias + LogScoreVariance(means, visited, exps));
    SetMeans(means, visited, prediction, exps, guess);
  } else {
    const Draws draws = Draw(parts, visited, prediction, kDraws);
    if (!draws.suffice()) return false;
    guess = GuessByDraws(visited, draws, trust);
  }
  if (!visited.growing.empty()) {
    AddGrowing(parts, visited.growing, prediction, guess);
  }
  return std::isfinite(guess.log_sum) &&
         guess.log_variance < std::numeric_limits<double>::infinity();
}

float FartherScore(std::span<const float> scores,
                   std::span<const std::int32_t> lists) {
  thread_local std::vector<float> of_lists;
  of_lists.clear();
  for (const std::int32_t list : lists) {
    of_lists.push_back(scores[list]);
  }
  return KthGreatest(of_lists,
                     static_cast<std::int64_t>(of_lists.size() / 2) + 1);
}

}  // namespace attendant
