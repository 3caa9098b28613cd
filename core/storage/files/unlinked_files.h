// Scratch files of a data directory.
#ifndef ATTENDANT_CORE_STORAGE_FILES_UNLINKED_FILES_H_
#define ATTENDANT_CORE_STORAGE_FILES_UNLINKED_FILES_H_

#include <memory>
#include <string>
#include <utility>

#include "core/base/scratch_files.h"
#include "core/storage/files/files.h"

namespace attendant {

// Files whose names are removed before anything is written: they take their
// space with them when they are closed, however the process ends, and nobody
// can shorten what is mapped. Leaves the disk the reserve of CheckDiskSpace.
class UnlinkedFiles : public ScratchFiles {
 public:
  // The directory is made when it is needed, and may be another disk.
  // `files` makes and lists the directory; the files themselves are nothing
  // that a crash could take.
  explicit UnlinkedFiles(std::string directory, Files files = Files())
      : directory_(std::move(directory)), files_(std::move(files)) {}

  absl::Status CheckRoom(std::int64_t byte_count) const override;
  absl::StatusOr<std::unique_ptr<ScratchFile>> Create(
      std::int64_t byte_count) override;

  // Removes what a crash left of files that had not lost their names. Before
  // any is made.
  void RemoveLeftOvers();

 private:
  const std::string directory_;
  const Files files_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_FILES_UNLINKED_FILES_H_
