// The life of a server: its built-in services, its shutdown, and what it
// refuses.
#include "service/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "service/calls/methods.h"
#include "tests/service/raw_call.h"
#include "tests/service/server_fixture.h"
#include "tests/support/parse_proto.h"

namespace attendant {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Optional;

using ServerTest = ServerFixture;

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
  // A name may be watched before it is known.
  ASSERT_THAT(watch.Read(), Optional(kServing));
  CreateShop();
  grpc::ClientContext context;
  const auto stream = item_stub_->ImportItems(&context);
  ASSERT_TRUE(stream->Write(Parse<v1::ImportItemsRequest>("catalog: 'shop'")));
  v1::ImportItemsResponse response;
  ASSERT_TRUE(stream->Read(&response));
  std::thread stopper([this] { server_->Shutdown(absl::Seconds(60)); });
  EXPECT_THAT(watch.Read(), Optional(kNotServing));
  // Shutdown waits for the stream. New calls are answered for a moment, and
  // then refused.
  grpc::StatusCode code;
  const SteadyTime give_up = SteadyAfter(absl::Seconds(30));
  do {
    code = List(Parse<v1::ListItemsRequest>("catalog: 'shop'")).error_code();
    ASSERT_THAT(code,
                AnyOf(grpc::StatusCode::OK, grpc::StatusCode::UNAVAILABLE));
  } while (code != grpc::StatusCode::UNAVAILABLE && SteadyNow() < give_up);
  EXPECT_EQ(code, grpc::StatusCode::UNAVAILABLE);
  // A stream that has not sent its first message.
  grpc::ClientContext late_context;
  const auto late = item_stub_->ImportItems(&late_context);
  EXPECT_FALSE(late->Read(&response));
  EXPECT_EQ(late->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  // The older stream ends with its next message, which is not stored, and then
  // the server ends.
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
  // The stream stays open, so that the shutdown ends only because the server
  // ends it.
  server_->Shutdown(absl::Milliseconds(50));
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// gRPC's own shutdown cancels calls that arrive during it, and clients do not
// retry those.
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

// They are synchronous, and gRPC reports them differently from our calls.
TEST_F(ServerTest, CallsOfReflectionThatAreDoneAreNoneThatWereNotSent) {
  server_.reset();
  options_.transport.max_stream_count = 16;
  ASSERT_OK_AND_ASSIGN(server_, Server::Start(options_, catalogs_.get()));
  channel_ = NewChannel();
  // More than four connections may have at once, both the first time, when
  // everything is forgotten, and the second time; and twice what one connection
  // may have.
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
    // Compresses well: it would be small on the wire and large in memory.
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

}  // namespace
}  // namespace attendant
