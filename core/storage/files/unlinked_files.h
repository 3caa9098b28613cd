// Scratch files of a data directory.
#ifndef ATTENDANT_CORE_STORAGE_FILES_UNLINKED_FILES_H_
#define ATTENDANT_CORE_STORAGE_FILES_UNLINKED_FILES_H_

#include <memory>
#include <string>
#include <utility>

#include "core/base/scratch_files.h"
#include "core/storage/files/files.h"

namespace attendant {

// Files that are unlinked before anything is written: their space is freed when
// they are closed, however the process ends, and nobody can truncate a mapped
// one. Keeps the reserve of CheckDiskSpace free.
class UnlinkedFiles : public ScratchFiles {
 public:
  // Creates the directory when it is needed; it may be on another disk. `files`
  // creates and lists the directory; the scratch files themselves need not
  // survive a crash.
  explicit UnlinkedFiles(std::string directory, Files files = Files())
      : directory_(std::move(directory)), files_(std::move(files)) {}

  absl::Status CheckRoom(std::int64_t byte_count) const override;
  absl::StatusOr<std::unique_ptr<ScratchFile>> Create(
      std::int64_t byte_count) override;

  // Removes files that a crash left before they were unlinked. Call before any
  // file is created.
  void RemoveLeftOvers();

 private:
  const std::string directory_;
  const Files files_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_FILES_UNLINKED_FILES_H_
