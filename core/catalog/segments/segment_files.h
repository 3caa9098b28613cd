// Stores the trained segments of a catalog in files, so that a restart need not
// rebuild them.
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

// Keeps one file for each trained segment and each training, and a manifest.
// The manifest has the names and checksums of the files, the segments' dead
// rows, and a sequence: the files contain the result of all writes up to it.
// Items changed by later writes are found in the store's log of changes. The
// files are only a cache: whatever is missing, damaged or of another schema is
// refused, and the catalog's items are read from its database instead.
//
// Not thread-safe.
class SegmentFiles {
 public:
  // If `directory` is null, nothing is stored. scratch_files receives the keys
  // of fields with keys_on_disk, if there is room. Both must outlive the
  // object.
  SegmentFiles(const SegmentDirectory* directory, ScratchFiles* scratch_files)
      : directory_(directory), scratch_files_(scratch_files) {}

  struct Loaded {
    std::vector<SegmentView> segments;
    std::int64_t sequence = 0;
  };

  // The place to load keys of fields with keys_on_disk to.
  enum class KeyPlace { kScratchFiles, kMemory };

  // Loads the segments that the manifest names, for the schema, uid and models
  // of `empty`. Returns nullopt if there is no manifest or it is of other
  // models or another schema. DataLoss if something is damaged or missing;
  // errors of files, including scratch files. Throws std::bad_alloc.
  absl::StatusOr<std::optional<Loaded>> Load(
      const Snapshot& empty, KeyPlace key_place = KeyPlace::kScratchFiles);

  // The total size in bytes of the segment files named by the manifest of the
  // last Load: about what the segments take in memory with all their keys.
  std::int64_t segment_bytes() const { return segment_bytes_; }

  // Returns the sequence that Save would write: the rows outside of the trained
  // segments are exactly those of later writes. Nullopt if the sequence of some
  // row is unknown or no segment is trained.
  static std::optional<std::int64_t> Covered(const Snapshot& snapshot);

  // True if there is anything to save.
  static bool AnyTrained(const Snapshot& snapshot);

  // Writes the trained segments that have no file yet, the trainings that have
  // learned since their file was written, and the manifest; then removes files
  // that the manifest does not name. `sequence` must be Covered(snapshot).
  // ResourceExhausted if the disk has no room, Cancelled once `cancelled` is
  // true; in both cases the previous files remain valid.
  absl::Status Save(const Snapshot& snapshot, std::int64_t sequence,
                    const std::atomic<bool>& cancelled);

  // Removes all files. Files that cannot be removed stay valid until another
  // manifest is written.
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
    std::int64_t learned_count = 0;  // LearnedCountOf the content, or less
  };

  // Removes files of failed saves and of segments that no longer exist.
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
  std::int64_t last_number_ = 0;  // used in file names
  std::int64_t segment_bytes_ = 0;
  // Files in the directory that the manifest names or the next one will name.
  std::vector<SegmentFile> segment_files_;
  std::vector<TrainingFile> training_files_;
  // Names in the current manifest, and in manifests that may have replaced it.
  std::set<std::string> named_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_SEGMENTS_SEGMENT_FILES_H_
