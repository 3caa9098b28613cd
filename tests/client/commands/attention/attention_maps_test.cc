#include "client/commands/attention/attention_maps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "client/commands/attention/reply_shapes.h"
#include "core/base/status.h"
#include "tests/support/parse_proto.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInternal = absl::StatusCode::kInternal;

TEST(AttentionMapsTest, TokensAreWordsIdsOrPositions) {
  const auto request = Parse<v1::ContextualizeRequest>(R"pb(
    sequence { items { ids: [ "lens", "fins" ] } }
    memory {
      vectors {
        vectors {}
        vectors {}
        vectors {}
      }
    }
  )pb");
  ASSERT_OK_AND_ASSIGN(TokenNames names, NamesOf(request, "", ""));
  EXPECT_THAT(names.sequence, ElementsAre("lens", "fins"));
  EXPECT_THAT(names.attended, ElementsAre("0", "1", "2"));
  ASSERT_OK_AND_ASSIGN(names, NamesOf(request, " a  b", "x y z"));
  EXPECT_THAT(names.sequence, ElementsAre("a", "b"));
  EXPECT_THAT(names.attended, ElementsAre("x", "y", "z"));
  EXPECT_THAT(NamesOf(request, "a", ""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--words: got 1 word, want 2")));
}

TEST(AttentionMapsTest, SequencesHaveAPanelAHead) {
  v1::ContextualizeRequest request;
  request.set_include_weights(true);
  auto response = Parse<v1::ContextualizeResponse>(R"pb(
    outputs {}
    head_weights {
      row_count: 1
      column_count: 2
      weights: [ 0.5, 0.5 ]
    }
    head_weights {
      row_count: 1
      column_count: 2
      weights: [ 0, 1 ]
    }
  )pb");
  const TokenNames names = {{"q"}, {"a", "b"}};
  ASSERT_OK_AND_ASSIGN(const AttentionMap map, MapOf(request, response, names));
  ASSERT_EQ(map.panels.size(), 2u);
  EXPECT_EQ(map.panels[1].title, "head 1");
  EXPECT_THAT(map.panels[1].weights, ElementsAre(0, 1));
  EXPECT_THAT(map.columns, ElementsAre("a", "b"));

  for (const float weight : {-0.5f, std::nanf(""), HUGE_VALF}) {
    response.mutable_head_weights(1)->set_weights(1, weight);
    EXPECT_THAT(
        MapOf(request, response, names),
        StatusIs(kInternal, HasSubstr("head_weights[1].weights[1]: got ")));
  }
  response.mutable_head_weights(1)->set_weights(1, 1);
  response.mutable_head_weights(1)->add_weights(0.5);
  EXPECT_THAT(MapOf(request, response, names),
              StatusIs(kInternal, HasSubstr("head_weights[1].weights: got 3, "
                                            "want 2")));
  EXPECT_EQ(ReasonOf(MapOf(request, response, names).status()),
            kMalformedReply);
  response.mutable_head_weights(0)->set_column_count(1);
  EXPECT_THAT(MapOf(request, response, names),
              StatusIs(kInternal, HasSubstr("head_weights[0].column_count: "
                                            "got 1, want 2")));
  response.mutable_head_weights(0)->set_row_count(-1);
  EXPECT_THAT(MapOf(request, response, names),
              StatusIs(kInternal, HasSubstr("head_weights[0].row_count")));
  response.add_outputs();
  EXPECT_THAT(MapOf(request, response, names),
              StatusIs(kInternal, HasSubstr("outputs: got 2, want 1")));
}

TEST(AttentionMapsTest, WeightsAskedForMustCome) {
  const auto response = Parse<v1::ContextualizeResponse>("outputs {}");
  const TokenNames names = {{"q"}, {"a", "b"}};
  v1::ContextualizeRequest request;
  ASSERT_OK_AND_ASSIGN(const AttentionMap map, MapOf(request, response, names));
  EXPECT_TRUE(map.panels.empty());
  request.set_include_weights(true);
  EXPECT_THAT(MapOf(request, response, names),
              StatusIs(kInternal, HasSubstr("head_weights: got none")));
}

TEST(AttentionMapsTest, CandidatesAttendToTheEventsThatAnyNames) {
  auto request = Parse<v1::RankCandidatesRequest>(R"pb(
    history { item_id: "lens" }
    history { item_id: "unseen" }
    history { item_id: "fins" }
    profile { vector {} }
    attribution_count: 4
  )pb");
  auto response = Parse<v1::RankCandidatesResponse>(R"pb(
    candidates {
      id: "camera"
      events { index: 0 weight: 0.75 }
      events { profile: true index: 0 weight: 0.25 }
    }
    candidates {
      id: "swim"
      events { index: 2 weight: 1 }
    }
  )pb");
  const ItemNames names = {{"lens", "a lens"}};
  ASSERT_OK_AND_ASSIGN(const AttentionMap map,
                       MapOf(request, response, names, 100));
  EXPECT_THAT(map.rows, ElementsAre("camera", "swim"));
  EXPECT_THAT(map.columns, ElementsAre("a lens", "fins", "vector 0 (profile)"));
  EXPECT_THAT(map.panels[0].weights, ElementsAre(0.75, 0, 0.25, 0, 1, 0));

  v1::EventAttribution& event = *response.mutable_candidates(1)->add_events();
  for (const int index : {-1, 3}) {
    event.set_index(index);
    EXPECT_THAT(
        MapOf(request, response, names, 100),
        StatusIs(kInternal, HasSubstr("candidates[1].events[1].index")));
  }
  event.set_index(1);
  event.set_profile(true);
  EXPECT_THAT(MapOf(request, response, names, 100),
              StatusIs(kInternal, HasSubstr("want one of 1 of the profile")));
  event.set_index(0);
  event.set_weight(-1);
  EXPECT_THAT(
      MapOf(request, response, names, 100),
      StatusIs(kInternal, HasSubstr("candidates[1].events[1].weight: got -1")));
  request.set_activation_kind(v1::ACTIVATION_KIND_NONE);
  EXPECT_OK(MapOf(request, response, names, 100).status());
}

TEST(AttentionMapsTest, ColumnsAreTheEventsShownAndWeightsAllThatAreTold) {
  auto request = Parse<v1::RankCandidatesRequest>(R"pb(
    history { item_id: "lens" }
    history { item_id: "fins" }
    history { item_id: "mask" }
    attribution_count: 2
  )pb");
  const auto response = Parse<v1::RankCandidatesResponse>(R"pb(
    candidates {
      id: "camera"
      events { index: 0 weight: 0.75 }
      events { index: 1 weight: 0.125 }
    }
    candidates {
      id: "swim"
      events { index: 1 weight: 0.5 }
      events { index: 2 weight: 0.25 }
    }
    candidates {
      id: "box"
      events { index: 0 weight: 1 }
    }
  )pb");
  ASSERT_OK_AND_ASSIGN(AttentionMap map, MapOf(request, response, {}, 1));
  EXPECT_THAT(map.columns, ElementsAre("lens", "fins"));
  // "swim" leaves out its third event; "box" has no second one.
  EXPECT_THAT(map.panels[0].weights,
              ElementsAre(0.75, 0.125, testing::IsNan(), 0.5, 1, 0));
  // A candidate that names all events leaves none out.
  request.mutable_history()->RemoveLast();
  auto two = response;
  two.mutable_candidates(1)->mutable_events()->RemoveLast();
  two.mutable_candidates(1)->mutable_events(0)->set_index(0);
  two.mutable_candidates(1)->add_events()->set_index(1);
  ASSERT_OK_AND_ASSIGN(map, MapOf(request, two, {}, 1));
  EXPECT_THAT(map.columns, ElementsAre("lens"));
  EXPECT_THAT(map.panels[0].weights, ElementsAre(0.75, 0.5, 1));
}

TEST(AttentionMapsTest, AQueryAttendsToTheItemsReturned) {
  const auto request =
      Parse<v1::AttendRequest>(R"pb(query { text: "clock" }
                                    include_head_weights: true)pb");
  auto response = Parse<v1::AttendResponse>(R"pb(
    items {
      id: "1"
      weight: 0.5
      attributes {
        key: "name"
        value { string_value: "Clock" }
      }
      head_weights: [ 0.25, 0.75 ]
    }
    items {
      id: "2"
      weight: 0.25
      head_weights: [ 0.5, 0 ]
    }
  )pb");
  ASSERT_OK_AND_ASSIGN(AttentionMap map, MapOf(request, response, "name"));
  EXPECT_THAT(map.rows, ElementsAre("clock"));
  EXPECT_THAT(map.columns, ElementsAre("Clock", "2"));
  ASSERT_EQ(map.panels.size(), 1u);
  EXPECT_THAT(map.panels[0].weights, ElementsAre(0.5, 0.25));
  response.add_heads()->set_key_field("title");
  response.add_heads()->set_key_field("text");
  ASSERT_OK_AND_ASSIGN(map, MapOf(request, response, ""));
  ASSERT_EQ(map.panels.size(), 2u);
  EXPECT_EQ(map.panels[1].title, "head 1: text");
  EXPECT_THAT(map.panels[1].weights, ElementsAre(0.75, 0));
  response.mutable_items(1)->add_head_weights(1);
  EXPECT_THAT(
      MapOf(request, response, ""),
      StatusIs(kInternal, HasSubstr("items[1].head_weights: got 3, want 2")));
  response.mutable_items(1)->clear_head_weights();
  response.clear_heads();
  response.mutable_items(0)->set_head_weights(1, -1);
  EXPECT_THAT(
      MapOf(request, response, ""),
      StatusIs(kInternal, HasSubstr("items[0].head_weights[1]: got -1")));
  response.mutable_items(0)->set_weight(std::nan(""));
  EXPECT_THAT(MapOf(request, response, ""),
              StatusIs(kInternal, HasSubstr("items[0].weight: got nan")));
  response.set_activation_kind(v1::ACTIVATION_KIND_NONE);
  EXPECT_OK(MapOf(request, response, "").status());
}

TEST(AttentionMapsTest, OnePictureIsDrawnAndJsonLeavesRoomForNone) {
  Context context;
  EXPECT_THROW(CheckPictureFlags({.svg = "lines", .blocks = true}, context),
               CLI::ExcludesError);
  EXPECT_NO_THROW(CheckPictureFlags({.svg = "lines"}, context));
  context.json = true;
  EXPECT_NO_THROW(CheckPictureFlags({}, context));
  EXPECT_THROW(CheckPictureFlags({.svg = "lines"}, context),
               CLI::ExcludesError);
  EXPECT_THROW(CheckPictureFlags({.svg = "", .blocks = true}, context),
               CLI::ExcludesError);
}

}  // namespace
}  // namespace attendant
