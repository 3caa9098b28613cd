// A write is on the disk when it is acknowledged. RocksDB syncs its log with
// fdatasync, and we sync files and directories with fsync. The functions below
// replace both: they sync too, and record how much of which file is safe, and
// in what order.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "core/base/mutex.h"
#include "core/storage/records/store.h"
#include "tests/core/storage/test_store.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

// Number of synced bytes of each file, by inode.
class SyncedFiles {
 public:
  static SyncedFiles& Get() {
    static auto* const files = new SyncedFiles;
    return *files;
  }
  void Note(const struct stat& file) {
    MutexLock lock(&mutex_);
    bytes_[file.st_ino] = file.st_size;
    order_.push_back(file.st_ino);
  }
  off_t BytesOf(ino_t inode) {
    MutexLock lock(&mutex_);
    return bytes_[inode];
  }
  // Returns the inodes synced since the last call.
  std::vector<ino_t> TakeOrder() {
    MutexLock lock(&mutex_);
    return std::exchange(order_, {});
  }

 private:
  Mutex mutex_;
  std::map<ino_t, off_t> bytes_ ABSL_GUARDED_BY(mutex_);
  std::vector<ino_t> order_ ABSL_GUARDED_BY(mutex_);
};

// Expects the logs in a database's directory to be synced up to their end.
// Returns their length.
off_t ExpectLogsSynced(const std::string& directory) {
  off_t total = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (!absl::EndsWith(entry.path().string(), ".log")) continue;
    struct stat file;
    EXPECT_EQ(stat(entry.path().c_str(), &file), 0);
    EXPECT_EQ(SyncedFiles::Get().BytesOf(file.st_ino), file.st_size)
        << entry.path();
    total += file.st_size;
  }
  return total;
}

struct stat StatOf(const std::string& path) {
  struct stat file = {};
  EXPECT_EQ(stat(path.c_str(), &file), 0) << path;
  return file;
}

// A record that outlives its file is a damaged model.
TEST(SyncTest, AModelsFileIsSyncedBeforeItsRecord) {
  ScratchDirectory directory;
  ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(directory / "data"));
  ASSERT_OK(store->Put(TestRecord()));
  std::string log;
  for (const auto& entry :
       std::filesystem::directory_iterator(directory / "data/catalogs")) {
    if (entry.path().extension() == ".log") log = entry.path().string();
  }
  SyncedFiles::Get().TakeOrder();
  ASSERT_OK(store->PutModel(TestModel("text", 1)));
  const struct stat file = StatOf(directory / "data/models/text/1");
  EXPECT_GT(file.st_size, 0);
  EXPECT_EQ(SyncedFiles::Get().BytesOf(file.st_ino), file.st_size);
  EXPECT_EQ(
      SyncedFiles::Get().TakeOrder(),
      (std::vector<ino_t>{StatOf(directory / "data").st_ino,
                          StatOf(directory / "data/models").st_ino, file.st_ino,
                          StatOf(directory / "data/models/text").st_ino,
                          StatOf(log).st_ino}));
}

TEST(SyncTest, AcknowledgedWritesAreSynced) {
  ScratchDirectory directory;
  ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(directory / "data"));
  ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(TestRecord()));
  off_t before = ExpectLogsSynced(directory / "data/catalogs");
  ASSERT_OK(store->Put(TestRecord()));
  EXPECT_GT(ExpectLogsSynced(directory / "data/catalogs"), before);

  const std::string items = directory / ("data/items/" + TestRecord().uid);
  before = ExpectLogsSynced(items);
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK(WriteItems(*catalog, i, i + 1, i + 1));
    const off_t after = ExpectLogsSynced(items);
    EXPECT_GT(after, before);
    before = after;
  }
  ASSERT_OK(PutTextEncoder(*catalog, "encoder"));
  EXPECT_GT(ExpectLogsSynced(items), before);

  before = ExpectLogsSynced(items);
  ASSERT_OK(catalog->PutActiveModel("text", {"model", 1}));
  EXPECT_GT(ExpectLogsSynced(items), before);

  before = ExpectLogsSynced(directory / "data/catalogs");
  const ModelRecord model = {
      {"text", 1}, absl::UnixEpoch(), 0.0, {BilinearForm{{1, 1, {1}}}}};
  ASSERT_OK(store->PutModel(model));
  EXPECT_GT(ExpectLogsSynced(directory / "data/catalogs"), before);

  before = ExpectLogsSynced(directory / "data/catalogs");
  ASSERT_OK(store->RemoveModel(model.name));
  EXPECT_GT(ExpectLogsSynced(directory / "data/catalogs"), before);

  before = ExpectLogsSynced(directory / "data/catalogs");
  ASSERT_OK(store->RemoveRecord(TestRecord().name));
  EXPECT_GT(ExpectLogsSynced(directory / "data/catalogs"), before);
}

}  // namespace
}  // namespace attendant

namespace {

int SyncAndNote(long call, int fd) {
  struct stat file;
  if (fstat(fd, &file) != 0) return -1;
  if (syscall(call, fd) != 0) return -1;
  attendant::SyncedFiles::Get().Note(file);
  return 0;
}

}  // namespace

extern "C" int fdatasync(int fd) { return SyncAndNote(SYS_fdatasync, fd); }
extern "C" int fsync(int fd) { return SyncAndNote(SYS_fsync, fd); }
