// One call to the disk fails, at each place of a fixed history: no write is
// acknowledged that is not durable, reads go on, writes go on by themselves
// once the disk is well, and after a restart nothing is lost.
//
//   disk_fault_test --points=500     the long form: each call of longer
//                                    histories, so many at least
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

// The long form, of longer histories.
bool IsLong();

class DiskFaultTest : public ::testing::Test {
 protected:
  // Tells how many points there were, and that these are enough unless a
  // filter left some tests out.
  static void TearDownTestSuite();

  // So many places at which a call failed.
  static void CountPoints(int count, int least);

 private:
  static int point_count_;
};

CatalogSchema SchemaOf(IndexKind index_kind);
Item ItemOf(int i);

// Of one catalog on a disk that may fail. Writes are of one item each.
class FaultyCatalog {
 public:
  // What a power cut leaves depends on the seed.
  explicit FaultyCatalog(IndexKind index_kind = IndexKind::kFlat,
                         std::uint64_t seed = 1,
                         const LiveCatalogOptions& options = {})
      : schema_(SchemaOf(index_kind)),
        options_(options),
        files_(std::make_shared<FaultyFileSystem>(path(), seed)) {}

  // From the next Open on; of keys where there is no catalog yet.
  void KeepKeysOnDisk() { schema_.key_fields[0].keys_on_disk = true; }
  void LimitMemory(std::int64_t bytes) { memory_limit_bytes_ = bytes; }

  FaultyFileSystem& files() { return *files_; }
  std::string path() const { return directory_ / "data"; }

  absl::Status Open();
  void Close() {
    catalog_ = nullptr;
    set_ = nullptr;
  }
  // After a power cut.
  absl::Status OpenAfterCut();

  absl::Status Write();

  // Has all built anew, until it is opened again.
  absl::Status WantIndex(IndexKind kind);

  // What was acknowledged, and nothing that failed.
  void ExpectAcknowledged();

  std::set<std::string> SegmentFileNames() const;

  CatalogSet& set() { return *set_; }
  LiveCatalog& catalog() { return *catalog_; }

  // The stored snapshots that there are are whole.
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

// Runs `fail_one` with each fault of the files under a path, until the history
// has no such call. Returns how many there were.
int FailEach(const std::string& path_part, bool (*fail_one)(const FileFault&));

// A failure is the fault's, and says so.
void ExpectOf(const FileFault& fault, const absl::Status& status,
              FaultyCatalog& catalog);

}  // namespace attendant

#endif  // ATTENDANT_TESTS_DURABILITY_DISK_FAULTS_FIXTURE_H_
