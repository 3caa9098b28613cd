#include "core/shortlist/keys/coded_query.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/attention/softmax/score.h"

namespace attendant {
namespace {

// Greatest code of a query's component: 256 x 127, so that its high byte is at
// most 127.
constexpr float kMaxQueryCode = 127 * 256;

// The square of this times 2^5 still fits a float.
constexpr double kMaxSquared = 1e18;

// Rounds a number of size at most 2^22: adding 1.5 x 2^23 leaves room for its
// integer only. Unlike lrint, it needs no call.
std::int32_t RoundToInteger(float number) {
  constexpr float kRounder = 12582912;
  return std::bit_cast<std::int32_t>(number + kRounder) -
         std::bit_cast<std::int32_t>(kRounder);
}

// Returns the greatest size of a component, computed four at a time.
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

std::int64_t QueryPlaneBytes(std::int64_t dim) {
  return CodeStepCount(dim) * kCodeDims;
}

bool CutIntoCodes(const Rotation& rotation, std::span<float> query, double norm,
                  std::int8_t* high, std::int8_t* low, CutQuery* code) {
  rotation.Apply(query.data());
  const float greatest = GreatestSize(query);
  const float scale = greatest / kMaxQueryCode;
  const bool nothing = greatest == 0;
  if (!(norm < KeyCodes::kMaxNorm)) return false;
  if (!nothing && scale < KeyCodes::kMinScale) return false;
  // Codes are multiples of `step`.
  const std::int32_t step = low == nullptr ? 256 : 1;
  const float inverse =
      nothing ? 0 : kMaxQueryCode / static_cast<float>(step) / greatest;
  std::int32_t high_sum = 0;
  std::int32_t low_sum = 0;
  // Each sum is split over alternate components, because an addition waits for
  // the one before it.
  double square_errors[2] = {};
  double square_high_errors[2] = {};
  double square_norms[2] = {};
  for (std::size_t d = 0; d < query.size(); ++d) {
    const std::int32_t cut = step * RoundToInteger(query[d] * inverse);
    const std::int32_t top = (cut + 128) >> 8;
    high[d] = static_cast<std::int8_t>(top);
    high_sum += top;
    if (low != nullptr) {
      const std::int32_t rest = cut - 256 * top;
      low[d] = static_cast<std::int8_t>(rest);
      low_sum += rest;
    }
    const double coded = double{scale} * cut;
    square_norms[d % 2] += coded * coded;
    const double error = query[d] - coded;
    square_errors[d % 2] += error * error;
    const double high_error = query[d] - double{scale} * 256 * top;
    square_high_errors[d % 2] += high_error * high_error;
  }
  const auto filled = static_cast<std::int64_t>(query.size());
  const std::int64_t missing = QueryPlaneBytes(filled) - filled;
  std::fill_n(high + filled, missing, std::int8_t{0});
  if (low != nullptr) std::fill_n(low + filled, missing, std::int8_t{0});
  *code = {.high = high,
           .low = low,
           .high_sum = high_sum,
           .low_sum = low_sum,
           .scale = scale,
           .norm = norm,
           .coded_norm = std::sqrt(square_norms[0] + square_norms[1]),
           .error_norm = std::sqrt(square_errors[0] + square_errors[1]),
           .high_error_norm =
               std::sqrt(square_high_errors[0] + square_high_errors[1])};
  return true;
}

bool CodedQuery::Encode(const KeyCodes& codes, std::span<const float> query,
                        double logit_factor, QueryBits bits) {
  rotated_.assign(query.begin(), query.end());
  const auto plane_bytes =
      static_cast<std::size_t>(QueryPlaneBytes(codes.dim()));
  planes_.resize(2 * plane_bytes);
  std::int8_t* low =
      bits == QueryBits::k8 ? nullptr : planes_.data() + plane_bytes;
  CutQuery code;
  return CutIntoCodes(codes.rotation(), rotated_, Norm(query), planes_.data(),
                      low, &code) &&
         Take(code, codes, logit_factor);
}

bool CodedQuery::Take(const CutQuery& code, const KeyCodes& codes,
                      double logit_factor) {
  codes_ = &codes;
  code_ = code;
  logit_factor_ = logit_factor;
  const double unit = code.scale * logit_factor;
  if (!(unit < KeyCodes::kMaxNorm)) return false;
  if (code.scale != 0 && unit < KeyCodes::kMinScale) return false;
  // An upper bound of the logits.
  if (!(code.norm * codes.max_norm() * logit_factor < KeyCodes::kMaxNorm)) {
    return false;
  }
  logit_norm_ = code.coded_norm * logit_factor;
  // Variances are products of the squares of these, in floats.
  if (!(logit_norm_ < kMaxSquared && codes.max_scale() < kMaxSquared)) {
    return false;
  }
  view_ = {code.high, code.low, code.high_sum, code.low_sum,
           static_cast<float>(unit)};
  SetLogitError(code.error_norm);
  return true;
}

// The error consists of the query's rounding, the rotation's, and the kernels'
// roundings: five, of parts at most twice as large as the product of the norms,
// and at most 83 of a sum of floats (see DotRows).
void CodedQuery::SetLogitError(double error_norm) {
  const double rounding =
      codes_->rotation().relative_error() + 93 * std::exp2(-24);
  logit_error_ = KeyCodes::kSlack * logit_factor_ * codes_->max_norm() *
                 (error_norm + rounding * code_.norm);
}

void CodedQuery::Read(QueryBits bits) {
  view_.low = bits == QueryBits::k8 ? nullptr : code_.low;
  SetLogitError(ErrorNorm(bits));
}

// The rotation makes every direction of the error equally likely.
double CodedQuery::LogitDeviation(QueryBits bits) const {
  return logit_factor_ * codes_->max_norm() * ErrorNorm(bits) /
         std::sqrt(static_cast<double>(codes_->dim()));
}

bool CodedQuery::EncodeAs(const CodedQuery& other, const KeyCodes& codes) {
  planes_ = other.planes_;
  CutQuery code = other.code_;
  code.high = planes_.data();
  if (code.low != nullptr) code.low = planes_.data() + planes_.size() / 2;
  return Take(code, codes, other.logit_factor_);
}

double CodedQuery::LogitErrorPerScale(CodeBits bits) const {
  return logit_norm_ * codes_->ErrorPerScale(bits);
}

double CodedQuery::LogitVariancePerSquareScale(CodeBits bits) const {
  const double step = bits == CodeBits::k4 ? 16 : 1;
  return logit_norm_ * logit_norm_ * step * step / 12;
}

}  // namespace attendant
