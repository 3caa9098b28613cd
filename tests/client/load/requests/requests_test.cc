#include "client/load/requests/requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseMixTest, SharesAreNumbersAndOneByDefault) {
  ASSERT_OK_AND_ASSIGN(const auto mix, ParseMix("attend=80,write=2.5,filter"));
  ASSERT_EQ(mix.size(), 3u);
  EXPECT_EQ(mix[0].kind, "attend");
  EXPECT_EQ(mix[0].share, 80);
  EXPECT_EQ(mix[1].share, 2.5);
  EXPECT_EQ(mix[2].kind, "filter");
  EXPECT_EQ(mix[2].share, 1);
}

TEST(ParseMixTest, WhatIsNoMixIsNamed) {
  for (const char* text :
       {"", "read=1", "attend=0", "attend=-1", "attend=nan", "attend=inf",
        "attend=", "attend,attend", "attend=1,,write=1"}) {
    EXPECT_THAT(ParseMix(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("mix")))
        << text;
  }
}

TEST(RequestMixTest, KindsComeByTheirSharesAndTheSameForASeed) {
  const auto make = [](std::int64_t) { return grpc::ByteBuffer(); };
  RequestMix mix(5), same(5), other(6);
  for (RequestMix* each : {&mix, &same, &other}) {
    each->Add("attend", 7, "/a", make);
    each->Add("write", 2, "/w", make);
    each->Add("filter", 1, "/f", make);
  }
  EXPECT_THAT(mix.kinds(), ElementsAre("attend", "write", "filter"));
  EXPECT_EQ(mix.MethodOf(1), "/w");
  constexpr int kCount = 100000;
  std::vector<int> counts(3);
  bool differs = false;
  for (int i = 0; i < kCount; ++i) {
    const int kind = mix.KindOf(i);
    ++counts[kind];
    EXPECT_EQ(kind, same.KindOf(i));
    differs |= kind != other.KindOf(i);
  }
  EXPECT_TRUE(differs);
  // Five deviations of a binomial variable: at most 5 sqrt(kCount / 4).
  EXPECT_NEAR(counts[0], 0.7 * kCount, 791);
  EXPECT_NEAR(counts[1], 0.2 * kCount, 791);
  EXPECT_NEAR(counts[2], 0.1 * kCount, 791);
}

TEST(FilterOfTest, TheItemPassesWhatIsMadeOfIt) {
  v1::Item item;
  EXPECT_EQ(FilterOf(item, 0), "");
  (*item.mutable_attributes())["price"].set_double_value(2.5);
  (*item.mutable_attributes())["title"].set_string_value("a \"b\" \\");
  (*item.mutable_attributes())["odd name"].set_bool_value(true);
  EXPECT_EQ(FilterOf(item, 0), "price <= 2.5");
  EXPECT_EQ(FilterOf(item, 1), R"(title = "a \"b\" \\")");
  EXPECT_EQ(FilterOf(item, 2), FilterOf(item, 0));
  item.clear_attributes();
  auto* tags = (*item.mutable_attributes())["tags"].mutable_string_list_value();
  EXPECT_EQ(FilterOf(item, 0), "");
  tags->add_values("new");
  EXPECT_EQ(FilterOf(item, 0), "tags:\"new\"");
  item.clear_attributes();
  auto* time = (*item.mutable_attributes())["listed"].mutable_timestamp_value();
  time->set_seconds(-1);
  time->set_nanos(1'999);
  EXPECT_EQ(FilterOf(item, 0), "listed >= \"1969-12-31T23:59:59.000001Z\"");
}

TEST(FilterOfTest, NoneIsMadeOfATextThatIsLong) {
  v1::Item item;
  (*item.mutable_attributes())["text"].set_string_value(
      std::string(20'000, 'a'));
  (*item.mutable_attributes())["texts"].mutable_string_list_value()->add_values(
      std::string(20'000, 'a'));
  EXPECT_EQ(FilterOf(item, 0), "");
  (*item.mutable_attributes())["title"].set_string_value("b");
  for (std::uint64_t draw = 0; draw < 3; ++draw) {
    EXPECT_EQ(FilterOf(item, draw), "title = \"b\"");
  }
}

TEST(WriteRequestTest, ItemsAreOursAndComeBack) {
  RequestOptions options;
  options.catalog = "shop";
  options.key_field = "taste";
  options.seed = 3;
  options.write_item_count = 2;
  const std::vector<std::vector<float>> keys = {{1, 2}, {3, 4}, {5, 6}};
  const auto request = WriteRequest(options, keys, 1);
  EXPECT_EQ(request.catalog(), "shop");
  ASSERT_EQ(request.items_size(), 2);
  EXPECT_EQ(request.items(0).id(), "load-3-2");
  EXPECT_EQ(request.items(1).id(), "load-3-3");
  EXPECT_TRUE(request.items(0).keys().contains("taste"));
  EXPECT_EQ(WriteRequest(options, keys, kWrittenItemCount / 2).items(0).id(),
            "load-3-0");
}

TEST(ReadQueriesTest, LinesAreRequests) {
  const ScratchDirectory directory;
  const std::string path = directory / "queries.jsonl";
  std::ofstream(path)
      << R"({"query": {"text": "clock"}, "filter": "a < 1"})"
      << "\n\n"
      << R"({"query": {"examples": {"examples": [{"id": "x"}]}},)"
      << R"( "resultCount": 3})"
      << "\n";
  ASSERT_OK_AND_ASSIGN(const auto requests, ReadQueries(path));
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].query().text(), "clock");
  EXPECT_EQ(requests[0].filter(), "a < 1");
  EXPECT_EQ(requests[1].query().examples().examples(0).id(), "x");
  EXPECT_EQ(requests[1].result_count(), 3);
}

TEST(ReadQueriesTest, WhatIsNoRequestIsNamedWithItsLine) {
  const ScratchDirectory directory;
  const std::string path = directory / "queries.jsonl";
  std::ofstream(path) << "{}\n{\"query\": {\"picture\": 1}}\n";
  EXPECT_THAT(ReadQueries(path),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(path), HasSubstr("line 2"))));
  std::ofstream(path, std::ios::trunc) << "\n";
  EXPECT_THAT(ReadQueries(path), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("holds no row")));
}

TEST(ReadQueriesTest, NamesTheEndingsThatItTakes) {
  EXPECT_THAT(ReadQueries("queries.parquet"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(".npy, .fvecs, .txt, .csv nor .jsonl")));
}

}  // namespace
}  // namespace attendant
