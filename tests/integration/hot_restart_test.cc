// A large catalog answers again within the promised time: after a clean stop;
// after kill -9 with a log of writes to replay; and, if an index file is
// damaged, with exact answers while the index is rebuilt.
//
// hot_restart_test --count=1000000 --dim=128 --seconds=60     the long form
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/api/importer.h"
#include "core/base/clock.h"
#include "tests/durability/flags.h"
#include "tests/integration/requests.h"
#include "tests/integration/server_process.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/split_mix.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

constexpr char kCatalog[] = "shop";
constexpr int kClusterCount = 500;
constexpr int kBatch = 100;
constexpr int kResultCount = 20;
constexpr int kQueryCount = 5;

// The promised times. Sanitizers take several times as long.
constexpr absl::Duration kAfterStop = absl::Seconds(5);
constexpr absl::Duration kAfterKill = absl::Seconds(10);
constexpr absl::Duration kRebuild = absl::Seconds(120);
constexpr absl::Duration kPatience = absl::Minutes(10);

// The best answers, best first, each as (minus the logit, id).
using Answers = std::vector<std::pair<float, std::string>>;

class HotRestartTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(server_, ServerProcess::Start(data_.path()));
    ASSERT_OK_AND_ASSIGN(client_, server_->Connect());
    v1::KeyField field = KeyFieldOf("key", dim_, v1::SCORE_KIND_DOT);
    field.set_index_kind(v1::INDEX_KIND_IVF);
    ASSERT_OK(CreateCatalog(*client_, kCatalog, {field}));
    const std::unique_ptr<Importer> importer =
        client_->StartImport(kCatalog, {});
    for (std::size_t number = 0; number < versions_.size(); ++number) {
      versions_[number] = 1;
      ASSERT_OK(importer->Add(ItemOf(number, 1)));
    }
    ASSERT_OK(importer->Finish());
    ASSERT_EQ(importer->progress().refused_count, 0);
    AwaitIndex(kPatience);
  }

  static std::string IdOf(std::size_t number) {
    return absl::StrCat("item", number);
  }

  // Components are multiples of 1/64, so a logit is exact in a float in any
  // order of summation.
  std::vector<float> VectorNear(std::uint64_t cluster,
                                std::uint64_t seed) const {
    std::vector<float> vector = SplitMix(cluster).Floats(dim_);
    const std::vector<float> noise =
        SplitMix(1'000'000 + seed).Floats(dim_, .5);
    for (std::size_t d = 0; d < vector.size(); ++d) {
      vector[d] = std::round(64 * (vector[d] + noise[d])) / 64;
    }
    return vector;
  }
  std::vector<float> KeyOf(std::size_t number, std::int64_t version) const {
    return VectorNear(number % kClusterCount,
                      number * 1000 + static_cast<std::uint64_t>(version));
  }
  std::vector<float> QueryOf(int q) const {
    return VectorNear(static_cast<std::uint64_t>(q),
                      7'000'000'000 + static_cast<std::uint64_t>(q));
  }

  v1::Item ItemOf(std::size_t number, std::int64_t version) const {
    v1::Item item;
    item.set_id(IdOf(number));
    const std::vector<float> key = KeyOf(number, version);
    (*item.mutable_keys())["key"].mutable_floats()->mutable_values()->Assign(
        key.begin(), key.end());
    (*item.mutable_attributes())["version"].set_int64_value(version);
    return item;
  }

  // Starts the server, asks it once, and returns how long that took.
  absl::Duration TimeToFirstAnswer() {
    const SteadyTime begin = SteadyNow();
    auto server = ServerProcess::Start(data_.path());
    EXPECT_OK(server);
    if (!server.ok()) return absl::InfiniteDuration();
    server_ = *std::move(server);
    auto client = server_->Connect();
    EXPECT_OK(client);
    if (!client.ok()) return absl::InfiniteDuration();
    client_ = *std::move(client);
    EXPECT_EQ(Ask(0, v1::SCAN_MODE_UNSPECIFIED).items_size(), kResultCount);
    return TimeSince(begin);
  }

  v1::AttendResponse Ask(int q, v1::ScanMode mode) {
    v1::AttendRequest request;
    request.set_catalog(kCatalog);
    const std::vector<float> query = QueryOf(q);
    request.mutable_query()
        ->mutable_vector()
        ->mutable_floats()
        ->mutable_values()
        ->Assign(query.begin(), query.end());
    request.set_result_count(kResultCount);
    request.set_omit_pooled_value(true);
    request.set_scan_mode(mode);
    const auto answer = client_->Attend(request);
    EXPECT_OK(answer);
    return answer.ok() ? *answer : v1::AttendResponse();
  }

  // Returns the answers to all queries, by brute force over the expected keys.
  std::vector<Answers> BruteForce() const {
    std::vector<std::vector<float>> queries;
    for (int q = 0; q < kQueryCount; ++q) queries.push_back(QueryOf(q));
    std::vector<Answers> all(queries.size());
    for (std::size_t number = 0; number < versions_.size(); ++number) {
      if (versions_[number] == 0) continue;
      const std::vector<float> key = KeyOf(number, versions_[number]);
      for (std::size_t q = 0; q < queries.size(); ++q) {
        all[q].emplace_back(-std::inner_product(key.begin(), key.end(),
                                                queries[q].begin(), 0.0F),
                            IdOf(number));
      }
    }
    for (Answers& answers : all) {
      std::partial_sort(answers.begin(), answers.begin() + kResultCount,
                        answers.end());
      answers.resize(kResultCount);
    }
    return all;
  }

  // Expects the answer to each query to equal brute force.
  void ExpectExact(v1::ScanMode mode, const std::vector<Answers>& expected) {
    for (int q = 0; q < kQueryCount; ++q) {
      const v1::AttendResponse response = Ask(q, mode);
      EXPECT_TRUE(response.results_exact());
      Answers answers;
      for (const v1::AttendedItem& item : response.items()) {
        answers.emplace_back(static_cast<float>(-item.logit()), item.id());
      }
      EXPECT_EQ(answers, expected[q]);
    }
  }

  bool HasIndex() {
    v1::GetCatalogRequest request;
    request.set_name(kCatalog);
    const auto got = client_->GetCatalog(request);
    EXPECT_OK(got);
    if (!got.ok()) return false;
    const v1::IndexStatus& index = got->catalog().indexes(0);
    return index.active_kind() == v1::INDEX_KIND_IVF && !index.training();
  }
  // Waits until the index is stable: between a build and the next one, which
  // adds the rows written meanwhile, it exists for a moment.
  void AwaitIndex(absl::Duration patience) {
    constexpr int kLooks = 20;
    const SteadyTime give_up = SteadyAfter(patience);
    for (int seen = 0; seen < kLooks; seen = HasIndex() ? seen + 1 : 0) {
      ASSERT_LT(SteadyNow(), give_up);
      absl::SleepFor(absl::Milliseconds(50));
    }
  }

  // Returns a figure from the "catalog_opened" line that the log has of the
  // start.
  std::int64_t Opened(const std::string& figure) const {
    for (const absl::string_view line : absl::StrSplit(server_->log(), '\n')) {
      const auto event = nlohmann::json::parse(line, nullptr, false);
      if (event.is_object() && event.value("event", "") == "catalog_opened") {
        return event.at(figure).get<std::int64_t>();
      }
    }
    ADD_FAILURE() << server_->log();
    return -1;
  }

  struct Write {
    std::size_t begin = 0;     // of kBatch items
    std::int64_t version = 0;  // 0: they are deleted

    void ApplyTo(std::vector<std::int64_t>& versions) const {
      std::fill_n(versions.begin() + static_cast<std::ptrdiff_t>(begin), kBatch,
                  version);
    }
  };

  absl::Status Send(const Write& write) {
    v1::BatchUpsertItemsRequest upsert;
    std::vector<std::string> ids;
    for (std::size_t n = write.begin; n < write.begin + kBatch; ++n) {
      if (write.version == 0) {
        ids.push_back(IdOf(n));
      } else {
        *upsert.add_items() = ItemOf(n, write.version);
      }
    }
    if (write.version == 0) {
      return client_->BatchDeleteItems(DeleteOf(kCatalog, ids)).status();
    }
    upsert.set_catalog(kCatalog);
    return client_->BatchUpsertItems(upsert).status();
  }

  // Writes until a write gets no reply, and returns that write.
  Write WriteUntilKilled() {
    SplitMix random(1);
    for (std::int64_t version = 2;; ++version) {
      const Write write = {random.Next() % (versions_.size() - kBatch),
                           random.Next() % 8 == 0 ? 0 : version};
      if (!Send(write).ok()) return write;
      write.ApplyTo(versions_);
      ++write_count_;
    }
  }

  // Expects all acknowledged writes, and the last write completely or not at
  // all.
  void ExpectAcknowledged(const Write& unfinished) {
    ASSERT_OK_AND_ASSIGN(const auto listed, ListVersions(*client_, kCatalog));
    std::vector<std::int64_t> stored(versions_.size());
    std::size_t count = 0;
    for (std::size_t number = 0; number < stored.size(); ++number) {
      const auto found = listed.find(IdOf(number));
      if (found == listed.end()) continue;
      stored[number] = found->second;
      ++count;
    }
    EXPECT_EQ(listed.size(), count) << "items that nobody wrote";
    std::vector<std::int64_t> with_unfinished = versions_;
    unfinished.ApplyTo(with_unfinished);
    if (stored == with_unfinished) versions_ = with_unfinished;
    const auto [found, expected] =
        std::mismatch(stored.begin(), stored.end(), versions_.begin());
    EXPECT_TRUE(found == stored.end())
        << IdOf(static_cast<std::size_t>(found - stored.begin()))
        << " has version " << *found << ", acknowledged was " << *expected;
  }

  // Flips a bit in the middle of the largest segment file.
  void DamageSegment() {
    std::filesystem::path largest;
    std::uintmax_t size = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             data_.path() + "/segments")) {
      if (!entry.is_regular_file() || entry.file_size() <= size) continue;
      largest = entry.path();
      size = entry.file_size();
    }
    ASSERT_GT(size, 0u);
    std::string bytes = ReadWholeFile(largest);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
    WriteWholeFile(largest, bytes);
    damaged_ = largest.filename();
  }

  const int dim_ = static_cast<int>(Flag("dim", 32));
  const ScratchDirectory data_;
  // Version of each item; 0 if it is deleted.
  std::vector<std::int64_t> versions_ = std::vector<std::int64_t>(
      static_cast<std::size_t>(Flag("count", Short(200000))));
  std::int64_t write_count_ = 0;
  std::string damaged_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(HotRestartTest, AnswersAtOnceAfterAStopAKillAndDamage) {
  const auto count = static_cast<std::int64_t>(versions_.size());
  ASSERT_EQ(server_->Stop(), 0);
  const absl::Duration after_stop = TimeToFirstAnswer();
  EXPECT_EQ(Opened("from_segment_files"), count);
  EXPECT_TRUE(HasIndex());

  Write unfinished;
  std::thread writer([&] { unfinished = WriteUntilKilled(); });
  absl::SleepFor(absl::Seconds(Flag("seconds", 2)));
  server_->Kill();
  writer.join();
  ASSERT_GT(write_count_, 10);
  const absl::Duration after_kill = TimeToFirstAnswer();
  const std::int64_t replayed = Opened("replayed");
  EXPECT_GT(replayed, 0) << "there is a log";
  ExpectAcknowledged(unfinished);
  const std::vector<Answers> expected = BruteForce();
  ExpectExact(v1::SCAN_MODE_EXACT, expected);

  ASSERT_EQ(server_->Stop(), 0);
  DamageSegment();
  const absl::Duration after_damage = TimeToFirstAnswer();
  const SteadyTime begin = SteadyNow();
  EXPECT_THAT(server_->log(), HasSubstr("segment_files_damaged"));
  EXPECT_THAT(server_->log(), HasSubstr(damaged_));
  EXPECT_EQ(Opened("from_segment_files"), 0);
  ASSERT_FALSE(HasIndex());
  // Answers are exact although the queries do not request it.
  ExpectExact(v1::SCAN_MODE_UNSPECIFIED, expected);
  int pass_count = 0;
  while (!HasIndex() && !HasFailure()) {
    ExpectExact(v1::SCAN_MODE_EXACT, expected);
    ++pass_count;
    // Leaves CPU time to the builds: queries would take whole cores.
    absl::SleepFor(absl::Milliseconds(100));
    ASSERT_LT(TimeSince(begin), kSanitized ? kPatience : kRebuild);
  }
  const absl::Duration rebuild = TimeSince(begin);
  EXPECT_GT(pass_count, 0);
  ExpectExact(v1::SCAN_MODE_EXACT, expected);
  EXPECT_EQ(server_->Stop(), 0);
  std::printf(
      "%ld items x %d: first answer %.2f s after a stop, %.2f s after kill -9 "
      "(%ld writes, %ld items replayed), %.2f s after damage; index again "
      "after %.2f s\n",
      count, dim_, absl::ToDoubleSeconds(after_stop),
      absl::ToDoubleSeconds(after_kill), write_count_, replayed,
      absl::ToDoubleSeconds(after_damage), absl::ToDoubleSeconds(rebuild));
  if (kSanitized) return;
  EXPECT_LE(after_stop, kAfterStop);
  EXPECT_LE(after_kill, kAfterKill);
  EXPECT_LE(after_damage, kAfterKill);
}

}  // namespace
}  // namespace attendant
