#include "core/catalog/query/bias.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {
namespace {

absl::StatusOr<ResolvedBias> Resolve(const CatalogSchema& schema,
                                     const BiasTerm& term) {
  ResolvedBias bias;
  bias.attribute = schema.AttributeIndex(term.attribute);
  if (bias.attribute < 0) {
    return InvalidField("attribute", absl::StrCat("'", term.attribute, "'"),
                        "an attribute that the schema declares");
  }
  const AttributeType type = schema.attributes[bias.attribute].type;
  if (type == AttributeType::kTimestamp) {
    if (term.factor.has_value()) {
      return InvalidField("factor", absl::StrCat(*term.factor),
                          "half_life in its place, for a timestamp");
    }
    if (!term.half_life || *term.half_life <= absl::ZeroDuration() ||
        *term.half_life == absl::InfiniteDuration()) {
      return InvalidField(
          "half_life",
          term.half_life ? absl::FormatDuration(*term.half_life) : "none",
          "a duration above 0, for a timestamp");
    }
    bias.is_age = true;
    bias.factor = -std::numbers::ln2 / absl::ToDoubleSeconds(*term.half_life);
    return bias;
  }
  if (type != AttributeType::kInt64 && type != AttributeType::kDouble) {
    return InvalidField(
        "attribute",
        absl::StrCat("'", term.attribute, "', ", WithArticle(type)),
        "an attribute of type int64, double or timestamp");
  }
  if (term.half_life) {
    return InvalidField("half_life", absl::FormatDuration(*term.half_life),
                        "factor in its place, for a number");
  }
  bias.factor = term.factor.value_or(1);
  if (!std::isfinite(bias.factor)) {
    return InvalidField("factor", absl::StrCat(bias.factor), "a finite number");
  }
  return bias;
}

}  // namespace

absl::StatusOr<std::vector<ResolvedBias>> ResolveBiases(
    const CatalogSchema& schema, const std::vector<BiasTerm>& terms) {
  ATTENDANT_RETURN_IF_ERROR(CheckCount(static_cast<std::int64_t>(terms.size()),
                                       0, kMaxBiasCount, "biases"));
  std::vector<ResolvedBias> biases;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    absl::StatusOr<ResolvedBias> bias = Resolve(schema, terms[i]);
    if (!bias.ok()) {
      return PrefixField(bias.status(), absl::StrCat("biases[", i, "]."));
    }
    biases.push_back(*bias);
  }
  return biases;
}

RowBias::RowBias(const std::vector<ResolvedBias>& biases, absl::Time now,
                 const RowTable& rows)
    : biases_(biases),
      now_seconds_(absl::ToDoubleSeconds(now - absl::UnixEpoch())),
      rows_(rows) {}

void RowBias::AddTo(const RowIndex* rows, std::int64_t n, float* logits) const {
  constexpr std::int64_t kBlock = 256;
  constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
  double numbers[kBlock];
  double sums[kBlock];
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t count = std::min(kBlock, n - begin);
    std::fill_n(sums, count, 0.0);
    for (const ResolvedBias& bias : biases_) {
      rows_.columns().ReadNumbers(bias.attribute, rows + begin, count, kMissing,
                                  numbers);
      for (std::int64_t i = 0; i < count; ++i) {
        if (std::isnan(numbers[i])) continue;
        sums[i] += bias.factor * (bias.is_age
                                      ? std::max(0.0, now_seconds_ - numbers[i])
                                      : numbers[i]);
      }
    }
    for (std::int64_t i = 0; i < count; ++i) {
      logits[begin + i] = static_cast<float>(logits[begin + i] + sums[i]);
    }
  }
}

}  // namespace attendant
