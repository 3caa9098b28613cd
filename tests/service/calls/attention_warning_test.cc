#include "service/calls/attention_warning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "tests/service/server_fixture.h"
#include "tests/support/parse_proto.h"
#include "tests/support/sanitized.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using ServerTest = ServerFixture;

// Returns items begin to end on a line, `step` apart; with 0 they are all
// equal.
std::vector<Item> ItemsOfLine(int begin, int end, float step) {
  std::vector<Item> items;
  for (int i = begin; i < end; ++i) {
    Item& item = items.emplace_back();
    item.id = ItemId(absl::StrCat(i));
    item.keys = {{step * static_cast<float>(i)}};
  }
  return items;
}

// Creates a catalog of `count` equal items.
absl::StatusOr<std::shared_ptr<LiveCatalog>> CreateLine(CatalogSet& catalogs,
                                                        int item_count) {
  CatalogSchema schema;
  schema.key_fields = {{.name = "k", .dim = 1}};
  ATTENDANT_ASSIGN_OR_RETURN(const auto created,
                             catalogs.Create("line", schema, {}));
  ATTENDANT_RETURN_IF_ERROR(
      created.catalog->Upsert(ItemsOfLine(0, item_count, 0), "").status());
  return created.catalog;
}

TEST_F(ServerTest, FlatAttentionIsWarnedOf) {
  CreateShop();
  // 100 items on a circle: at a temperature of 100 all weigh the same.
  v1::BatchUpsertItemsRequest request;
  request.set_catalog("shop");
  for (int i = 0; i < 100; ++i) {
    v1::Item* item = request.add_items();
    item->set_id(absl::StrCat("item-", i));
    auto* floats = (*item->mutable_keys())["k"].mutable_floats();
    floats->add_values(static_cast<float>(std::cos(0.0628 * i)));
    floats->add_values(static_cast<float>(std::sin(0.0628 * i)));
  }
  ASSERT_TRUE(Upsert(request).ok());
  const auto set_temperature = [&](double temperature) {
    auto change = Parse<v1::UpdateCatalogRequest>(
        "name: 'shop' key_fields { name: 'k' } update_mask { paths: "
        "'temperature' }");
    change.mutable_key_fields(0)->set_temperature(temperature);
    EXPECT_TRUE(UpdateCatalog(change).ok());
  };
  ASSERT_OK_AND_ASSIGN(const auto shop, catalogs_->Get("shop"));
  AttentionWarnings warnings;
  const auto warnings_at = [&](double temperature) {
    set_temperature(temperature);
    // Enough time to find them on any machine.
    return warnings.Of(*shop->snapshot(), Interrupt(),
                       SteadyAfter(absl::Hours(1)));
  };
  EXPECT_THAT(warnings_at(100),
              ElementsAre(HasSubstr("key field k: attention is nearly flat")));
  EXPECT_THAT(warnings_at(0.01), IsEmpty());

  // Makes most keys far shorter than the others, with which the field is
  // queried.
  for (int i = 0; i < 100; ++i) {
    for (float& component : *request.mutable_items(i)
                                 ->mutable_keys()
                                 ->at("k")
                                 .mutable_floats()
                                 ->mutable_values()) {
      component *= i % 4 == 0 ? 10 : 0.01f;
    }
  }
  ASSERT_TRUE(Upsert(request).ok());
  EXPECT_THAT(warnings_at(1), IsEmpty());
  EXPECT_THAT(warnings_at(10000),
              ElementsAre(HasSubstr("key field k: attention is nearly flat")));

  // GetCatalog reports it if it is found in time: new defaults are checked at
  // once.
  v1::GetCatalogResponse got;
  const SteadyTime end = SteadyAfter(absl::Minutes(1));
  for (int i = 0; got.catalog().warnings().empty() && SteadyNow() < end; ++i) {
    set_temperature(20000 + i);
    grpc::ClientContext context;
    ASSERT_TRUE(catalog_stub_
                    ->GetCatalog(&context,
                                 Parse<v1::GetCatalogRequest>("name: 'shop'"),
                                 &got)
                    .ok());
  }
  EXPECT_THAT(got.catalog().warnings(),
              ElementsAre(HasSubstr("key field k: attention is nearly flat")));
}

TEST_F(ServerTest, AWarningOfFlatAttentionSaysHowFlatAndWhatToDo) {
  ASSERT_OK_AND_ASSIGN(const auto line, CreateLine(*catalogs_, 1200));
  EXPECT_THAT(
      AttentionWarnings().Of(*line->snapshot(), Interrupt(),
                             SteadyAfter(absl::Hours(1))),
      ElementsAre("key field k: attention is nearly flat: asked by any of 64 "
                  "items, it spreads over at least 1,199 of 1,200; a "
                  "temperature below 1 concentrates it (attendant catalog "
                  "update CATALOG k --temperature T)"));
}

TEST_F(ServerTest, WarningsOutliveAMinuteOfWritesToAsManyItems) {
  ASSERT_OK_AND_ASSIGN(const auto line, CreateLine(*catalogs_, 100));
  const auto write = [&](int begin, int end, float step) {
    ASSERT_OK(line->Upsert(ItemsOfLine(begin, end, step), ""));
  };
  AttentionWarnings warnings;
  // Enough time to find them on any machine.
  const SteadyTime begin = SteadyAfter(absl::Hours(1));
  const auto count = [&](std::chrono::seconds later) {
    return warnings.Of(*line->snapshot(), Interrupt(), begin + later).size();
  };
  using std::chrono::seconds;
  // Equal keys get equal attention; distant keys do not.
  EXPECT_EQ(count(seconds(0)), 1u);
  write(0, 100, 1000);
  EXPECT_EQ(count(seconds(59)), 1u);
  write(100, 110, 1000);
  EXPECT_EQ(count(seconds(59)), 1u);
  EXPECT_EQ(count(seconds(60)), 0u);
  write(0, 110, 0);
  EXPECT_EQ(count(seconds(61)), 0u);
  // A tenth more items makes the result stale.
  write(110, 122, 0);
  EXPECT_EQ(count(seconds(61)), 1u);
}

TEST_F(ServerTest, WarningsThatTakeTooLongAreNotTriedAgainAtOnce) {
  ASSERT_OK_AND_ASSIGN(const auto line, CreateLine(*catalogs_, 100));
  AttentionWarnings warnings;
  // The budget ends before anything is found.
  const SteadyTime begin =
      SteadyNow() - absl::ToChronoNanoseconds(AttentionWarnings::kBudget);
  const auto count = [&](std::chrono::seconds later) {
    return warnings.Of(*line->snapshot(), Interrupt(), begin + later).size();
  };
  using std::chrono::seconds;
  EXPECT_EQ(count(seconds(0)), 0u);
  EXPECT_EQ(count(seconds(59)), 0u);
  ASSERT_OK(line->Upsert(ItemsOfLine(0, 100, 0), ""));
  EXPECT_EQ(count(seconds(59)), 0u);
  // Enough time to find it on any machine.
  EXPECT_EQ(count(seconds(7200)), 1u);

  // A caller with less time than that leaves nothing behind.
  AttentionWarnings others;
  const Interrupt over = {.deadline = begin};
  EXPECT_THAT(others.Of(*line->snapshot(), over, SteadyNow()), IsEmpty());
  EXPECT_EQ(
      others.Of(*line->snapshot(), Interrupt(), SteadyAfter(absl::Hours(1)))
          .size(),
      1u);
}

// Otherwise a caller that polls with less time than the search takes would
// never get a reply, and each poll would occupy a thread that long.
TEST_F(ServerTest, WarningsLeaveACallerHalfOfItsTime) {
  ASSERT_OK_AND_ASSIGN(const auto line, CreateLine(*catalogs_, 100));
  AttentionWarnings warnings;
  const auto count = [&](const Interrupt& interrupt, SteadyTime now) {
    return warnings.Of(*line->snapshot(), interrupt, now).size();
  };
  constexpr std::chrono::milliseconds kHalf{400};
  // Half of the time passes before anything is found. On a slow machine all of
  // it may pass, which leaves nothing behind; then try again.
  SteadyTime begin;
  do {
    begin = SteadyNow() - kHalf;
    EXPECT_EQ(count({.deadline = begin + 2 * kHalf}, begin), 0u);
  } while (SteadyNow() >= begin + 2 * kHalf);
  // A caller with the same time does not search again.
  const SteadyTime later = begin + std::chrono::seconds(30);
  EXPECT_EQ(count({.deadline = later + 2 * kHalf}, later), 0u);
  EXPECT_EQ(count(Interrupt(), later), 1u);
}

TEST_F(ServerTest, WarningsOfManyCatalogsStandBesideOneThatIsFoundAnew) {
  ASSERT_OK_AND_ASSIGN(const auto line, CreateLine(*catalogs_, 20));
  AttentionWarnings warnings;
  Snapshot snapshot = *line->snapshot();
  const SteadyTime begin = SteadyAfter(absl::Hours(1));
  constexpr int kCatalogs = kSanitized ? kMaxCatalogs / 8 : kMaxCatalogs;
  for (int i = 0; i < kCatalogs; ++i) {
    snapshot.catalog_uid = absl::StrCat(i);
    ASSERT_EQ(warnings.Of(snapshot, Interrupt(), begin).size(), 1u);
  }
  ++snapshot.sequence;
  snapshot.catalog_uid = "5";
  const SteadyTime later = begin + std::chrono::seconds(61);
  EXPECT_EQ(warnings.Of(snapshot, Interrupt(), later).size(), 1u);
  // A caller without time gets what is known.
  const Interrupt over = {.deadline = SteadyNow()};
  for (int i = 0; i < kCatalogs; ++i) {
    snapshot.catalog_uid = absl::StrCat(i);
    EXPECT_EQ(warnings.Of(snapshot, over, later).size(), 1u) << i;
  }
}

// Otherwise descriptions of several large catalogs would occupy all threads
// that read.
TEST_F(ServerTest, WarningsOfOneCatalogAtATimeAreFound) {
  ASSERT_OK_AND_ASSIGN(const auto line, CreateLine(*catalogs_, 4000));
  AttentionWarnings warnings;
  const SteadyTime in_time = SteadyAfter(absl::Hours(1));
  // Each thread describes its own catalog, until one meets another's search.
  std::atomic<bool> met = false;
  const SteadyTime give_up = SteadyAfter(absl::Seconds(20));
  const auto describe = [&](const std::string& name) {
    Snapshot snapshot = *line->snapshot();
    for (int i = 0; !met.load() && SteadyNow() < give_up; ++i) {
      snapshot.catalog_uid = absl::StrCat(name, i);
      if (warnings.Of(snapshot, Interrupt(), in_time).empty()) met.store(true);
    }
  };
  std::thread other([&] { describe("a"); });
  describe("b");
  other.join();
  EXPECT_TRUE(met.load());
}

TEST_F(ServerTest, WarningsStandWhereThereIsNoTimeForOthers) {
  ASSERT_OK_AND_ASSIGN(const auto line, CreateLine(*catalogs_, 100));
  AttentionWarnings warnings;
  const auto count_at = [&](SteadyTime now) {
    return warnings.Of(*line->snapshot(), Interrupt(), now).size();
  };
  const SteadyTime in_time = SteadyAfter(absl::Hours(1));
  EXPECT_EQ(count_at(in_time), 1u);
  // Another catalog, for which the budget ends before anything is found.
  ASSERT_OK(line->Upsert(ItemsOfLine(0, 120, 1000), ""));
  const SteadyTime over =
      SteadyNow() - absl::ToChronoNanoseconds(AttentionWarnings::kBudget);
  EXPECT_EQ(count_at(over), 1u);
  EXPECT_EQ(count_at(over + std::chrono::seconds(59)), 1u);
  EXPECT_EQ(count_at(in_time), 0u);
}

// 100 items on a circle.
absl::StatusOr<std::shared_ptr<LiveCatalog>> CreateCircle(
    CatalogSet& catalogs, const std::string& name, ScoreKind score_kind) {
  CatalogSchema schema;
  schema.key_fields = {{.name = "k",
                        .dim = 2,
                        .score_kind = score_kind,
                        .model = {.name = name, .version = 1}}};
  ATTENDANT_ASSIGN_OR_RETURN(const auto created,
                             catalogs.Create(name, schema, {}));
  std::vector<Item> items(100);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const double angle = 0.0628 * static_cast<double>(i);
    items[i].id = ItemId(absl::StrCat(i));
    items[i].keys = {{static_cast<float>(std::cos(angle)),
                      static_cast<float>(std::sin(angle))}};
  }
  ATTENDANT_RETURN_IF_ERROR(created.catalog->Upsert(items, "").status());
  return created.catalog;
}

TEST_F(ServerTest, WarnsWhereEveryHeadOfAModelIsAnAverage) {
  // Two heads, each of which scales one component of keys and queries.
  const auto count = [&](const std::string& name, float first, float second) {
    MultiHeadProjections heads;
    heads.head_count = 2;
    heads.query.weight = {2, 2, {first, 0, 0, second}};
    heads.key = heads.query;
    EXPECT_OK(catalogs_->models().Create(name, {heads}, {}));
    const auto circle = CreateCircle(*catalogs_, name, ScoreKind::kDot);
    EXPECT_OK(circle);
    // Enough time to find them on any machine.
    return AttentionWarnings()
        .Of(*(*circle)->snapshot(), Interrupt(), SteadyAfter(absl::Hours(1)))
        .size();
  };
  EXPECT_EQ(count("average", 0.01f, 0.01f), 1u);
  EXPECT_EQ(count("choice", 10, 10), 0u);
  // One selective head is enough.
  EXPECT_EQ(count("either", 0.01f, 10), 0u);
}

// Keys go through a new model some time after the schema names it, and no write
// signals that.
TEST_F(ServerTest, WarningsAreOfTheModelsThatQueriesGoThrough) {
  const auto scaling = [](float scale) {
    return AttentionModel{BilinearForm{{2, 2, {scale, 0, 0, scale}}}};
  };
  ASSERT_OK(catalogs_->models().Create("m", scaling(100), {}));
  ASSERT_OK_AND_ASSIGN(const auto circle,
                       CreateCircle(*catalogs_, "m", ScoreKind::kBilinear));
  const auto before = circle->snapshot();
  Snapshot after = *before;
  after.models[0] = {
      .name = {.name = "m", .version = 2},
      .model = std::make_shared<const AttentionModel>(scaling(0.01f))};
  AttentionWarnings warnings;
  // Enough time to find them on any machine.
  const SteadyTime now = SteadyAfter(absl::Hours(1));
  EXPECT_THAT(warnings.Of(*before, Interrupt(), now), IsEmpty());
  EXPECT_EQ(warnings.Of(after, Interrupt(), now).size(), 1u);
  // Without time, results for another model are not reported.
  const Interrupt over = {.deadline = SteadyNow()};
  EXPECT_EQ(warnings.Of(after, over, now).size(), 1u);
  EXPECT_THAT(warnings.Of(*before, over, now), IsEmpty());
  EXPECT_THAT(warnings.Of(*before, Interrupt(), now), IsEmpty());
}

}  // namespace
}  // namespace attendant
