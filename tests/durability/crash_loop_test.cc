// A real server, killed at random moments and at every fail point, again and
// again on the same data. Writers know what they wrote and what was
// acknowledged; after each restart the server holds exactly that, and of the
// one write that each had no reply to all or nothing.
//
//   crash_loop_test --kills=2000 --rounds=20 --seed=1    the long form
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "attendant/v1/attention_service.grpc.pb.h"
#include "attendant/v1/catalog_service.grpc.pb.h"
#include "attendant/v1/item_service.grpc.pb.h"
#include "attendant/v1/model_service.grpc.pb.h"
#include "core/base/fail_point.h"
#include "core/base/status.h"
#include "tests/durability/flags.h"
#include "tests/integration/binaries.h"
#include "tests/integration/process.h"
#include "tests/integration/requests.h"
#include "tests/integration/server_process.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

constexpr int kWriterCount = 2;
constexpr int kIdsPerWriter = 60;
constexpr int kSigKilled = 128 + 9;
// Without retries: an answer that does not come is what is looked for.
constexpr std::chrono::seconds kDeadline(20);
// A writer that has done so many without the fail point killing the server has
// not reached it.
constexpr int kMostOperations = 600;

// A connection that does not retry.
class Connection {
 public:
  explicit Connection(const std::string& address)
      : channel_(
            grpc::CreateChannel(address, grpc::InsecureChannelCredentials())),
        items_(v1::ItemService::NewStub(channel_)),
        catalogs_(v1::CatalogService::NewStub(channel_)),
        models_(v1::ModelService::NewStub(channel_)),
        attention_(v1::AttentionService::NewStub(channel_)) {}

  grpc::Status Upsert(const v1::BatchUpsertItemsRequest& request) {
    grpc::ClientContext context;
    v1::BatchUpsertItemsResponse response;
    return items_->BatchUpsertItems(Limited(context), request, &response);
  }
  grpc::Status Delete(const v1::BatchDeleteItemsRequest& request) {
    grpc::ClientContext context;
    v1::BatchDeleteItemsResponse response;
    return items_->BatchDeleteItems(Limited(context), request, &response);
  }
  grpc::Status CreateCatalog(
      const std::string& name,
      v1::IndexKind index_kind = v1::INDEX_KIND_UNSPECIFIED) {
    grpc::ClientContext context;
    v1::CreateCatalogRequest request;
    request.set_name(name);
    v1::KeyField* field = request.mutable_schema()->add_key_fields();
    *field = KeyFieldOf("key", 2, v1::SCORE_KIND_DOT);
    field->set_index_kind(index_kind);
    v1::AttributeField* version = request.mutable_schema()->add_attributes();
    version->set_name("version");
    version->set_type(v1::ATTRIBUTE_TYPE_INT64);
    v1::CreateCatalogResponse response;
    return catalogs_->CreateCatalog(Limited(context), request, &response);
  }
  grpc::Status DeleteCatalog(const std::string& name) {
    grpc::ClientContext context;
    v1::DeleteCatalogRequest request;
    request.set_name(name);
    v1::DeleteCatalogResponse response;
    return catalogs_->DeleteCatalog(Limited(context), request, &response);
  }
  grpc::Status CreateModel(const std::string& name) {
    grpc::ClientContext context;
    v1::CreateModelRequest request;
    request.mutable_model()->set_name(name);
    v1::Matrix* weight =
        request.mutable_model()->mutable_bilinear()->mutable_weight();
    weight->set_row_count(1);
    weight->set_column_count(1);
    weight->set_float32_le(std::string("\0\0\x80\x3f", 4));
    v1::CreateModelResponse response;
    return models_->CreateModel(Limited(context), request, &response);
  }
  grpc::Status DeleteModel(const std::string& name, std::int64_t version) {
    grpc::ClientContext context;
    v1::DeleteModelRequest request;
    request.set_name(name);
    request.set_version(version);
    v1::DeleteModelResponse response;
    return models_->DeleteModel(Limited(context), request, &response);
  }
  grpc::Status ListModels(v1::ListModelsResponse* response) {
    grpc::ClientContext context;
    v1::ListModelsRequest request;
    request.set_page_size(1000);
    return models_->ListModels(Limited(context), request, response);
  }
  grpc::Status Attend(const std::string& name, v1::AttendResponse* response) {
    grpc::ClientContext context;
    v1::AttendRequest request;
    request.set_catalog(name);
    *request.mutable_query()->mutable_vector() = VectorOf({1, 1});
    request.set_result_count(5000);
    request.set_shortlist_count(5000);
    request.set_scan_mode(v1::SCAN_MODE_EXACT);
    return attention_->Attend(Limited(context), request, response);
  }

 private:
  static grpc::ClientContext* Limited(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    return &context;
  }

  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::ItemService::Stub> items_;
  const std::unique_ptr<v1::CatalogService::Stub> catalogs_;
  const std::unique_ptr<v1::ModelService::Stub> models_;
  const std::unique_ptr<v1::AttentionService::Stub> attention_;
};

// What a writer's part of the server holds.
struct State {
  bool has_catalog = false;
  std::map<std::string, std::int64_t> versions;  // of items, by id
  std::set<std::int64_t> models;
  std::int64_t last_model = 0;  // also a deleted one: can't be read

  bool operator==(const State& other) const {
    return has_catalog == other.has_catalog && versions == other.versions &&
           models == other.models;
  }
};

std::string Text(const State& state) {
  return absl::StrCat(state.has_catalog ? "a catalog" : "no catalog",
                      ", items ", ::testing::PrintToString(state.versions),
                      ", models ", ::testing::PrintToString(state.models));
}

// One operation: what it asks for, and what it makes of a state.
struct Operation {
  State after;
  std::function<grpc::Status(Connection&)> send;
  bool repeatable = false;  // the same again is the same, and OK
};

// Has a catalog and a model of its own.
class Writer {
 public:
  Writer(int number, std::uint64_t seed)
      : name_(absl::StrCat("writer", number)), random_(seed) {}

  // Until one has no answer, or there were enough.
  void WriteUntilKilled(Connection& connection) {
    for (int i = 0; i < kMostOperations; ++i) {
      const Operation operation = Next();
      const grpc::Status status = operation.send(connection);
      if (!status.ok()) {
        EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE)
            << name_ << ": " << status.error_message();
        unanswered_ = operation;
        return;
      }
      state_ = operation.after;
      ++acknowledged_count_;
    }
  }

  // After a restart: all that was acknowledged, and the operation that had no
  // answer or not. What can be repeated then is.
  void Check(Connection& connection) {
    const State found = Read(connection);
    const State after = unanswered_ ? unanswered_->after : state_;
    EXPECT_TRUE(found == state_ || found == after)
        << name_ << " found " << Text(found) << "\nacknowledged "
        << Text(state_) << "\nwith the unanswered " << Text(after);
    if (found == after) state_ = after;
    if (unanswered_ && unanswered_->repeatable) {
      const grpc::Status status = unanswered_->send(connection);
      EXPECT_TRUE(status.ok()) << status.error_message();
      state_ = after;
      EXPECT_EQ(Read(connection), state_);
    }
    unanswered_.reset();
  }

  std::int64_t acknowledged_count() const { return acknowledged_count_; }

 private:
  State Read(Connection& connection) {
    State state;
    v1::AttendResponse answer;
    const grpc::Status status = connection.Attend(name_, &answer);
    EXPECT_TRUE(status.ok() ||
                status.error_code() == grpc::StatusCode::NOT_FOUND)
        << status.error_message();
    state.has_catalog = status.ok();
    for (const v1::AttendedItem& item : answer.items()) {
      // The key says the version. An item that is there twice is a bug.
      EXPECT_TRUE(
          state.versions
              .emplace(item.id(), static_cast<std::int64_t>(item.logit()))
              .second)
          << item.id();
    }
    v1::ListModelsResponse models;
    EXPECT_TRUE(connection.ListModels(&models).ok());
    EXPECT_EQ(models.damaged_models_size(), 0);
    for (const v1::ModelSummary& model : models.models()) {
      if (model.name() == name_) state.models.insert(model.version());
    }
    return state;
  }

  int Random(int count) { return static_cast<int>(random_() % count); }

  std::vector<std::string> RandomIds() {
    std::set<std::string> ids;
    for (int count = 1 + Random(12); count > 0; --count) {
      ids.insert(absl::StrCat(name_, "-", Random(kIdsPerWriter)));
    }
    return {ids.begin(), ids.end()};
  }

  Operation Next() {
    if (!state_.has_catalog) return CreateCatalog();
    const int choice = Random(100);
    if (choice < 55) return Upsert();
    if (choice < 80) return Delete();
    if (choice < 85) return DropCatalog();
    return choice < 93 || state_.models.empty() ? CreateModel() : DeleteModel();
  }

  Operation Upsert() {
    Operation operation = {state_, nullptr, true};
    std::vector<v1::Item> items;
    // Small enough to be exact as a float.
    const std::int64_t version = ++write_count_;
    for (const std::string& id : RandomIds()) {
      items.push_back(ItemOf(id, "key", {static_cast<double>(version), 0}));
      operation.after.versions[id] = version;
    }
    const auto request = UpsertOf(name_, items, NextRequestId());
    operation.send = [request](Connection& connection) {
      return connection.Upsert(request);
    };
    return operation;
  }
  Operation Delete() {
    Operation operation = {state_, nullptr, true};
    const std::vector<std::string> ids = RandomIds();
    for (const std::string& id : ids) operation.after.versions.erase(id);
    const auto request = DeleteOf(name_, ids, NextRequestId());
    operation.send = [request](Connection& connection) {
      return connection.Delete(request);
    };
    return operation;
  }
  Operation CreateCatalog() {
    Operation operation = {state_, nullptr, true};
    operation.after.has_catalog = true;
    operation.send = [this](Connection& connection) {
      return connection.CreateCatalog(name_);
    };
    return operation;
  }
  Operation DropCatalog() {
    Operation operation = {state_, nullptr, false};
    operation.after.has_catalog = false;
    operation.after.versions.clear();
    operation.send = [this](Connection& connection) {
      return connection.DeleteCatalog(name_);
    };
    return operation;
  }
  Operation CreateModel() {
    Operation operation = {state_, nullptr, false};
    operation.after.models.insert(++operation.after.last_model);
    operation.send = [this](Connection& connection) {
      return connection.CreateModel(name_);
    };
    return operation;
  }
  Operation DeleteModel() {
    Operation operation = {state_, nullptr, false};
    const std::int64_t version = *state_.models.begin();
    operation.after.models.erase(version);
    operation.send = [this, version](Connection& connection) {
      return connection.DeleteModel(name_, version);
    };
    return operation;
  }
  std::string NextRequestId() {
    return absl::StrCat(name_, "-", ++request_count_);
  }

  const std::string name_;
  std::mt19937_64 random_;
  State state_;
  std::optional<Operation> unanswered_;
  std::int64_t write_count_ = 0;
  std::int64_t request_count_ = 0;
  std::int64_t acknowledged_count_ = 0;
};

class CrashLoopTest : public ::testing::Test {
 protected:
  CrashLoopTest() : seed_(Flag("seed", 1)), random_(seed_) {
    for (int i = 0; i < kWriterCount; ++i) {
      writers_.push_back(std::make_unique<Writer>(i, seed_ * 1000 + i));
    }
  }

  // Starts the server, checks what it holds, and writes until it is killed:
  // after a random time, or at the fail point if one is given.
  void RunRound(const std::string& fail_point) {
    SCOPED_TRACE(absl::StrCat("seed ", seed_, ", round ", ++round_, ", ",
                              fail_point.empty() ? "killed" : fail_point));
    std::vector<std::string> environment;
    if (!fail_point.empty()) {
      environment.push_back(
          absl::StrCat("ATTENDANT_FAIL_POINT=", fail_point, "=kill"));
    }
    const auto server = ServerProcess::Start(data_.path(), {}, environment);
    if (!server.ok()) {
      // It may come by on its way to being ready.
      ASSERT_FALSE(fail_point.empty()) << server.status();
      ASSERT_TRUE(absl::StrContains(server.status().message(),
                                    absl::StrCat("status ", kSigKilled)))
          << server.status();
      return;
    }
    std::vector<std::thread> threads;
    {
      Connection connection((*server)->address());
      // With a fail point it may die from the first repeated write on: then the
      // next round checks.
      if (fail_point.empty()) {
        for (const auto& writer : writers_) writer->Check(connection);
      }
    }
    if (HasFailure()) return;
    for (const auto& writer : writers_) {
      threads.emplace_back([&writer, address = (*server)->address()] {
        Connection connection(address);
        writer->WriteUntilKilled(connection);
      });
    }
    if (fail_point.empty()) {
      // Not to synchronise: the moment is the random input.
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 60000));
      (*server)->Kill();
    } else {
      EXPECT_EQ((*server)->Wait(absl::Seconds(30)), kSigKilled)
          << "no operation of the writers comes by " << fail_point
          << ": give them one that does";
    }
    for (std::thread& thread : threads) thread.join();
  }

  // Starts the server and kills it before it is ready, or about then.
  void KillWhileStarting() {
    const int null = OpenForWriting("/dev/null");
    Process process = Process::Start(
        {kAttendantd, "--data-dir", data_.path(), "--listen", "127.0.0.1:0"},
        null, null);
    close(null);
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 60000));
    process.Signal(SIGKILL);
    EXPECT_EQ(process.Wait(absl::Minutes(1)), kSigKilled);
  }

  void CheckLast() {
    SCOPED_TRACE(absl::StrCat("seed ", seed_, ", at the end"));
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data_.path()));
    Connection connection(server->address());
    for (const auto& writer : writers_) writer->Check(connection);
  }

  // Writes what is worth a merge, kills the server before it comes to that, and
  // starts it again to die while it merges.
  void RunMergeRound(const std::string& fail_point) {
    SCOPED_TRACE(absl::StrCat("seed ", seed_, ", ", fail_point));
    WriteMerged();
    if (HasFailure()) return;
    const auto server = ServerProcess::Start(
        data_.path(), {},
        {absl::StrCat("ATTENDANT_FAIL_POINT=", fail_point, "=kill")});
    if (!server.ok()) {
      // Before it is ready, that is.
      ASSERT_TRUE(absl::StrContains(server.status().message(),
                                    absl::StrCat("status ", kSigKilled)))
          << server.status();
      return;
    }
    EXPECT_EQ((*server)->Wait(absl::Seconds(30)), kSigKilled)
        << "no merge comes by " << fail_point;
  }

  void WriteMerged() {
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data_.path()));
    Connection connection(server->address());
    ASSERT_TRUE(connection.CreateCatalog(kMerged, v1::INDEX_KIND_IVF).ok());
    ++merge_round_;
    constexpr int kBatches = 6;
    constexpr int kBatchItems = 256;
    for (int batch = 0; batch < kBatches; ++batch) {
      std::vector<v1::Item> items;
      for (int i = 0; i < kBatchItems; ++i) {
        const std::string id = absl::StrCat("m", batch * kBatchItems + i);
        items.push_back(
            ItemOf(id, "key", {static_cast<double>(merge_round_), 0}));
        merged_[id] = merge_round_;
      }
      ASSERT_TRUE(connection.Upsert(UpsertOf(kMerged, items, "")).ok());
    }
    std::set<std::string> gone;
    while (gone.size() < 50) {
      gone.insert(absl::StrCat("m", random_() % (kBatches * kBatchItems)));
    }
    for (const std::string& id : gone) merged_.erase(id);
    const std::vector<std::string> ids(gone.begin(), gone.end());
    ASSERT_TRUE(connection.Delete(DeleteOf(kMerged, ids, "")).ok());
    server->Kill();
  }

  void CheckMerged() {
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data_.path()));
    Connection connection(server->address());
    v1::AttendResponse answer;
    ASSERT_TRUE(connection.Attend(kMerged, &answer).ok());
    std::map<std::string, std::int64_t> found;
    for (const v1::AttendedItem& item : answer.items()) {
      EXPECT_TRUE(
          found.emplace(item.id(), static_cast<std::int64_t>(item.logit()))
              .second)
          << item.id();
    }
    EXPECT_EQ(found, merged_);
  }

  static constexpr char kMerged[] = "merged";
  std::int64_t merge_round_ = 0;
  std::map<std::string, std::int64_t> merged_;  // versions by id

  const std::uint64_t seed_;
  std::mt19937_64 random_;
  int round_ = 0;
  const ScratchDirectory data_;
  std::vector<std::unique_ptr<Writer>> writers_;
};

TEST_F(CrashLoopTest, KilledAtRandomMoments) {
  const std::int64_t kills = Flag("kills", Short(85));
  for (std::int64_t i = 0; i < kills && !HasFailure(); ++i) {
    if (i % 5 == 4) {
      KillWhileStarting();
    } else {
      RunRound("");
    }
  }
  CheckLast();
  // The kills met writers at work.
  for (const auto& writer : writers_) {
    EXPECT_GT(writer->acknowledged_count(), kills / 2);
  }
}

// Those of the background, which comes by them after writes have settled.
bool IsOfMerges(std::string_view fail_point) {
  return absl::StartsWith(std::string(fail_point), "merge.") ||
         absl::StartsWith(std::string(fail_point), "segments.");
}

TEST_F(CrashLoopTest, KilledWhileSegmentsAreMerged) {
  const std::int64_t rounds = Flag("rounds", 1);
  for (std::int64_t i = 0; i < rounds; ++i) {
    for (const std::string_view name : kFailPoints) {
      if (!IsOfMerges(name)) continue;
      RunMergeRound(std::string(name));
      if (HasFailure()) return;
      CheckMerged();
      if (HasFailure()) return;
    }
  }
}

TEST_F(CrashLoopTest, KilledAtEveryFailPoint) {
  const std::int64_t rounds = Flag("rounds", 1);
  for (std::int64_t i = 0; i < rounds; ++i) {
    for (const std::string_view name : kFailPoints) {
      if (IsOfMerges(name)) continue;
      // The first few times.
      RunRound(absl::StrCat(std::string(name), ":", 1 + random_() % 3));
      if (HasFailure()) return;
      CheckLast();
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace attendant
