#include "client/files/tensor_files.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/files/input.h"
#include "client/files/safetensors.h"
#include "client/files/vector_file.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Extensions of files that hold one array, named as the file.
constexpr absl::string_view kNpyEnd = ".npy";
constexpr absl::string_view kTextEnd = ".txt";

absl::StatusOr<std::vector<float>> ReadRows(VectorFile& file) {
  const auto dim = static_cast<std::size_t>(file.dim());
  std::vector<float> data(static_cast<std::size_t>(file.row_count()) * dim);
  for (std::int64_t row = 0; row < file.row_count(); ++row) {
    ATTENDANT_RETURN_IF_ERROR(
        file.ReadRow(row, std::span<float>(data).subspan(
                              static_cast<std::size_t>(row) * dim, dim)));
  }
  return data;
}

}  // namespace

std::string ShapeText(const std::vector<std::int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::StatusOr<TensorFiles> TensorFiles::Open(
    const std::vector<std::string>& paths) {
  if (paths.empty()) {
    return absl::InvalidArgumentError("got no files, want at least one");
  }
  TensorFiles files;
  for (const std::string& path : paths) {
    ATTENDANT_RETURN_IF_ERROR(files.Add(path));
  }
  return files;
}

absl::Status TensorFiles::Add(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return AddDirectory(path);
  if (absl::EndsWith(path, kNpyEnd) || absl::EndsWith(path, kTextEnd)) {
    return AddVectors(path);
  }
  if (absl::EndsWith(path, ".safetensors")) return AddSafetensors(path);
  return FileError(
      path,
      "want a .safetensors file, .npy or .txt files, or a directory of .npy "
      "files");
}

absl::Status TensorFiles::AddDirectory(const std::string& path) {
  std::vector<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator at(path, error), end;
       !error && at != end; at.increment(error)) {
    const std::string file = at->path().string();
    if (absl::EndsWith(file, kNpyEnd)) found.push_back(file);
  }
  if (error) return FileError(path, error.message());
  if (found.empty()) return FileError(path, "got no .npy files in it");
  std::ranges::sort(found);
  for (const std::string& file : found) {
    ATTENDANT_RETURN_IF_ERROR(AddVectors(file));
  }
  return absl::OkStatus();
}

absl::Status TensorFiles::AddVectors(const std::string& path) {
  ATTENDANT_ASSIGN_OR_RETURN(std::shared_ptr<VectorFile> file,
                             OpenVectorFile(path));
  Entry entry;
  entry.path = path;
  entry.shape = {file->row_count(), file->dim()};
  entry.read = [file = std::move(file)] { return ReadRows(*file); };
  return AddEntry(std::filesystem::path(path).stem().string(),
                  std::move(entry));
}

absl::Status TensorFiles::AddSafetensors(const std::string& path) {
  ATTENDANT_ASSIGN_OR_RETURN(SafetensorsFile opened,
                             SafetensorsFile::Open(path));
  const auto file = std::make_shared<const SafetensorsFile>(std::move(opened));
  for (const auto& [name, tensor] : file->tensors()) {
    Entry entry;
    entry.path = path;
    entry.shape = tensor.shape;
    entry.read = [file, tensor_name = name] { return file->Read(tensor_name); };
    ATTENDANT_RETURN_IF_ERROR(AddEntry(name, std::move(entry)));
  }
  return absl::OkStatus();
}

absl::Status TensorFiles::AddEntry(const std::string& name, Entry entry) {
  const auto found = entries_.find(name);
  if (found != entries_.end()) {
    return FileError(entry.path,
                     absl::StrCat("tensor ", name, ": ", found->second.path,
                                  " has one of this name too"));
  }
  entries_[name] = std::move(entry);
  return absl::OkStatus();
}

std::vector<std::string> TensorFiles::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

const std::vector<std::int64_t>* TensorFiles::FindShape(
    const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second.shape;
}

absl::StatusOr<Tensor> TensorFiles::Read(const std::string& name,
                                         std::int64_t max_count) const {
  const Entry& entry = entries_.at(name);
  std::int64_t left = max_count;
  for (const std::int64_t count : entry.shape) {
    if (count > 0) left /= count;
  }
  if (left < 1) {
    return Error(name,
                 absl::StrCat("got ", ShapeText(entry.shape), ", want at most ",
                              max_count, " components"));
  }
  ATTENDANT_ASSIGN_OR_RETURN(std::vector<float> data, entry.read());
  return Tensor{entry.shape, std::move(data)};
}

absl::Status TensorFiles::Error(const std::string& name,
                                absl::string_view message) const {
  return FileError(entries_.at(name).path,
                   absl::StrCat("tensor ", name, ": ", message));
}

}  // namespace attendant
