// The bytes of attention models, a file a version: a damaged one costs that
// version, where in the metadata database it would cost every catalog.
#ifndef ATTENDANT_CORE_STORAGE_CATALOGS_MODEL_FILES_H_
#define ATTENDANT_CORE_STORAGE_CATALOGS_MODEL_FILES_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/attention/models/model.h"
#include "core/storage/files/files.h"

namespace attendant {

// DIRECTORY/NAME/VERSION. Not thread-safe. A name that is no model's (see
// ValidateCatalogName), or a version below 1, has no file.
class ModelFiles {
 public:
  using Id = std::pair<std::string, std::int64_t>;

  ModelFiles(std::string directory, Files files);

  // Synced, the directory too. After an error, as of FileError, nothing is left
  // behind. InvalidArgument for a name or version that has no file.
  absl::Status Write(const ModelName& name, absl::string_view bytes) const;

  // DataLoss if the file is missing or can't be read; ResourceExhausted if too
  // many files are open; Unavailable (reason kFilesNotAccessible) if it is
  // without rights.
  absl::StatusOr<std::string> Read(const ModelName& name) const;

  // OK if there is none.
  absl::Status Remove(const ModelName& name) const;

  // Removes what Write made of versions that are not in `kept`, finished or
  // not. What can't be removed stays: it is in nobody's way.
  void RemoveOthers(const std::set<Id>& kept) const;

 private:
  std::string directory_of(absl::string_view name) const;
  std::string path_of(const ModelName& name) const;

  const std::string directory_;
  const Files files_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_CATALOGS_MODEL_FILES_H_
