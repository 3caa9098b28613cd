#include "core/shortlist/keys/key_codes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/ids.h"
#include "core/base/spare_time.h"
#include "core/kernels/cut_codes.h"
#include "core/kernels/prefetch.h"
#include "core/kernels/weigh_codes.h"
#include "core/shortlist/builds/for_each_part.h"
#include "core/shortlist/keys/huge_pages.h"

namespace attendant {
namespace {

constexpr std::int64_t kRows = kCodeRows;
static_assert(Rotation::kBlockRows == kRows);

// Greatest |code - 128| of a component. High nibbles alone then represent
// components up to 119.5, so that the greatest components, which hold a tenth
// of a key's energy, are not reduced in the mean.
constexpr float kMaxCode = 120;
constexpr std::int64_t kChunkBlocks = 64;  // coded together by one thread
// Odd, with its ones spread: a polynomial in it distinguishes codes.
constexpr std::uint64_t kHashFactor = 0x9e3779b97f4a7c15;
// With fewer repeats, a list's sums have about the same errors as without.
constexpr float kFewRepeats = 1.25;

// Hashes the codes of one row of a block, in both planes.
std::uint64_t HashOfRow(const std::uint8_t* high, const std::uint8_t* low,
                        std::int64_t row, std::int64_t plane_bytes) {
  constexpr std::int64_t kSide = 4;  // bytes of a row and step
  std::uint64_t hash = 0;
  for (std::int64_t at = kSide * row; at < plane_bytes; at += kSide * kRows) {
    std::uint32_t halves[2];
    std::memcpy(&halves[0], high + at, kSide);
    std::memcpy(&halves[1], low + at, kSide);
    hash = (hash + (std::uint64_t{halves[1]} << 32 | halves[0])) * kHashFactor;
  }
  return hash;
}

}  // namespace

struct KeyCodes::Source {
  MatrixView keys;
  std::span<const float> factors;
  MatrixView means;
  std::span<const std::int64_t> offsets;
};

void KeyCodes::Totals::Add(const Totals& others) {
  usable &= others.usable;
  max_scale = std::max(max_scale, others.max_scale);
  scale_sum += others.scale_sum;
  square_scale_sum += others.square_scale_sum;
  for (std::size_t d = 0; d < errors_4.size(); ++d) {
    errors_4[d] += others.errors_4[d];
  }
  max_norm = std::max(max_norm, others.max_norm);
  error_per_scale_4 = std::max(error_per_scale_4, others.error_per_scale_4);
  error_per_scale_8 = std::max(error_per_scale_8, others.error_per_scale_8);
}

KeyCodes::KeyCodes(MatrixView keys, std::span<const float> factors,
                   MatrixView means, std::span<const std::int64_t> offsets,
                   std::uint64_t seed, int thread_count)
    : key_count_(keys.row_count), rotation_(keys.dim, seed) {
  const std::int64_t block_count = (key_count_ + kRows - 1) / kRows;
  const auto plane_bytes =
      static_cast<std::size_t>(block_count * CodePlaneBytes(step_count()));
  high_plane_ = AlignedBuffer<std::uint8_t>(plane_bytes);
  low_plane_ = AlignedBuffer<std::uint8_t>(plane_bytes);
  scales_ = AlignedBuffer<float>(static_cast<std::size_t>(block_count * kRows));
  PreferHugePages(high_plane_);
  PreferHugePages(low_plane_);
  PreferHugePages(scales_);
  const Source source = {keys, factors, means, offsets};
  // Sums are made chunk by chunk, so that they do not depend on which thread
  // codes a chunk.
  Totals none;
  none.errors_4.resize(static_cast<std::size_t>(step_count() * kCodeDims));
  const std::int64_t chunk_count =
      (block_count + kChunkBlocks - 1) / kChunkBlocks;
  std::vector<Totals> chunks(static_cast<std::size_t>(chunk_count), none);
  OfKeys of_keys;
  of_keys.hashes.resize(static_cast<std::size_t>(key_count_));
  of_keys.norms.resize(static_cast<std::size_t>(key_count_));
  ForEachPart(chunk_count, thread_count,
              [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t c = begin; c < end; ++c) {
                  EncodeBlocks(source, c * kChunkBlocks,
                               std::min((c + 1) * kChunkBlocks, block_count),
                               chunks[c], of_keys);
                }
              });
  totals_ = std::move(none);
  totals_.usable = key_count_ > 0;
  for (const Totals& chunk : chunks) totals_.Add(chunk);
  if (totals_.usable) {
    FindListNorms(offsets, of_keys.norms);
    CountRepeats(offsets, of_keys.hashes);
    return;
  }
  // Files must not contain memory that was never written.
  std::ranges::fill(high_plane_.span(), std::uint8_t{0});
  std::ranges::fill(low_plane_.span(), std::uint8_t{0});
  std::ranges::fill(scales_.span(), 0.0f);
}

void KeyCodes::EncodeBlocks(const Source& source, std::int64_t begin,
                            std::int64_t end, Totals& totals, OfKeys& of_keys) {
  const std::int64_t dim = source.keys.dim;
  AlignedBuffer<float> rotated(static_cast<std::size_t>(dim * kRows));
  AlignedBuffer<float> errors_4(static_cast<std::size_t>(dim * kRows));
  std::ranges::fill(errors_4.span(), 0.0f);
  std::int64_t list = std::upper_bound(source.offsets.begin(),
                                       source.offsets.end(), begin * kRows) -
                      source.offsets.begin() - 1;
  for (std::int64_t block = begin; block < end && totals.usable; ++block) {
    MakeWay();
    for (std::int64_t r = 0; r < kRows; ++r) {
      const std::int64_t p = block * kRows + r;
      if (p >= key_count_) {
        for (std::int64_t d = 0; d < dim; ++d) rotated[d * kRows + r] = 0;
        continue;
      }
      const std::span<const float> key = source.keys.Row(p);
      const float factor = source.factors.empty() ? 1 : source.factors[p];
      const float* mean = nullptr;
      if (!source.offsets.empty()) {
        while (source.offsets[static_cast<std::size_t>(list) + 1] <= p) ++list;
        mean = source.means.Row(list).data();
      }
      double square_norm = 0;
      for (std::int64_t d = 0; d < dim; ++d) {
        const float component =
            key[d] * factor - (mean == nullptr ? 0 : mean[d]);
        rotated[d * kRows + r] = component;
        square_norm += double{component} * component;
      }
      const double norm = std::sqrt(square_norm);
      totals.usable &= norm <= kMaxNorm;
      totals.max_norm = std::max(totals.max_norm, norm);
      of_keys.norms[p] = static_cast<float>(kSlack * norm);
    }
    rotation_.ApplyToBlock(rotated.data());
    EncodeBlock(rotated.data(), block, totals, errors_4.data(),
                of_keys.hashes.data());
  }
  for (std::int64_t d = 0; d < dim; ++d) {
    double& sum = totals.errors_4[d];
    for (std::int64_t r = 0; r < kRows; ++r) sum += errors_4[d * kRows + r];
  }
}

void KeyCodes::EncodeBlock(const float* rotated, std::int64_t block,
                           Totals& totals, float* errors_4,
                           std::uint64_t* hashes) {
  float greatest[kRows] = {};
  for (std::int64_t d = 0; d < dim(); ++d) {
    for (std::int64_t r = 0; r < kRows; ++r) {
      greatest[r] = std::max(greatest[r], std::abs(rotated[d * kRows + r]));
    }
  }
  float scales[kRows];
  float inverses[kRows];
  for (std::int64_t r = 0; r < kRows; ++r) {
    // kMinScale makes the inverse a normal float too.
    scales[r] =
        greatest[r] == 0 ? 0 : std::max(greatest[r] / kMaxCode, kMinScale);
    inverses[r] = scales[r] > kMinScale ? kMaxCode / greatest[r]
                  : scales[r] > 0       ? 1 / kMinScale
                                        : 0;
    scales_[block * kRows + r] = scales[r];
    totals.max_scale = std::max(totals.max_scale, scales[r]);
    totals.scale_sum += scales[r];
    totals.square_scale_sum += double{scales[r]} * scales[r];
  }
  // If not usable, some components are not finite, or do not fit a code.
  if (!totals.usable) return;

  const std::int64_t plane_bytes = CodePlaneBytes(step_count());
  std::uint8_t* high = high_plane_.data() + block * plane_bytes;
  std::uint8_t* low = low_plane_.data() + block * plane_bytes;
  CutSums sums;
  ActiveCutCodesKernels().Cut(rotated, dim(), inverses, scales, high, low,
                              &sums, errors_4);
  for (std::int64_t r = 0; r < kRows; ++r) {
    const std::int64_t p = block * kRows + r;
    if (p < key_count_) hashes[p] = HashOfRow(high, low, r, plane_bytes);
  }
  for (std::int64_t r = 0; r < kRows; ++r) {
    if (scales[r] == 0) continue;
    // The error includes the rounding of the rotation, and three roundings in
    // the computation of the scales.
    constexpr double kOfScales = 3.0 / (1 << 24);
    const double rounding = (rotation_.relative_error() + kOfScales) *
                            std::sqrt(double{sums.square_norms[r]});
    const auto per_scale = [&](float square_error) {
      return kSlack * (std::sqrt(double{square_error}) + rounding);
    };
    totals.error_per_scale_8 =
        std::max(totals.error_per_scale_8, per_scale(sums.square_errors_8[r]));
    totals.error_per_scale_4 =
        std::max(totals.error_per_scale_4, per_scale(sums.square_errors_4[r]));
  }
}

void KeyCodes::FindListNorms(std::span<const std::int64_t> offsets,
                             std::span<const float> norms) {
  for (std::size_t list = 0; list + 1 < offsets.size(); ++list) {
    const auto begin = norms.begin() + offsets[list];
    const auto end = norms.begin() + offsets[list + 1];
    list_norms_.push_back(begin == end ? 0 : *std::max_element(begin, end));
  }
}

void KeyCodes::CountRepeats(std::span<const std::int64_t> offsets,
                            std::span<std::uint64_t> hashes) {
  const std::int64_t whole[] = {0, key_count_};
  if (offsets.empty()) offsets = whole;
  repeats_.assign(offsets.size() - 1, 1);
  bool any = false;
  for (std::size_t list = 0; list < repeats_.size(); ++list) {
    const auto begin = hashes.begin() + offsets[list];
    const auto end = hashes.begin() + offsets[list + 1];
    if (begin == end) continue;
    MakeWay();
    std::sort(begin, end);
    double square_sum = 0;
    for (auto first = begin; first != end;) {
      const auto last = std::upper_bound(first, end, *first);
      const auto count = static_cast<double>(last - first);
      square_sum += count * count;
      first = last;
    }
    repeats_[list] =
        static_cast<float>(square_sum / static_cast<double>(end - begin));
    any |= repeats_[list] > kFewRepeats;
  }
  if (!any) repeats_.clear();
}

void KeyCodes::Logits(std::span<const CodeQuery> queries, CodeBits bits,
                      std::int64_t first_block, std::int64_t block_count,
                      std::int64_t next_block, std::int64_t stride,
                      float* logits) const {
  const CodeKernels& kernels = ActiveCodeKernels();
  const std::int64_t offset = first_block * CodePlaneBytes(step_count());
  const auto query_count = static_cast<std::int64_t>(queries.size());
  const float* scales = scales_.data() + first_block * kRows;
  if (bits == CodeBits::k4) {
    kernels.Logits4(queries.data(), query_count, high_plane_.data() + offset,
                    scales, block_count, next_block - first_block, step_count(),
                    stride, logits);
  } else {
    kernels.Logits8(queries.data(), query_count, high_plane_.data() + offset,
                    low_plane_.data() + offset, scales, block_count,
                    next_block - first_block, step_count(), stride, logits);
  }
}

void KeyCodes::AddWeighed(std::span<const std::uint32_t> weights,
                          int plane_count, std::span<const std::int32_t> blocks,
                          double unit, double* sums) const {
  constexpr double kMiddle = 120.5;
  thread_local std::vector<std::int64_t> nibble_sums;
  const auto count = static_cast<std::size_t>(step_count() * kCodeDims);
  nibble_sums.resize(count);
  ActiveWeighCodesKernels().Weigh4(weights.data(), plane_count, blocks.data(),
                                   static_cast<std::int64_t>(blocks.size()),
                                   high_plane_.data(), step_count(),
                                   nibble_sums.data());
  std::int64_t weight_sum = 0;
  for (const std::uint32_t weight : weights) weight_sum += weight;
  const double per_scale = totals_.scale_sum > 0 ? 1 / totals_.scale_sum : 0;
  const double all = unit * static_cast<double>(weight_sum);
  for (std::size_t d = 0; d < count; ++d) {
    sums[d] += 16 * unit * static_cast<double>(nibble_sums[d]) -
               all * (kMiddle - per_scale * totals_.errors_4[d]);
  }
}

void KeyCodes::LogitsAt(const CodeQuery& query, const std::int32_t* blocks,
                        std::int64_t count, float* logits) const {
  ActiveCodeKernels().Logits4At(query, high_plane_.data(), scales_.data(),
                                blocks, count, step_count(), logits);
}

void KeyCodes::PrefetchBlock(std::int64_t block, CodeBits bits) const {
  const std::int64_t bytes = CodePlaneBytes(step_count());
  const std::int64_t at = block * bytes;
  PrefetchRow(high_plane_.data() + at, bytes);
  if (bits == CodeBits::k8) {
    PrefetchRow(low_plane_.data() + at, bytes);
  }
}

void KeyCodes::PrefetchScales(std::int64_t begin, std::int64_t end) const {
  PrefetchRow(scales_.data() + begin, end - begin);
}

std::int64_t KeyCodes::memory_bytes() const {
  return static_cast<std::int64_t>(
      high_plane_.size() + low_plane_.size() + scales_.size() * sizeof(float) +
      repeats_.size() * sizeof(float) + list_norms_.size() * sizeof(float) +
      totals_.errors_4.size() * sizeof(double));
}

void KeyCodes::Save(ByteSink& sink) const {
  sink.Put(key_count_);
  sink.Put(dim());
  sink.PutArray(high_plane_.span());
  sink.PutArray(low_plane_.span());
  sink.PutArray(scales_.span());
  sink.PutArray(std::span<const float>(repeats_));
  sink.PutArray(std::span<const float>(list_norms_));
  sink.Put(totals_.max_scale);
  sink.Put(totals_.scale_sum);
  sink.Put(totals_.square_scale_sum);
  sink.PutArray(std::span<const double>(totals_.errors_4));
  sink.Put(totals_.max_norm);
  sink.Put(totals_.error_per_scale_4);
  sink.Put(totals_.error_per_scale_8);
  sink.Put(totals_.usable);
}

KeyCodes KeyCodes::Load(ByteSource& source, std::uint64_t seed) {
  KeyCodes codes;
  codes.key_count_ = source.Get<std::int64_t>();
  const auto dim = source.Get<std::int64_t>();
  if (dim < 1 || dim > kMaxDimension || codes.key_count_ < 0 ||
      codes.key_count_ > std::numeric_limits<RowIndex>::max()) {
    source.Fail(absl::DataLossError("codes of no keys or dimension"));
    return {};
  }
  codes.rotation_ = Rotation(dim, seed);
  const auto get_plane = [&source] {
    return source.GetArray<AlignedBuffer<std::uint8_t>>(
        [](const auto& plane) { PreferHugePages(plane); });
  };
  codes.high_plane_ = get_plane();
  codes.low_plane_ = get_plane();
  codes.scales_ = source.GetArray<AlignedBuffer<float>>(
      [](const auto& scales) { PreferHugePages(scales); });
  codes.repeats_ = source.GetArray<std::vector<float>>();
  codes.list_norms_ = source.GetArray<std::vector<float>>();
  codes.totals_.max_scale = source.Get<float>();
  codes.totals_.scale_sum = source.Get<double>();
  codes.totals_.square_scale_sum = source.Get<double>();
  codes.totals_.errors_4 = source.GetArray<std::vector<double>>();
  codes.totals_.max_norm = source.Get<double>();
  codes.totals_.error_per_scale_4 = source.Get<double>();
  codes.totals_.error_per_scale_8 = source.Get<double>();
  codes.totals_.usable = source.Get<bool>();
  const std::int64_t block_count = (codes.key_count_ + kRows - 1) / kRows;
  const auto plane_bytes = static_cast<std::size_t>(
      block_count * CodePlaneBytes(codes.step_count()));
  const bool fits =
      codes.high_plane_.size() == plane_bytes &&
      (codes.low_plane_.size() == plane_bytes ||
       codes.low_plane_.size() == 0) &&
      codes.scales_.size() == static_cast<std::size_t>(block_count * kRows) &&
      codes.totals_.errors_4.size() ==
          static_cast<std::size_t>(codes.step_count() * kCodeDims) &&
      std::ranges::all_of(codes.list_norms_, [](float norm) {
        return norm >= 0 && std::isfinite(norm);
      });
  if (!fits) source.Fail(absl::DataLossError("codes of another size"));
  return codes;
}

}  // namespace attendant
