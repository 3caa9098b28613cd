#include "core/shortlist/key_codes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/attention/score.h"
#include "core/base/ids.h"
#include "core/kernels/weigh_codes.h"
#include "core/shortlist/huge_pages.h"

namespace attendant {
namespace {

constexpr std::int64_t kLine = 64;  // bytes of a cache
constexpr int kSecondCache = 2;     // as prefetches call it
constexpr std::int64_t kRows = kCodeRows;
static_assert(Rotation::kBlockRows == kRows);

// Of a component: |code - 128| is at most this. High nibbles alone then stand
// for components up to 119.5, so that the greatest, which hold a tenth of a
// key's energy, don't lose in the mean.
constexpr float kMaxCode = 120;
// Of a query's component: 256 x 127, so that its high byte is at most 127.
constexpr float kMaxQueryCode = 127 * 256;
// Keys and logits are used as codes only well within the range of floats.
constexpr double kMaxNorm = 1e30;
constexpr std::int64_t kMaxDimension = 8192;
constexpr float kMinScale = 1e-30f;
// Of the float sums that the errors are taken from, and then some.
constexpr double kSlack = 1 + 1e-4;

// Of a number of size at most 2^22: adding 1.5 x 2^23 leaves no room for more
// than its integer. Unlike lrint it is no call.
std::int32_t RoundToInteger(float number) {
  constexpr float kRounder = 12582912;
  return std::bit_cast<std::int32_t>(number + kRounder) -
         std::bit_cast<std::int32_t>(kRounder);
}

// The greatest size of a component, of four at a time.
float GreatestSize(std::span<const float> vector) {
  float greatest[4] = {};
  std::size_t d = 0;
  for (; d + 4 <= vector.size(); d += 4) {
    for (std::size_t j = 0; j < 4; ++j) {
      greatest[j] = std::max(greatest[j], std::abs(vector[d + j]));
    }
  }
  for (; d < vector.size(); ++d) {
    greatest[0] = std::max(greatest[0], std::abs(vector[d]));
  }
  return std::max(std::max(greatest[0], greatest[1]),
                  std::max(greatest[2], greatest[3]));
}

}  // namespace

KeyCodes::KeyCodes(MatrixView keys, std::span<const float> factors,
                   MatrixView means, std::span<const std::int64_t> offsets,
                   std::uint64_t seed)
    : key_count_(keys.row_count), rotation_(keys.dim, seed) {
  const std::int64_t dim = keys.dim;
  const std::int64_t block_count = (key_count_ + kRows - 1) / kRows;
  const auto plane_bytes =
      static_cast<std::size_t>(block_count * CodePlaneBytes(step_count()));
  high_plane_ = AlignedBuffer<std::uint8_t>(plane_bytes);
  low_plane_ = AlignedBuffer<std::uint8_t>(plane_bytes);
  scales_ = AlignedBuffer<float>(static_cast<std::size_t>(block_count * kRows));
  PreferHugePages(high_plane_);
  PreferHugePages(low_plane_);
  PreferHugePages(scales_);
  errors_4_.resize(static_cast<std::size_t>(step_count() * kCodeDims));
  AlignedBuffer<float> rotated(static_cast<std::size_t>(dim * kRows));
  usable_ = key_count_ > 0;
  std::int64_t list = 0;
  for (std::int64_t block = 0; block < block_count && usable_; ++block) {
    for (std::int64_t r = 0; r < kRows; ++r) {
      const std::int64_t p = block * kRows + r;
      if (p >= key_count_) {
        for (std::int64_t d = 0; d < dim; ++d) rotated[d * kRows + r] = 0;
        continue;
      }
      const std::span<const float> key = keys.Row(p);
      const float factor =
          factors.empty() ? 1 : factors[static_cast<std::size_t>(p)];
      const float* mean = nullptr;
      if (!offsets.empty()) {
        while (offsets[static_cast<std::size_t>(list) + 1] <= p) ++list;
        mean = means.Row(list).data();
      }
      double square_norm = 0;
      for (std::int64_t d = 0; d < dim; ++d) {
        const float component = key[static_cast<std::size_t>(d)] * factor -
                                (mean == nullptr ? 0 : mean[d]);
        rotated[d * kRows + r] = component;
        square_norm += double{component} * component;
      }
      const double norm = std::sqrt(square_norm);
      usable_ &= norm <= kMaxNorm;
      max_norm_ = std::max(max_norm_, norm);
    }
    rotation_.ApplyToBlock(rotated.data());
    EncodeBlock(rotated.data(), block);
  }
}

void KeyCodes::EncodeBlock(const float* rotated, std::int64_t block) {
  float greatest[kRows] = {};
  for (std::int64_t d = 0; d < dim(); ++d) {
    for (std::int64_t r = 0; r < kRows; ++r) {
      greatest[r] = std::max(greatest[r], std::abs(rotated[d * kRows + r]));
    }
  }
  float scales[kRows];
  float inverses[kRows];
  for (std::int64_t r = 0; r < kRows; ++r) {
    scales[r] = greatest[r] / kMaxCode;
    // So that 120 / greatest is a normal float too.
    usable_ &= greatest[r] == 0 || scales[r] > kMinScale;
    inverses[r] = scales[r] > 0 ? kMaxCode / greatest[r] : 0;
    scales_[static_cast<std::size_t>(block * kRows + r)] = scales[r];
    max_scale_ = std::max(max_scale_, scales[r]);
    scale_sum_ += scales[r];
    square_scale_sum_ += double{scales[r]} * scales[r];
  }
  // Nothing else is a number then, or fits a code.
  if (!usable_) return;

  float square_norms[kRows] = {};
  float square_errors_8[kRows] = {};
  float square_errors_4[kRows] = {};
  const std::int64_t plane_bytes = CodePlaneBytes(step_count());
  std::uint8_t* high = high_plane_.data() + block * plane_bytes;
  std::uint8_t* low = low_plane_.data() + block * plane_bytes;
  for (std::int64_t t = 0; t < step_count(); ++t) {
    std::uint8_t codes[kCodeDims][kRows];
    for (std::int64_t j = 0; j < kCodeDims; ++j) {
      const std::int64_t d = t * kCodeDims + j;
      if (d >= dim()) {
        std::fill_n(codes[j], kRows, std::uint8_t{128});
        continue;
      }
      const float* components = rotated + d * kRows;
      float error = 0;
      for (std::int64_t r = 0; r < kRows; ++r) {
        // In [8.5, 248.5]: cutting off rounds to the nearest.
        const auto code =
            static_cast<std::int32_t>(components[r] * inverses[r] + 128.5f);
        codes[j][r] = static_cast<std::uint8_t>(code);
        const float of_8 = static_cast<float>(code - 128) * scales[r];
        const float of_4 =
            (static_cast<float>(code & 0xf0) - 120.5f) * scales[r];
        square_norms[r] += components[r] * components[r];
        square_errors_8[r] += (components[r] - of_8) * (components[r] - of_8);
        square_errors_4[r] += (components[r] - of_4) * (components[r] - of_4);
        error += components[r] - of_4;
      }
      errors_4_[static_cast<std::size_t>(d)] += error;
    }
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (std::int64_t j = 0; j < 4; ++j) {
        const std::uint8_t first = codes[j][r];
        const std::uint8_t second = codes[4 + j][r];
        const std::int64_t at = 64 * t + 4 * r + j;
        high[at] = static_cast<std::uint8_t>(first >> 4 | (second & 0xf0));
        low[at] = static_cast<std::uint8_t>((first & 0x0f) | second << 4);
      }
    }
  }

  for (std::int64_t r = 0; r < kRows; ++r) {
    if (scales[r] == 0) continue;
    // What the rotation's rounding adds belongs to the error.
    const double rounding =
        rotation_.relative_error() * std::sqrt(double{square_norms[r]});
    const auto per_scale = [&](float square_error) {
      return kSlack * (std::sqrt(double{square_error}) + rounding) / scales[r];
    };
    error_per_scale_8_ =
        std::max(error_per_scale_8_, per_scale(square_errors_8[r]));
    error_per_scale_4_ =
        std::max(error_per_scale_4_, per_scale(square_errors_4[r]));
  }
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

void KeyCodes::Weigh(std::span<const std::uint32_t> weights, int plane_count,
                     std::span<const std::int32_t> blocks, double* sums) const {
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
  const double per_scale = scale_sum_ > 0 ? 1 / scale_sum_ : 0;
  for (std::size_t d = 0; d < count; ++d) {
    sums[d] =
        16 * static_cast<double>(nibble_sums[d]) -
        (kMiddle - per_scale * errors_4_[d]) * static_cast<double>(weight_sum);
  }
}

void KeyCodes::LogitsAt(const CodeQuery& query, const std::int32_t* blocks,
                        std::int64_t count, float* logits) const {
  ActiveCodeKernels().Logits4At(query, high_plane_.data(), scales_.data(),
                                blocks, count, step_count(), logits);
}

void KeyCodes::PrefetchBlock(std::int64_t block, CodeBits bits) const {
  const std::int64_t bytes = CodePlaneBytes(step_count());
  for (std::int64_t at = block * bytes; at < (block + 1) * bytes; at += kLine) {
    __builtin_prefetch(high_plane_.data() + at, 0, kSecondCache);
    if (bits == CodeBits::k8) {
      __builtin_prefetch(low_plane_.data() + at, 0, kSecondCache);
    }
  }
}

void KeyCodes::PrefetchScales(std::int64_t begin, std::int64_t end) const {
  constexpr std::int64_t kLineScales = kLine / sizeof(float);
  for (std::int64_t i = begin; i < end; i += kLineScales) {
    __builtin_prefetch(scales_.data() + i, 0, kSecondCache);
  }
}

std::int64_t KeyCodes::memory_bytes() const {
  return static_cast<std::int64_t>(high_plane_.size() + low_plane_.size() +
                                   scales_.size() * sizeof(float) +
                                   errors_4_.size() * sizeof(double));
}

void KeyCodes::Save(ByteSink& sink) const {
  sink.Put(key_count_);
  sink.Put(dim());
  sink.PutArray(high_plane_.span());
  sink.PutArray(low_plane_.span());
  sink.PutArray(scales_.span());
  sink.Put(max_scale_);
  sink.Put(scale_sum_);
  sink.Put(square_scale_sum_);
  sink.PutArray(std::span<const double>(errors_4_));
  sink.Put(max_norm_);
  sink.Put(error_per_scale_4_);
  sink.Put(error_per_scale_8_);
  sink.Put(usable_);
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
  codes.max_scale_ = source.Get<float>();
  codes.scale_sum_ = source.Get<double>();
  codes.square_scale_sum_ = source.Get<double>();
  codes.errors_4_ = source.GetArray<std::vector<double>>();
  codes.max_norm_ = source.Get<double>();
  codes.error_per_scale_4_ = source.Get<double>();
  codes.error_per_scale_8_ = source.Get<double>();
  codes.usable_ = source.Get<bool>();
  const std::int64_t block_count = (codes.key_count_ + kRows - 1) / kRows;
  const auto plane_bytes = static_cast<std::size_t>(
      block_count * CodePlaneBytes(codes.step_count()));
  const bool fits =
      codes.high_plane_.size() == plane_bytes &&
      (codes.low_plane_.size() == plane_bytes ||
       codes.low_plane_.size() == 0) &&
      codes.scales_.size() == static_cast<std::size_t>(block_count * kRows) &&
      codes.errors_4_.size() ==
          static_cast<std::size_t>(codes.step_count() * kCodeDims);
  if (!fits) source.Fail(absl::DataLossError("codes of another size"));
  return codes;
}

bool CodedQuery::Encode(const KeyCodes& codes, std::span<const float> query,
                        double logit_factor, QueryBits bits) {
  const auto dim = static_cast<std::size_t>(codes.dim());
  rotated_.assign(query.begin(), query.end());
  codes.rotation().Apply(rotated_.data());
  const auto components = static_cast<std::size_t>(codes.step_count()) *
                          static_cast<std::size_t>(kCodeDims);
  planes_.assign(2 * components, 0);
  const float greatest = GreatestSize(rotated_);
  const float scale = greatest / kMaxQueryCode;
  const double norm = Norm(query);
  const double unit = double{scale} * logit_factor;
  if (!(norm < kMaxNorm && unit < kMaxNorm)) return false;
  const bool nothing = greatest == 0;
  if (!nothing && (scale < kMinScale || unit < kMinScale)) return false;
  // Codes are multiples of it.
  const std::int32_t step = bits == QueryBits::k8 ? 256 : 1;
  const float inverse =
      nothing ? 0 : kMaxQueryCode / static_cast<float>(step) / greatest;
  std::int8_t* high = planes_.data();
  std::int8_t* low = high + components;
  std::int32_t high_sum = 0;
  std::int32_t low_sum = 0;
  // Of every other component, as one waits for each addition.
  double square_errors[2] = {};
  double square_norms[2] = {};
  for (std::size_t d = 0; d < dim; ++d) {
    const std::int32_t code = step * RoundToInteger(rotated_[d] * inverse);
    const std::int32_t top = (code + 128) >> 8;
    const std::int32_t rest = code - 256 * top;
    high[d] = static_cast<std::int8_t>(top);
    low[d] = static_cast<std::int8_t>(rest);
    high_sum += top;
    low_sum += rest;
    const double coded = double{scale} * code;
    square_norms[d % 2] += coded * coded;
    const double error = rotated_[d] - coded;
    square_errors[d % 2] += error * error;
  }
  scale_ = scale;
  view_ = {high, bits == QueryBits::k8 ? nullptr : low, high_sum, low_sum,
           static_cast<float>(unit)};
  logit_norm_ = std::sqrt(square_norms[0] + square_norms[1]) * logit_factor;
  logit_factor_ = logit_factor;
  norm_ = norm;
  error_norm_ = std::sqrt(square_errors[0] + square_errors[1]);
  return Bind(codes);
}

bool CodedQuery::Bind(const KeyCodes& codes) {
  codes_ = &codes;
  // What the greatest logit may be.
  if (!(norm_ * codes.max_norm() * logit_factor_ < kMaxNorm)) return false;
  // The query's rounding, the rotation's, and those of the kernels: five, of
  // parts at most twice as large as the product of the norms, and at most 83 of
  // a sum of floats (see DotRows).
  const double rounding =
      codes.rotation().relative_error() + 93 * std::exp2(-24);
  logit_error_ = kSlack * logit_factor_ * codes.max_norm() *
                 (error_norm_ + rounding * norm_);
  return true;
}

bool CodedQuery::EncodeAs(const CodedQuery& other, const KeyCodes& codes) {
  const bool has_low = other.view_.low != nullptr;
  *this = other;
  const auto components = planes_.size() / 2;
  view_.high = planes_.data();
  view_.low = has_low ? planes_.data() + components : nullptr;
  return Bind(codes);
}

double CodedQuery::LogitErrorPerScale(CodeBits bits) const {
  return logit_norm_ * codes_->ErrorPerScale(bits);
}

double CodedQuery::LogitVariancePerSquareScale(CodeBits bits) const {
  const double step = bits == CodeBits::k4 ? 16 : 1;
  return logit_norm_ * logit_norm_ * step * step / 12;
}

}  // namespace attendant
