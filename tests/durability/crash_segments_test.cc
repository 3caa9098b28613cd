// Kills a server while segments are sealed and merged, while their files are
// written, and while it restarts from them.
//
// crash_segments_test --rounds=20 --seed=1    the long form
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/fail_point.h"
#include "tests/durability/crash_server.h"
#include "tests/durability/flags.h"
#include "tests/integration/requests.h"
#include "tests/integration/server_process.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/split_mix.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

namespace fs = std::filesystem;

constexpr char kCatalog[] = "merged";
constexpr char kSealed[] = "sealed";
constexpr int kBatchItems = 256;
constexpr int kDim = 8;
// Keys are multiples of 1 / kVersionScale, so that logits are exact; versions
// are scaled to the size of the other components.
constexpr double kVersionScale = 64;
constexpr int kQueries = 16;
constexpr int kResults = 20;
// Of the results of an index that does not prove them; an index that lost one
// of the six batches has some .83.
constexpr double kLeastRecall = .95;

using Versions = std::map<std::string, std::int64_t>;  // by id
using Ranked = std::pair<double, std::string>;         // -logit and id

// Returns the key of item `id` in that version: the version, and components
// that differ between all items.
std::vector<double> KeyOf(const std::string& id, std::int64_t version) {
  std::uint64_t seed = static_cast<std::uint64_t>(version);
  for (const char c : id) seed = 31 * seed + static_cast<unsigned char>(c);
  SplitMix random(seed);
  std::vector<double> key = {static_cast<double>(version) / kVersionScale};
  while (key.size() < kDim) {
    key.push_back(static_cast<double>(random.Next() % 17) - 8);
  }
  return key;
}

class CrashSegmentsTest : public ::testing::TestWithParam<v1::IndexKind> {
 protected:
  CrashSegmentsTest() : random_(Flag("seed", 1)) {}

  // Runs a round for one fail point and checks what is left.
  void RunRound(const std::string& fail_point) {
    SCOPED_TRACE(fail_point);
    if (absl::StartsWith(fail_point, "seal.")) {
      DieWhileSealing(fail_point);
    } else if (absl::StartsWith(fail_point, "recovery.")) {
      if (merged_.empty()) WriteMerged();
      if (!HasFailure()) ChangeAfterFiles();
      if (!HasFailure() && absl::StrContains(fail_point, "clear")) Damage();
      if (!HasFailure()) DieAtStart(fail_point);
    } else {
      WriteMerged();
      if (!HasFailure()) DieAtStart(fail_point);
    }
    if (!HasFailure()) CheckMerged();
  }

  // Starts a server with unfinished work, which then dies in it.
  void DieAtStart(const std::string& fail_point) {
    ASSERT_OK_AND_ASSIGN(const auto server,
                         StartToDie(data_.path(), fail_point));
    if (server == nullptr) return;
    EXPECT_EQ(server->Wait(absl::Seconds(120)), kSigKilled)
        << "nothing comes by " << fail_point;
  }

  // Writes enough for a merge, and kills the server before the merge begins.
  void WriteMerged() {
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data_.path()));
    Connection connection(server->address());
    ASSERT_TRUE(connection.CreateCatalog(kCatalog, GetParam(), kDim).ok());
    for (int batch = 0; batch < 6; ++batch) {
      ASSERT_TRUE(Write(connection, kCatalog, batch * kBatchItems, kBatchItems,
                        &merged_)
                      .ok());
    }
    Delete(connection, 50);
    server->Kill();
  }

  // Waits for the segment files, then changes some items.
  void ChangeAfterFiles() {
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data_.path()));
    Connection connection(server->address());
    ASSERT_TRUE(AwaitIndex(connection, kCatalog, GetParam()).ok());
    ASSERT_FALSE(SegmentFiles().empty());
    ASSERT_TRUE(Write(connection, kCatalog, 100, 20, &merged_).ok());
    Delete(connection, 5);
    server->Kill();
  }

  // Damages each of the segments' files.
  void Damage() {
    for (const fs::path& path : SegmentFiles()) {
      std::ifstream in(path, std::ios::binary);
      std::string bytes{std::istreambuf_iterator<char>(in), {}};
      bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
      std::ofstream(path, std::ios::binary) << bytes;
    }
  }

  // Grows an indexed catalog by enough to be sealed, but not enough to be
  // merged with the first segment. Retries if that takes so long that
  // everything is merged first.
  void DieWhileSealing(const std::string& fail_point) {
    ASSERT_OK_AND_ASSIGN(const auto server,
                         StartToDie(data_.path(), fail_point));
    ASSERT_NE(server, nullptr);
    Connection connection(server->address());
    Versions sealed;
    Versions with_last;
    bool alive = true;
    for (int attempt = 0; alive && attempt < 10; ++attempt) {
      if (attempt > 0) {
        ASSERT_TRUE(connection.DeleteCatalog(kSealed).ok());
      }
      ASSERT_TRUE(
          connection.CreateCatalog(kSealed, v1::INDEX_KIND_IVF, kDim).ok());
      // More than is sealed at once, and more than a quarter of the final
      // count; otherwise the index would be trained again. All are fewer than a
      // query may return.
      constexpr int kFirst = 19 * kBatchItems;
      sealed.clear();
      for (int at = 0; at < kFirst; at += kBatchItems) {
        ASSERT_TRUE(Write(connection, kSealed, at, kBatchItems, &sealed).ok());
      }
      // If writes are slow, the rows that arrived after the build began are
      // enough.
      alive = AwaitIndex(connection, kSealed, v1::INDEX_KIND_IVF).ok();
      with_last = sealed;
      constexpr int kMore = 1024 + 2048 + 2048;
      for (int at = kFirst; alive && at < kFirst + kMore; at += kBatchItems) {
        alive = Write(connection, kSealed, at, kBatchItems, &with_last).ok();
        if (alive) sealed = with_last;
      }
      if (alive) {
        alive = AwaitIndex(connection, kSealed, v1::INDEX_KIND_IVF).ok();
      }
    }
    EXPECT_EQ(server->Wait(absl::Seconds(30)), kSigKilled)
        << "nothing comes by " << fail_point;
    ASSERT_OK_AND_ASSIGN(const auto again, ServerProcess::Start(data_.path()));
    Connection after(again->address());
    const Versions found = Read(after, kSealed);
    EXPECT_TRUE(found == sealed || found == with_last) << found.size();
    EXPECT_TRUE(after.DeleteCatalog(kSealed).ok());
  }

  void CheckMerged() {
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data_.path()));
    Connection connection(server->address());
    if (merged_.empty()) return;
    EXPECT_EQ(Read(connection, kCatalog), merged_);
    ASSERT_TRUE(AwaitIndex(connection, kCatalog, GetParam()).ok());
    CheckIndex(connection);
  }

  // Expects the index to find what there is. An IVF index proves its results,
  // so they are those of a brute-force search.
  void CheckIndex(Connection& connection) {
    const bool is_proven = GetParam() == v1::INDEX_KIND_IVF;
    int found_count = 0;
    std::int64_t visited_list_count = 0;
    for (int i = 0; i < kQueries; ++i) {
      v1::AttendRequest request;
      request.set_catalog(kCatalog);
      std::vector<double> query;
      while (query.size() < kDim) {
        query.push_back(static_cast<double>(random_() % 9) - 4);
      }
      *request.mutable_query()->mutable_vector() = VectorOf(query);
      request.set_result_count(kResults);
      request.set_scan_mode(is_proven ? v1::SCAN_MODE_AUTO
                                      : v1::SCAN_MODE_INDEX);
      request.set_recall(is_proven ? 1 : .99);
      v1::AttendResponse answer;
      const grpc::Status status = connection.Call(
          &v1::AttentionService::Stub::Attend, request, &answer);
      ASSERT_TRUE(status.ok()) << status.error_message();
      visited_list_count += answer.stats().visited_list_count();
      EXPECT_EQ(answer.stats().index_kind(), GetParam());
      ASSERT_EQ(answer.items_size(), kResults);
      const std::vector<Ranked> want = RankedByBruteForce(query);
      std::vector<Ranked> found;
      for (const v1::AttendedItem& item : answer.items()) {
        found.emplace_back(-item.logit(), item.id());
      }
      if (is_proven) {
        EXPECT_EQ(found, want);
      }
      for (const Ranked& item : found) {
        found_count += static_cast<int>(std::ranges::count(want, item));
      }
    }
    EXPECT_GE(found_count, kLeastRecall * kQueries * kResults);
    if (is_proven) {
      EXPECT_GT(visited_list_count, 0);
    }
  }

  // Returns the best items of what was written.
  std::vector<Ranked> RankedByBruteForce(
      const std::vector<double>& query) const {
    std::vector<Ranked> ranked;
    for (const auto& [id, version] : merged_) {
      const std::vector<double> key = KeyOf(id, version);
      ranked.emplace_back(
          -std::inner_product(query.begin(), query.end(), key.begin(), 0.0),
          id);
    }
    std::ranges::sort(ranked);
    ranked.resize(kResults);
    return ranked;
  }

  // Writes items from `begin` in this round's version; updates `versions` even
  // if the write fails.
  grpc::Status Write(Connection& connection, const std::string& catalog,
                     int begin, int count, Versions* versions) {
    std::vector<v1::Item> items;
    ++version_;
    for (int i = begin; i < begin + count; ++i) {
      const std::string id = absl::StrCat("m", i);
      items.push_back(ItemOf(id, "key", KeyOf(id, version_)));
      (*versions)[id] = version_;
    }
    v1::BatchUpsertItemsResponse response;
    return connection.Call(&v1::ItemService::Stub::BatchUpsertItems,
                           UpsertOf(catalog, items, ""), &response);
  }

  void Delete(Connection& connection, std::size_t count) {
    std::set<std::string> gone;
    while (gone.size() < count) {
      gone.insert(absl::StrCat("m", random_() % 1000));
    }
    for (const std::string& id : gone) merged_.erase(id);
    v1::BatchDeleteItemsResponse response;
    ASSERT_TRUE(connection
                    .Call(&v1::ItemService::Stub::BatchDeleteItems,
                          DeleteOf(kCatalog, {gone.begin(), gone.end()}, ""),
                          &response)
                    .ok());
  }

  static Versions Read(Connection& connection, const std::string& catalog) {
    Versions found;
    v1::AttendResponse answer;
    std::vector<double> query(kDim);
    query[0] = kVersionScale;
    const grpc::Status status = connection.Attend(catalog, "", &answer, query);
    EXPECT_TRUE(status.ok()) << status.error_message();
    for (const v1::AttendedItem& item : answer.items()) {
      EXPECT_TRUE(
          found.emplace(item.id(), static_cast<std::int64_t>(item.logit()))
              .second)
          << item.id();
    }
    return found;
  }

  // Waits until the catalog has its index and nothing is left to build.
  static grpc::Status AwaitIndex(Connection& connection,
                                 const std::string& catalog,
                                 v1::IndexKind kind) {
    v1::GetCatalogRequest request;
    request.set_name(catalog);
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (std::chrono::steady_clock::now() < deadline) {
      v1::GetCatalogResponse response;
      const grpc::Status status = connection.Call(
          &v1::CatalogService::Stub::GetCatalog, request, &response);
      if (!status.ok()) return status;
      const v1::IndexStatus& index = response.catalog().indexes(0);
      if (index.active_kind() == kind && !index.training()) {
        return status;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return {grpc::StatusCode::DEADLINE_EXCEEDED, "there is no index"};
  }

  std::vector<fs::path> SegmentFiles() const {
    std::vector<fs::path> files;
    for (const auto& entry :
         fs::recursive_directory_iterator(data_ / "segments")) {
      if (absl::StartsWith(entry.path().filename().string(), "segment-")) {
        files.push_back(entry.path());
      }
    }
    return files;
  }

  std::mt19937_64 random_;
  const ScratchDirectory data_;
  std::int64_t version_ = 0;
  Versions merged_;
};

TEST_P(CrashSegmentsTest, KilledWhileSegmentsAreMadeAndRead) {
  const std::int64_t rounds = Flag("rounds", 1);
  for (std::int64_t i = 0; i < rounds; ++i) {
    for (const std::string_view name : kFailPoints) {
      if (!IsOfBackground(name)) continue;
      // Only IVF seals segments.
      if (GetParam() != v1::INDEX_KIND_IVF && name.starts_with("seal.")) {
        continue;
      }
      RunRound(std::string(name));
      if (HasFailure()) return;
    }
  }
}

// Under a sanitizer one kind suffices: the same code dies, and kinds differ
// only in the contents of their files, which other tests read damaged.
std::vector<v1::IndexKind> Kinds() {
  if (kSanitized) return {v1::INDEX_KIND_IVF};
  return {v1::INDEX_KIND_IVF, v1::INDEX_KIND_HNSW, v1::INDEX_KIND_PQ};
}

INSTANTIATE_TEST_SUITE_P(Kinds, CrashSegmentsTest, ::testing::ValuesIn(Kinds()),
                         [](const auto& kind) {
                           return v1::IndexKind_Name(kind.param);
                         });

}  // namespace
}  // namespace attendant
