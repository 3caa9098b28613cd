#include "service/convert/approximation.h"

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "service/convert/enum.h"

namespace attendant {

absl::StatusOr<Approximation> ApproximationFromProto(
    const v1::Approximation& wire) {
  switch (wire.kind_case()) {
    case v1::Approximation::kLsh: {
      LshAttentionOptions options;
      if (wire.lsh().has_bucket_count()) {
        options.bucket_count = wire.lsh().bucket_count();
        ATTENDANT_RETURN_IF_ERROR(CheckCount(options.bucket_count, 2,
                                             kMaxLshBuckets,
                                             "approximation.lsh.bucket_count"));
      }
      if (wire.lsh().has_round_count()) {
        options.round_count = wire.lsh().round_count();
      }
      if (wire.lsh().has_seed()) {
        options.seed = static_cast<std::uint64_t>(wire.lsh().seed());
      }
      return Approximation(options);
    }
    case v1::Approximation::kLinformer: {
      LinformerOptions options;
      if (wire.linformer().has_row_count()) {
        options.row_count = wire.linformer().row_count();
      }
      ATTENDANT_ASSIGN_OR_RETURN(const auto kind,
                                 OptionalEnumFromProto<ReductionKind>(
                                     wire.linformer().reduction_kind(),
                                     "approximation.linformer.reduction_kind"));
      options.kind = kind.value_or(ReductionKind::kSegmentMeans);
      if (wire.linformer().has_seed()) {
        if (options.kind != ReductionKind::kRandom) {
          return InvalidField("approximation.linformer.seed",
                              absl::StrCat(wire.linformer().seed()),
                              "nothing without reduction_kind RANDOM");
        }
        options.seed = static_cast<std::uint64_t>(wire.linformer().seed());
      }
      return Approximation(options);
    }
    case v1::Approximation::KIND_NOT_SET:
      break;
  }
  return InvalidField("approximation", "nothing", "lsh or linformer");
}

v1::AttentionMethod MethodToProto(const Approximation& approximation) {
  return IsExact(approximation) ? v1::ATTENTION_METHOD_EXACT
                                : v1::ATTENTION_METHOD_APPROXIMATE;
}

}  // namespace attendant
