#include "core/storage/catalogs/model_files.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"
#include "core/storage/records/item.h"

namespace attendant {
namespace {

absl::Status CheckName(const ModelName& name) {
  ATTENDANT_RETURN_IF_ERROR(ValidateCatalogName(name.name));
  if (name.version >= 1) return absl::OkStatus();
  return InvalidField("version", absl::StrCat(name.version), "at least 1");
}

// Returns the version whose file, finished or not, has this name; nothing for
// other files.
std::optional<std::int64_t> VersionOf(absl::string_view file) {
  const absl::string_view digits = absl::StripSuffix(file, kTemporarySuffix);
  std::int64_t version = 0;
  if (!absl::SimpleAtoi(digits, &version) || version < 1 ||
      absl::StrCat(version) != digits) {
    return std::nullopt;
  }
  return version;
}

}  // namespace

ModelFiles::ModelFiles(std::string directory, Files files)
    : directory_(std::move(directory)), files_(std::move(files)) {}

absl::Status ModelFiles::Write(const ModelName& name,
                               absl::string_view bytes) const {
  ATTENDANT_RETURN_IF_ERROR(CheckName(name));
  absl::Status status = files_.MakeDirectory(directory_of(name.name));
  if (status.ok()) status = files_.ReplaceFile(path_of(name), bytes);
  if (!status.ok()) Remove(name).IgnoreError();
  return status;
}

absl::StatusOr<std::string> ModelFiles::Read(const ModelName& name) const {
  ATTENDANT_RETURN_IF_ERROR(CheckName(name));
  const std::string path = path_of(name);
  absl::StatusOr<std::optional<std::string>> bytes = files_.ReadFile(path);
  if (absl::IsResourceExhausted(bytes.status()) ||
      absl::IsUnavailable(bytes.status())) {
    return bytes.status();
  }
  if (bytes.ok() && bytes->has_value()) return **std::move(bytes);
  return absl::DataLossError(absl::StrCat(
      "version ", name.version, " of model \"", name.name, "\" is damaged: ",
      bytes.ok() ? absl::StrCat("the file ", path, " is missing")
                 : bytes.status().message()));
}

absl::Status ModelFiles::Remove(const ModelName& name) const {
  if (!CheckName(name).ok()) return absl::OkStatus();
  ATTENDANT_RETURN_IF_ERROR(files_.RemoveFile(path_of(name)));
  // Fails if the directory holds other versions.
  files_.RemoveFile(directory_of(name.name)).IgnoreError();
  return absl::OkStatus();
}

void ModelFiles::RemoveOthers(const std::set<Id>& kept) const {
  const auto names = files_.ListDirectory(directory_);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (!ValidateCatalogName(name).ok()) continue;
    const auto files = files_.ListDirectory(directory_of(name));
    if (!files.ok()) continue;
    for (const std::string& file : *files) {
      const std::optional<std::int64_t> version = VersionOf(file);
      if (!version.has_value()) continue;
      // A file with a temporary name was never finished.
      if (absl::StrCat(*version) == file && kept.contains({name, *version})) {
        continue;
      }
      files_.RemoveFile(absl::StrCat(directory_of(name), "/", file))
          .IgnoreError();
    }
    files_.RemoveFile(directory_of(name)).IgnoreError();
  }
}

std::string ModelFiles::directory_of(absl::string_view name) const {
  return absl::StrCat(directory_, "/", name);
}

std::string ModelFiles::path_of(const ModelName& name) const {
  return absl::StrCat(directory_of(name.name), "/", name.version);
}

}  // namespace attendant
