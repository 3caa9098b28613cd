// Tests of the client against a small server in this process.
#include "client/api/client.h"

#include <gmock/gmock.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/api/advice.h"
#include "client/api/grpc_status.h"
#include "client/api/importer.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "tests/client/temporary_file.h"
#include "tests/support/silent_listener.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_authority.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Not;

// Fails the first `failure_count` calls: as Unavailable or, after PushBack,
// with the delay after which to retry, or with the advice not to.
class Flaky {
 public:
  explicit Flaky(int failure_count) : failures_left_(failure_count) {}

  grpc::Status Call(grpc::ServerContext* context) {
    MutexLock lock(&mutex_);
    ++call_count_;
    if (failures_left_ == 0) return grpc::Status::OK;
    --failures_left_;
    if (push_back_.empty()) return {grpc::StatusCode::UNAVAILABLE, "draining"};
    context->AddTrailingMetadata("grpc-retry-pushback-ms", push_back_);
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, "no room"};
  }
  // Makes failures RESOURCE_EXHAUSTED from now on, with this push-back in
  // milliseconds; a negative one forbids retries.
  void PushBack(const std::string& push_back) {
    MutexLock lock(&mutex_);
    push_back_ = push_back;
  }
  // Fails the next `failure_count` calls.
  void Fail(int failure_count) {
    MutexLock lock(&mutex_);
    failures_left_ = failure_count;
  }
  int call_count() {
    MutexLock lock(&mutex_);
    return call_count_;
  }

 private:
  Mutex mutex_;
  int failures_left_ ABSL_GUARDED_BY(mutex_);
  std::string push_back_ ABSL_GUARDED_BY(mutex_);
  int call_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

class FakeCatalogs : public v1::CatalogService::Service {
 public:
  explicit FakeCatalogs(Flaky& flaky) : flaky_(flaky) {}
  grpc::Status GetCatalog(grpc::ServerContext* context,
                          const v1::GetCatalogRequest*,
                          v1::GetCatalogResponse*) override {
    return flaky_.Call(context);
  }
  grpc::Status DeleteCatalog(grpc::ServerContext* context,
                             const v1::DeleteCatalogRequest*,
                             v1::DeleteCatalogResponse*) override {
    return flaky_.Call(context);
  }

 private:
  Flaky& flaky_;
};

class FakeModels : public v1::ModelService::Service {
 public:
  explicit FakeModels(Flaky& flaky) : flaky_(flaky) {}
  grpc::Status GetModel(grpc::ServerContext* context,
                        const v1::GetModelRequest*,
                        v1::GetModelResponse*) override {
    return flaky_.Call(context);
  }
  grpc::Status CreateModel(grpc::ServerContext* context,
                           const v1::CreateModelRequest*,
                           v1::CreateModelResponse*) override {
    return flaky_.Call(context);
  }

 private:
  Flaky& flaky_;
};

class FakeAttention : public v1::AttentionService::Service {
 public:
  grpc::Status Attend(grpc::ServerContext* context,
                      const v1::AttendRequest* request,
                      v1::AttendResponse* response) override {
    if (request->catalog() == "slow") {
      while (!context->IsCancelled()) sched_yield();
      return grpc::Status::CANCELLED;
    }
    if (request->catalog() == "none") {
      return {grpc::StatusCode::NOT_FOUND, "no catalog none"};
    }
    response->set_key_field(request->key_field());
    return grpc::Status::OK;
  }
};

// Acknowledges each message, refuses items named "bad", and ends the stream
// where it is told to.
class FakeItems : public v1::ItemService::Service {
 public:
  explicit FakeItems(Flaky& flaky) : flaky_(flaky) {}

  grpc::Status BatchUpsertItems(grpc::ServerContext* context,
                                const v1::BatchUpsertItemsRequest* request,
                                v1::BatchUpsertItemsResponse*) override {
    {
      MutexLock lock(&mutex_);
      request_ids_.push_back(request->request_id());
    }
    return flaky_.Call(context);
  }

  grpc::Status ImportItems(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::ImportItemsResponse, v1::ImportItemsRequest>*
          stream) override {
    v1::ImportItemsRequest request;
    std::int64_t item_count = 0;
    std::int64_t stored_count = 0;
    std::string catalog;
    while (stream->Read(&request)) {
      if (catalog.empty()) {
        catalog = request.catalog();
      } else if (!request.catalog().empty()) {
        return {grpc::StatusCode::INVALID_ARGUMENT, "catalog named twice"};
      }
      {
        MutexLock lock(&mutex_);
        message_sizes_.push_back(request.items_size());
      }
      if (catalog == "none") {
        return {grpc::StatusCode::NOT_FOUND, "no catalog none"};
      }
      if (catalog == "silent") {
        while (!context->IsCancelled()) sched_yield();
        return grpc::Status::CANCELLED;
      }
      v1::ImportItemsResponse response;
      for (const v1::Item& item : request.items()) {
        const std::int64_t index = item_count++;
        if (item.id() != "bad") {
          ++stored_count;
          continue;
        }
        auto* failure = response.add_failures();
        failure->set_item_index(index);
        failure->set_id(item.id());
        failure->mutable_status()->set_code(3);
        failure->mutable_status()->set_message("no good");
      }
      response.set_acknowledged_count(item_count);
      response.set_stored_count(stored_count);
      response.set_state_token(absl::StrCat("t", item_count));
      stream->Write(response);
      if (catalog == "short") return grpc::Status::OK;
    }
    return grpc::Status::OK;
  }

  std::vector<std::string> request_ids() {
    MutexLock lock(&mutex_);
    return request_ids_;
  }
  std::vector<int> message_sizes() {
    MutexLock lock(&mutex_);
    return message_sizes_;
  }

 private:
  Flaky& flaky_;
  Mutex mutex_;
  std::vector<std::string> request_ids_ ABSL_GUARDED_BY(mutex_);
  std::vector<int> message_sizes_ ABSL_GUARDED_BY(mutex_);
};

class ClientTest : public ::testing::Test {
 protected:
  explicit ClientTest(int max_message_bytes = 16 << 20)
      : flaky_(2), catalogs_(flaky_), models_(flaky_), items_(flaky_) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.SetMaxReceiveMessageSize(max_message_bytes);
    builder.RegisterService(&catalogs_);
    builder.RegisterService(&models_);
    builder.RegisterService(&items_);
    builder.RegisterService(&attention_);
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
    auto client = Client::Connect({.server = address_});
    EXPECT_OK(client);
    client_ = *std::move(client);
  }
  ~ClientTest() override {
    client_.reset();
    server_->Shutdown();
  }

  static v1::Item Item(const std::string& id) {
    v1::Item item;
    item.set_id(id);
    return item;
  }

  Flaky flaky_;
  FakeCatalogs catalogs_;
  FakeModels models_;
  FakeItems items_;
  FakeAttention attention_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  std::unique_ptr<Client> client_;
};

TEST_F(ClientTest, RetriesReads) {
  EXPECT_OK(client_->GetCatalog({}));
  EXPECT_EQ(flaky_.call_count(), 3);
}

TEST_F(ClientTest, RetriesItemWritesUnderOneRequestId) {
  v1::BatchUpsertItemsRequest request;
  *request.add_items() = Item("a");
  EXPECT_OK(client_->BatchUpsertItems(request));
  EXPECT_OK(client_->BatchUpsertItems(request));
  const auto ids = items_.request_ids();
  ASSERT_EQ(ids.size(), 4U);
  EXPECT_EQ(ids[0].size(), 32U);
  EXPECT_EQ(ids[1], ids[0]);
  EXPECT_EQ(ids[2], ids[0]);
  EXPECT_NE(ids[3], ids[0]);
}

TEST_F(ClientTest, KeepsTheCallersRequestId) {
  v1::BatchUpsertItemsRequest request;
  request.set_request_id("mine");
  EXPECT_OK(client_->BatchUpsertItems(request));
  EXPECT_THAT(items_.request_ids(), ElementsAre("mine", "mine", "mine"));
}

TEST_F(ClientTest, RetriesAWriteOfMegabytes) {
  v1::BatchUpsertItemsRequest request;
  v1::Item item = Item("a");
  item.mutable_value()->set_float32_le(std::string(8 << 20, '\0'));
  *request.add_items() = item;
  EXPECT_OK(client_->BatchUpsertItems(request));
  EXPECT_EQ(flaky_.call_count(), 3);
}

TEST_F(ClientTest, RetriesReadsOfModelsAndNotTheirWrites) {
  EXPECT_OK(client_->GetModel({}));
  EXPECT_EQ(flaky_.call_count(), 3);
  flaky_.Fail(1);
  EXPECT_THAT(client_->CreateModel({}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("draining")));
  EXPECT_EQ(flaky_.call_count(), 4);
}

TEST_F(ClientTest, DoesNotRetryCatalogWrites) {
  EXPECT_THAT(client_->DeleteCatalog({}),
              StatusIs(absl::StatusCode::kUnavailable, "draining"));
  EXPECT_EQ(flaky_.call_count(), 1);
}

TEST_F(ClientTest, ComesBackWhenAServerWithoutRoomSaysSo) {
  flaky_.PushBack("300");
  const SteadyTime start = SteadyNow();
  EXPECT_OK(client_->GetCatalog({}));
  EXPECT_EQ(flaky_.call_count(), 3);
  // gRPC rounds to whole milliseconds.
  EXPECT_GE(TimeSince(start), absl::Milliseconds(598));
}

TEST_F(ClientTest, StaysAwayWhenTold) {
  flaky_.PushBack("-1");
  EXPECT_THAT(client_->GetCatalog({}),
              StatusIs(absl::StatusCode::kResourceExhausted, "no room"));
  EXPECT_EQ(flaky_.call_count(), 1);
}

// If most calls fail, retries would make up most of the load.
TEST_F(ClientTest, RetriesNoMoreWhereHardlyAnythingSucceeds) {
  flaky_.PushBack("0");
  constexpr int kCalls = 200;
  flaky_.Fail(1 << 20);
  for (int i = 0; i < kCalls; ++i) {
    EXPECT_THAT(client_->GetCatalog({}),
                StatusIs(absl::StatusCode::kResourceExhausted, "no room"));
  }
  EXPECT_LE(flaky_.call_count(), kCalls + 50);
}

TEST_F(ClientTest, GivesUpAtTheDeadline) {
  v1::AttendRequest request;
  request.set_catalog("slow");
  EXPECT_THAT(client_->Attend(request, absl::Milliseconds(50)),
              StatusIs(absl::StatusCode::kDeadlineExceeded, testing::_));
}

TEST_F(ClientTest, AttendsWithoutAThread) {
  const auto attend = [&](const std::string& catalog) {
    v1::AttendRequest request;
    request.set_catalog(catalog);
    request.set_key_field("text");
    std::promise<absl::StatusOr<v1::AttendResponse>> promise;
    client_->AttendAsync(request, [&](absl::StatusOr<v1::AttendResponse> r) {
      promise.set_value(std::move(r));
    });
    return promise.get_future().get();
  };
  const auto answer = attend("shop");
  ASSERT_OK(answer);
  EXPECT_EQ(answer->key_field(), "text");
  EXPECT_THAT(attend("none"),
              StatusIs(absl::StatusCode::kNotFound, "no catalog none"));
}

// The last owner of a channel must not be one of gRPC's threads; the address
// sanitizer would report it.
TEST_F(ClientTest, MayGoAsSoonAsItsLastCallIsDone) {
  for (int i = 0; i < 50; ++i) {
    ASSERT_OK_AND_ASSIGN(auto client, Client::Connect({.server = address_}));
    std::promise<absl::Status> promise;
    client->AttendAsync({}, [&](const auto& response) {
      promise.set_value(response.status());
    });
    EXPECT_OK(promise.get_future().get());
    ASSERT_OK(client->StartImport("shop", {})->Add(Item("a")));
    EXPECT_OK(client->StartImport("shop", {})->Finish());
  }
}

TEST_F(ClientTest, SaysWhereNoServerAnswers) {
  server_->Shutdown();
  EXPECT_THAT(Client::Connect({.server = address_}),
              StatusIs(absl::StatusCode::kUnavailable,
                       absl::StrCat("no server answers at ", address_)));
  EXPECT_THAT(Client::Connect({.server = address_,
                               .deadline = absl::Milliseconds(100),
                               .wait_for_ready = true}),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr(address_), HasSubstr("100ms"))));
}

// A stopped process behaves like this: the kernel accepts the connection.
TEST_F(ClientTest, SaysWhereSomethingListensAndSaysNothing) {
  const SilentListener listener;
  // The first deadline passes before gRPC begins to connect.
  for (const char* const deadline : {"1us", "200ms"}) {
    Client::Options options = {.server = listener.address()};
    ASSERT_TRUE(absl::ParseDuration(deadline, &options.deadline));
    const absl::Status status = Client::Connect(options).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                                 AllOf(HasSubstr(listener.address()),
                                       HasSubstr(deadline))));
    EXPECT_EQ(ReasonOf(status), kSilent);
  }
}

// The test's server has no TLS.
TEST_F(ClientTest, AServerThatIsNotTrustedMayBeWithoutTls) {
  const TestAuthority authority("ours");
  const TemporaryFile ca("ca.pem", authority.certificate());
  const absl::Status status =
      Client::Connect({.server = address_, .security = {.ca_path = ca.path()}})
          .status();
  EXPECT_EQ(ReasonOf(status), kNotTrusted);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("may be without TLS"),
                                      HasSubstr("certificate have expired")));
  EXPECT_THAT(AdviceOn(status), HasSubstr("a server without TLS no --ca"));
}

TEST_F(ClientTest, RefusesADeadlineOfNothing) {
  EXPECT_THAT(
      Client::Connect({.server = address_, .deadline = absl::ZeroDuration()}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("deadline")));
}

TEST_F(ClientTest, ImportsInBatchesAndCollectsFailures) {
  ImportOptions options;
  options.batch_item_count = 10;
  options.max_messages_in_flight = 2;
  const auto importer = client_->StartImport("shop", options);
  std::vector<v1::ImportFailure> failures;
  const auto take = [&] {
    for (auto& failure : importer->TakeFailures()) failures.push_back(failure);
  };
  for (int i = 0; i < 105; ++i) {
    ASSERT_OK(importer->Add(Item(i == 3 || i == 104 ? "bad" : "good")));
    take();
  }
  ASSERT_OK(importer->Finish());
  take();
  const ImportProgress progress = importer->progress();
  EXPECT_EQ(progress.added_count, 105);
  EXPECT_EQ(progress.acknowledged_count, 105);
  EXPECT_EQ(progress.stored_count, 103);
  EXPECT_EQ(progress.refused_count, 2);
  EXPECT_EQ(progress.state_token, "t105");
  ASSERT_EQ(failures.size(), 2U);
  EXPECT_EQ(failures[0].item_index(), 3);
  EXPECT_EQ(failures[1].item_index(), 104);
  EXPECT_EQ(failures[1].status().message(), "no good");
  EXPECT_THAT(items_.message_sizes(),
              ElementsAre(10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 5));
}

TEST_F(ClientTest, ImportMessagesStayBelowTheirBytes) {
  ImportOptions options;
  options.batch_bytes = 1000;
  const auto importer = client_->StartImport("shop", options);
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(importer->Add(Item(std::string(300, 'x'))));
  }
  ASSERT_OK(importer->Finish());
  EXPECT_THAT(items_.message_sizes(), ElementsAre(3, 3, 3, 1));
}

// A client of a server with the lowest possible message size limit.
class SmallMessagesTest : public ClientTest {
 protected:
  SmallMessagesTest() : ClientTest(64 << 10) {}

  static v1::Item ItemOf(const std::string& id, std::size_t bytes) {
    v1::Item item = Item(id);
    item.set_opaque_value(std::string(bytes, 'x'));
    return item;
  }
};

TEST_F(SmallMessagesTest, ImportsAreSentInSmallerOnes) {
  const auto importer = client_->StartImport("shop", {.batch_item_count = 50});
  // Messages of 50 small and of 50 large items alternate.
  for (int i = 0; i < 300; ++i) {
    ASSERT_OK(importer->Add(
        ItemOf(i % 70 == 0 ? "bad" : "good", i / 50 % 2 == 0 ? 10 : 3000)));
  }
  ASSERT_OK(importer->Finish());
  const ImportProgress progress = importer->progress();
  EXPECT_EQ(progress.added_count, 300);
  EXPECT_EQ(progress.acknowledged_count, 300);
  EXPECT_EQ(progress.stored_count, 295);
  EXPECT_EQ(progress.refused_count, 5);
  std::vector<std::int64_t> refused;
  for (const auto& failure : importer->TakeFailures()) {
    refused.push_back(failure.item_index());
  }
  EXPECT_THAT(refused, ElementsAre(0, 70, 140, 210, 280));
  // No item was sent twice.
  const std::vector<int> sizes = items_.message_sizes();
  EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), 0), 300);
}

TEST_F(SmallMessagesTest, AnItemThatIsTooLargeIsNamed) {
  const auto importer = client_->StartImport("shop", {});
  ASSERT_OK(importer->Add(ItemOf("small", 10)));
  ASSERT_OK(importer->Add(ItemOf("large", 70'000)));
  EXPECT_THAT(importer->Finish(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("item 'large' takes more than"),
                             HasSubstr("--max-message-bytes"))));
  EXPECT_EQ(importer->progress().stored_count, 1);
}

TEST_F(SmallMessagesTest, AWriteThatIsTooLargeHasItsReason) {
  flaky_.Fail(0);
  v1::BatchUpsertItemsRequest request;
  *request.add_items() = ItemOf("large", 70'000);
  EXPECT_EQ(ReasonOf(client_->BatchUpsertItems(request).status()),
            kMessageTooLarge);
}

// gRPC's retries of a refused message take time, and halving a batch may cause
// many of them.
TEST_F(SmallMessagesTest, WhatTheServerTakesIsAskedOnce) {
  flaky_.Fail(0);
  v1::BatchUpsertItemsRequest request;
  *request.add_items() = ItemOf("large", 140'000);
  ASSERT_EQ(ReasonOf(client_->BatchUpsertItems(request).status()),
            kMessageTooLarge);
  *request.mutable_items(0) = ItemOf("half", 70'000);
  // The deadline is too short for the server to be asked.
  EXPECT_THAT(client_->BatchUpsertItems(request, absl::Nanoseconds(1)),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("--max-message-bytes"),
                             HasSubstr(" vs. 65536)"))));
  *request.mutable_items(0) = ItemOf("small", 30'000);
  EXPECT_OK(client_->BatchUpsertItems(request));
}

TEST_F(ClientTest, AnEmptyImportStillNamesItsCatalog) {
  EXPECT_OK(client_->StartImport("shop", {})->Finish());
  EXPECT_THAT(items_.message_sizes(), ElementsAre(0));
  EXPECT_THAT(client_->StartImport("none", {})->Finish(),
              StatusIs(absl::StatusCode::kNotFound, "no catalog none"));
}

TEST_F(ClientTest, AnImportReportsTheServersRefusal) {
  ImportOptions options;
  options.batch_item_count = 1;
  options.max_messages_in_flight = 1;
  const auto importer = client_->StartImport("none", options);
  absl::Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) {
    status = importer->Add(Item("a"));
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound, "no catalog none"));
  EXPECT_THAT(importer->Finish(),
              StatusIs(absl::StatusCode::kNotFound, "no catalog none"));
}

TEST_F(ClientTest, AnImportCutShortIsNoSuccess) {
  ImportOptions options;
  options.batch_item_count = 1;
  options.max_messages_in_flight = 1;
  const auto importer = client_->StartImport("short", options);
  absl::Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) {
    status = importer->Add(Item("a"));
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal,
                               HasSubstr("ended the import after 1 of")));
}

TEST_F(ClientTest, AnImportThatHearsNothingIsGivenUp) {
  ImportOptions options;
  options.stall_timeout = absl::Milliseconds(50);
  const auto importer = client_->StartImport("silent", options);
  ASSERT_OK(importer->Add(Item("a")));
  EXPECT_THAT(importer->Finish(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("not acknowledged items for 50ms")));
}

TEST_F(ClientTest, AnImportLeftAloneIsCancelled) {
  const auto importer = client_->StartImport("shop", {});
  ASSERT_OK(importer->Add(Item("a")));
}

}  // namespace
}  // namespace attendant
