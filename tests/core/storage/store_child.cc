// Child process of the store's tests. Prints lines for the test to read; an
// unexpected status ends it with exit status 1.
//
//   store_child hold DIR     opens the store, prints "open", waits to be killed
//   store_child write DIR    writes items one by one forever, and prints each
//                            one's number when it is acknowledged
//   store_child fill DIR     see Fill; exit status 77 where mounts are refused
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <string>

#include "absl/strings/match.h"
#include "core/base/status.h"
#include "tests/core/storage/test_store.h"

namespace attendant {
namespace {

constexpr int kNotPossible = 77;

void Say(const std::string& line) {
  printf("%s\n", line.c_str());
  fflush(stdout);
}

int Fail(const absl::Status& status) {
  Say(status.ToString());
  return 1;
}

struct Opened {
  std::unique_ptr<Store> store;
  std::unique_ptr<CatalogStore> catalog;
};

absl::StatusOr<Opened> Open(const std::string& directory) {
  Opened opened;
  ATTENDANT_ASSIGN_OR_RETURN(opened.store, Store::Open(directory));
  ATTENDANT_RETURN_IF_ERROR(opened.store->Put(TestRecord()));
  ATTENDANT_ASSIGN_OR_RETURN(opened.catalog,
                             opened.store->OpenCatalog(TestRecord()));
  return opened;
}

int Hold(const std::string& directory) {
  const auto store = Store::Open(directory);
  if (!store.ok()) return Fail(store.status());
  Say("open");
  pause();
  return 0;
}

int WriteForEver(const std::string& directory) {
  const auto opened = Open(directory);
  if (!opened.ok()) return Fail(opened.status());
  CatalogStore& catalog = *opened->catalog;
  for (std::int64_t i = catalog.sequence();; ++i) {
    const absl::Status status = WriteItems(catalog, i, i + 1, i + 1, TestId(i));
    if (!status.ok()) return Fail(status);
    Say(std::to_string(i));
  }
}

bool IsDiskFull(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && ReasonOf(status) == "DISK_FULL";
}

// Fills a file system except for `left` bytes, until the file is removed.
void TakeSpace(const std::string& path, std::uint64_t left) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  const std::string block(4096, 'x');
  const auto free = [&] {
    struct statvfs stats;
    if (fstatvfs(file, &stats) != 0) return std::uint64_t{0};
    return std::uint64_t{stats.f_bavail} * stats.f_frsize;
  };
  while (free() > left && write(file, block.data(), block.size()) > 0) {
  }
  close(file);
}

// Fills a file system of 24 MiB that only this process sees, first with its own
// writes and then to the last byte; restarts on it, adds room and continues;
// then checks that every acknowledged write is there, and no other.
int Fill(const std::string& directory) {
  if (unshare(CLONE_NEWNS) != 0 ||
      mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("none", directory.c_str(), "tmpfs", 0, "size=24m") != 0) {
    return kNotPossible;
  }
  std::int64_t count = 0;
  {
    auto opened = Open(directory);
    if (!opened.ok()) return Fail(opened.status());
    const CatalogRecord another = TestRecord("another", "00000000000000aa");
    absl::Status status = opened->store->Put(another);
    if (!status.ok()) return Fail(status);
    for (const std::int64_t version : {1, 2}) {
      status = opened->store->PutModel(TestModel("kept", version));
      if (!status.ok()) return Fail(status);
    }
    constexpr std::int64_t kItemsPerWrite = 1000;
    const auto write = [&] {
      status = WriteItems(*opened->catalog, count * kItemsPerWrite,
                          (count + 1) * kItemsPerWrite, count + 1);
      if (status.ok()) ++count;
      return status.ok();
    };
    while (write()) {
    }
    Say("full: " + status.ToString());
    if (!IsDiskFull(status) || count == 0) return 1;
    const std::string rest = directory + "/rest";
    TakeSpace(rest, 1 << 20);
    if (write() || !IsDiskFull(status)) return Fail(status);
    // An operation that frees space is not refused for lack of space.
    const absl::Status removed = opened->store->RemoveRecord(another.name);
    if (!removed.ok()) return Fail(removed);
    const absl::Status freed = opened->store->RemoveModel({"kept", 2});
    if (!freed.ok()) return Fail(freed);
    TakeSpace(rest + "2", 0);
    for (const bool restarted : {false, true}) {
      if (restarted) {
        opened->catalog.reset();
        opened->store.reset();
        auto store = Store::Open(directory);
        if (!store.ok()) return Fail(store.status());
        opened->store = *std::move(store);
        auto catalog = opened->store->OpenCatalog(TestRecord());
        if (!catalog.ok()) return Fail(catalog.status());
        opened->catalog = *std::move(catalog);
        Say("restarted");
      }
      if (write() || !IsDiskFull(status)) return Fail(status);
      const absl::Status put = opened->store->Put(another);
      if (!IsDiskFull(put)) return Fail(put);
      const absl::Status model = opened->store->PutModel(TestModel("new", 1));
      if (!IsDiskFull(model)) return Fail(model);
      if (access((directory + "/models/new").c_str(), F_OK) == 0) {
        return Fail(absl::InternalError("a refused model left files"));
      }
      const CatalogRecord third = TestRecord("third", "00000000000000bb");
      const absl::Status open = opened->store->OpenCatalog(third).status();
      if (!IsDiskFull(open)) return Fail(open);
      // Reads still work.
      const auto items = ScanAll(*opened->catalog);
      if (!items.ok()) return Fail(items.status());
      if (items->size() != static_cast<std::size_t>(count * kItemsPerWrite)) {
        return Fail(absl::DataLossError("some can't be read"));
      }
    }
    unlink(rest.c_str());
    unlink((rest + "2").c_str());
    if (mount("none", directory.c_str(), "tmpfs", MS_REMOUNT, "size=256m")) {
      return kNotPossible;
    }
    for (int i = 0; i < 3; ++i) {
      if (!write()) return Fail(status);
    }
    if (const absl::Status put = opened->store->Put(another); !put.ok()) {
      return Fail(put);
    }
    status = opened->store->PutModel(TestModel("new", 2));
    if (!status.ok()) return Fail(status);
    Say("recovered");
  }
  const auto opened = Open(directory);
  if (!opened.ok()) return Fail(opened.status());
  const auto items = ScanAll(*opened->catalog);
  if (!items.ok()) return Fail(items.status());
  for (std::size_t i = 0; i < items->size(); ++i) {
    if ((*items)[i] != TestItem(static_cast<std::int64_t>(i))) {
      return Fail(absl::DataLossError("item " + std::to_string(i)));
    }
  }
  if (items->size() != static_cast<std::size_t>(count) * 1000 ||
      opened->catalog->sequence() != count) {
    return Fail(absl::DataLossError("found " + std::to_string(items->size())));
  }
  const auto models = opened->store->ListModels();
  if (!models.ok()) return Fail(models.status());
  if (!models->damages.empty() ||
      models->records !=
          std::vector{TestModel("kept", 1), TestModel("new", 2)}) {
    return Fail(absl::DataLossError("models"));
  }
  Say("complete");
  return 0;
}

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string verb = argv[1];
  if (verb == "hold") return attendant::Hold(argv[2]);
  if (verb == "write") return attendant::WriteForEver(argv[2]);
  if (verb == "fill") return attendant::Fill(argv[2]);
  return 2;
}
