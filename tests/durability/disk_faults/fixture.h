// Fails one disk call at each point of a fixed history. No write is
// acknowledged unless it is durable, reads go on, writes resume by themselves
// once the disk is well, and a restart loses nothing.
//   disk_fault_test --points=500
// runs the long form: every call of longer histories, at least 500 points.
#ifndef ATTENDANT_TESTS_DURABILITY_DISK_FAULTS_FIXTURE_H_
#define ATTENDANT_TESTS_DURABILITY_DISK_FAULTS_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/catalog/live/catalog_set.h"
#include "tests/durability/faulty_file_system.h"
#include "tests/support/scratch_directory.h"

namespace attendant {

// True for the long form, which has longer histories.
bool IsLong();

class DiskFaultTest : public ::testing::Test {
 protected:
  // Prints how many points were tested, and checks that they suffice unless a
  // filter excluded tests.
  static void TearDownTestSuite();

  // Adds `count` places at which a call failed.
  static void CountPoints(int count, int least);

 private:
  static int point_count_;
};

CatalogSchema SchemaOf(IndexKind index_kind);
Item ItemOf(int i);

// One catalog on a disk that may fail. Each write has one item.
class FaultyCatalog {
 public:
  // `seed` determines what a power cut leaves.
  explicit FaultyCatalog(IndexKind index_kind = IndexKind::kFlat,
                         std::uint64_t seed = 1,
                         const LiveCatalogOptions& options = {})
      : schema_(SchemaOf(index_kind)),
        options_(options),
        files_(std::make_shared<FaultyFileSystem>(path(), seed)) {}

  // Takes effect at the next Open; for keys, only if the catalog does not exist
  // yet.
  void KeepKeysOnDisk() { schema_.key_fields[0].keys_on_disk = true; }
  void LimitMemory(std::int64_t bytes) { memory_limit_bytes_ = bytes; }

  FaultyFileSystem& files() { return *files_; }
  std::string path() const { return directory_ / "data"; }

  absl::Status Open();
  void Close() {
    catalog_ = nullptr;
    set_ = nullptr;
  }
  // Reopens the catalog after a power cut.
  absl::Status OpenAfterCut();

  absl::Status Write();

  // Has all indexes rebuilt as `kind`; in effect until the next Open.
  absl::Status WantIndex(IndexKind kind);

  // Expects every acknowledged write and none that failed.
  void ExpectAcknowledged();

  std::set<std::string> SegmentFileNames() const;

  CatalogSet& set() { return *set_; }
  LiveCatalog& catalog() { return *catalog_; }

  // Expects each stored snapshot to be complete.
  void ExpectWholeSnapshots();

 private:
  const ScratchDirectory directory_;
  CatalogSchema schema_;
  std::int64_t memory_limit_bytes_ = 0;
  const LiveCatalogOptions options_;
  const std::shared_ptr<FaultyFileSystem> files_;
  std::unique_ptr<CatalogSet> set_;
  std::shared_ptr<LiveCatalog> catalog_;
  int next_ = 0;
  std::vector<Item> acknowledged_;
  std::vector<Item> failed_;
};

std::string Text(const FileFault& fault);

// Runs `fail_one` with a fault in each call on paths that contain `path_part`,
// until the history has no such call left. Returns the number of calls.
int FailEach(const std::string& path_part, bool (*fail_one)(const FileFault&));

// Expects `status` to be the error that `fault` causes.
void ExpectOf(const FileFault& fault, const absl::Status& status,
              FaultyCatalog& catalog);

}  // namespace attendant

#endif  // ATTENDANT_TESTS_DURABILITY_DISK_FAULTS_FIXTURE_H_
