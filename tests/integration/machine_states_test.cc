// attendantd on a machine in trouble: a full disk, an unwritable directory, no
// file handles left.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/config.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "tests/integration/binaries.h"
#include "tests/integration/process.h"
#include "tests/integration/requests.h"
#include "tests/integration/server_process.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kDim = 256;

absl::Status Create(Client& client, const std::string& name) {
  return CreateCatalog(client, name,
                       {KeyFieldOf("key", kDim, v1::SCORE_KIND_DOT)});
}

v1::Item TestItem(int number, int version) {
  v1::Item item = ItemOf(absl::StrCat("item", number), "key",
                         std::vector<double>(kDim, number % 7 + 1));
  (*item.mutable_attributes())["version"].set_int64_value(version);
  return item;
}

absl::Status Ask(Client& client, const std::string& catalog) {
  v1::AttendRequest request;
  request.set_catalog(catalog);
  *request.mutable_query()->mutable_vector() =
      VectorOf(std::vector<double>(kDim, 1));
  return client.Attend(request).status();
}

// Mounts a file system of `size` at `path`, visible to this thread and the
// processes that it starts. Returns false where that is not permitted.
bool MountSmall(const std::string& path, const std::string& size) {
  static const bool is_private =
      unshare(CLONE_NEWNS) == 0 &&
      mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  return is_private && mount("none", path.c_str(), "tmpfs", 0,
                             absl::StrCat("size=", size).c_str()) == 0;
}

constexpr char kNeedsRoot[] =
    "needs the right to mount file systems (root, CAP_SYS_ADMIN)";

// Acknowledged items: "version" by id.
using Acknowledged = std::map<std::string, std::int64_t>;

// Writes batches of 64 items until one is refused, and adds the acknowledged
// ones to `acknowledged`. Returns the refusal.
absl::Status Fill(Client& client, int* next, Acknowledged* acknowledged) {
  while (true) {
    std::vector<v1::Item> items;
    for (int i = 0; i < 64; ++i) items.push_back(TestItem(*next + i, *next));
    const absl::Status status =
        client.BatchUpsertItems(UpsertOf("shop", items)).status();
    if (!status.ok()) return status;
    for (const v1::Item& item : items) (*acknowledged)[item.id()] = *next;
    *next += 64;
  }
}

// Returns the body of a page of the HTTP port, which must answer OK.
std::string Page(const ServerProcess& server, const std::string& path) {
  const auto page =
      httplib::Client("http://" + server.http_address()).Get(path);
  EXPECT_TRUE(page && page->status == 200) << path;
  return page ? page->body : "";
}

// Returns the first body of /readyz for which `is_so` holds, or the last one
// after 10 s: the server checks the disk every second.
template <typename Condition>
std::string ReadinessOnce(const ServerProcess& server, Condition is_so) {
  const absl::Time give_up = absl::Now() + absl::Seconds(10);
  std::string body = Page(server, "/readyz");
  while (!is_so(body) && absl::Now() < give_up) {
    absl::SleepFor(absl::Milliseconds(50));
    body = Page(server, "/readyz");
  }
  return body;
}

bool TellsOfDisk(absl::string_view readiness) {
  return absl::StrContains(readiness, "disk: ");
}

TEST(FullDiskTest, WritesAreRefusedReadsGoOnAndWritesResumeByThemselves) {
  const ScratchDirectory data;
  if (!MountSmall(data.path(), "24m")) GTEST_SKIP() << kNeedsRoot;
  Acknowledged acknowledged;
  int next = 0;
  {
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
    ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
    ASSERT_OK(Create(*client, "shop"));
    const absl::Status full = Fill(*client, &next, &acknowledged);
    EXPECT_THAT(full,
                StatusIs(absl::StatusCode::kResourceExhausted,
                         AllOf(HasSubstr(data.path()), HasSubstr("full"))));
    EXPECT_EQ(ReasonOf(full), "DISK_FULL");
    ASSERT_GT(next, 0);
    EXPECT_THAT(ReadinessOnce(*server, TellsOfDisk),
                AllOf(HasSubstr("\"ready\""), HasSubstr("disk: "),
                      HasSubstr("writes")));
    EXPECT_THAT(Page(*server, "/metrics"),
                HasSubstr("attendant_data_disk_free_bytes"));
    EXPECT_OK(Ask(*client, "shop"));
    ASSERT_OK_AND_ASSIGN(const auto listed, ListVersions(*client, "shop"));
    EXPECT_EQ(listed, acknowledged);

    // Once there is room again, writes resume without a restart.
    ASSERT_EQ(
        mount("none", data.path().c_str(), "tmpfs", MS_REMOUNT, "size=256m"),
        0);
    ASSERT_OK(client->BatchUpsertItems(
        UpsertOf("shop", {TestItem(next, /*version=*/-1)})));
    acknowledged[absl::StrCat("item", next)] = -1;
    EXPECT_OK(Create(*client, "another"));
    EXPECT_THAT(ReadinessOnce(*server, std::not_fn(TellsOfDisk)),
                ::testing::Not(HasSubstr("disk: ")));
    server->Kill();
  }
  {
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
    ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
    ASSERT_OK_AND_ASSIGN(const auto listed, ListVersions(*client, "shop"));
    EXPECT_EQ(listed, acknowledged);
  }
  umount(data.path().c_str());
}

// Writes a foreign file that takes all free space.
void TakeAllSpace(const std::string& path) {
  const int fd = OpenForWriting(path);
  ASSERT_GE(fd, 0);
  const std::string bytes(1 << 16, 'x');
  std::size_t size = bytes.size();
  // Writes ever smaller pieces until not a byte fits.
  while (size > 0) {
    if (write(fd, bytes.data(), size) <= 0) size /= 2;
  }
  close(fd);
}

// Polls until the catalog has an index and nothing is left to build.
void AwaitIndex(Client& client, const std::string& catalog) {
  v1::GetCatalogRequest request;
  request.set_name(catalog);
  const SteadyTime deadline = SteadyAfter(absl::Minutes(1));
  while (SteadyNow() < deadline) {
    ASSERT_OK_AND_ASSIGN(const auto response, client.GetCatalog(request));
    const v1::IndexStatus& index = response.catalog().indexes(0);
    if (index.active_kind() == v1::INDEX_KIND_IVF && !index.training()) return;
    absl::SleepFor(absl::Milliseconds(20));
  }
  FAIL() << catalog << " has no index";
}

bool HasSegmentFiles(const std::string& data_dir) {
  const std::string path = data_dir + "/segments";
  if (!std::filesystem::exists(path)) return false;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(path)) {
    if (entry.path().filename() == "MANIFEST") return true;
  }
  return false;
}

class StoredSnapshotCalls {
 public:
  explicit StoredSnapshotCalls(Client* client) : client_(client) {}

  absl::Status Create(const std::string& name) {
    v1::CreateSnapshotRequest request;
    request.set_catalog("shop");
    request.set_name(name);
    return client_->CreateSnapshot(request, {}).status();
  }
  absl::Status Verify(const std::string& name) {
    v1::VerifySnapshotRequest request;
    request.set_catalog("shop");
    request.set_name(name);
    return client_->VerifySnapshot(request, {}).status();
  }
  absl::Status Restore(const std::string& name, const std::string& catalog) {
    v1::RestoreSnapshotRequest request;
    request.set_catalog("shop");
    request.set_name(name);
    request.set_new_catalog(catalog);
    return client_->RestoreSnapshot(request, {}).status();
  }
  // Lists the existing snapshots; a damaged one is a failure.
  std::vector<std::string> List() {
    const auto list = client_->ListSnapshots(v1::ListSnapshotsRequest());
    EXPECT_OK(list);
    std::vector<std::string> names;
    if (!list.ok()) return names;
    EXPECT_EQ(list->damaged_snapshots_size(), 0);
    for (const v1::StoredSnapshot& snapshot : list->snapshots()) {
      names.push_back(snapshot.name());
    }
    return names;
  }

 private:
  Client* const client_;
};

TEST(FullDiskTest, SnapshotsAndIndexFilesWaitForSpace) {
  const ScratchDirectory disk;
  if (!MountSmall(disk.path(), "64m")) GTEST_SKIP() << kNeedsRoot;
  const std::string data = disk / "data";
  const auto is_full =
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("full"));
  Acknowledged acknowledged;
  int next = 0;
  const auto write = [&](Client& client, int count) {
    std::vector<v1::Item> items;
    for (int i = 0; i < count; ++i) items.push_back(TestItem(next + i, next));
    const absl::Status status =
        client.BatchUpsertItems(UpsertOf("shop", items)).status();
    if (!status.ok()) return status;
    for (const v1::Item& item : items) acknowledged[item.id()] = next;
    next += count;
    return status;
  };
  {
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data));
    ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
    v1::KeyField field = KeyFieldOf("key", kDim, v1::SCORE_KIND_DOT);
    field.set_index_kind(v1::INDEX_KIND_IVF);
    ASSERT_OK(CreateCatalog(*client, "shop", {field}));
    for (int i = 0; i < 12; ++i) ASSERT_OK(write(*client, 100));
    StoredSnapshotCalls snapshots(client.get());
    ASSERT_OK(snapshots.Create("before"));
    ASSERT_OK(write(*client, 10));
    TakeAllSpace(disk / "ballast");
    EXPECT_THAT(write(*client, 10), is_full);
    EXPECT_THAT(snapshots.Create("during"), is_full);
    EXPECT_THAT(snapshots.Restore("before", "old"), is_full);
    // The index is built nevertheless; it has no files yet.
    AwaitIndex(*client, "shop");
    EXPECT_OK(Ask(*client, "shop"));
    EXPECT_OK(snapshots.Verify("before"));
    EXPECT_EQ(snapshots.List(), (std::vector<std::string>{"before"}));
    ASSERT_OK_AND_ASSIGN(const auto listed, ListVersions(*client, "shop"));
    EXPECT_EQ(listed, acknowledged);

    std::filesystem::remove(disk / "ballast");
    ASSERT_OK(write(*client, 10));
    EXPECT_OK(snapshots.Create("after"));
    EXPECT_OK(snapshots.Verify("after"));
    EXPECT_OK(snapshots.Restore("before", "old"));
    for (int i = 0; i < 12; ++i) ASSERT_OK(write(*client, 100));
    const SteadyTime deadline = SteadyAfter(absl::Minutes(1));
    while (!HasSegmentFiles(data) && SteadyNow() < deadline) {
      absl::SleepFor(absl::Milliseconds(20));
    }
    EXPECT_TRUE(HasSegmentFiles(data));
    server->Kill();
  }
  {
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data));
    ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
    ASSERT_OK_AND_ASSIGN(const auto listed, ListVersions(*client, "shop"));
    EXPECT_EQ(listed, acknowledged);
    StoredSnapshotCalls snapshots(client.get());
    EXPECT_EQ(snapshots.List(), (std::vector<std::string>{"after", "before"}));
    EXPECT_OK(snapshots.Verify("after"));
  }
  umount(disk.path().c_str());
}

CommandResult RunServer(const std::string& data_dir) {
  return RunCommand(
      {kAttendantd, "--data-dir", data_dir, "--listen", "127.0.0.1:0"});
}

TEST(UnwritableDirectoryTest, WritesAreRefusedReadsGoOnAndWritesResume) {
  const ScratchDirectory data;
  if (!MountSmall(data.path(), "256m")) GTEST_SKIP() << kNeedsRoot;
  const char* const path = data.path().c_str();
  const auto is_denied = StatusIs(
      absl::StatusCode::kUnavailable,
      AllOf(HasSubstr(data.path()), HasSubstr("Read-only file system")));
  Acknowledged acknowledged;
  int next = 0;
  {
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
    ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
    ASSERT_OK(Create(*client, "shop"));
    // The same files, now read-only for later opens.
    ASSERT_EQ(mount(path, path, nullptr, MS_BIND, nullptr), 0);
    ASSERT_EQ(
        mount("none", path, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr),
        0);
    // Writes succeed as long as they fit in the open log.
    const absl::Status denied = Fill(*client, &next, &acknowledged);
    EXPECT_THAT(denied, is_denied);
    EXPECT_EQ(ReasonOf(denied), kFilesNotAccessible);
    EXPECT_THAT(Fill(*client, &next, &acknowledged), is_denied);
    EXPECT_THAT(Create(*client, "another"), is_denied);
    EXPECT_OK(Ask(*client, "shop"));
    ASSERT_OK_AND_ASSIGN(const auto listed, ListVersions(*client, "shop"));
    EXPECT_EQ(listed, acknowledged);
    EXPECT_THAT(server->log(), HasSubstr("call_failed"));

    // Once the rights are restored, writes resume without a restart.
    ASSERT_EQ(umount2(path, MNT_DETACH), 0);
    ASSERT_OK(client->BatchUpsertItems(
        UpsertOf("shop", {TestItem(next, /*version=*/-1)})));
    acknowledged[absl::StrCat("item", next)] = -1;
    EXPECT_OK(Create(*client, "another"));
    server->Kill();
  }
  {
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
    ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
    ASSERT_OK_AND_ASSIGN(const auto listed, ListVersions(*client, "shop"));
    EXPECT_EQ(listed, acknowledged);
  }
  umount(path);
}

TEST(UnwritableDirectoryTest, AReadOnlyDiskIsSaidAtStart) {
  const ScratchDirectory data;
  if (!MountSmall(data.path(), "64m")) GTEST_SKIP() << kNeedsRoot;
  for (const bool has_data : {false, true}) {
    if (has_data) {
      ASSERT_OK_AND_ASSIGN(const auto server,
                           ServerProcess::Start(data.path()));
      ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
      ASSERT_OK(Create(*client, "shop"));
      EXPECT_EQ(server->Stop(), 0);
    }
    ASSERT_EQ(mount("none", data.path().c_str(), "tmpfs",
                    MS_REMOUNT | MS_RDONLY, "size=64m"),
              0);
    const CommandResult result = RunServer(data.path());
    EXPECT_EQ(result.exit_status, 1);
    EXPECT_THAT(result.err,
                AllOf(HasSubstr(data.path()), HasSubstr("--data-dir")));
    ASSERT_EQ(
        mount("none", data.path().c_str(), "tmpfs", MS_REMOUNT, "size=64m"), 0);
  }
  // The directory was left unchanged.
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
  ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
  EXPECT_OK(client->ListCatalogs(v1::ListCatalogsRequest()));
  EXPECT_EQ(server->Stop(), 0);
  umount(data.path().c_str());
}

TEST(UnwritableDirectoryTest, ADirectoryOfSomebodyElseIsSaidAtStart) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to run as somebody else";
  const ScratchDirectory data;
  ASSERT_EQ(chmod(data.path().c_str(), 0755), 0);
  // The test's files may be in a directory that other users cannot enter.
  const CommandResult reach =
      RunCommand({"/usr/bin/setpriv", "--reuid=65534", "--regid=65534",
                  "--clear-groups", kAttendantd, "--version"});
  if (reach.exit_status != 0) {
    GTEST_SKIP() << "user 65534 can't run " << kAttendantd << ": " << reach.err;
  }
  const CommandResult result = RunCommand(
      {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
       kAttendantd, "--data-dir", data.path(), "--listen", "127.0.0.1:0"});
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr(data.path()), HasSubstr("--data-dir")));
}

TEST(FileHandlesTest, AreNamedWhenTheyAreOutAndNothingIsLost) {
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  GTEST_SKIP() << "sanitizers open a pipe to see whether an object is one, and "
                  "call it none where file handles are out";
#endif
  const ScratchDirectory data;
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  {
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
    ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
    ASSERT_OK(Create(*client, "shop"));
    ASSERT_OK(client->BatchUpsertItems(UpsertOf("shop", {TestItem(0, 7)})));
    // Limits only the running server, to its open files and a few more.
    const pid_t pid = server->pid();
    rlimit limit = before;
    limit.rlim_cur = 40;
    ASSERT_EQ(prlimit(pid, RLIMIT_NOFILE, &limit, nullptr), 0);
    absl::Status status;
    int count = 0;
    for (; count < 100 && status.ok(); ++count) {
      status = Create(*client, absl::StrCat("catalog", count));
    }
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                                 HasSubstr("open files")))
        << server->log();
    EXPECT_EQ(ReasonOf(status), "TOO_MANY_OPEN_FILES");
    // Connections may use a third of the handles.
    for (int i = 0; i < 3; ++i) {
      ASSERT_OK_AND_ASSIGN(const auto another, server->Connect());
      EXPECT_OK(Ask(*another, "shop"));
    }
    EXPECT_OK(Ask(*client, "shop"));
    ASSERT_OK_AND_ASSIGN(const auto listed, ListVersions(*client, "shop"));
    EXPECT_EQ(listed, (Acknowledged{{"item0", 7}}));

    // Once handles are available, the server goes on.
    limit.rlim_cur = limit.rlim_max;
    ASSERT_EQ(prlimit(pid, RLIMIT_NOFILE, &limit, nullptr), 0);
    EXPECT_OK(Create(*client, absl::StrCat("catalog", count - 1)));
    EXPECT_OK(client->BatchUpsertItems(UpsertOf("shop", {TestItem(1, 8)})));
    server->Kill();
  }
  // A server that would have no handles left for connections refuses to start.
  for (const std::string limit : {"24", "32"}) {
    const CommandResult result = RunCommand(
        {"/usr/bin/prlimit", absl::StrCat("--nofile=", limit, ":", limit),
         kAttendantd, "--data-dir", data.path(), "--listen", "127.0.0.1:0"});
    EXPECT_EQ(result.exit_status, 1);
    EXPECT_THAT(result.err, HasSubstr("raise the limit on open files"));
  }
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
  ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
  ASSERT_OK_AND_ASSIGN(const auto listed, ListVersions(*client, "shop"));
  EXPECT_EQ(listed, (Acknowledged{{"item0", 7}, {"item1", 8}}));
}

// The disk fails only where index files are stored.
TEST(SegmentFilesTest, ThatCantBeWrittenAreLoggedAndDescribed) {
  const ScratchDirectory data;
  ASSERT_OK_AND_ASSIGN(
      const auto server,
      ServerProcess::Start(
          data.path(), {},
          {"ATTENDANT_FAIL_POINT=segments.before_manifest=error"}));
  ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
  v1::KeyField field = KeyFieldOf("key", kDim, v1::SCORE_KIND_DOT);
  field.set_index_kind(v1::INDEX_KIND_IVF);
  ASSERT_OK(CreateCatalog(*client, "shop", {field}));
  const auto write = [&](int begin) {
    for (int i = begin; i < begin + 2048; i += 64) {
      std::vector<v1::Item> items;
      for (int j = i; j < i + 64; ++j) items.push_back(TestItem(j, j));
      ASSERT_OK(client->BatchUpsertItems(UpsertOf("shop", items)));
    }
  };
  const auto await_log = [&](const std::string& event) {
    const SteadyTime give_up = SteadyAfter(absl::Minutes(1));
    while (!absl::StrContains(server->log(), event)) {
      ASSERT_LT(SteadyNow(), give_up) << server->log();
      absl::SleepFor(absl::Milliseconds(50));
    }
  };
  write(0);
  await_log("\"segment_files_not_written\"");
  const CommandResult described =
      RunCommand({kAttendant, "--server", server->address(), "catalog",
                  "describe", "shop"});
  EXPECT_THAT(described.out, AllOf(HasSubstr("Warning: the index could not"),
                                   HasSubstr("fail point")));
  EXPECT_OK(Ask(*client, "shop"));

  write(2048);
  await_log("\"segment_files_written\"");
}

}  // namespace
}  // namespace attendant
