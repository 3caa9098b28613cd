#include "client/commands/attention_maps.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message))
      << text;
  return message;
}

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
  const auto response = Parse<v1::ContextualizeResponse>(R"pb(
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
  const AttentionMap map = MapOf(response, {{"q"}, {"a", "b"}});
  ASSERT_EQ(map.panels.size(), 2u);
  EXPECT_EQ(map.panels[1].title, "head 1");
  EXPECT_THAT(map.panels[1].weights, ElementsAre(0, 1));
  EXPECT_THAT(map.columns, ElementsAre("a", "b"));
}

TEST(AttentionMapsTest, CandidatesAttendToTheEventsThatAnyNames) {
  const auto request = Parse<v1::RankCandidatesRequest>(R"pb(
    history { item_id: "lens" }
    history { item_id: "unseen" }
    history { item_id: "fins" }
    profile { vector {} }
  )pb");
  const auto response = Parse<v1::RankCandidatesResponse>(R"pb(
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
  const AttentionMap map = MapOf(request, response, {{"lens", "a lens"}});
  EXPECT_THAT(map.rows, ElementsAre("camera", "swim"));
  EXPECT_THAT(map.columns, ElementsAre("a lens", "fins", "vector 0 (profile)"));
  EXPECT_THAT(map.panels[0].weights, ElementsAre(0.75, 0, 0.25, 0, 1, 0));
}

TEST(AttentionMapsTest, AQueryAttendsToTheItemsReturned) {
  const auto request =
      Parse<v1::AttendRequest>(R"pb(query { text: "clock" })pb");
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
  AttentionMap map = MapOf(request, response, "name");
  EXPECT_THAT(map.rows, ElementsAre("clock"));
  EXPECT_THAT(map.columns, ElementsAre("Clock", "2"));
  ASSERT_EQ(map.panels.size(), 1u);
  EXPECT_THAT(map.panels[0].weights, ElementsAre(0.5, 0.25));
  response.add_heads()->set_key_field("title");
  response.add_heads()->set_key_field("text");
  map = MapOf(request, response, "");
  ASSERT_EQ(map.panels.size(), 2u);
  EXPECT_EQ(map.panels[1].title, "head 1: text");
  EXPECT_THAT(map.panels[1].weights, ElementsAre(0.75, 0));
}

TEST(AttentionMapsTest, JsonLeavesNoRoomForPictures) {
  Context context;
  context.json = true;
  EXPECT_NO_THROW(CheckPictureFlags({}, context));
  EXPECT_THROW(CheckPictureFlags({.svg = "lines"}, context),
               CLI::ExcludesError);
  EXPECT_THROW(CheckPictureFlags({.svg = "", .blocks = true}, context),
               CLI::ExcludesError);
}

}  // namespace
}  // namespace attendant
