// attendantd at its memory limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "tests/integration/requests.h"
#include "tests/integration/server_process.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kDim = 1024;
constexpr int kBatch = 200;

class MemoryLimitTest : public ::testing::Test {
 protected:
  // Starts a server with room for `bytes` in addition to what a server without
  // items takes.
  void StartWithRoom(std::int64_t bytes) {
    ASSERT_OK_AND_ASSIGN(server_, ServerProcess::Start(data_.path()));
    ASSERT_OK_AND_ASSIGN(client_, server_->Connect());
    ASSERT_OK(Create("probe"));
    const std::int64_t idle = Describe("probe").server_memory().used_bytes();
    ASSERT_GT(idle, 0);
    client_ = nullptr;
    ASSERT_EQ(server_->Stop(), 0);
    ASSERT_OK_AND_ASSIGN(
        server_,
        ServerProcess::Start(
            data_.path(), {"--memory-limit", absl::StrCat(idle + bytes)},
            // The address sanitizer keeps freed memory to detect its use;
            // without these options the process would not shrink.
            {"ASAN_OPTIONS=quarantine_size_mb=0:"
             "thread_local_quarantine_size_kb=0"}));
    ASSERT_OK_AND_ASSIGN(client_, server_->Connect());
  }

  absl::Status Create(const std::string& name) {
    return CreateCatalog(*client_, name,
                         {KeyFieldOf("key", kDim, v1::SCORE_KIND_DOT)});
  }

  v1::GetCatalogResponse Describe(const std::string& name) {
    v1::GetCatalogRequest request;
    request.set_name(name);
    const auto response = client_->GetCatalog(request);
    EXPECT_OK(response);
    return response.ok() ? *response : v1::GetCatalogResponse();
  }

  absl::Status WriteBatch(const std::string& catalog, int batch) {
    std::mt19937_64 random(batch);
    std::normal_distribution<double> normal;
    std::vector<v1::Item> items;
    for (int i = 0; i < kBatch; ++i) {
      std::vector<double> key(kDim);
      for (double& component : key) component = normal(random);
      items.push_back(
          ItemOf(absl::StrCat("item", batch * kBatch + i), "key", key));
    }
    return client_->BatchUpsertItems(UpsertOf(catalog, items)).status();
  }

  // Writes batches until one is refused. Returns how many succeeded; `status`
  // is the refusal.
  int Fill(const std::string& catalog, absl::Status* status) {
    int batch = 0;
    while ((*status = WriteBatch(catalog, batch)).ok()) ++batch;
    return batch;
  }

  absl::Status Ask(const std::string& catalog) {
    v1::AttendRequest request;
    request.set_catalog(catalog);
    *request.mutable_query()->mutable_vector() =
        VectorOf(std::vector<double>(kDim, 1));
    return client_->Attend(request).status();
  }

  const ScratchDirectory data_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(MemoryLimitTest, WritesAreRefusedReadsGoOnAndADeletedCatalogMakesRoom) {
  ASSERT_NO_FATAL_FAILURE(StartWithRoom(std::int64_t{96} << 20));
  ASSERT_OK(Create("first"));
  absl::Status full;
  const int count = Fill("first", &full);
  EXPECT_GT(count, 0);
  EXPECT_THAT(full,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("memory is full"), HasSubstr("limit"))));
  EXPECT_EQ(ReasonOf(full), "MEMORY_LIMIT");
  const v1::ServerMemory memory = Describe("first").server_memory();
  EXPECT_GT(memory.limit_bytes(), 0);
  // Memory never exceeds the limit, except by what a running request takes.
  EXPECT_LE(memory.resident_bytes(), memory.limit_bytes() + (32 << 20));

  // A creation takes less than the refused batch, so a few may fit.
  absl::Status created;
  for (int i = 0; i < 500 && created.ok(); ++i) {
    created = Create(absl::StrCat("extra", i));
  }
  EXPECT_THAT(created, StatusIs(absl::StatusCode::kResourceExhausted,
                                HasSubstr("memory is full")));
  EXPECT_OK(Ask("first"));
  EXPECT_EQ(Describe("first").catalog().item_count(), count * kBatch);
  EXPECT_OK(client_->BatchDeleteItems(DeleteOf("first", {"item0"})));
  EXPECT_EQ(Describe("first").catalog().item_count(), count * kBatch - 1);

  v1::DeleteCatalogRequest remove;
  remove.set_name("first");
  ASSERT_OK(client_->DeleteCatalog(remove));
  // No restart is needed; a running request may hold memory for a moment.
  const SteadyTime give_up = SteadyAfter(absl::Seconds(30));
  created = Create("second");
  while (!created.ok() && SteadyNow() < give_up) {
    absl::SleepFor(absl::Milliseconds(100));
    created = Create("second");
  }
  ASSERT_OK(created);
  EXPECT_OK(WriteBatch("second", 0));
  EXPECT_EQ(Describe("second").catalog().item_count(), kBatch);
  EXPECT_EQ(server_->Stop(), 0);
}

TEST_F(MemoryLimitTest, WhatIsOnDiskIsServedUnderALimitThatItPasses) {
  ASSERT_NO_FATAL_FAILURE(StartWithRoom(std::int64_t{64} << 20));
  ASSERT_OK(Create("films"));
  ASSERT_OK(WriteBatch("films", 0));
  ASSERT_EQ(server_->Stop(), 0);
  ASSERT_OK_AND_ASSIGN(
      server_, ServerProcess::Start(data_.path(), {"--memory-limit", "1MiB"}));
  ASSERT_OK_AND_ASSIGN(client_, server_->Connect());
  EXPECT_OK(Ask("films"));
  EXPECT_EQ(Describe("films").catalog().item_count(), kBatch);
  EXPECT_THAT(WriteBatch("films", 1),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("1048576 are used")));
  EXPECT_OK(client_->BatchDeleteItems(DeleteOf("films", {"item0"})));
}

}  // namespace
}  // namespace attendant
