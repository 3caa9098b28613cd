// The bytes of attention models, one file per version: a damaged file costs
// that version, whereas in the metadata database it would cost every catalog.
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

// The files DIRECTORY/NAME/VERSION. Not thread-safe. A name that is not valid
// for a model (see ValidateCatalogName), or a version below 1, has no file.
class ModelFiles {
 public:
  using Id = std::pair<std::string, std::int64_t>;

  ModelFiles(std::string directory, Files files);

  // Writes a file; syncs it and its directory. After an error, which is as for
  // FileError, nothing is left behind. InvalidArgument for a name or version
  // that has no file.
  absl::Status Write(const ModelName& name, absl::string_view bytes) const;

  // DataLoss if the file is missing or can't be read; ResourceExhausted if too
  // many files are open; Unavailable (reason kFilesNotAccessible) if access to
  // it is denied.
  absl::StatusOr<std::string> Read(const ModelName& name) const;

  // OK if the file does not exist.
  absl::Status Remove(const ModelName& name) const;

  // Removes the files of versions that are not in `kept`, including unfinished
  // ones. A file that can't be removed stays, which does no harm.
  void RemoveOthers(const std::set<Id>& kept) const;

 private:
  std::string directory_of(absl::string_view name) const;
  std::string path_of(const ModelName& name) const;

  const std::string directory_;
  const Files files_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_CATALOGS_MODEL_FILES_H_
