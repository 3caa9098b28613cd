// The trained segments of a catalog in files, so that a restart need not build
// them again.
#ifndef ATTENDANT_CORE_CATALOG_SEGMENTS_SEGMENT_FILES_H_
#define ATTENDANT_CORE_CATALOG_SEGMENTS_SEGMENT_FILES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/scratch_files.h"
#include "core/catalog/segments/snapshot.h"
#include "core/storage/files/segment_directory.h"

namespace attendant {

// A file for each trained segment and each training, and a manifest that names
// them with their checksums, the segments' dead rows, and a sequence: what
// writes up to it have left is in them. What later writes changed is found by
// the store's log of changes. All of it is a cache: whatever is missing,
// damaged or of another schema is refused, and the catalog's items are read
// from its database instead.
//
// Not thread-safe.
class SegmentFiles {
 public:
  // `directory` null: nothing is kept. Both must outlive the object.
  // scratch_files: where the keys of fields with keys_on_disk go, if there is
  // room.
  SegmentFiles(const SegmentDirectory* directory, ScratchFiles* scratch_files)
      : directory_(directory), scratch_files_(scratch_files) {}

  struct Loaded {
    std::vector<SegmentView> segments;
    std::int64_t sequence = 0;
  };

  // Of fields with keys_on_disk.
  enum class KeyPlace { kScratchFiles, kMemory };

  // What the manifest names, for the schema, uid and models of `empty`. Nothing
  // if there is no manifest, or one of other models or another schema; DataLoss
  // if something is damaged or missing. Errors of files, scratch files
  // included; throws std::bad_alloc.
  absl::StatusOr<std::optional<Loaded>> Load(
      const Snapshot& empty, KeyPlace key_place = KeyPlace::kScratchFiles);

  // Bytes of the segments that the last Load found named: about what they take
  // in memory with all their keys.
  std::int64_t segment_bytes() const { return segment_bytes_; }

  // The sequence that Save would write: all rows of later writes, and none of
  // earlier ones, are outside of the trained segments. Nothing where some row's
  // sequence is not known, or no segment is trained.
  static std::optional<std::int64_t> Covered(const Snapshot& snapshot);

  // Whether there is anything to save.
  static bool AnyTrained(const Snapshot& snapshot);

  // Writes the trained segments that have no file yet, trainings that have
  // learned since theirs was written, the manifest, and removes files that it
  // does not name. Covered(snapshot) is `sequence`.
  // ResourceExhausted if the disk has no room, and Cancelled once `cancelled`
  // is true: what was there before is there still.
  absl::Status Save(const Snapshot& snapshot, std::int64_t sequence,
                    const std::atomic<bool>& cancelled);

  // Removes all of it. What can't be removed means what it did until there is
  // another manifest.
  absl::Status Clear();

 private:
  struct File {
    std::string name;
    FileStamp stamp;
  };
  struct SegmentFile {
    File file;
    std::weak_ptr<const Segment> segment;
  };
  struct TrainingFile {
    File file;
    std::uint64_t id = 0;
    std::int64_t learned_count = 0;  // LearnedCountOf what it holds, or less
  };

  // Files of saves that failed, of segments that are gone.
  void RemoveUnwanted();
  absl::StatusOr<std::optional<Loaded>> Read(absl::string_view manifest,
                                             const Snapshot& empty,
                                             ScratchFiles* key_files);
  absl::Status SaveTrainings(const Segment& segment,
                             const std::atomic<bool>& cancelled);
  absl::StatusOr<File> SaveSegment(const SegmentView& view,
                                   const std::atomic<bool>& cancelled);
  const SegmentFile* FileOf(
      const std::shared_ptr<const Segment>& segment) const;

  const SegmentDirectory* const directory_;
  ScratchFiles* const scratch_files_;
  bool has_manifest_ = false;
  bool knows_files_ = true;       // all that the manifest names
  std::int64_t last_number_ = 0;  // of names
  std::int64_t segment_bytes_ = 0;
  // What the directory has, by the manifest or to be named by the next.
  std::vector<SegmentFile> segment_files_;
  std::vector<TrainingFile> training_files_;
  // By the manifest that is there, and by those that may be in its place.
  std::set<std::string> named_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_SEGMENTS_SEGMENT_FILES_H_
