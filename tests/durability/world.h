// Catalogs on a disk that may fail, beside a plain model of what they must
// hold, and random operations on both.
#ifndef ATTENDANT_TESTS_DURABILITY_WORLD_H_
#define ATTENDANT_TESTS_DURABILITY_WORLD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/catalog/live/catalog_set.h"
#include "tests/durability/faulty_file_system.h"
#include "tests/durability/plain_catalog.h"

namespace attendant {

// Every method returns Internal, saying what was found and what should have
// been, as soon as catalogs and model differ: the bug. After that it is of no
// further use. Not thread-safe.
//
// To add an operation: a method like the others, and its line in Step.
class World {
 public:
  // The directory is the root of `files` or below. The same seed does the same
  // operations.
  World(std::string directory, std::shared_ptr<FaultyFileSystem> files,
        std::uint64_t seed);

  // Opens what the directory holds and compares all of it. If opening fails
  // because of an injected fault or a cut, it is not open afterwards.
  absl::Status Open();
  void Close();
  bool is_open() const { return catalogs_ != nullptr; }

  // One operation, by chance. A write that fails, or returns after the power
  // was cut, may be found by the next Open or not. Opens first if need be.
  absl::Status Step();

  // The same writes again as clients send them that had no reply: those that
  // failed since the last Open but one. Once it is open again, and before
  // anything else is written.
  absl::Status RepeatUnanswered();

  // Compares all catalogs with the model.
  absl::Status CompareAll();

  std::int64_t acknowledged_count() const { return acknowledged_count_; }

 private:
  using Catalog = std::shared_ptr<LiveCatalog>;

  // True if a failure may be one that was asked for.
  bool FailureIsDue() const;
  // Internal if the failure is not, or not told as one of the disk; else OK.
  absl::Status CheckFailure(const absl::Status& status,
                            const std::string& what) const;

  // Operations. Those on a catalog take its name.
  absl::Status Upsert(const std::string& name);
  // Several writes of which all but the first share a sync.
  absl::Status WriteTogether(const std::string& name);
  absl::Status InsertAbsent(const std::string& name);
  absl::Status UpsertIfUnchanged(const std::string& name);
  absl::Status Update(const std::string& name);
  absl::Status DeleteMatching(const std::string& name);
  absl::Status UpsertWithOneThatIsInvalid(const std::string& name);
  absl::Status Delete(const std::string& name);
  absl::Status Import(const std::string& name);
  absl::Status Repeat(const std::string& name);
  absl::Status Query(const std::string& name);
  absl::Status GetOne(const std::string& name);
  absl::Status ListPage(const std::string& name);
  absl::Status AwaitIndexes(const std::string& name);
  absl::Status Create(const std::string& name);
  absl::Status Drop(const std::string& name);
  absl::Status PointAlias(const std::string& name);
  absl::Status RemoveAlias(const std::string& name);
  absl::Status AddModel(const std::string& name);
  absl::Status RemoveModel(const std::string& name);
  absl::Status TakeSnapshot(const std::string& name);
  absl::Status RemoveSnapshot(const std::string& name);
  absl::Status Restore(const std::string& name);

  absl::Status Send(const std::string& name, const PlainWrite& write);
  // What came of writes that are stored as one: all of them or none. They make
  // of `state`, which may not be certain after a cut, what it is next.
  absl::Status SettleGroup(
      const std::string& name, std::span<const PlainWrite> writes,
      std::span<const absl::StatusOr<WriteOutcome>> outcomes,
      PlainCatalog& state);
  // As the catalog answers it.
  static absl::StatusOr<WriteOutcome> Submit(LiveCatalog& catalog,
                                             const PlainWrite& write);
  // OK if the write was refused by this code, as it should be.
  absl::Status CheckRefusal(const absl::Status& status, absl::StatusCode want,
                            const std::string& what) const;
  absl::Status Compare(const std::string& name, const PlainCatalog& plain,
                       std::int64_t least_sequence) const;
  absl::Status Settle();
  PlainLists ReadLists() const;
  absl::Status CompareModels() const;
  // The snapshots that there are are whole, and those that there must be.
  absl::Status SettleSnapshots();
  // `after` is what the lists are now, or, if the operation has no OK, what
  // they may be after a restart.
  absl::Status SetLists(const absl::Status& status, PlainLists after,
                        const std::string& what);

  int Random(int count) { return static_cast<int>(random_() % count); }
  std::string RandomId();
  Item RandomItem(const std::string& id);
  std::string RandomRequestId();

  const std::string directory_;
  const std::shared_ptr<FaultyFileSystem> files_;
  const bool settles_at_once_;
  std::mt19937_64 random_;
  std::unique_ptr<CatalogSet> catalogs_;
  // What is visible now of the catalogs of lists_, by name; of others what they
  // may be found with.
  std::map<std::string, UncertainCatalog> plain_;
  PlainLists lists_;
  // What may be found after a restart in place of this.
  std::vector<PlainLists> other_lists_;
  // What each holds. Those that a failure left uncertain may be there or not.
  std::map<SnapshotId, PlainCatalog> snapshots_;
  std::set<SnapshotId> uncertain_snapshots_;
  std::int64_t snapshot_count_ = 0;
  std::int64_t tried_model_ =
      0;  // the last version, whether it was made or not
  struct Unanswered {
    std::string name;
    PlainWrite write;
  };
  std::optional<Unanswered> unanswered_;
  std::int64_t write_count_ = 0;
  std::int64_t acknowledged_count_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_DURABILITY_WORLD_H_
