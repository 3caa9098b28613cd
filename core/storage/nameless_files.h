// Scratch files of a data directory.
#ifndef ATTENDANT_CORE_STORAGE_NAMELESS_FILES_H_
#define ATTENDANT_CORE_STORAGE_NAMELESS_FILES_H_

#include <memory>
#include <string>
#include <utility>

#include "core/base/scratch_files.h"

namespace attendant {

// Files whose names are removed before anything is written: they take their
// space with them when they are closed, however the process ends, and nobody
// can shorten what is mapped. Leaves the disk the reserve of CheckDiskSpace.
class NamelessFiles : public ScratchFiles {
 public:
  // The directory is made when it is needed, and may be another disk.
  explicit NamelessFiles(std::string directory)
      : directory_(std::move(directory)) {}

  absl::Status CheckRoom(std::int64_t byte_count) const override;
  absl::StatusOr<std::unique_ptr<ScratchFile>> Create(
      std::int64_t byte_count) override;

  // Removes what a crash left of files that had not lost their names. Before
  // any is made.
  void RemoveLeftOvers();

 private:
  const std::string directory_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_NAMELESS_FILES_H_
