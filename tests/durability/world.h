// Catalogs on a disk that may fail, a plain model of what they must hold, and
// random operations on both.
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

// Returns true if the fault, which has hit a call, may be why something failed
// like this: the error is the one that was injected and names the call's path.
// A delay explains nothing. Data is lost only for want of a snapshot's part.
bool Explains(const FileFault& fault, const absl::Status& status);

// Every method returns Internal as soon as catalogs and model differ, that is,
// when it finds a bug; the message states the actual and the expected state.
// The object is unusable after that. Not thread-safe.
//
// To add an operation, add a method like the others and a line in Step.
class World {
 public:
  // `directory` is the root of `files` or below it. One seed always gives the
  // same operations.
  World(std::string directory, std::shared_ptr<FaultyFileSystem> files,
        std::uint64_t seed);

  // Opens what the directory holds and compares all of it with the model. Stays
  // closed if an injected fault or a cut makes opening fail.
  absl::Status Open();
  void Close();
  bool is_open() const { return catalogs_ != nullptr; }

  // Runs one random operation, after opening if necessary. A write that fails,
  // or that returns after the power was cut, may or may not be found by the
  // next Open.
  absl::Status Step();

  // Repeats the writes that failed since the last Open but one, as clients do
  // that got no reply. Call it right after Open, before any other write.
  absl::Status RepeatUnanswered();

  // Compares all catalogs with the model.
  absl::Status CompareAll();

  std::int64_t acknowledged_count() const { return acknowledged_count_; }
  // Queries that were answered from lists of an index.
  std::int64_t index_answer_count() const { return index_answer_count_; }

 private:
  using Catalog = std::shared_ptr<LiveCatalog>;

  // Returns true if an injected fault that hit a call since the last Open may
  // be why something failed like this. What an earlier one left on the disk
  // explains nothing.
  bool IsExplained(const absl::Status& status) const;
  // Returns Internal if no injected fault explains the failure; otherwise OK.
  absl::Status CheckFailure(const absl::Status& status,
                            const std::string& what) const;

  // Operations. Those on one catalog take its name.
  absl::Status Upsert(const std::string& name);
  // Submits several writes; all but the first share a sync.
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
  // Records the outcomes of writes that are stored as one unit: all of them or
  // none. Updates `state`, which may be uncertain after a cut.
  absl::Status SettleGroup(
      const std::string& name, std::span<const PlainWrite> writes,
      std::span<const absl::StatusOr<WriteOutcome>> outcomes,
      PlainCatalog& state);
  // Returns the catalog's answer to `write`.
  static absl::StatusOr<WriteOutcome> Submit(LiveCatalog& catalog,
                                             const PlainWrite& write);
  // Returns OK if the write was refused with code `want`, as it should be.
  absl::Status CheckRefusal(const absl::Status& status, absl::StatusCode want,
                            const std::string& what) const;
  absl::Status Compare(const std::string& name, const PlainCatalog& plain,
                       std::int64_t least_sequence) const;
  absl::Status Settle();
  PlainLists ReadLists() const;
  absl::Status CompareModels() const;
  // Checks that all stored snapshots are complete and that the required ones
  // exist.
  absl::Status SettleSnapshots();
  // `after` is the new state of the lists or, if `status` is not OK, a state
  // that they may have after a restart.
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
  // By name: the visible state of the catalogs in lists_; for other catalogs,
  // the states in which they may be found.
  std::map<std::string, UncertainCatalog> plain_;
  PlainLists lists_;
  // Other states of the lists that a restart may find.
  std::vector<PlainLists> other_lists_;
  // Contents of each snapshot. Those that a failure left uncertain may or may
  // not exist.
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
  std::int64_t index_answer_count_ = 0;
  std::size_t struck_before_ = 0;  // faults, at the last Open
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_DURABILITY_WORLD_H_
