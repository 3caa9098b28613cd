#include "client/commands/attention/sequence_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/parse_proto.h"

namespace attendant {
namespace {

TEST(SequenceReportTest, SaysWhatEachTokenAttendsTo) {
  const TokenNames names = {{"lens", "fins"}, {"lens", "fins"}};
  auto response = Parse<v1::ContextualizeResponse>(R"pb(
    outputs { floats { values: [ 1, 0.5 ] } }
    outputs { floats { values: [ 1, 2, 3, 4, 5 ] } }
    head_weights {
      row_count: 2
      column_count: 2
      weights: [ 0.5, 0.5, 0, 0 ]
    }
    head_weights {
      row_count: 2
      column_count: 2
      weights: [ 0, 1, 0, 0 ]
    }
    scored_count: 4
  )pb");
  EXPECT_EQ(ContextReport(response, names, {}),
            "token  attends to                output\n"
            "lens   fins 75.0 %, lens 25.0 %  [1, 0.5]\n"
            "fins   nothing                   [1, 2, 3, 4, ...]\n"
            "\n"
            "2 tokens of 2 components; 4 pairs scored. Shares are means over "
            "2 heads.\n");
  response.clear_head_weights();
  EXPECT_EQ(ContextReport(response, names, {}),
            "token  output\n"
            "lens   [1, 0.5]\n"
            "fins   [1, 2, 3, 4, ...]\n"
            "\n"
            "2 tokens of 2 components; 4 pairs scored.\n");
  response.set_method(v1::ATTENTION_METHOD_APPROXIMATE);
  EXPECT_THAT(ContextReport(response, names, {}),
              testing::HasSubstr("4 pairs scored. APPROXIMATE.\n"));
}

TEST(SequenceReportTest, SaysWhatEarnedEachCandidate) {
  auto request = Parse<v1::RankCandidatesRequest>(R"pb(
    history { item_id: "lens" }
    history { vector { floats { values: 1 } } }
    profile { item_id: "towel" }
  )pb");
  auto response = Parse<v1::RankCandidatesResponse>(R"pb(
    candidates {
      id: "camera"
      score: 12.5
      events { index: 0 weight: 0.9 }
      events { index: 1 weight: 0.05 }
      events { profile: true index: 0 weight: 0.05 }
    }
    candidates { id: "fins" score: -1 }
    future_event_count: 1
    unknown_item_ids: [ "gone" ]
    scored_count: 6
  )pb");
  EXPECT_EQ(RankReport(request, response, {}),
            "#  item    score  because of\n"
            "1  camera   12.5  lens 90.0 %, vector 1 5.0 %, towel (profile) "
            "5.0 %\n"
            "2  fins       -1\n"
            "\n"
            "2 candidates, 3 events; 6 pairs scored.\n"
            "Masked for being after the time asked about: 1 event.\n"
            "Skipped, not in the catalog: gone\n");
  EXPECT_THAT(RankReport(request, response, {.because_count = 1}),
              testing::HasSubstr("  12.5  lens 90.0 %\n"));
  request.set_activation_kind(v1::ACTIVATION_KIND_NONE);
  EXPECT_THAT(RankReport(request, response, {}),
              testing::HasSubstr("lens 0.9, vector 1 0.05"));
  response.set_method(v1::ATTENTION_METHOD_APPROXIMATE);
  EXPECT_THAT(RankReport(request, response, {}),
              testing::HasSubstr("6 pairs scored. APPROXIMATE.\n"));
}

TEST(SequenceReportTest, AddsUpTheEventsOfAnItem) {
  const auto request = Parse<v1::RankCandidatesRequest>(R"pb(
    history { item_id: "lens" }
    history { item_id: "fins" }
    history { item_id: "lens" }
  )pb");
  const auto response = Parse<v1::RankCandidatesResponse>(R"pb(
    candidates {
      id: "camera"
      score: 12.5
      events { index: 1 weight: 0.4 }
      events { index: 0 weight: 0.35 }
      events { index: 2 weight: 0.25 }
    }
  )pb");
  EXPECT_THAT(RankReport(request, response, {}),
              testing::HasSubstr("  lens 60.0 % in 2 events, fins 40.0 %\n"));
  const ItemNames same_name = {{"lens", "Optics"}, {"fins", "Optics"}};
  EXPECT_THAT(
      RankReport(request, response, {.names = same_name}),
      testing::HasSubstr("  Optics 60.0 % in 2 events, Optics 40.0 %\n"));
}

TEST(SequenceReportTest, ManyEventsTakeSeveralLines) {
  v1::RankCandidatesRequest request;
  v1::RankCandidatesResponse response;
  v1::RankedCandidate* candidate = response.add_candidates();
  candidate->set_id("camera");
  for (int i = 0; i < 3; ++i) {
    request.add_history()->set_item_id(
        std::string(60, static_cast<char>('a' + i)));
    v1::EventAttribution* event = candidate->add_events();
    event->set_index(i);
    event->set_weight(0.25);
  }
  EXPECT_EQ(RankReport(request, response, {}),
            "#  item    score  because of\n"
            "1  camera      0  " +
                std::string(60, 'a') + " 25.0 %,\n" + std::string(18, ' ') +
                std::string(60, 'b') + " 25.0 %,\n" + std::string(18, ' ') +
                std::string(60, 'c') +
                " 25.0 %\n\n1 candidate, 3 events; 0 pairs scored.\n");
}

TEST(SequenceReportTest, SaysWhatLeftNoCandidate) {
  auto request = Parse<v1::RankCandidatesRequest>(R"pb(
    candidates { query { exclude_events: false } }
  )pb");
  v1::CandidateQuery& query = *request.mutable_candidates()->mutable_query();
  EXPECT_EQ(RankReport(request, {}, {}),
            "No candidates: no item has a key in this field.\n");
  query.clear_exclude_events();
  EXPECT_EQ(RankReport(request, {}, {}),
            "No candidates: no item with a key in this field is left by the "
            "events.\n");
  query.set_filter("price < 0");
  query.mutable_deny_list()->add_ids("lens");
  EXPECT_EQ(RankReport(request, {}, {}),
            "No candidates: no item with a key in this field is left by "
            "--filter, --deny and the events.\n");
}

}  // namespace
}  // namespace attendant
