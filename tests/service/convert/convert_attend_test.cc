// Conversion of queries and answers: what is preserved, and which field is
// named for each error.
#include <gmock/gmock.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/catalog/filter/filter.h"
#include "core/catalog/query/attend.h"
#include "core/catalog/query/rank_items.h"
#include "core/catalog/rows/row_table.h"
#include "service/convert/answer.h"
#include "service/convert/attend.h"
#include "service/convert/filter.h"
#include "service/convert/sequence.h"
#include "tests/service/convert/convert_fixture.h"
#include "tests/support/parse_proto.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ConvertAttendTest, AllComesThrough) {
  ASSERT_OK_AND_ASSIGN(const AttendQuery query,
                       AttendQueryFromProto(Parse<v1::AttendRequest>(R"pb(
                         query {
                           examples {
                             examples { id: "a" weight: -0.5 }
                             examples { id: "b" }
                             examples { id: "c" weight: 0 }
                             combine_kind: COMBINE_KIND_SUM_OVER_SQRT_COUNT
                             require_all: true
                             exclude_examples: false
                           }
                         }
                         key_field: "title"
                         select_kind: SELECT_KIND_HARD
                         result_count: 5
                         shortlist_count: 50
                         temperature: 0.25
                         score_kind: SCORE_KIND_COSINE
                         weight_scope: WEIGHT_SCOPE_RETURNED
                         pool_scope: WEIGHT_SCOPE_CATALOG
                         omit_pooled_value: true
                         scan_mode: SCAN_MODE_INDEX
                         recall: 0.95
                         probe_count: 7
                         mass_precision: 0.01
                         mass_method: MASS_METHOD_BOUND
                         allow_list { ids: "x" ids: "y" }
                         deny_list { ids: "z" }
                       )pb")));
  const auto& examples = std::get<ExamplesQuery>(query.query);
  ASSERT_EQ(examples.examples.size(), 3u);
  EXPECT_EQ(examples.examples[0].id, "a");
  EXPECT_EQ(examples.examples[0].weight, -0.5);
  EXPECT_EQ(examples.examples[1].weight, 1);
  EXPECT_EQ(examples.examples[2].weight, 0);
  EXPECT_EQ(examples.combine_kind, CombineKind::kSumOverSqrtCount);
  EXPECT_TRUE(examples.require_all);
  EXPECT_FALSE(examples.exclude_examples);
  EXPECT_EQ(query.key_field, "title");
  EXPECT_EQ(query.select_kind, SelectKind::kHard);
  EXPECT_EQ(query.result_count, 5);
  EXPECT_EQ(query.shortlist_count, 50);
  EXPECT_EQ(query.temperature, 0.25);
  EXPECT_EQ(query.score_kind, ScoreKind::kCosine);
  EXPECT_EQ(query.weight_scope, WeightScope::kReturned);
  EXPECT_EQ(query.pool_scope, WeightScope::kCatalog);
  EXPECT_TRUE(query.omit_pooled_value);
  EXPECT_EQ(query.scan_mode, ScanMode::kIndex);
  EXPECT_EQ(query.recall, 0.95);
  EXPECT_EQ(query.probe_count, 7);
  EXPECT_EQ(query.mass_precision, 0.01);
  EXPECT_EQ(query.mass_method, MassMethod::kBound);
  ASSERT_TRUE(query.allow_list.has_value());
  EXPECT_THAT(*query.allow_list, ElementsAre("x", "y"));
  EXPECT_THAT(query.deny_list, ElementsAre("z"));
}

TEST(ConvertAttendTest, UnsetMeansTheDocumentedDefault) {
  ASSERT_OK_AND_ASSIGN(const AttendQuery query,
                       AttendQueryFromProto(Parse<v1::AttendRequest>(
                           "query { examples { examples { id: 'a' } } }")));
  const auto& examples = std::get<ExamplesQuery>(query.query);
  EXPECT_FALSE(examples.combine_kind.has_value());
  EXPECT_FALSE(examples.require_all);
  EXPECT_TRUE(examples.exclude_examples);
  EXPECT_EQ(query.select_kind, SelectKind::kSoft);
  EXPECT_FALSE(query.result_count.has_value());
  EXPECT_FALSE(query.shortlist_count.has_value());
  EXPECT_FALSE(query.temperature.has_value());
  EXPECT_FALSE(query.score_kind.has_value());
  EXPECT_FALSE(query.weight_scope.has_value());
  EXPECT_FALSE(query.pool_scope.has_value());
  EXPECT_FALSE(query.omit_pooled_value);
  EXPECT_EQ(query.scan_mode, ScanMode::kAuto);
  EXPECT_FALSE(query.recall.has_value());
  EXPECT_FALSE(query.probe_count.has_value());
  EXPECT_FALSE(query.mass_precision.has_value());
  EXPECT_FALSE(query.mass_method.has_value());
  EXPECT_FALSE(query.allow_list.has_value());
  EXPECT_THAT(query.deny_list, IsEmpty());
}

TEST(ConvertAttendTest, EmptyAllowListIsNotTakenForUnset) {
  ASSERT_OK_AND_ASSIGN(const AttendQuery query,
                       AttendQueryFromProto(Parse<v1::AttendRequest>(
                           "query { text: 'x' } allow_list {}")));
  ASSERT_TRUE(query.allow_list.has_value());
  EXPECT_THAT(*query.allow_list, IsEmpty());
}

TEST(ConvertAttendTest, ZeroIsNotTakenForUnset) {
  ASSERT_OK_AND_ASSIGN(
      const AttendQuery query,
      AttendQueryFromProto(Parse<v1::AttendRequest>(
          "query { text: 'x' } result_count: 0 shortlist_count: 0 "
          "temperature: 0 recall: 0 probe_count: 0 mass_precision: 0")));
  EXPECT_EQ(query.result_count, 0);
  EXPECT_EQ(query.shortlist_count, 0);
  EXPECT_EQ(query.temperature, 0);
  EXPECT_EQ(query.recall, 0);
  EXPECT_EQ(query.probe_count, 0);
  EXPECT_EQ(query.mass_precision, 0);
}

TEST(ConvertAttendTest, NamesWhatIsWrong) {
  const auto status = [](const std::string& text) {
    return AttendQueryFromProto(Parse<v1::AttendRequest>(text)).status();
  };
  ExpectInvalid(status(""), "query", "vector, examples or text");
  ExpectInvalid(status("query {}"), "query", "vector, examples or text");
  ExpectInvalid(status("query { vector {} }"), "query.vector.encoding", "none");
  ExpectInvalid(status("query { vector { floats {} } }"),
                "query.vector.floats.values", "none");
  ExpectInvalid(status("query { vector { float32_le: '12' } }"),
                "query.vector.float32_le", "2 bytes");
}

// A message can hold millions of empty entries, so they are counted before they
// are copied.
TEST(ConvertAttendTest, TooManyAreRefusedByTheirCount) {
  const auto expect = [](const std::string& field,
                         const std::function<void(v1::AttendRequest&)>& set) {
    v1::AttendRequest request;
    request.mutable_query()->mutable_examples()->add_examples();
    set(request);
    const absl::Status status = AttendQueryFromProto(request).status();
    EXPECT_EQ(FieldOf(status).value_or("none"), field) << status;
  };
  expect("allow_list.ids", [](auto& request) {
    for (std::int64_t i = 0; i <= kMaxIdListCount; ++i) {
      request.mutable_allow_list()->add_ids();
    }
  });
  expect("deny_list.ids", [](auto& request) {
    for (std::int64_t i = 0; i <= kMaxIdListCount; ++i) {
      request.mutable_deny_list()->add_ids();
    }
  });
  expect("query.examples.examples", [](auto& request) {
    for (std::int64_t i = 0; i < kMaxExampleCount; ++i) {
      request.mutable_query()->mutable_examples()->add_examples();
    }
  });
  expect("heads", [](auto& request) {
    for (std::int64_t i = 0; i <= kMaxQueryHeadCount; ++i) request.add_heads();
  });
  expect("biases", [](auto& request) {
    for (std::int64_t i = 0; i <= kMaxBiasCount; ++i) request.add_biases();
  });
  v1::RankCandidatesRequest rank;
  for (std::int64_t i = 0; i <= kMaxSequenceCount; ++i) {
    rank.mutable_candidates()->mutable_items()->add_ids();
  }
  EXPECT_EQ(FieldOf(RankQueryFromProto(rank).status()).value_or("none"),
            "candidates.items.ids");
  v1::Filter filter;
  for (std::int64_t i = 0; i <= kMaxFilterValues; ++i) {
    filter.mutable_membership()->add_values();
  }
  EXPECT_EQ(
      FieldOf(FilterFromProto(filter, "filter").status()).value_or("none"),
      "filter.membership.values");
  v1::Filter any;
  for (std::int64_t i = 0; i <= kMaxFilterTerms; ++i) {
    any.mutable_any_of()->add_filters()->set_exists("a");
  }
  EXPECT_EQ(FieldOf(FilterFromProto(any, "filter").status()).value_or("none"),
            "filter.any_of.filters");
  // Each list is short enough; together they are too long.
  v1::Filter lists;
  for (std::int64_t i = 0; i < 3; ++i) {
    v1::FilterList* list =
        lists.mutable_any_of()->add_filters()->mutable_all_of();
    for (std::int64_t j = 0; j < kMaxFilterTerms / 2; ++j) {
      list->add_filters()->set_exists("a");
    }
  }
  // Counts the root as one, its lists as two, and their elements.
  EXPECT_EQ(FieldOf(FilterFromProto(lists, "filter").status()).value_or("none"),
            absl::StrCat("filter.any_of.filters[1].all_of.filters[",
                         kMaxFilterTerms / 2 - 3, "]"));
  v1::RankCandidatesRequest events;
  events.mutable_candidates()->mutable_items()->add_ids("a");
  for (std::int64_t i = 0; i < kMaxSequenceCount; ++i) events.add_history();
  events.add_profile();
  EXPECT_EQ(FieldOf(RankQueryFromProto(events).status()).value_or("none"),
            "history");
}

TEST(ConvertAttendTest, NamesTheEnumThatIsUnknown) {
  const auto expect = [](const std::string& field,
                         const std::function<void(v1::AttendRequest&)>& set) {
    v1::AttendRequest request;
    request.mutable_query()->mutable_examples()->add_examples();
    set(request);
    ExpectInvalid(AttendQueryFromProto(request).status(), field, "got 50");
  };
  expect("select_kind", [](auto& request) {
    request.set_select_kind(static_cast<v1::SelectKind>(50));
  });
  expect("score_kind", [](auto& request) {
    request.set_score_kind(static_cast<v1::ScoreKind>(50));
  });
  expect("weight_scope", [](auto& request) {
    request.set_weight_scope(static_cast<v1::WeightScope>(50));
  });
  expect("pool_scope", [](auto& request) {
    request.set_pool_scope(static_cast<v1::WeightScope>(50));
  });
  expect("scan_mode", [](auto& request) {
    request.set_scan_mode(static_cast<v1::ScanMode>(50));
  });
  expect("mass_method", [](auto& request) {
    request.set_mass_method(static_cast<v1::MassMethod>(50));
  });
  expect("query.examples.combine_kind", [](auto& request) {
    request.mutable_query()->mutable_examples()->set_combine_kind(
        static_cast<v1::CombineKind>(50));
  });
}

TEST(ConvertAnswerTest, WhatIsKnownOfTheMassComesThrough) {
  Snapshot snapshot;
  snapshot.schema = std::make_shared<CatalogSchema>(ShopSchema());
  AttendAnswer answer;
  answer.log_partition = 2;
  answer.log_partition_interval = {MassMethod::kEstimate, 1.5, 2.25};
  answer.entropy_interval = {MassMethod::kEstimate, 0.5, 1.25};
  answer.effective_item_count_interval = {MassMethod::kEstimate, 2, 4};
  answer.results_exact = true;
  answer.visited_list_count = 12;
  answer.shared_query_count = 3;
  answer.pooled_value = PooledValue{.values = {1},
                                    .scope = WeightScope::kCatalog,
                                    .method = MassMethod::kEstimate,
                                    .relative_error = 0.125};
  answer.slate.emplace().distance = 0.25;
  HeadAnswer head;
  head.log_partition_interval = {MassMethod::kBound, -1, 1};
  head.entropy_interval = {MassMethod::kBound, 0, 2};
  answer.heads.push_back(head);
  v1::AttendResponse wire;
  ASSERT_OK(AttendAnswerToProto(answer, snapshot, {}, 16 << 20, {}, &wire));
  EXPECT_EQ(wire.log_partition_interval().method(), v1::MASS_METHOD_ESTIMATE);
  EXPECT_EQ(wire.log_partition_interval().lower_bound(), 1.5);
  EXPECT_EQ(wire.log_partition_interval().upper_bound(), 2.25);
  EXPECT_EQ(wire.entropy_interval().lower_bound(), 0.5);
  EXPECT_EQ(wire.effective_item_count_interval().method(),
            v1::MASS_METHOD_ESTIMATE);
  EXPECT_EQ(wire.effective_item_count_interval().upper_bound(), 4);
  EXPECT_TRUE(wire.results_exact());
  EXPECT_EQ(wire.stats().visited_list_count(), 12);
  EXPECT_EQ(wire.stats().shared_query_count(), 3);
  EXPECT_EQ(wire.pooled_value().method(), v1::MASS_METHOD_ESTIMATE);
  EXPECT_EQ(wire.pooled_value().relative_error(), 0.125);
  EXPECT_EQ(wire.slate().distance(), 0.25);
  EXPECT_EQ(wire.heads(0).log_partition_interval().method(),
            v1::MASS_METHOD_BOUND);
  EXPECT_EQ(wire.heads(0).log_partition_interval().upper_bound(), 1);
  EXPECT_EQ(wire.heads(0).entropy_interval().upper_bound(), 2);
  EXPECT_FALSE(wire.heads(0).has_effective_item_count_interval());
}

TEST(ConvertAnswerTest, OnlyASoftmaxHasAWeightScope) {
  Snapshot snapshot;
  snapshot.schema = std::make_shared<CatalogSchema>(ShopSchema());
  for (const ActivationKind kind :
       {ActivationKind::kSoftmax, ActivationKind::kSigmoid,
        ActivationKind::kNone}) {
    AttendAnswer answer;
    answer.activation_kind = kind;
    answer.weight_scope = WeightScope::kReturned;
    v1::AttendResponse wire;
    ASSERT_OK(AttendAnswerToProto(answer, snapshot, {}, 16 << 20, {}, &wire));
    EXPECT_EQ(wire.weight_scope(), kind == ActivationKind::kSoftmax
                                       ? v1::WEIGHT_SCOPE_RETURNED
                                       : v1::WEIGHT_SCOPE_UNSPECIFIED);
  }
}

TEST(ConvertAnswerTest, NobodyWantsIt) {
  Snapshot snapshot;
  snapshot.schema = std::make_shared<CatalogSchema>(ShopSchema());
  AttendAnswer answer;
  answer.items.resize(1);
  v1::AttendResponse wire;
  const Interrupt late = {.deadline = SteadyTime::min()};
  EXPECT_THAT(
      AttendAnswerToProto(answer, snapshot, {}, 16 << 20, late, &wire),
      StatusIs(absl::StatusCode::kDeadlineExceeded, ::testing::HasSubstr("")));
  EXPECT_EQ(wire.items_size(), 0);
}

// The answer would be discarded.
TEST(ConvertAnswerTest, NothingIsMadeOfAnAnswerForWhichThereIsNoRoom) {
  auto rows = std::make_shared<RowTable>(0, 2);
  rows->Append("a long id", {}, {});
  rows->Append("b", {}, {});
  auto segment = std::make_shared<Segment>();
  segment->rows = rows;
  Snapshot snapshot;
  snapshot.schema = std::make_shared<CatalogSchema>(ShopSchema());
  snapshot.segments.emplace_back().segment = segment;
  AttendAnswer answer;
  answer.items.resize(2);
  answer.items[0].address = {0, 0};
  answer.items[0].weight = 1;
  answer.items[0].logit = 2;
  answer.items[1].address = {0, 1};
  answer.items[1].head_weights = {0.5, 0.5};
  constexpr std::int64_t kLeast = (4 + 9 + 9 + 5) + (4 + 1 + 16);
  v1::AttendResponse wire;
  EXPECT_OK(AttendAnswerToProto(answer, snapshot, {}, kLeast, {}, &wire));
  EXPECT_GE(wire.ByteSizeLong(), std::size_t{kLeast});
  wire.Clear();
  EXPECT_THAT(AttendAnswerToProto(answer, snapshot, {}, kLeast - 1, {}, &wire),
              StatusIs(absl::StatusCode::kResourceExhausted, testing::_));
  EXPECT_EQ(wire.items_size(), 0);
}

TEST(ConvertAnswerTest, UnknownMassCarriesNoNumber) {
  Snapshot snapshot;
  snapshot.schema = std::make_shared<CatalogSchema>(ShopSchema());
  AttendAnswer answer;
  answer.returned_mass = {MassMethod::kExact, 0.25, 0.25, 0.25};
  answer.key_field = 1;
  v1::AttendResponse wire;
  ASSERT_OK(AttendAnswerToProto(answer, snapshot, {}, 16 << 20, {}, &wire));
  EXPECT_EQ(wire.returned_mass().method(), v1::MASS_METHOD_EXACT);
  EXPECT_EQ(wire.returned_mass().value(), 0.25);
  EXPECT_EQ(wire.returned_mass().lower_bound(), 0.25);
  EXPECT_EQ(wire.returned_mass().upper_bound(), 0.25);
  EXPECT_EQ(wire.shortlist_mass().method(), v1::MASS_METHOD_UNKNOWN);
  EXPECT_FALSE(wire.shortlist_mass().has_value());
  EXPECT_FALSE(wire.shortlist_mass().has_lower_bound());
  EXPECT_FALSE(wire.shortlist_mass().has_upper_bound());
  EXPECT_FALSE(wire.has_log_partition());
  EXPECT_FALSE(wire.has_log_partition_interval());
  EXPECT_FALSE(wire.has_entropy());
  EXPECT_FALSE(wire.has_effective_item_count());
  EXPECT_FALSE(wire.has_entropy_interval());
  EXPECT_FALSE(wire.has_effective_item_count_interval());
  EXPECT_FALSE(wire.has_pooled_value());
  EXPECT_EQ(wire.key_field(), "image");
}
}  // namespace
}  // namespace attendant
