#include "client/commands/attention/attend_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "client/commands/attention/mask_flags.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

v1::AttendResponse TwoItems() {
  v1::AttendResponse response;
  auto* first = response.add_items();
  first->set_id("85123A");
  first->set_weight(0.5);
  first->set_logit(2);
  (*first->mutable_attributes())["name"].set_string_value("CAFÉ CLOCK");
  auto* second = response.add_items();
  second->set_id("7");
  second->set_weight(0.25);
  second->set_logit(-1.5);
  response.mutable_returned_mass()->set_method(v1::MASS_METHOD_EXACT);
  response.mutable_returned_mass()->set_value(0.314);
  response.mutable_shortlist_mass()->set_method(v1::MASS_METHOD_EXACT);
  response.mutable_shortlist_mass()->set_value(0.62);
  response.set_effective_item_count(214.3);
  response.mutable_stats()->set_eligible_count(3659);
  response.mutable_stats()->set_scored_count(3659);
  response.set_temperature(0.21);
  response.set_score_kind(v1::SCORE_KIND_COSINE);
  response.set_key_field("events");
  response.set_weight_scope(v1::WEIGHT_SCOPE_SHORTLIST);
  return response;
}

TEST(AttendReportTest, DrawsWeightsAndStatesTheMass) {
  EXPECT_EQ(AttendReport(TwoItems(), {.shown_attributes = {"name"}}),
            "#  item    name        weight                         logit\n"
            "1  85123A  CAFÉ CLOCK  50.0 %  ████████████████████   2.000\n"
            "2  7                   25.0 %  ██████████            -1.500\n"
            "\n"
            "These 2 hold 31.4 % of the catalog's attention (exact). Weights "
            "are shares of the shortlist, which holds 62.0 %. Effective items: "
            "214 of 3,659.\n"
            "Temperature 0.21, COSINE over \"events\". Weights sum to 1 over "
            "the shortlist.\n");
}

TEST(AttendReportTest, ShowsOpaqueValuesAsText) {
  v1::AttendResponse response = TwoItems();
  response.mutable_items(0)->set_opaque_value("a\nb");
  EXPECT_THAT(AttendReport(response, {.opaque_value = true}),
              HasSubstr("\n1  85123A  a b           50.0 %"));
}

TEST(AttendReportTest, ExplainsWhereTheTimeWent) {
  v1::AttendResponse response = TwoItems();
  v1::QueryPlan& plan = *response.mutable_plan();
  plan.set_request_id("checkout 7");
  plan.mutable_queue_duration()->set_nanos(500000);
  plan.mutable_scan_duration()->set_nanos(1000000);
  plan.mutable_answer_duration()->set_nanos(12300);
  v1::ScanStep* first = plan.add_scans();
  first->set_index_kind(v1::INDEX_KIND_IVF);
  first->set_scored_count(1200);
  first->set_visited_list_count(32);
  first->set_shared_query_count(4);
  first->mutable_scan_duration()->set_nanos(400000);
  first->set_not_enough_reason("it does not know the mass");
  v1::ScanStep* second = plan.add_scans();
  second->set_exhaustive(true);
  second->set_scored_count(3659);
  second->set_shared_query_count(1);
  second->mutable_scan_duration()->set_nanos(600000);
  plan.set_candidate_count(100);
  plan.set_segment_count(2);
  plan.set_kernel_level("avx512");
  const std::string report = AttendReport(response, {});
  EXPECT_THAT(report, HasSubstr("stage      time\n"
                                "queue    500 us  ██████████\n"
                                "read       0 us\n"
                                "plan       0 us\n"
                                "scan       1 ms  ████████████████████\n"
                                "answer  12.3 us  ▎\n"
                                "reply      0 us\n"));
  EXPECT_THAT(report, HasSubstr("once more: it does not know the mass"));
  EXPECT_THAT(report, HasSubstr("every key, from floats"));
  EXPECT_THAT(report, HasSubstr("Weighed 100 candidates from 2 segments with "
                                "avx512 kernels. Request checkout 7.\n"));
}

TEST(AttendReportTest, SaysHowADrawWentAndWhatEarnedIt) {
  v1::AttendResponse response = TwoItems();
  response.mutable_items(0)->set_log_weight(std::log(0.5));
  response.mutable_items(0)->set_key_field("title");
  response.mutable_items(1)->set_key_field("text");
  response.mutable_slate()->set_seed(7);
  response.mutable_slate()->set_scope(v1::WEIGHT_SCOPE_CATALOG);
  response.mutable_slate()->set_log_probability(std::log(0.125));
  response.add_heads()->set_key_field("title");
  response.add_heads()->set_key_field("text");
  const std::string report = AttendReport(response, {});
  EXPECT_THAT(report, HasSubstr("Drawn from the catalog with seed 7"));
  EXPECT_THAT(report, HasSubstr("this slate has probability 0.125."));
  response.mutable_slate()->set_distance(0.015);
  EXPECT_THAT(AttendReport(response, {}),
              HasSubstr("is within 1.5 % of the softmax"));
  EXPECT_THAT(report, HasSubstr("drawn with\n"));
  // Each head has its own temperature, so the sentence has none.
  EXPECT_THAT(report, HasSubstr("\n2 heads. Weights sum to 1 over the"));
  EXPECT_THAT(report, HasSubstr("1     text"));
  EXPECT_THAT(report, testing::Not(HasSubstr("by head")));
  v1::AttendedItem& item = *response.mutable_items(0);
  item.add_head_weights(0.75);
  item.add_head_weights(0.125);
  EXPECT_THAT(AttendReport(response, {.head_weights = true}),
              HasSubstr("75.0 %, 12.5 %"));
}

TEST(AttendReportTest, SaysTheInclusionProbabilitiesGivenKappa) {
  v1::AttendResponse response = TwoItems();
  response.mutable_items(0)->set_log_weight(std::log(0.5));
  response.mutable_items(0)->set_log_inclusion_given_threshold(std::log(0.875));
  response.mutable_items(1)->set_log_weight(std::log(0.25));
  response.mutable_items(1)->set_log_inclusion_given_threshold(std::log(0.625));
  response.mutable_slate()->set_kappa(-1.5);
  const std::string report = AttendReport(response, {});
  EXPECT_THAT(report, HasSubstr("drawn with  inclusion\n"));
  EXPECT_THAT(report, HasSubstr("    50.0 %     87.5 %\n"));
  EXPECT_THAT(report, HasSubstr("    25.0 %     62.5 %\n"));
  EXPECT_THAT(report, HasSubstr(", kappa -1.5."));
  EXPECT_THAT(report,
              HasSubstr("\nItems are in the order drawn. \"drawn with\" is the "
                        "probability of a draw, given those before it; "
                        "\"inclusion\" is the probability that the item is in "
                        "the slate, given kappa, "));
}

TEST(AttendReportTest, OtherActivationsAreNoShares) {
  v1::AttendResponse response = TwoItems();
  response.set_activation_kind(v1::ACTIVATION_KIND_NONE);
  const std::string report = AttendReport(response, {});
  EXPECT_THAT(report, HasSubstr("Weights are the logits"));
  EXPECT_THAT(report, Not(HasSubstr("sum to 1")));
  EXPECT_THAT(report, Not(HasSubstr("50.0 %")));
}

TEST(AttendReportTest, SigmoidsNearOneAreToldApart) {
  v1::AttendResponse response = TwoItems();
  response.set_activation_kind(v1::ACTIVATION_KIND_SIGMOID);
  for (int i = 0; i < 2; ++i) {
    response.mutable_items(i)->set_logit(20 - 5 * i);
    response.mutable_items(i)->set_weight(1);
  }
  EXPECT_THAT(AttendReport(response, {}), AllOf(HasSubstr("  1 - 2.1e-09  "),
                                                HasSubstr("  1 - 3.1e-07  ")));
  response.mutable_items(0)->set_logit(1000);
  response.mutable_items(1)->set_weight(0.75);
  EXPECT_THAT(AttendReport(response, {}), AllOf(HasSubstr("85123A       1  "),
                                                HasSubstr("7         0.75")));
}

TEST(AttendReportTest, AnIntervalWithoutWidthIsNotWrittenAsARange) {
  v1::AttendResponse response = TwoItems();
  v1::Mass* mass = response.mutable_returned_mass();
  mass->set_method(v1::MASS_METHOD_ESTIMATE);
  mass->set_lower_bound(0.31399);
  mass->set_upper_bound(0.31401);
  v1::Interval* interval = response.mutable_effective_item_count_interval();
  interval->set_method(v1::MASS_METHOD_ESTIMATE);
  interval->set_lower_bound(214.1);
  interval->set_upper_bound(214.4);
  EXPECT_THAT(AttendReport(response, {}),
              AllOf(HasSubstr("attention (estimate, within 0.1 %)."),
                    HasSubstr("214 of 3,659 (estimate, within 1).")));
  mass->set_method(v1::MASS_METHOD_BOUND);
  response.set_effective_item_count(2);
  interval->set_lower_bound(1.99);
  interval->set_upper_bound(2.01);
  EXPECT_THAT(
      AttendReport(response, {}),
      AllOf(HasSubstr("31.4 % of the catalog's attention (bound, within 0.1 %"),
            HasSubstr("2.0 of 3,659 (estimate, within 0.1).")));
}

TEST(AttendReportTest, OtherScopesAreNoSharesOfTheShortlist) {
  v1::AttendResponse response = TwoItems();
  response.set_weight_scope(v1::WEIGHT_SCOPE_CATALOG);
  EXPECT_THAT(AttendReport(response, {}),
              HasSubstr("(exact). The shortlist holds 62.0 %."));
}

TEST(AttendReportTest, SaysWhatLimitedTheItems) {
  v1::AttendResponse response = TwoItems();
  EXPECT_THAT(AttendReport(response, {}), Not(HasSubstr("raise")));
  response.set_limit_reason(v1::LIMIT_REASON_RESULT_CAP);
  EXPECT_THAT(AttendReport(response, {}), HasSubstr("raise --results"));
  response.set_limit_reason(v1::LIMIT_REASON_CROWDING);
  EXPECT_THAT(AttendReport(response, {}), HasSubstr("raise --shortlist"));
  response.set_limit_reason(v1::LIMIT_REASON_INDEX);
  EXPECT_THAT(AttendReport(response, {}), HasSubstr("raise --recall"));
}

TEST(AttendReportTest, SaysWhenTheMassIsUnknown) {
  v1::AttendResponse response = TwoItems();
  response.mutable_returned_mass()->Clear();
  response.mutable_returned_mass()->set_method(v1::MASS_METHOD_UNKNOWN);
  response.clear_effective_item_count();
  response.mutable_stats()->set_scored_count(500);
  const std::string report = AttendReport(response, {});
  EXPECT_THAT(report,
              HasSubstr("How much of the catalog's attention these 2 hold is "
                        "unknown: 500 of 3,659 keys were scored"));
  EXPECT_THAT(report, Not(HasSubstr("Effective")));
}

TEST(AttendReportTest, SaysWhereTheEffectiveItemCountLies) {
  v1::AttendResponse response = TwoItems();
  v1::Interval* interval = response.mutable_effective_item_count_interval();
  interval->set_method(v1::MASS_METHOD_ESTIMATE);
  interval->set_lower_bound(150.2);
  interval->set_upper_bound(1320);
  EXPECT_THAT(AttendReport(response, {}),
              HasSubstr("Effective items: 214 of 3,659 (estimate, 150 to "
                        "1,320)."));
  interval->set_method(v1::MASS_METHOD_EXACT);
  EXPECT_THAT(AttendReport(response, {}),
              HasSubstr("Effective items: 214 of 3,659."));
}

TEST(AttendReportTest, FewEffectiveItemsAreNotRounded) {
  v1::AttendResponse response = TwoItems();
  response.set_effective_item_count(1.31);
  v1::Interval* interval = response.mutable_effective_item_count_interval();
  interval->set_method(v1::MASS_METHOD_BOUND);
  interval->set_lower_bound(1);
  interval->set_upper_bound(9.97);
  EXPECT_THAT(AttendReport(response, {}),
              HasSubstr("Effective items: 1.3 of 3,659 (bound, 1.0 to 10)."));
  for (const double count : {1.31, 12.4}) {
    v1::HeadAttention* head = response.add_heads();
    head->set_effective_item_count(count);
  }
  EXPECT_THAT(AttendReport(response, {}),
              AllOf(HasSubstr("  1.3        unknown\n"),
                    HasSubstr("  12        unknown\n")));
  // Heads that count differently have a column that says so.
  response.mutable_heads(0)->set_share(0.75);
  response.mutable_heads(1)->set_share(0.25);
  EXPECT_THAT(AttendReport(response, {}),
              AllOf(HasSubstr("  counts\n"), HasSubstr("unknown  75.0 %\n"),
                    HasSubstr("unknown  25.0 %\n")));
}

TEST(AttendReportTest, SaysWhereTheLogPartitionLies) {
  v1::AttendResponse response = TwoItems();
  response.set_log_partition(5.4371);
  v1::Interval* interval = response.mutable_log_partition_interval();
  interval->set_method(v1::MASS_METHOD_ESTIMATE);
  interval->set_lower_bound(5.4251);
  interval->set_upper_bound(5.4451);
  EXPECT_THAT(AttendReport(response, {}),
              HasSubstr(" Log partition 5.4371 ± 0.012 (estimate)."));
  interval->set_method(v1::MASS_METHOD_BOUND);
  interval->set_upper_bound(6);
  EXPECT_THAT(AttendReport(response, {}),
              HasSubstr(" Log partition 5.4371, from 5.4251 to 6 (bound)."));
  interval->set_method(v1::MASS_METHOD_EXACT);
  EXPECT_THAT(AttendReport(response, {}),
              HasSubstr(" Log partition 5.4371 (exact)."));
}

TEST(AttendReportTest, SaysWhenNothingWasEligible) {
  v1::AttendResponse response = TwoItems();
  response.clear_items();
  EXPECT_THAT(AttendReport(response, {}),
              HasSubstr("Nothing was eligible: the catalog has no items.\n"));
  response.mutable_stats()->set_item_count(5000);
  EXPECT_THAT(AttendReport(response, {}),
              HasSubstr("none of 5,000 items has a key in \"events\".\n"));
  EXPECT_THAT(AttendReport(response, {.masks = {"--filter", "--deny"}}),
              HasSubstr("of 5,000 items, none with a key in \"events\" is left "
                        "by --filter and --deny.\n"));
}

TEST(AttendReportTest, MasksAreThoseOfTheRequest) {
  v1::AttendRequest request;
  EXPECT_THAT(MasksOf(request), testing::IsEmpty());
  request.mutable_query()->mutable_examples()->set_exclude_examples(true);
  request.set_filter("price < 5");
  request.mutable_allow_list();
  request.mutable_deny_list();
  EXPECT_EQ(ListOf(MasksOf(request)),
            "--filter, --allow, --deny and the examples");
}

TEST(AttendReportTest, ListsUnknownExamplesAndThePooledValue) {
  v1::AttendResponse response = TwoItems();
  response.add_unknown_example_ids("x\x1b[2J");
  response.mutable_pooled_value()->add_values(3);
  response.mutable_pooled_value()->add_values(4);
  response.mutable_pooled_value()->set_scope(v1::WEIGHT_SCOPE_CATALOG);
  response.mutable_pooled_value()->set_key_as_value_count(1);
  response.mutable_pooled_value()->set_method(v1::MASS_METHOD_ESTIMATE);
  response.mutable_pooled_value()->set_relative_error(0.031);
  const std::string report = AttendReport(response, {.pooled_value = true});
  EXPECT_THAT(report, HasSubstr("Examples not in the catalog: x [2J\n"));
  EXPECT_THAT(report, HasSubstr("Pooled value over the catalog: 2 components, "
                                "norm 5, [3, 4]. Keys stand in for the values "
                                "of 1 item. Off by up to 3.1 % (estimate)."));
}

TEST(AttendReportTest, ColoursOnlyWhenAsked) {
  EXPECT_THAT(AttendReport(TwoItems(), {}), Not(HasSubstr("\x1b[")));
  EXPECT_THAT(AttendReport(TwoItems(), {.style = {.colour = true}}),
              HasSubstr("\x1b[36m██"));
}

}  // namespace
}  // namespace attendant
