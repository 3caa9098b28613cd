// Stored snapshots through a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "attendant/v1/snapshot_service.grpc.pb.h"
#include "core/base/fail_point.h"
#include "tests/service/rpc_details.h"
#include "tests/service/server_fixture.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SnapshotServiceTest : public ServerFixture {
 protected:
  void SetUp() override {
    ServerFixture::SetUp();
    CreateShop();
    snapshot_stub_ = v1::SnapshotService::NewStub(channel_);
  }

  template <typename Response>
  static grpc::Status ReadLast(
      std::unique_ptr<grpc::ClientReader<Response>> stream, Response* last) {
    Response response;
    while (stream->Read(&response)) *last = response;
    return stream->Finish();
  }
  grpc::Status Take(const std::string& catalog, const std::string& name,
                    v1::StoredSnapshot* snapshot = nullptr) {
    grpc::ClientContext context;
    v1::CreateSnapshotRequest request;
    request.set_catalog(catalog);
    request.set_name(name);
    v1::CreateSnapshotResponse last;
    const grpc::Status status =
        ReadLast(snapshot_stub_->CreateSnapshot(&context, request), &last);
    EXPECT_EQ(status.ok(), last.has_snapshot());
    if (snapshot != nullptr) *snapshot = last.snapshot();
    return status;
  }
  grpc::Status Verify(const std::string& catalog, const std::string& name) {
    grpc::ClientContext context;
    v1::VerifySnapshotRequest request;
    request.set_catalog(catalog);
    request.set_name(name);
    v1::VerifySnapshotResponse last;
    return ReadLast(snapshot_stub_->VerifySnapshot(&context, request), &last);
  }
  grpc::Status Restore(const std::string& catalog, const std::string& name,
                       const std::string& new_catalog,
                       v1::Catalog* restored = nullptr) {
    grpc::ClientContext context;
    v1::RestoreSnapshotRequest request;
    request.set_catalog(catalog);
    request.set_name(name);
    request.set_new_catalog(new_catalog);
    v1::RestoreSnapshotResponse last;
    const grpc::Status status =
        ReadLast(snapshot_stub_->RestoreSnapshot(&context, request), &last);
    if (restored != nullptr) *restored = last.catalog();
    return status;
  }
  grpc::Status Delete(const std::string& catalog, const std::string& name) {
    grpc::ClientContext context;
    v1::DeleteSnapshotRequest request;
    request.set_catalog(catalog);
    request.set_name(name);
    v1::DeleteSnapshotResponse response;
    return snapshot_stub_->DeleteSnapshot(&context, request, &response);
  }
  grpc::Status Export(const std::string& name, std::string* bytes) {
    grpc::ClientContext context;
    v1::ExportSnapshotRequest request;
    request.set_catalog("shop");
    request.set_name(name);
    const auto stream = snapshot_stub_->ExportSnapshot(&context, request);
    v1::ExportSnapshotResponse response;
    std::int64_t total = 0;
    while (stream->Read(&response)) {
      total += response.total_bytes();
      *bytes += response.chunk();
    }
    const grpc::Status status = stream->Finish();
    if (status.ok()) {
      EXPECT_EQ(total, static_cast<std::int64_t>(bytes->size()));
    }
    return status;
  }
  grpc::Status Import(const std::string& bytes, const std::string& catalog,
                      const std::string& name, bool cancel = false) {
    grpc::ClientContext context;
    v1::ImportSnapshotResponse response;
    const auto stream = snapshot_stub_->ImportSnapshot(&context, &response);
    constexpr std::size_t kChunk = 1000;
    for (std::size_t at = 0; at < bytes.size(); at += kChunk) {
      v1::ImportSnapshotRequest request;
      if (at == 0) {
        request.set_catalog(catalog);
        request.set_name(name);
      }
      request.set_chunk(bytes.substr(at, kChunk));
      if (!stream->Write(request)) break;
    }
    if (cancel) context.TryCancel();
    stream->WritesDone();
    return stream->Finish();
  }
  std::string ListAll(int page_size, int* damaged_count = nullptr) {
    std::string names;
    v1::ListSnapshotsRequest request;
    request.set_page_size(page_size);
    do {
      grpc::ClientContext context;
      v1::ListSnapshotsResponse page;
      EXPECT_TRUE(snapshot_stub_->ListSnapshots(&context, request, &page).ok());
      for (const v1::StoredSnapshot& snapshot : page.snapshots()) {
        names += snapshot.catalog() + "/" + snapshot.name() + " ";
      }
      if (damaged_count != nullptr) {
        *damaged_count += page.damaged_snapshots_size();
      }
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
    return names;
  }
  std::string FilesOf(const std::string& name) {
    return directory_ / ("snapshots/shop/" + name);
  }

  std::unique_ptr<v1::SnapshotService::Stub> snapshot_stub_;
};

TEST_F(SnapshotServiceTest, FromCreationToDeletion) {
  v1::StoredSnapshot snapshot;
  ASSERT_TRUE(SetAlias("window", "shop").ok());
  ASSERT_TRUE(Take("window", "s1", &snapshot).ok());
  EXPECT_EQ(snapshot.catalog(), "shop");
  EXPECT_EQ(snapshot.item_count(), 3);
  EXPECT_EQ(snapshot.sequence(), 1);
  EXPECT_GT(snapshot.size_bytes(), 0);
  EXPECT_GT(snapshot.file_count(), 3);
  ASSERT_TRUE(Take("shop", "s2").ok());
  EXPECT_EQ(ListAll(1), "shop/s1 shop/s2 ");
  EXPECT_TRUE(Verify("window", "s1").ok());
  {
    grpc::ClientContext context;
    v1::GetSnapshotRequest request;
    request.set_catalog("shop");
    request.set_name("s1");
    v1::GetSnapshotResponse response;
    ASSERT_TRUE(snapshot_stub_->GetSnapshot(&context, request, &response).ok());
    EXPECT_EQ(response.snapshot().catalog_uid(), snapshot.catalog_uid());
  }
  v1::Catalog restored;
  ASSERT_TRUE(Restore("window", "s1", "old", &restored).ok());
  EXPECT_EQ(restored.name(), "old");
  EXPECT_EQ(restored.item_count(), 3);
  v1::AttendResponse before;
  v1::AttendResponse after;
  ASSERT_TRUE(Attend(Query("shop"), &before).ok());
  ASSERT_TRUE(Attend(Query("old"), &after).ok());
  ASSERT_EQ(after.items_size(), before.items_size());
  for (int i = 0; i < before.items_size(); ++i) {
    EXPECT_EQ(after.items(i).id(), before.items(i).id());
    EXPECT_EQ(after.items(i).weight(), before.items(i).weight());
  }
  EXPECT_TRUE(Delete("shop", "s1").ok());
  EXPECT_EQ(ListAll(10), "shop/s2 ");
}

// Each name stands for two catalogs: its own, and the one that had the name
// before it became an alias.
TEST_F(SnapshotServiceTest, NoneIsDeletedInPlaceOfAnother) {
  ASSERT_TRUE(Take("shop", "s1").ok());
  ASSERT_TRUE(Restore("shop", "s1", "shop-2").ok());
  ASSERT_TRUE(Take("shop-2", "s1").ok());
  ASSERT_TRUE(DeleteCatalog("shop").ok());
  ASSERT_TRUE(SetAlias("shop", "shop-2").ok());
  const grpc::Status status = Delete("shop", "s1");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonIn(DetailsOf(status)), "SNAPSHOT_AMBIGUOUS");
  EXPECT_EQ(Delete("shop", "S 1").error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ListAll(10), "shop/s1 shop-2/s1 ");
  EXPECT_TRUE(Delete("shop-2", "s1").ok());
  EXPECT_EQ(ListAll(10), "shop/s1 ");
  EXPECT_TRUE(Delete("shop", "s1").ok());
  EXPECT_EQ(Delete("shop", "s1").error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(SnapshotServiceTest, GoesToAFileAndBack) {
  ASSERT_TRUE(Take("shop", "s1").ok());
  std::string bytes;
  ASSERT_TRUE(Export("s1", &bytes).ok());
  ASSERT_TRUE(Import(bytes, "", "s2").ok());
  ASSERT_TRUE(Import(bytes, "attic", "").ok());
  EXPECT_EQ(ListAll(10), "attic/s1 shop/s1 shop/s2 ");
  v1::Catalog restored;
  ASSERT_TRUE(Restore("attic", "s1", "old", &restored).ok());
  EXPECT_EQ(restored.item_count(), 3);

  testing::internal::CaptureStderr();
  grpc::Status status = Import(bytes.substr(0, bytes.size() / 2), "", "s3");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(ReasonIn(DetailsOf(status)), "SNAPSHOT_DAMAGED");
  // The error is the client's own, and nothing for the operator to fix.
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              Not(HasSubstr("call_failed")));
  status = Import("nothing of ours, but long enough", "", "s3");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  status = Import(bytes, "", "S 3");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldIn(DetailsOf(status)), "name");
  EXPECT_EQ(
      Import(bytes.substr(0, 2000), "", "s3", /*cancel=*/true).error_code(),
      grpc::StatusCode::CANCELLED);
  EXPECT_EQ(ListAll(10), "attic/s1 shop/s1 shop/s2 ");
  server_->Shutdown(absl::Seconds(5));
  EXPECT_TRUE(std::filesystem::is_empty(directory_ / "snapshots/.partial"));
}

TEST_F(SnapshotServiceTest, AnUploadThatIsCancelledIsNoneThatIsDone) {
  ASSERT_TRUE(Take("shop", "s1").ok());
  std::string bytes;
  ASSERT_TRUE(Export("s1", &bytes).ok());
  testing::internal::CaptureStderr();
  for (int i = 0; i < 50; ++i) {
    // In the middle of the stream, and with nothing left to send.
    const std::size_t size = i % 2 == 0 ? bytes.size() / 2 : bytes.size();
    EXPECT_EQ(
        Import(bytes.substr(0, size), "", "s2", /*cancel=*/true).error_code(),
        grpc::StatusCode::CANCELLED);
  }
  server_->Shutdown(absl::Seconds(60));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              Not(HasSubstr("call_failed")));
  EXPECT_FALSE(std::filesystem::exists(FilesOf("s2")));
  EXPECT_TRUE(std::filesystem::is_empty(directory_ / "snapshots/.partial"));
}

TEST_F(SnapshotServiceTest, WhoGoesAwayLeavesTheQueueAtOnce) {
  // Blocks both threads for long works.
  ASSERT_OK(
      ArmFailPoint("snapshot.before_manifest=wait,snapshot.before_name=wait"));
  const absl::Cleanup disarm = [] { ArmFailPoint("").IgnoreError(); };
  std::vector<std::thread> busy;
  for (const int waiting : {1, 2}) {
    busy.emplace_back([this, waiting] {
      EXPECT_TRUE(Take("shop", absl::StrCat("busy-", waiting)).ok());
    });
    while (WaitingAtFailPoints() < waiting) std::this_thread::yield();
  }

  grpc::ClientContext create_context;
  v1::CreateSnapshotRequest create;
  create.set_catalog("shop");
  const auto creation = snapshot_stub_->CreateSnapshot(&create_context, create);
  grpc::ClientContext export_context;
  v1::ExportSnapshotRequest export_request;
  export_request.set_catalog("shop");
  const auto out =
      snapshot_stub_->ExportSnapshot(&export_context, export_request);
  grpc::ClientContext in_context;
  v1::ImportSnapshotResponse imported;
  const auto in = snapshot_stub_->ImportSnapshot(&in_context, &imported);
  EXPECT_TRUE(in->Write(v1::ImportSnapshotRequest()));
  EXPECT_TRUE(AwaitGauge("attendant_queue_depth", "long_work", 3));
  for (grpc::ClientContext* context :
       {&create_context, &export_context, &in_context}) {
    context->TryCancel();
  }
  EXPECT_TRUE(AwaitGauge("attendant_queue_depth", "long_work", 0));
  EXPECT_EQ(WaitingAtFailPoints(), 2);
  EXPECT_EQ(creation->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(out->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(in->Finish().error_code(), grpc::StatusCode::CANCELLED);
  ASSERT_OK(ArmFailPoint(""));
  for (std::thread& thread : busy) thread.join();
}

TEST_F(SnapshotServiceTest, ALongCallThatStopsEarlyIsCountedAsCutShort) {
  ASSERT_TRUE(Take("shop", "s1").ok());
  ASSERT_OK(ArmFailPoint("restore.before_copy=wait"));
  const absl::Cleanup disarm = [] { ArmFailPoint("").IgnoreError(); };
  grpc::ClientContext context;
  context.AddMetadata("grpc-timeout", "2000m");
  const SteadyTime deadline = SteadyAfter(absl::Milliseconds(2000));
  v1::RestoreSnapshotRequest restore;
  restore.set_catalog("shop");
  restore.set_name("s1");
  restore.set_new_catalog("shop2");
  const auto call = snapshot_stub_->RestoreSnapshot(&context, restore);
  while (WaitingAtFailPoints() == 0 && SteadyNow() < deadline) {
    std::this_thread::yield();
  }
  ASSERT_EQ(WaitingAtFailPoints(), 1);
  // The worker sends the reply, but continues only after the deadline.
  std::this_thread::sleep_until(deadline + std::chrono::milliseconds(50));
  ASSERT_OK(ArmFailPoint(""));
  v1::RestoreSnapshotResponse progress;
  while (call->Read(&progress)) {
  }
  EXPECT_EQ(call->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  server_->Shutdown(absl::Seconds(60));
  MetricPage page;
  server_->WriteMetrics(page);
  EXPECT_TRUE(absl::StrContains(
      page.Text(),
      R"(attendant_works_total{pool="long_work",outcome="cut_short"} 1)"));
}

TEST_F(SnapshotServiceTest, AStreamIsCountedAsExpiredOrCancelled) {
  grpc::ClientContext items_context;
  grpc::ClientContext upload_context;
  // A deadline that only the server knows: no cancellation by the client
  // precedes it.
  items_context.AddMetadata("grpc-timeout", "100m");
  upload_context.AddMetadata("grpc-timeout", "100m");
  const auto items = item_stub_->ImportItems(&items_context);
  v1::ImportSnapshotResponse imported;
  const auto upload =
      snapshot_stub_->ImportSnapshot(&upload_context, &imported);
  EXPECT_EQ(items->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(upload->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);

  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::hours(1));
  const auto cancelled = item_stub_->ImportItems(&context);
  v1::ImportItemsRequest request;
  request.set_catalog("shop");
  EXPECT_TRUE(cancelled->Write(request));
  v1::ImportItemsResponse acknowledged;
  EXPECT_TRUE(cancelled->Read(&acknowledged));
  context.TryCancel();
  EXPECT_EQ(cancelled->Finish().error_code(), grpc::StatusCode::CANCELLED);

  server_->Shutdown(absl::Seconds(60));
  MetricPage page;
  server_->WriteMetrics(page);
  for (const char* ended :
       {R"(ImportItems",grpc_code="DeadlineExceeded"} 1)",
        R"(ImportSnapshot",grpc_code="DeadlineExceeded"} 1)",
        R"(ImportItems",grpc_code="Canceled"} 1)"}) {
    EXPECT_THAT(page.Text(), HasSubstr(ended));
  }
}

// A little more than can be in flight at once.
TEST_F(SnapshotServiceTest, StreamsThatMoveEndWhileTheServerDrains) {
  ASSERT_TRUE(Take("shop", "small").ok());
  std::string small;
  ASSERT_TRUE(Export("small", &small).ok());
  ASSERT_OK_AND_ASSIGN(const auto shop, catalogs_->Get("shop"));
  std::vector<Item> items(128);
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].id = ItemId(absl::StrCat("large-", i));
    items[i].keys = {{1, 1}};
    items[i].opaque_value = std::string(60'000, 'x');
  }
  ASSERT_OK(shop->Upsert(items, ""));
  ASSERT_TRUE(Take("shop", "large").ok());

  grpc::ClientContext out_context;
  v1::ExportSnapshotRequest request;
  request.set_catalog("shop");
  request.set_name("large");
  const auto out = snapshot_stub_->ExportSnapshot(&out_context, request);
  v1::ExportSnapshotResponse part;
  ASSERT_TRUE(out->Read(&part));
  grpc::ClientContext in_context;
  v1::ImportSnapshotResponse imported;
  const auto in = snapshot_stub_->ImportSnapshot(&in_context, &imported);
  v1::ImportSnapshotRequest half;
  half.set_name("again");
  half.set_chunk(small.substr(0, small.size() / 2));
  ASSERT_TRUE(in->Write(half));
  // Once it writes files, the server has received the first message.
  const std::string partial = directory_ / "snapshots/.partial";
  while (std::filesystem::is_empty(partial)) std::this_thread::yield();

  std::thread stopper([this] { server_->Shutdown(absl::Seconds(60)); });
  // Readiness probes learn of the shutdown first.
  while (server_->readiness().reasons.empty()) std::this_thread::yield();
  EXPECT_TRUE(Verify("shop", "small").ok());
  grpc::Status refused;
  do {
    refused = Verify("shop", "small");
  } while (refused.ok());
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  grpc::ClientContext late_context;
  v1::ImportSnapshotResponse nothing;
  const auto late = snapshot_stub_->ImportSnapshot(&late_context, &nothing);
  EXPECT_EQ(late->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  std::int64_t byte_count = 0;
  const std::int64_t total = part.total_bytes();
  do {
    byte_count += static_cast<std::int64_t>(part.chunk().size());
  } while (out->Read(&part));
  EXPECT_TRUE(out->Finish().ok());
  EXPECT_EQ(byte_count, total);
  v1::ImportSnapshotRequest rest;
  rest.set_chunk(small.substr(small.size() / 2));
  EXPECT_TRUE(in->Write(rest));
  in->WritesDone();
  const grpc::Status status = in->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(imported.snapshot().name(), "again");
  stopper.join();
}

TEST_F(SnapshotServiceTest, DamageIsRefusedByName) {
  ASSERT_TRUE(Take("shop", "s1").ok());
  std::ofstream(FilesOf("s1") + "/record", std::ios::app) << " ";
  for (const grpc::Status& status :
       {Verify("shop", "s1"), Restore("shop", "s1", "old")}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
    EXPECT_THAT(status.error_message(), HasSubstr("record"));
    EXPECT_EQ(ReasonIn(DetailsOf(status)), "SNAPSHOT_DAMAGED");
  }
  std::string bytes;
  EXPECT_EQ(Export("s1", &bytes).error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(Attend(Query("old")).error_code(), grpc::StatusCode::NOT_FOUND);
  std::ofstream(FilesOf("s1") + "/MANIFEST", std::ios::app) << " ";
  int damaged_count = 0;
  EXPECT_EQ(ListAll(10, &damaged_count), "");
  EXPECT_EQ(damaged_count, 1);
  EXPECT_TRUE(Delete("shop", "s1").ok());
}

TEST_F(SnapshotServiceTest, RefusalsNameWhatIsWrong) {
  grpc::Status status = Take("", "s1");
  EXPECT_EQ(FieldIn(DetailsOf(status)), "catalog");
  EXPECT_EQ(FieldIn(DetailsOf(Take("shop", "S"))), "name");
  EXPECT_EQ(FieldIn(DetailsOf(Verify("shop", ""))), "name");
  EXPECT_EQ(Take("none", "s1").error_code(), grpc::StatusCode::NOT_FOUND);
  status = Verify("shop", "s1");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonIn(DetailsOf(status)), "SNAPSHOT_NOT_FOUND");
  EXPECT_EQ(MetadataIn(status, "catalog"), "shop");
  EXPECT_EQ(MetadataIn(status, "snapshot"), "s1");
  ASSERT_TRUE(Take("shop", "s1").ok());
  EXPECT_EQ(Take("shop", "s1").error_code(), grpc::StatusCode::ALREADY_EXISTS);
  status = Restore("shop", "s1", "");
  EXPECT_EQ(FieldIn(DetailsOf(status)), "new_catalog");
  EXPECT_EQ(Restore("shop", "s1", "shop").error_code(),
            grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(Delete("shop", "s2").error_code(), grpc::StatusCode::NOT_FOUND);
  // A stream without messages.
  status = Import("", "", "");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldIn(DetailsOf(status)), "bytes");
  EXPECT_THAT(status.error_message(), HasSubstr("want a first message"));
}

// Blue-green deployment: a snapshot is restored next to the catalog in use and
// swapped in through the alias, under queries and writes that see no error.
TEST_F(SnapshotServiceTest, RestoreAndSwapUnderLoadWithoutAnError) {
  ASSERT_TRUE(SetAlias("live", "shop").ok());
  ASSERT_TRUE(Take("shop", "s1").ok());
  std::atomic<bool> stop = false;
  std::atomic<int> failures = 0;
  std::atomic<int> answers = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!stop.load()) {
        v1::AttendResponse answer;
        if (!Attend(Query("live"), &answer).ok() || answer.items_size() < 3) {
          ++failures;
        }
        ++answers;
      }
    });
  }
  threads.emplace_back([&] {
    for (int i = 0; !stop.load(); ++i) {
      v1::BatchUpsertItemsRequest request;
      request.set_catalog("live");
      auto* item = request.add_items();
      item->set_id(absl::StrCat("new-", i % 10));
      auto* floats = (*item->mutable_keys())["k"].mutable_floats();
      floats->add_values(-1);
      floats->add_values(0);
      if (!Upsert(request).ok()) ++failures;
    }
  });
  for (int round = 0; round < 3; ++round) {
    const std::string name = absl::StrCat("r", round);
    ASSERT_TRUE(Take("live", name).ok());
    const std::string next = absl::StrCat("shop-", round);
    ASSERT_TRUE(Restore("live", name, next).ok());
    ASSERT_TRUE(SetAlias("live", next).ok());
    const int before = answers.load();
    while (answers.load() < before + 10) std::this_thread::yield();
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  grpc::ClientContext context;
  v1::GetAliasRequest request;
  request.set_alias("live");
  v1::GetAliasResponse response;
  ASSERT_TRUE(alias_stub_->GetAlias(&context, request, &response).ok());
  EXPECT_EQ(response.alias().catalog(), "shop-2");
}

}  // namespace
}  // namespace attendant
