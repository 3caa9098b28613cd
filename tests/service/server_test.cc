// What the server does beyond single errors: its life, and each method once
// from end to end.
#include "service/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "core/base/clock.h"
#include "core/base/fail_point.h"
#include "core/base/status.h"
#include "service/calls/attention_warning.h"
#include "service/calls/methods.h"
#include "service/handlers/import_call.h"
#include "tests/service/raw_call.h"
#include "tests/service/rpc_details.h"
#include "tests/service/server_fixture.h"
#include "tests/support/parse_proto.h"
#include "tests/support/sanitized.h"

namespace attendant {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

class ServerTest : public ServerFixture {};

constexpr char kHealthCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kHealthWatch[] = "/grpc.health.v1.Health/Watch";
// HealthCheckResponse{status}
const std::string kServing = "\x08\x01";
const std::string kNotServing = "\x08\x02";

// HealthCheckRequest{service}
std::string HealthRequest(const std::string& service) {
  if (service.empty()) return "";
  return absl::StrCat("\x0A", std::string(1, static_cast<char>(service.size())),
                      service);
}

std::set<std::string> ServicesOfOurs() {
  std::set<std::string> services;
  for (const Method& method : AllMethods()) services.insert(method.service);
  return services;
}

TEST_F(ServerTest, HealthKnowsTheServerAndEachService) {
  std::set<std::string> services = ServicesOfOurs();
  services.insert("");  // the server
  for (const std::string& service : services) {
    RawCall call(channel_, kHealthCheck);
    call.Write(HealthRequest(service));
    call.WritesDone();
    EXPECT_THAT(call.Read(), Optional(kServing)) << service;
    EXPECT_TRUE(call.Finish().ok());
  }
  EXPECT_EQ(CallWithBytes(channel_, kHealthCheck, HealthRequest("no.Service"))
                .error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(ServerTest, ShutdownTurnsHealthBeforeItEndsCalls) {
  RawCall watch(channel_, kHealthWatch);
  watch.Write(HealthRequest("attendant.v1.AttentionService"));
  watch.WritesDone();
  // The name may be watched before it is known.
  ASSERT_THAT(watch.Read(), Optional(kServing));
  CreateShop();
  grpc::ClientContext context;
  const auto stream = item_stub_->ImportItems(&context);
  ASSERT_TRUE(stream->Write(Parse<v1::ImportItemsRequest>("catalog: 'shop'")));
  v1::ImportItemsResponse response;
  ASSERT_TRUE(stream->Read(&response));
  std::thread stopper([this] { server_->Shutdown(absl::Seconds(60)); });
  EXPECT_THAT(watch.Read(), Optional(kNotServing));
  // The stream is waited for. Calls that begin are answered for a moment, and
  // refused from then on.
  grpc::StatusCode code;
  const SteadyTime give_up = SteadyAfter(absl::Seconds(30));
  do {
    code = List(Parse<v1::ListItemsRequest>("catalog: 'shop'")).error_code();
    ASSERT_THAT(code,
                AnyOf(grpc::StatusCode::OK, grpc::StatusCode::UNAVAILABLE));
  } while (code != grpc::StatusCode::UNAVAILABLE && SteadyNow() < give_up);
  EXPECT_EQ(code, grpc::StatusCode::UNAVAILABLE);
  // A stream, before its first message.
  grpc::ClientContext late_context;
  const auto late = item_stub_->ImportItems(&late_context);
  EXPECT_FALSE(late->Read(&response));
  EXPECT_EQ(late->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  // The one that was there ends with its next message, of which nothing is
  // stored, and the server with it.
  EXPECT_TRUE(stream->Write(Parse<v1::ImportItemsRequest>(
      "items { id: 'd' keys { key: 'k' value { floats { values: [1, 2] } } "
      "} }")));
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  stopper.join();
  EXPECT_EQ(catalogs_->Get("shop").value()->snapshot()->item_count(), 3);
}

TEST_F(ServerTest, ShutdownHangsUpOnStragglersAfterTheGrace) {
  CreateShop();
  grpc::ClientContext context;
  auto stream = item_stub_->ImportItems(&context);
  ASSERT_TRUE(stream->Write(Parse<v1::ImportItemsRequest>("catalog: 'shop'")));
  v1::ImportItemsResponse response;
  ASSERT_TRUE(stream->Read(&response));
  // The stream stays open, so that only its end by the server ends the
  // shutdown.
  server_->Shutdown(absl::Milliseconds(50));
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// gRPC's own shutdown cancels what crosses with it, which nobody tries again.
TEST_F(ServerTest, WhatCrossesWithTheEndOfTheGraceIsUnavailable) {
  CreateShop();
  std::atomic<bool> stopping = false;
  std::vector<std::thread> callers;
  for (int c = 0; c < 8; ++c) {
    callers.emplace_back([&, channel = NewChannel()] {
      const auto stub = v1::ItemService::NewStub(channel);
      const auto request = Parse<v1::ListItemsRequest>("catalog: 'shop'");
      while (!stopping.load()) {
        grpc::ClientContext context;
        v1::ListItemsResponse response;
        EXPECT_THAT(stub->ListItems(&context, request, &response).error_code(),
                    AnyOf(grpc::StatusCode::OK, grpc::StatusCode::UNAVAILABLE));
      }
    });
  }
  grpc::ClientContext context;
  const auto stream = item_stub_->ImportItems(&context);
  ASSERT_TRUE(stream->Write(Parse<v1::ImportItemsRequest>("catalog: 'shop'")));
  v1::ImportItemsResponse response;
  ASSERT_TRUE(stream->Read(&response));
  server_->Shutdown(absl::Milliseconds(200));
  stopping = true;
  for (std::thread& caller : callers) caller.join();
}

TEST_F(ServerTest, ShutdownDoesNotWaitForIdleConnections) {
  CreateShop();  // the channel stays connected
  const SteadyTime start = SteadyNow();
  server_->Shutdown(absl::Minutes(5));
  EXPECT_LT(TimeSince(start), absl::Seconds(60));
}

// An answer without room in the message is refused alone, and takes none from
// those after it.
TEST_F(ServerTest, ABatchKeepsTheAnswersThatAMessageHasRoomFor) {
  server_.reset();
  catalogs_.reset();
  options_.max_message_bytes = 1 << 20;
  ServerFixture::SetUp();
  CreateShop();
  v1::BatchUpsertItemsRequest upsert = Parse<v1::BatchUpsertItemsRequest>(
      "catalog: 'shop' items { id: 'big' keys { key: 'k' value { floats { "
      "values: [1, 1] } } } }");
  (*upsert.mutable_items(0)->mutable_attributes())["name"].set_string_value(
      std::string(300 << 10, 'x'));
  ASSERT_TRUE(Upsert(upsert).ok());
  v1::BatchAttendRequest request;
  request.set_catalog("shop");
  for (int i = 0; i < 20; ++i) {
    *request.add_requests() = Parse<v1::AttendRequest>(
        "query { vector { floats { values: [1, 0] } } } ");
    if (i < 19)
      request.mutable_requests(i)->mutable_read_mask()->add_paths("attributes");
  }
  grpc::ClientContext context;
  v1::BatchAttendResponse response;
  const grpc::Status status =
      attention_stub_->BatchAttend(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.results_size(), 20);
  for (int i = 0; i < 20; ++i) {
    const v1::BatchAttendResult& result = response.results(i);
    if (i < 3 || i == 19) {
      EXPECT_EQ(result.response().items_size(), 4) << i;
      continue;
    }
    EXPECT_EQ(result.status().code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(ReasonIn(result.status()), "OVER_LIMIT");
    EXPECT_THAT(result.status().message(),
                HasSubstr("the batch's reply would take more than 1048576"));
  }
}

TEST_F(ServerTest, ReflectionListsTheServices) {
  RawCall call(
      channel_,
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  // ServerReflectionRequest{list_services: ""}
  ASSERT_TRUE(call.Write(std::string("\x3A\x00", 2)));
  const std::optional<std::string> reply = call.Read();
  ASSERT_TRUE(reply.has_value());
  std::set<std::string> services = ServicesOfOurs();
  services.insert("grpc.health.v1.Health");
  for (const std::string& service : services) {
    EXPECT_THAT(*reply, HasSubstr(service));
  }
  call.WritesDone();
  EXPECT_TRUE(call.Finish().ok());
}

// They are synchronous: gRPC tells of them in another way than of our calls.
TEST_F(ServerTest, CallsOfReflectionThatAreDoneAreNoneThatWereNotSent) {
  server_.reset();
  options_.transport.max_stream_count = 16;
  ASSERT_OK_AND_ASSIGN(server_, Server::Start(options_, catalogs_.get()));
  channel_ = NewChannel();
  // Past what four connections may have at once, the first time, when all is
  // forgotten, and the second; and twice what one may.
  for (int i = 0; i < 2 * 4 * 16 + 2 * 16 + 10; ++i) {
    const grpc::Status status = CallWithBytes(
        channel_,
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        std::string("\x3A\x00", 2));
    ASSERT_TRUE(status.ok()) << i << ": " << status.error_message();
  }
  MetricPage page;
  server_->WriteMetrics(page);
  EXPECT_THAT(page.Text(), HasSubstr("\nattendant_calls_not_sent_total 0\n"));
}

TEST_F(ServerTest, SecondServerOnThePortIsRefused) {
  Server::Options options;
  options.listen = absl::StrCat("127.0.0.1:", server_->port());
  EXPECT_THAT(
      Server::Start(options, catalogs_.get()),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr(options.listen)));
}

TEST_F(ServerTest, OptionsOutOfRangeAreRefused) {
  for (const char* listen : {"", "127.0.0.1", "127.0.0.1:", ":80",
                             "127.0.0.1:65536", "127.0.0.1:http"}) {
    Server::Options options;
    options.listen = listen;
    EXPECT_THAT(
        Server::Start(options, catalogs_.get()),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("listen")));
  }
  Server::Options options = options_;
  options.max_message_bytes = 100;
  EXPECT_THAT(Server::Start(options, catalogs_.get()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("max_message_bytes")));
  options = options_;
  options.worker_count = -1;
  EXPECT_THAT(
      Server::Start(options, catalogs_.get()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("worker_count")));
}

TEST_F(ServerTest, CompressedRequestIsRefused) {
  CreateShop();
  for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    grpc::ClientContext context;
    context.set_compression_algorithm(algorithm);
    v1::AttendRequest request;
    // Compresses well: what would be small on the wire and large here.
    request.set_catalog(std::string(1 << 20, 'x'));
    v1::AttendResponse response;
    EXPECT_EQ(
        attention_stub_->Attend(&context, request, &response).error_code(),
        grpc::StatusCode::UNIMPLEMENTED);
  }
}

TEST_F(ServerTest, UnknownMethodIsUnimplemented) {
  EXPECT_EQ(CallWithBytes(channel_, "/attendant.v1.CatalogService/Nope", "")
                .error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(ServerTest, CatalogsAreListedByNameInPages) {
  for (const char* name : {"b", "c", "a"}) {
    ASSERT_TRUE(
        Create(Parse<v1::CreateCatalogRequest>(absl::StrCat(
                   "name: '", name,
                   "' schema { key_fields { name: 'k' dimension: 2 } }")))
            .ok());
  }
  std::vector<std::string> names;
  v1::ListCatalogsRequest request;
  request.set_page_size(2);
  int page_count = 0;
  do {
    grpc::ClientContext context;
    v1::ListCatalogsResponse response;
    ASSERT_TRUE(catalog_stub_->ListCatalogs(&context, request, &response).ok());
    for (const auto& catalog : response.catalogs()) {
      names.push_back(catalog.name());
    }
    request.set_page_token(response.next_page_token());
    ++page_count;
  } while (!request.page_token().empty());
  EXPECT_THAT(names, ElementsAre("a", "b", "c"));
  EXPECT_EQ(page_count, 2);
}

TEST_F(ServerTest, CatalogIsDescribedUpdatedAndDeleted) {
  CreateShop();
  grpc::ClientContext get;
  v1::GetCatalogResponse got;
  const auto name = Parse<v1::GetCatalogRequest>("name: 'shop'");
  ASSERT_TRUE(catalog_stub_->GetCatalog(&get, name, &got).ok());
  EXPECT_EQ(got.catalog().item_count(), 3);
  EXPECT_EQ(got.catalog().sequence(), 1);
  EXPECT_EQ(got.catalog().schema().key_fields(0).temperature(), 1);
  ASSERT_EQ(got.catalog().indexes_size(), 1);
  EXPECT_EQ(got.catalog().indexes(0).key_field(), "k");
  EXPECT_EQ(got.catalog().indexes(0).key_count(), 3);
  EXPECT_EQ(got.catalog().indexes(0).active_kind(), v1::INDEX_KIND_FLAT);
  EXPECT_FALSE(got.catalog().indexes(0).has_measured_recall());
  const v1::MemoryUse& memory = got.catalog().memory();
  EXPECT_EQ(memory.key_bytes(), 3 * 2 * 4);
  EXPECT_EQ(memory.code_bytes(), 0);
  EXPECT_GT(memory.id_bytes(), 0);
  EXPECT_GT(memory.database_bytes(), 0);
  EXPECT_EQ(got.catalog().memory_bytes(),
            memory.key_bytes() + memory.index_bytes() +
                memory.attribute_bytes() + memory.value_bytes() +
                memory.id_bytes() + memory.database_bytes());
  EXPECT_GT(got.catalog().create_time().seconds(), 1700000000);
  EXPECT_THAT(got.catalog().warnings(), IsEmpty());

  grpc::ClientContext update;
  v1::UpdateCatalogResponse updated;
  ASSERT_TRUE(catalog_stub_
                  ->UpdateCatalog(
                      &update,
                      Parse<v1::UpdateCatalogRequest>(
                          "name: 'shop' key_fields { name: 'k' temperature: "
                          "0.5 } update_mask { paths: 'temperature' }"),
                      &updated)
                  .ok());
  EXPECT_EQ(updated.catalog().schema().key_fields(0).temperature(), 0.5);
  v1::AttendResponse answer;
  ASSERT_TRUE(Attend(Parse<v1::AttendRequest>(
                         "catalog: 'shop' query { vector { floats { values: "
                         "[1, 0] } } }"),
                     &answer)
                  .ok());
  EXPECT_EQ(answer.temperature(), 0.5);

  grpc::ClientContext remove;
  v1::DeleteCatalogResponse removed;
  ASSERT_TRUE(catalog_stub_
                  ->DeleteCatalog(
                      &remove, Parse<v1::DeleteCatalogRequest>("name: 'shop'"),
                      &removed)
                  .ok());
  grpc::ClientContext again;
  EXPECT_EQ(catalog_stub_->GetCatalog(&again, name, &got).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(ServerTest, FlatAttentionIsWarnedOf) {
  CreateShop();
  // 100 items on a circle: with a temperature of 100, all weigh alike.
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
    grpc::ClientContext context;
    v1::UpdateCatalogResponse updated;
    auto change = Parse<v1::UpdateCatalogRequest>(
        "name: 'shop' key_fields { name: 'k' } update_mask { paths: "
        "'temperature' }");
    change.mutable_key_fields(0)->set_temperature(temperature);
    EXPECT_TRUE(catalog_stub_->UpdateCatalog(&context, change, &updated).ok());
  };
  ASSERT_OK_AND_ASSIGN(const auto shop, catalogs_->Get("shop"));
  AttentionWarnings warnings;
  const auto warnings_at = [&](double temperature) {
    set_temperature(temperature);
    // However slow the machine is, they are found in time.
    return warnings.Of(*shop->snapshot(), Interrupt(),
                       SteadyAfter(absl::Hours(1)));
  };
  EXPECT_THAT(warnings_at(100),
              ElementsAre(HasSubstr("key field k: attention is nearly flat")));
  EXPECT_THAT(warnings_at(0.01), IsEmpty());

  // Most keys far shorter than the others, by which the field is asked.
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

  // Who describes the catalog is told, where that takes no longer than it may:
  // new defaults are tried at once.
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
  CatalogSchema schema;
  schema.key_fields = {{.name = "k", .dim = 1}};
  ASSERT_OK_AND_ASSIGN(const auto created,
                       catalogs_->Create("line", schema, {}));
  std::vector<Item> items(1200);  // all alike
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].id = ItemId(absl::StrCat(i));
    items[i].keys = {{0}};
  }
  ASSERT_OK(created.catalog->Upsert(items, ""));
  EXPECT_THAT(
      AttentionWarnings().Of(*created.catalog->snapshot(), Interrupt(),
                             SteadyAfter(absl::Hours(1))),
      ElementsAre("key field k: attention is nearly flat: asked by any of 64 "
                  "items, it spreads over at least 1,199 of 1,200; a "
                  "temperature below 1 concentrates it (attendant catalog "
                  "update CATALOG k --temperature T)"));
}

TEST_F(ServerTest, WarningsOutliveAMinuteOfWritesToAsManyItems) {
  CatalogSchema schema;
  schema.key_fields = {{.name = "k", .dim = 1}};
  ASSERT_OK_AND_ASSIGN(const auto created,
                       catalogs_->Create("line", schema, {}));
  LiveCatalog& line = *created.catalog;
  const auto write = [&](int begin, int end, float key) {
    std::vector<Item> items;
    for (int i = begin; i < end; ++i) {
      Item& item = items.emplace_back();
      item.id = ItemId(absl::StrCat(i));
      item.keys = {{key * static_cast<float>(i)}};
    }
    ASSERT_OK(line.Upsert(items, ""));
  };
  AttentionWarnings warnings;
  // However slow the machine is, they are found in time.
  const SteadyTime begin = SteadyAfter(absl::Hours(1));
  const auto count = [&](std::chrono::seconds later) {
    return warnings.Of(*line.snapshot(), Interrupt(), begin + later).size();
  };
  using std::chrono::seconds;
  // Keys that are all alike attend to all alike; those far apart do not.
  write(0, 100, 0);
  EXPECT_EQ(count(seconds(0)), 1u);
  write(0, 100, 1000);
  EXPECT_EQ(count(seconds(59)), 1u);
  write(100, 110, 1000);
  EXPECT_EQ(count(seconds(59)), 1u);
  EXPECT_EQ(count(seconds(60)), 0u);
  write(0, 110, 0);
  EXPECT_EQ(count(seconds(61)), 0u);
  // A tenth more is another catalog.
  write(110, 122, 0);
  EXPECT_EQ(count(seconds(61)), 1u);
}

TEST_F(ServerTest, WarningsThatTakeTooLongAreNotTriedAgainAtOnce) {
  CatalogSchema schema;
  schema.key_fields = {{.name = "k", .dim = 1}};
  ASSERT_OK_AND_ASSIGN(const auto created,
                       catalogs_->Create("line", schema, {}));
  LiveCatalog& line = *created.catalog;
  std::vector<Item> items(100);
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].id = ItemId(absl::StrCat(i));
    items[i].keys = {{0}};
  }
  ASSERT_OK(line.Upsert(items, ""));
  AttentionWarnings warnings;
  // The budget is over before anything is found.
  const SteadyTime begin =
      SteadyNow() - absl::ToChronoNanoseconds(AttentionWarnings::kBudget);
  const auto count = [&](std::chrono::seconds later) {
    return warnings.Of(*line.snapshot(), Interrupt(), begin + later).size();
  };
  using std::chrono::seconds;
  EXPECT_EQ(count(seconds(0)), 0u);
  EXPECT_EQ(count(seconds(59)), 0u);
  ASSERT_OK(line.Upsert(items, ""));
  EXPECT_EQ(count(seconds(59)), 0u);
  // However slow the machine is, it is found in time.
  EXPECT_EQ(count(seconds(7200)), 1u);

  // A caller who has less time than that leaves nothing behind.
  AttentionWarnings others;
  const Interrupt over = {.deadline = begin};
  EXPECT_THAT(others.Of(*line.snapshot(), over, SteadyNow()), IsEmpty());
  EXPECT_EQ(
      others.Of(*line.snapshot(), Interrupt(), SteadyAfter(absl::Hours(1)))
          .size(),
      1u);
}

// Else who polls with less time than they take would get no reply, and each
// poll would take a thread for as long.
TEST_F(ServerTest, WarningsLeaveACallerHalfOfItsTime) {
  CatalogSchema schema;
  schema.key_fields = {{.name = "k", .dim = 1}};
  ASSERT_OK_AND_ASSIGN(const auto created,
                       catalogs_->Create("line", schema, {}));
  std::vector<Item> items(100);
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].id = ItemId(absl::StrCat(i));
    items[i].keys = {{0}};
  }
  ASSERT_OK(created.catalog->Upsert(items, ""));
  AttentionWarnings warnings;
  const auto count = [&](const Interrupt& interrupt, SteadyTime now) {
    return warnings.Of(*created.catalog->snapshot(), interrupt, now).size();
  };
  constexpr std::chrono::milliseconds kHalf{400};
  // Half of the time is over before anything is found. On a slow machine all
  // of it is, which leaves nothing behind: another try.
  SteadyTime begin;
  do {
    begin = SteadyNow() - kHalf;
    EXPECT_EQ(count({.deadline = begin + 2 * kHalf}, begin), 0u);
  } while (SteadyNow() >= begin + 2 * kHalf);
  // Who has as much does not try again.
  const SteadyTime later = begin + std::chrono::seconds(30);
  EXPECT_EQ(count({.deadline = later + 2 * kHalf}, later), 0u);
  EXPECT_EQ(count(Interrupt(), later), 1u);
}

TEST_F(ServerTest, WarningsOfManyCatalogsStandBesideOneThatIsFoundAnew) {
  CatalogSchema schema;
  schema.key_fields = {{.name = "k", .dim = 1}};
  ASSERT_OK_AND_ASSIGN(const auto created,
                       catalogs_->Create("line", schema, {}));
  std::vector<Item> items(20);
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].id = ItemId(absl::StrCat(i));
    items[i].keys = {{0}};
  }
  ASSERT_OK(created.catalog->Upsert(items, ""));
  AttentionWarnings warnings;
  Snapshot snapshot = *created.catalog->snapshot();
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
  // Who has no time is told what is known.
  const Interrupt over = {.deadline = SteadyNow()};
  for (int i = 0; i < kCatalogs; ++i) {
    snapshot.catalog_uid = absl::StrCat(i);
    EXPECT_EQ(warnings.Of(snapshot, over, later).size(), 1u) << i;
  }
}

// Else descriptions of several large catalogs would keep all threads that read.
TEST_F(ServerTest, WarningsOfOneCatalogAtATimeAreFound) {
  CatalogSchema schema;
  schema.key_fields = {{.name = "k", .dim = 1}};
  ASSERT_OK_AND_ASSIGN(const auto created,
                       catalogs_->Create("line", schema, {}));
  std::vector<Item> items(4000);
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].id = ItemId(absl::StrCat(i));
    items[i].keys = {{0}};
  }
  ASSERT_OK(created.catalog->Upsert(items, ""));
  AttentionWarnings warnings;
  const SteadyTime in_time = SteadyAfter(absl::Hours(1));
  // Each of a catalog of its own, until one meets another's.
  std::atomic<bool> met = false;
  const SteadyTime give_up = SteadyAfter(absl::Seconds(20));
  const auto describe = [&](const std::string& name) {
    Snapshot snapshot = *created.catalog->snapshot();
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
  CatalogSchema schema;
  schema.key_fields = {{.name = "k", .dim = 1}};
  ASSERT_OK_AND_ASSIGN(const auto created,
                       catalogs_->Create("line", schema, {}));
  LiveCatalog& line = *created.catalog;
  const auto write = [&](std::size_t count, float key) {
    std::vector<Item> items(count);
    for (std::size_t i = 0; i < items.size(); ++i) {
      items[i].id = ItemId(absl::StrCat(i));
      items[i].keys = {{key * static_cast<float>(i)}};
    }
    ASSERT_OK(line.Upsert(items, ""));
  };
  AttentionWarnings warnings;
  const auto count_at = [&](SteadyTime now) {
    return warnings.Of(*line.snapshot(), Interrupt(), now).size();
  };
  write(100, 0);
  const SteadyTime in_time = SteadyAfter(absl::Hours(1));
  EXPECT_EQ(count_at(in_time), 1u);
  // Another catalog, of which nothing is found before the budget is over.
  write(120, 1000);
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
  // Of two heads that scale a component of keys and queries each.
  const auto count = [&](const std::string& name, float first, float second) {
    MultiHeadProjections heads;
    heads.head_count = 2;
    heads.query.weight = {2, 2, {first, 0, 0, second}};
    heads.key = heads.query;
    EXPECT_OK(catalogs_->models().Create(name, {heads}, {}));
    const auto circle = CreateCircle(*catalogs_, name, ScoreKind::kDot);
    EXPECT_OK(circle);
    // However slow the machine is, they are found in time.
    return AttentionWarnings()
        .Of(*(*circle)->snapshot(), Interrupt(), SteadyAfter(absl::Hours(1)))
        .size();
  };
  EXPECT_EQ(count("average", 0.01f, 0.01f), 1u);
  EXPECT_EQ(count("choice", 10, 10), 0u);
  // One that chooses is enough.
  EXPECT_EQ(count("either", 0.01f, 10), 0u);
}

// Keys go through a new model some time after the schema names it, and no write
// tells of that.
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
  // However slow the machine is, they are found in time.
  const SteadyTime now = SteadyAfter(absl::Hours(1));
  EXPECT_THAT(warnings.Of(*before, Interrupt(), now), IsEmpty());
  EXPECT_EQ(warnings.Of(after, Interrupt(), now).size(), 1u);
  // What is known of another model is not told where there is no time.
  const Interrupt over = {.deadline = SteadyNow()};
  EXPECT_EQ(warnings.Of(after, over, now).size(), 1u);
  EXPECT_THAT(warnings.Of(*before, over, now), IsEmpty());
  EXPECT_THAT(warnings.Of(*before, Interrupt(), now), IsEmpty());
}

TEST_F(ServerTest, AttendWeighsAndPools) {
  CreateShop();
  v1::AttendResponse answer;
  ASSERT_TRUE(
      Attend(Parse<v1::AttendRequest>(
                 "catalog: 'shop' query { vector { floats { values: [2, 0] } } "
                 "} result_count: 2 read_mask { paths: 'attributes.price' "
                 "paths: 'keys' }"),
             &answer)
          .ok());
  // Logits 2, 2, 0: a and c tie and break by id.
  const double z = 2 * std::exp(2.0) + 1;
  ASSERT_EQ(answer.items_size(), 2);
  EXPECT_EQ(answer.items(0).id(), "a");
  EXPECT_EQ(answer.items(1).id(), "c");
  for (const auto& item : answer.items()) {
    EXPECT_EQ(item.logit(), 2);
    EXPECT_EQ(item.similarity(), 2);
    EXPECT_NEAR(item.weight(), std::exp(2.0) / z, 1e-6);
    EXPECT_EQ(item.keys().at("k").floats().values_size(), 2);
    EXPECT_FALSE(item.has_value());
  }
  EXPECT_EQ(answer.items(0).attributes().at("price").double_value(), 1.5);
  EXPECT_EQ(answer.items(0).attributes_size(), 1);
  EXPECT_EQ(answer.items(1).attributes_size(), 0);
  EXPECT_NEAR(answer.log_partition(), std::log(z), 1e-6);
  EXPECT_EQ(answer.returned_mass().method(), v1::MASS_METHOD_EXACT);
  EXPECT_NEAR(answer.returned_mass().value(), 2 * std::exp(2.0) / z, 1e-6);
  ASSERT_EQ(answer.pooled_value().values_size(), 2);
  EXPECT_NEAR(answer.pooled_value().values(0), 2 * std::exp(2.0) / z, 1e-6);
  EXPECT_EQ(answer.pooled_value().key_as_value_count(), 3);
  EXPECT_EQ(answer.pooled_value().scope(), v1::WEIGHT_SCOPE_SHORTLIST);
  EXPECT_EQ(answer.stats().scored_count(), 3);
  EXPECT_EQ(answer.stats().eligible_count(), 3);
  EXPECT_EQ(answer.stats().item_count(), 3);
  EXPECT_TRUE(answer.stats().complete());
  EXPECT_TRUE(answer.stats().has_compute_duration());
  EXPECT_EQ(answer.key_field(), "k");
  EXPECT_EQ(answer.score_kind(), v1::SCORE_KIND_DOT);
}

TEST_F(ServerTest, HardWeightIsExactlyOne) {
  CreateShop();
  v1::AttendResponse answer;
  ASSERT_TRUE(
      Attend(Parse<v1::AttendRequest>(
                 "catalog: 'shop' query { vector { floats { values: [0.1, 0.3] "
                 "} } } select_kind: SELECT_KIND_HARD temperature: 3"),
             &answer)
          .ok());
  ASSERT_EQ(answer.items_size(), 1);
  EXPECT_EQ(answer.items(0).id(), "c");
  EXPECT_EQ(answer.items(0).weight(), 1.0);
}

TEST_F(ServerTest, BatchKeepsAGoodAnswerBesideABadRequest) {
  CreateShop();
  const auto request = Parse<v1::BatchAttendRequest>(R"pb(
    catalog: "shop"
    requests { query { vector { floats { values: [ 1, 0 ] } } } }
    requests {
      query { vector { floats { values: [ 1, 0 ] } } }
      temperature: 0
    }
    requests { query { examples { examples { id: "nope" } } } }
    requests { catalog: "other" }
    requests {
      catalog: "shop"
      query { examples { examples { id: "a" } } }
    }
  )pb");
  grpc::ClientContext context;
  v1::BatchAttendResponse response;
  ASSERT_TRUE(attention_stub_->BatchAttend(&context, request, &response).ok());
  ASSERT_EQ(response.results_size(), 5);
  EXPECT_EQ(response.results(0).response().items_size(), 3);
  EXPECT_EQ(response.results(1).status().code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldIn(response.results(1).status()), "temperature");
  EXPECT_EQ(response.results(2).status().code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(FieldIn(response.results(3).status()), "catalog");
  // The example itself is left out.
  EXPECT_EQ(response.results(4).response().items_size(), 2);
  // The same bytes as alone, but for the time it took and for how many.
  v1::AttendRequest alone = request.requests(0);
  alone.set_catalog("shop");
  v1::AttendResponse answer;
  ASSERT_TRUE(Attend(alone, &answer).ok());
  v1::AttendResponse batched = response.results(0).response();
  answer.mutable_stats()->clear_compute_duration();
  batched.mutable_stats()->clear_compute_duration();
  EXPECT_EQ(batched.stats().shared_query_count(), 2);
  EXPECT_EQ(answer.stats().shared_query_count(), 1);
  answer.mutable_stats()->clear_shared_query_count();
  batched.mutable_stats()->clear_shared_query_count();
  EXPECT_EQ(batched.SerializeAsString(), answer.SerializeAsString());
}

TEST_F(ServerTest, RequestIdMakesAWriteSafeToRepeat) {
  CreateShop();
  auto request = Parse<v1::BatchUpsertItemsRequest>(
      "catalog: 'shop' request_id: 'r1' items { id: 'd' keys { key: 'k' value "
      "{ floats { values: [5, 5] } } } }");
  v1::BatchUpsertItemsResponse first;
  ASSERT_TRUE(Upsert(request, &first).ok());
  EXPECT_EQ(first.inserted_count(), 1);
  v1::BatchUpsertItemsResponse second;
  ASSERT_TRUE(Upsert(request, &second).ok());
  EXPECT_EQ(second.SerializeAsString(), first.SerializeAsString());
  request.mutable_items(0)->set_id("e");
  const grpc::Status status = Upsert(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldIn(DetailsOf(status)), "request_id");
  request.set_request_id("r2");
  v1::BatchUpsertItemsResponse third;
  ASSERT_TRUE(Upsert(request, &third).ok());
  EXPECT_NE(third.state_token(), first.state_token());

  const auto remove = Parse<v1::BatchDeleteItemsRequest>(
      "catalog: 'shop' ids: 'e' ids: 'nope' request_id: 'r3'");
  for (int i = 0; i < 2; ++i) {
    grpc::ClientContext context;
    v1::BatchDeleteItemsResponse removed;
    ASSERT_TRUE(item_stub_->BatchDeleteItems(&context, remove, &removed).ok());
    EXPECT_EQ(removed.deleted_count(), 1);
    EXPECT_EQ(removed.missing_count(), 1);
  }
}

TEST_F(ServerTest, ItemsAreListedByIdInPages) {
  CreateShop();
  std::vector<std::string> ids;
  auto request = Parse<v1::ListItemsRequest>(
      "catalog: 'shop' page_size: 2 read_mask { paths: 'attributes' }");
  do {
    v1::ListItemsResponse page;
    ASSERT_TRUE(List(request, &page).ok());
    EXPECT_LE(page.items_size(), 2);
    for (const auto& item : page.items()) {
      ids.push_back(item.id());
      EXPECT_EQ(item.keys_size(), 0);
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(ids, ElementsAre("a", "b", "c"));
}

TEST_F(ServerTest, PageEndsBeforeItOutgrowsAMessage) {
  ASSERT_TRUE(Create(Parse<v1::CreateCatalogRequest>(
                         "name: 'wide' schema { key_fields { name: 'k' "
                         "dimension: 8192 } }"))
                  .ok());
  // 600 items of 32 KiB are 18.75 MiB, more than a message.
  constexpr int kCount = 600;
  const std::string key(8192 * sizeof(float), '\0');
  for (int first = 0; first < kCount; first += 100) {
    v1::BatchUpsertItemsRequest request;
    request.set_catalog("wide");
    for (int i = first; i < first + 100; ++i) {
      v1::Item* item = request.add_items();
      item->set_id(absl::StrCat(1000 + i));
      (*item->mutable_keys())["k"].set_float32_le(key);
    }
    ASSERT_TRUE(Upsert(request).ok());
  }
  // The client too takes pages of up to a whole message.
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(16 << 20);
  item_stub_ = v1::ItemService::NewStub(
      grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                grpc::InsecureChannelCredentials(), arguments));
  auto request = Parse<v1::ListItemsRequest>("catalog: 'wide' page_size: 1000");
  int count = 0;
  int page_count = 0;
  do {
    v1::ListItemsResponse page;
    const grpc::Status status = List(request, &page);
    ASSERT_TRUE(status.ok()) << status.error_message();
    for (const auto& item : page.items()) {
      EXPECT_EQ(item.id(), absl::StrCat(1000 + count++));
    }
    request.set_page_token(page.next_page_token());
    ++page_count;
  } while (!request.page_token().empty());
  EXPECT_EQ(count, kCount);
  EXPECT_EQ(page_count, 2);
}

class ImportTest : public ServerFixture {
 protected:
  void SetUp() override {
    ServerFixture::SetUp();
    CreateShop();
  }

  // Sends all, a reply for each, and returns the status.
  grpc::Status Import(const std::vector<v1::ImportItemsRequest>& requests) {
    grpc::ClientContext context;
    auto stream = item_stub_->ImportItems(&context);
    replies_.clear();
    for (const auto& request : requests) {
      if (!stream->Write(request)) break;
      v1::ImportItemsResponse reply;
      if (!stream->Read(&reply)) break;
      replies_.push_back(reply);
    }
    stream->WritesDone();
    return stream->Finish();
  }

  std::vector<v1::ImportItemsResponse> replies_;
};

v1::Item NewItem(const std::string& id, const std::vector<float>& key) {
  v1::Item item;
  item.set_id(id);
  auto* values = (*item.mutable_keys())["k"].mutable_floats()->mutable_values();
  values->Add(key.begin(), key.end());
  return item;
}

TEST_F(ImportTest, BadItemsInTheMiddleDoNotStopTheOthers) {
  v1::ImportItemsRequest first;
  first.set_catalog("shop");
  *first.add_items() = NewItem("i0", {1, 2});
  *first.add_items() = NewItem("i1", {1, 2, 3});  // refused by core
  *first.add_items() = NewItem("i2", {});         // refused in conversion
  *first.add_items() = NewItem("i3", {3, 4});
  v1::ImportItemsRequest second;
  *second.add_items() = NewItem("", {1, 2});
  *second.add_items() = NewItem("i5", {5, 6});
  ASSERT_TRUE(Import({first, second}).ok());
  ASSERT_EQ(replies_.size(), 2u);
  EXPECT_EQ(replies_[0].acknowledged_count(), 4);
  EXPECT_EQ(replies_[0].stored_count(), 2);
  ASSERT_EQ(replies_[0].failures_size(), 2);
  std::vector<std::string> failed;
  for (const auto& failure : replies_[0].failures()) {
    failed.push_back(absl::StrCat(failure.item_index(), " ", failure.id(), " ",
                                  FieldIn(failure.status())));
    EXPECT_EQ(failure.status().code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  EXPECT_THAT(failed,
              ElementsAre("1 i1 keys[k]", "2 i2 keys[k].floats.values"));
  EXPECT_EQ(replies_[1].acknowledged_count(), 6);
  EXPECT_EQ(replies_[1].stored_count(), 3);
  ASSERT_EQ(replies_[1].failures_size(), 1);
  EXPECT_EQ(replies_[1].failures(0).item_index(), 4);
  EXPECT_EQ(FieldIn(replies_[1].failures(0).status()), "id");
  EXPECT_NE(replies_[0].state_token(), replies_[1].state_token());

  v1::ListItemsResponse page;
  ASSERT_TRUE(List(Parse<v1::ListItemsRequest>("catalog: 'shop'"), &page).ok());
  std::vector<std::string> ids;
  for (const auto& item : page.items()) ids.push_back(item.id());
  EXPECT_THAT(ids, ElementsAre("a", "b", "c", "i0", "i3", "i5"));
}

TEST_F(ImportTest, StreamWithoutMessagesNamesNoCatalog) {
  EXPECT_EQ(Import({}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(replies_, ::testing::SizeIs(0));
}

TEST_F(ImportTest, FirstMessageNamesTheCatalogAndNoOther) {
  v1::ImportItemsRequest message;
  *message.add_items() = NewItem("i0", {1, 2});
  grpc::Status status = Import({message});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldIn(DetailsOf(status)), "catalog");
  message.set_catalog("none");
  EXPECT_EQ(Import({message}).error_code(), grpc::StatusCode::NOT_FOUND);
  message.set_catalog("shop");
  status = Import({message, message});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldIn(DetailsOf(status)), "catalog");
  // What the first message brought was acknowledged and stays.
  ASSERT_EQ(replies_.size(), 1u);
  EXPECT_EQ(replies_[0].stored_count(), 1);
}

TEST_F(ImportTest, MessageOfTooManyItemsEndsTheStream) {
  v1::ImportItemsRequest small;
  small.set_catalog("shop");
  *small.add_items() = NewItem("i0", {1, 2});
  v1::ImportItemsRequest large;
  for (int i = 0; i <= kMaxImportBatchSize; ++i) {
    *large.add_items() = NewItem(absl::StrCat("l", i), {1, 2});
  }
  const grpc::Status status = Import({small, large});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonIn(DetailsOf(status)), "OVER_LIMIT");
  ASSERT_EQ(replies_.size(), 1u);
  EXPECT_EQ(catalogs_->Get("shop").value()->snapshot()->item_count(), 4);
  large.mutable_items()->RemoveLast();
  large.set_catalog("shop");
  EXPECT_TRUE(Import({large}).ok());
  EXPECT_EQ(replies_[0].stored_count(), kMaxImportBatchSize);
}

TEST_F(ImportTest, WritesAheadAreAllAcknowledgedInOrder) {
  // The client writes all before it reads: flow control holds it, not memory.
  constexpr int kMessageCount = 200;
  grpc::ClientContext context;
  auto stream = item_stub_->ImportItems(&context);
  std::thread writer([&] {
    for (int i = 0; i < kMessageCount; ++i) {
      v1::ImportItemsRequest request;
      if (i == 0) request.set_catalog("shop");
      *request.add_items() = NewItem(absl::StrCat("w", i), {1, 2});
      EXPECT_TRUE(stream->Write(request));
    }
    stream->WritesDone();
  });
  v1::ImportItemsResponse reply;
  int count = 0;
  while (stream->Read(&reply)) EXPECT_EQ(reply.acknowledged_count(), ++count);
  writer.join();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(count, kMessageCount);
}

class FullQueueTest : public ImportTest {
 protected:
  void SetUp() override {
    options_.max_waiting_count = 1;
    ImportTest::SetUp();
  }
};

TEST_F(FullQueueTest, AnImportThatWasBegunGoesOn) {
  grpc::ClientContext context;
  auto stream = item_stub_->ImportItems(&context);
  v1::ImportItemsRequest request;
  request.set_catalog("shop");
  ASSERT_TRUE(stream->Write(request));
  v1::ImportItemsResponse reply;
  ASSERT_TRUE(stream->Read(&reply));

  // Its turn ends a little after its reply.
  ASSERT_TRUE(AwaitGauge("attendant_busy_workers", "write", 0));
  // As many writes of the catalog have their turns as may, and as many wait.
  ASSERT_OK(ArmFailPoint("log.before_sync=wait"));
  const absl::Cleanup disarm = [] { ArmFailPoint("").IgnoreError(); };
  const auto write = [&] {
    v1::BatchUpsertItemsRequest upsert;
    upsert.set_catalog("shop");
    *upsert.add_items() = NewItem("other", {1, 2});
    return Upsert(upsert).error_code();
  };
  std::vector<std::thread> writers;
  for (int i = 0; i < 9; ++i) {
    writers.emplace_back([&] { EXPECT_EQ(write(), grpc::StatusCode::OK); });
    EXPECT_TRUE(
        AwaitGauge("attendant_busy_workers", "write", std::min(i + 1, 8)));
  }
  EXPECT_TRUE(AwaitGauge("attendant_queue_depth", "write", 1));
  EXPECT_EQ(write(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  request.clear_catalog();
  *request.add_items() = NewItem("own", {1, 2});
  EXPECT_TRUE(stream->Write(request));
  EXPECT_TRUE(AwaitGauge("attendant_queue_depth", "write", 2));
  EXPECT_OK(ArmFailPoint(""));
  EXPECT_TRUE(stream->Read(&reply));
  EXPECT_EQ(reply.stored_count(), 1);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  for (std::thread& writer : writers) writer.join();
}

TEST_F(ImportTest, CatalogDeletedMeanwhileEndsTheStream) {
  grpc::ClientContext context;
  auto stream = item_stub_->ImportItems(&context);
  v1::ImportItemsRequest request;
  request.set_catalog("shop");
  ASSERT_TRUE(stream->Write(request));
  v1::ImportItemsResponse reply;
  ASSERT_TRUE(stream->Read(&reply));
  ASSERT_OK(catalogs_->Delete("shop"));
  request.clear_catalog();
  *request.add_items() = NewItem("late", {1, 2});
  stream->Write(request);
  EXPECT_FALSE(stream->Read(&reply));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace attendant
