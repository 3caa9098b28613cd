#include "service/convert/enum.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "attendant/v1/attention_service.pb.h"
#include "attendant/v1/model_service.pb.h"
#include "attendant/v1/sequence_service.pb.h"
#include "core/attention/approximations/approximation.h"
#include "core/attention/models/probe.h"
#include "core/attention/sequences/positions.h"
#include "core/base/status.h"
#include "core/catalog/query/attend.h"
#include "core/storage/records/item.h"

namespace attendant {
namespace {

template <typename CoreEnum, typename WireEnum>
constexpr bool Same(CoreEnum core, WireEnum wire) {
  return static_cast<int>(core) == static_cast<int>(wire);
}

static_assert(Same(ScoreKind::kDot, v1::SCORE_KIND_DOT));
static_assert(Same(ScoreKind::kScaledDot, v1::SCORE_KIND_SCALED_DOT));
static_assert(Same(ScoreKind::kCosine, v1::SCORE_KIND_COSINE));
static_assert(Same(ScoreKind::kBilinear, v1::SCORE_KIND_BILINEAR));
static_assert(Same(ScoreKind::kAdditive, v1::SCORE_KIND_ADDITIVE));
static_assert(Same(ActivationKind::kSoftmax, v1::ACTIVATION_KIND_SOFTMAX));
static_assert(Same(ActivationKind::kSigmoid, v1::ACTIVATION_KIND_SIGMOID));
static_assert(Same(ActivationKind::kNone, v1::ACTIVATION_KIND_NONE));
static_assert(Same(LimitReason::kNone, v1::LIMIT_REASON_UNSPECIFIED));
static_assert(Same(LimitReason::kResultCap, v1::LIMIT_REASON_RESULT_CAP));
static_assert(Same(LimitReason::kCrowding, v1::LIMIT_REASON_CROWDING));
static_assert(Same(LimitReason::kIndex, v1::LIMIT_REASON_INDEX));
static_assert(Same(CombineKind::kSum, v1::COMBINE_KIND_SUM));
static_assert(Same(CombineKind::kSumOverSqrtCount,
                   v1::COMBINE_KIND_SUM_OVER_SQRT_COUNT));
static_assert(Same(CombineKind::kUnit, v1::COMBINE_KIND_UNIT));
static_assert(Same(ComparisonKind::kEqual, v1::COMPARISON_KIND_EQUAL));
static_assert(Same(ComparisonKind::kNotEqual, v1::COMPARISON_KIND_NOT_EQUAL));
static_assert(Same(ComparisonKind::kLess, v1::COMPARISON_KIND_LESS));
static_assert(Same(ComparisonKind::kLessOrEqual,
                   v1::COMPARISON_KIND_LESS_OR_EQUAL));
static_assert(Same(ComparisonKind::kGreater, v1::COMPARISON_KIND_GREATER));
static_assert(Same(ComparisonKind::kGreaterOrEqual,
                   v1::COMPARISON_KIND_GREATER_OR_EQUAL));
static_assert(Same(IndexKind::kAuto, v1::INDEX_KIND_AUTO));
static_assert(Same(IndexKind::kFlat, v1::INDEX_KIND_FLAT));
static_assert(Same(IndexKind::kIvf, v1::INDEX_KIND_IVF));
static_assert(Same(IndexKind::kHnsw, v1::INDEX_KIND_HNSW));
static_assert(Same(IndexKind::kLsh, v1::INDEX_KIND_LSH));
static_assert(Same(IndexKind::kPq, v1::INDEX_KIND_PQ));
static_assert(Same(AttributeType::kBool, v1::ATTRIBUTE_TYPE_BOOL));
static_assert(Same(AttributeType::kInt64, v1::ATTRIBUTE_TYPE_INT64));
static_assert(Same(AttributeType::kDouble, v1::ATTRIBUTE_TYPE_DOUBLE));
static_assert(Same(AttributeType::kString, v1::ATTRIBUTE_TYPE_STRING));
static_assert(Same(AttributeType::kStringList, v1::ATTRIBUTE_TYPE_STRING_LIST));
static_assert(Same(AttributeType::kTimestamp, v1::ATTRIBUTE_TYPE_TIMESTAMP));
static_assert(Same(ReductionKind::kSegmentMeans,
                   v1::REDUCTION_KIND_SEGMENT_MEANS));
static_assert(Same(ReductionKind::kRandom, v1::REDUCTION_KIND_RANDOM));
static_assert(Same(PositionKind::kNone, v1::POSITION_KIND_NONE));
static_assert(Same(PositionKind::kSinusoidal, v1::POSITION_KIND_SINUSOIDAL));
static_assert(Same(ProjectionKind::kQuery, v1::PROJECTION_KIND_QUERY));
static_assert(Same(ProjectionKind::kKey, v1::PROJECTION_KIND_KEY));
static_assert(Same(ProjectionKind::kValue, v1::PROJECTION_KIND_VALUE));
static_assert(Same(ProjectionKind::kOutput, v1::PROJECTION_KIND_OUTPUT));
static_assert(Same(SelectKind::kSoft, v1::SELECT_KIND_SOFT));
static_assert(Same(SelectKind::kHard, v1::SELECT_KIND_HARD));
static_assert(Same(SelectKind::kSample, v1::SELECT_KIND_SAMPLE));
static_assert(Same(WeightScope::kShortlist, v1::WEIGHT_SCOPE_SHORTLIST));
static_assert(Same(WeightScope::kReturned, v1::WEIGHT_SCOPE_RETURNED));
static_assert(Same(WeightScope::kCatalog, v1::WEIGHT_SCOPE_CATALOG));
static_assert(Same(ScanMode::kAuto, v1::SCAN_MODE_AUTO));
static_assert(Same(ScanMode::kExact, v1::SCAN_MODE_EXACT));
static_assert(Same(ScanMode::kIndex, v1::SCAN_MODE_INDEX));
static_assert(Same(MassMethod::kExact, v1::MASS_METHOD_EXACT));
static_assert(Same(MassMethod::kBound, v1::MASS_METHOD_BOUND));
static_assert(Same(MassMethod::kEstimate, v1::MASS_METHOD_ESTIMATE));
static_assert(Same(MassMethod::kUnknown, v1::MASS_METHOD_UNKNOWN));

}  // namespace

absl::Status UnknownEnumValue(const google::protobuf::EnumDescriptor& type,
                              int number, bool allow_unspecified,
                              absl::string_view field) {
  std::string allowed;
  for (int i = 0; i < type.value_count(); ++i) {
    const google::protobuf::EnumValueDescriptor& value = *type.value(i);
    if (value.number() == 0 && !allow_unspecified) continue;
    absl::StrAppend(&allowed, allowed.empty() ? "" : ", ", value.name());
  }
  const google::protobuf::EnumValueDescriptor* known =
      type.FindValueByNumber(number);
  return InvalidField(field,
                      known != nullptr ? known->name() : absl::StrCat(number),
                      absl::StrCat("one of ", allowed));
}

}  // namespace attendant
