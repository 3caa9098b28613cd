#include "core/storage/files/files.h"

#include <rocksdb/file_system.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/fail_point.h"
#include "core/base/status.h"
#include "core/storage/files/rocks_status.h"

namespace attendant {
namespace {

absl::Status FromFileSystem(const rocksdb::IOStatus& status,
                            absl::string_view action, absl::string_view path) {
  if (status.ok()) return absl::OkStatus();
  const int error = ErrnoOf(status);
  if (error != 0) return FileError(error, action, path);
  return absl::InternalError(
      absl::StrCat(action, " ", path, ": ", status.ToString()));
}

bool IsMissing(const rocksdb::IOStatus& status) {
  return status.IsPathNotFound() || status.IsNotFound();
}

const rocksdb::IOOptions& NoOptions() {
  static const auto* const options = new rocksdb::IOOptions;
  return *options;
}

std::string ParentOf(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

}  // namespace

absl::Status FileError(int error, absl::string_view action,
                       absl::string_view path) {
  return FileError(
      error,
      absl::StrCat(action, " ", path, ": ",
                   std::error_code(error, std::generic_category()).message()));
}

absl::Status FileError(int error, absl::string_view message) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return StatusWithReason(absl::StatusCode::kResourceExhausted, message,
                              kDiskFull);
    case EFBIG:
      return StatusWithReason(
          absl::StatusCode::kResourceExhausted,
          absl::StrCat(message,
                       "; raise the limit on file sizes (ulimit -f, or the "
                       "file system's)"),
          kFileTooLarge);
    case EMFILE:
    case ENFILE:
      return TooManyOpenFiles(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return StatusWithReason(absl::StatusCode::kUnavailable, message,
                              kFilesNotAccessible);
    // The path is not of the kind that was stored.
    case EISDIR:
    case ENOTDIR:
      return absl::DataLossError(message);
    default:
      return absl::InternalError(message);
  }
}

absl::Status TooManyOpenFiles(absl::string_view what) {
  return StatusWithReason(
      absl::StatusCode::kResourceExhausted,
      absl::StrCat(what, "; raise the limit on open files (ulimit -n)"),
      "TOO_MANY_OPEN_FILES");
}

absl::Status CheckOpenFiles(absl::string_view what, std::int64_t file_count) {
  rlimit limit;
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (error == std::errc::too_many_files_open ||
      error == std::errc::too_many_files_open_in_system) {
    return TooManyOpenFiles(absl::StrCat(what, ": ", error.message()));
  }
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || error) return absl::OkStatus();
  const auto open =
      static_cast<rlim_t>(std::distance(begin(files), end(files)));
  if (open + static_cast<rlim_t>(file_count) <= limit.rlim_cur / 3 * 2) {
    return absl::OkStatus();
  }
  return TooManyOpenFiles(absl::StrCat(
      what, " may open no more files: ", open, " of ", limit.rlim_cur,
      " are open",
      file_count > 0 ? absl::StrCat(", ", file_count, " more are wanted") : "",
      ", and a third is left to connections"));
}

FileWriter::FileWriter(std::shared_ptr<rocksdb::FileSystem> file_system,
                       std::string path,
                       std::unique_ptr<rocksdb::FSWritableFile> file)
    : file_system_(std::move(file_system)),
      path_(std::move(path)),
      file_(std::move(file)) {}

FileWriter::~FileWriter() {
  if (named_) return;
  // Remove it, as it takes space on a disk that may be full.
  file_ = nullptr;
  file_system_->DeleteFile(temporary_path(), NoOptions(), nullptr)
      .PermitUncheckedError();
}

std::string FileWriter::temporary_path() const {
  return absl::StrCat(path_, kTemporarySuffix);
}

absl::Status FileWriter::Append(absl::string_view bytes) {
  ATTENDANT_RETURN_IF_ERROR(status_);
  status_ = FromFileSystem(
      file_->Append({bytes.data(), bytes.size()}, NoOptions(), nullptr),
      "can't write", temporary_path());
  ATTENDANT_FAIL_POINT("file.after_append");
  if (status_.ok()) size_ += bytes.size();
  return status_;
}

absl::Status FileWriter::Commit() {
  ATTENDANT_RETURN_IF_ERROR(status_);
  if (!ATTENDANT_PLANTED_BUG("skip_file_sync")) {
    ATTENDANT_RETURN_IF_ERROR(FromFileSystem(file_->Fsync(NoOptions(), nullptr),
                                             "can't sync", temporary_path()));
  }
  ATTENDANT_RETURN_IF_ERROR(FromFileSystem(file_->Close(NoOptions(), nullptr),
                                           "can't close", temporary_path()));
  file_ = nullptr;
  ATTENDANT_FAIL_POINT_OR_RETURN("file.before_rename");
  ATTENDANT_RETURN_IF_ERROR(FromFileSystem(
      file_system_->RenameFile(temporary_path(), path_, NoOptions(), nullptr),
      "can't rename to", path_));
  named_ = true;
  ATTENDANT_FAIL_POINT("file.after_rename");
  return Files(file_system_).SyncDirectory(ParentOf(path_));
}

Files::Files() : Files(nullptr) {}

Files::Files(std::shared_ptr<rocksdb::FileSystem> file_system)
    : file_system_(file_system != nullptr ? std::move(file_system)
                                          : rocksdb::FileSystem::Default()) {}

FileReader::FileReader(std::string path,
                       std::unique_ptr<rocksdb::FSSequentialFile> file)
    : path_(std::move(path)), file_(std::move(file)) {}

FileReader::~FileReader() = default;

absl::StatusOr<std::size_t> FileReader::Read(std::span<std::byte> bytes) {
  std::size_t size = 0;
  while (size < bytes.size()) {
    char* const to = reinterpret_cast<char*>(bytes.data() + size);
    rocksdb::Slice read;
    ATTENDANT_RETURN_IF_ERROR(FromFileSystem(
        file_->Read(bytes.size() - size, NoOptions(), &read, to, nullptr),
        "can't read", path_));
    if (read.empty()) break;
    // A file system may return the bytes in its own memory.
    if (read.data() != to) std::copy_n(read.data(), read.size(), to);
    size += read.size();
  }
  return size;
}

absl::StatusOr<std::optional<std::string>> Files::ReadFile(
    const std::string& path) const {
  constexpr std::size_t kBlockBytes = std::size_t{64} << 10;
  std::unique_ptr<rocksdb::FSSequentialFile> file;
  const rocksdb::IOStatus opened = file_system_->NewSequentialFile(
      path, rocksdb::FileOptions(), &file, nullptr);
  if (IsMissing(opened)) return std::nullopt;
  ATTENDANT_RETURN_IF_ERROR(FromFileSystem(opened, "can't open", path));
  FileReader reader(path, std::move(file));
  std::string bytes;
  while (true) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::string block,
                               reader.Read(kBlockBytes));
    bytes.append(block);
    if (block.size() < kBlockBytes) return bytes;
  }
}

absl::StatusOr<std::string> FileReader::Read(std::size_t size) {
  std::string bytes(size, '\0');
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::size_t count,
      Read(std::as_writable_bytes(std::span(bytes.data(), size))));
  bytes.resize(count);
  return bytes;
}

absl::StatusOr<std::string> Files::ReadTail(const std::string& path,
                                            std::size_t size) const {
  ATTENDANT_ASSIGN_OR_RETURN(const std::int64_t file_size, FileSize(path));
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  ATTENDANT_RETURN_IF_ERROR(
      FromFileSystem(file_system_->NewRandomAccessFile(
                         path, rocksdb::FileOptions(), &file, nullptr),
                     "can't open", path));
  const auto whole = static_cast<std::size_t>(file_size);
  std::string bytes(std::min(size, whole), '\0');
  if (bytes.empty()) return bytes;  // RocksDB treats no bytes as an error
  rocksdb::Slice got;
  ATTENDANT_RETURN_IF_ERROR(
      FromFileSystem(file->Read(whole - bytes.size(), bytes.size(), NoOptions(),
                                &got, bytes.data(), nullptr),
                     "can't read", path));
  return got.ToString();
}

absl::StatusOr<std::int64_t> Files::FileSize(const std::string& path) const {
  std::uint64_t size = 0;
  ATTENDANT_RETURN_IF_ERROR(FromFileSystem(
      file_system_->GetFileSize(path, NoOptions(), &size, nullptr),
      "can't tell the size of", path));
  return static_cast<std::int64_t>(size);
}

absl::StatusOr<std::unique_ptr<FileReader>> Files::OpenToRead(
    const std::string& path) const {
  std::unique_ptr<rocksdb::FSSequentialFile> file;
  ATTENDANT_RETURN_IF_ERROR(
      FromFileSystem(file_system_->NewSequentialFile(
                         path, rocksdb::FileOptions(), &file, nullptr),
                     "can't open", path));
  return std::unique_ptr<FileReader>(new FileReader(path, std::move(file)));
}

absl::StatusOr<std::unique_ptr<FileWriter>> Files::NewFile(
    const std::string& path) const {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  const std::string temporary = absl::StrCat(path, kTemporarySuffix);
  ATTENDANT_RETURN_IF_ERROR(
      FromFileSystem(file_system_->NewWritableFile(
                         temporary, rocksdb::FileOptions(), &file, nullptr),
                     "can't open", temporary));
  return std::unique_ptr<FileWriter>(
      new FileWriter(file_system_, path, std::move(file)));
}

absl::StatusOr<std::unique_ptr<rocksdb::FSRandomRWFile>> Files::OpenInPlace(
    const std::string& path) const {
  ATTENDANT_ASSIGN_OR_RETURN(const bool exists, PathExists(path));
  if (!exists) {
    std::unique_ptr<rocksdb::FSWritableFile> made;
    ATTENDANT_RETURN_IF_ERROR(
        FromFileSystem(file_system_->NewWritableFile(
                           path, rocksdb::FileOptions(), &made, nullptr),
                       "can't make", path));
  }
  std::unique_ptr<rocksdb::FSRandomRWFile> file;
  ATTENDANT_RETURN_IF_ERROR(
      FromFileSystem(file_system_->NewRandomRWFile(path, rocksdb::FileOptions(),
                                                   &file, nullptr),
                     "can't open", path));
  return file;
}

absl::Status Files::ReplaceFile(const std::string& path,
                                absl::string_view bytes) const {
  ATTENDANT_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> file,
                             NewFile(path));
  ATTENDANT_RETURN_IF_ERROR(file->Append(bytes));
  return file->Commit();
}

absl::Status Files::MakeDirectory(const std::string& path) const {
  ATTENDANT_ASSIGN_OR_RETURN(const bool exists, PathExists(path));
  if (exists) return absl::OkStatus();
  const std::string parent = ParentOf(path);
  if (!parent.empty() && parent != path) {
    ATTENDANT_RETURN_IF_ERROR(MakeDirectory(parent));
  }
  ATTENDANT_RETURN_IF_ERROR(FromFileSystem(
      file_system_->CreateDirIfMissing(path, NoOptions(), nullptr),
      "can't make", path));
  const absl::Status status = SyncDirectory(parent.empty() ? "." : parent);
  // Otherwise the next call would find the directory and not sync it.
  if (!status.ok()) {
    file_system_->DeleteDir(path, NoOptions(), nullptr).PermitUncheckedError();
  }
  return status;
}

absl::Status Files::SyncDirectory(const std::string& path) const {
  std::unique_ptr<rocksdb::FSDirectory> directory;
  ATTENDANT_RETURN_IF_ERROR(FromFileSystem(
      file_system_->NewDirectory(path, NoOptions(), &directory, nullptr),
      "can't open", path));
  return FromFileSystem(directory->Fsync(NoOptions(), nullptr), "can't sync",
                        path);
}

absl::StatusOr<std::vector<std::string>> Files::ListDirectory(
    const std::string& path) const {
  std::vector<std::string> names;
  const rocksdb::IOStatus status =
      file_system_->GetChildren(path, NoOptions(), &names, nullptr);
  if (IsMissing(status)) {
    // RocksDB reports the same for a directory that it may not read.
    std::unique_ptr<rocksdb::FSDirectory> directory;
    const rocksdb::IOStatus opened =
        file_system_->NewDirectory(path, NoOptions(), &directory, nullptr);
    if (IsMissing(opened)) return std::vector<std::string>();
    ATTENDANT_RETURN_IF_ERROR(FromFileSystem(opened, "can't list", path));
    return FileError(ENOTDIR, "can't list", path);
  }
  ATTENDANT_RETURN_IF_ERROR(FromFileSystem(status, "can't list", path));
  std::erase_if(names, [](const std::string& name) {
    return name == "." || name == "..";
  });
  return names;
}

absl::StatusOr<bool> Files::PathExists(const std::string& path) const {
  // FileExists reports a file that it may not examine as missing.
  std::uint64_t size = 0;
  const rocksdb::IOStatus status =
      file_system_->GetFileSize(path, NoOptions(), &size, nullptr);
  if (IsMissing(status)) return false;
  ATTENDANT_RETURN_IF_ERROR(FromFileSystem(status, "can't look at", path));
  return true;
}

absl::Status Files::RenameDirectory(const std::string& from,
                                    const std::string& to) const {
  ATTENDANT_FAIL_POINT_OR_RETURN("file.before_rename");
  ATTENDANT_RETURN_IF_ERROR(
      FromFileSystem(file_system_->RenameFile(from, to, NoOptions(), nullptr),
                     "can't rename to", to));
  ATTENDANT_FAIL_POINT("file.after_rename");
  ATTENDANT_RETURN_IF_ERROR(SyncDirectory(ParentOf(to)));
  return SyncDirectory(ParentOf(from));
}

absl::Status Files::LinkFile(const std::string& from,
                             const std::string& to) const {
  return FromFileSystem(file_system_->LinkFile(from, to, NoOptions(), nullptr),
                        "can't link to", to);
}

absl::Status Files::CopyFile(const std::string& from,
                             const std::string& to) const {
  ATTENDANT_ASSIGN_OR_RETURN(const std::unique_ptr<FileReader> reader,
                             OpenToRead(from));
  ATTENDANT_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> writer,
                             NewFile(to));
  while (true) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::string bytes,
                               reader->Read(kFileBlockBytes));
    ATTENDANT_RETURN_IF_ERROR(writer->Append(bytes));
    if (bytes.size() < kFileBlockBytes) return writer->Commit();
  }
}

absl::Status Files::RemoveFile(const std::string& path) const {
  rocksdb::IOStatus status =
      file_system_->DeleteFile(path, NoOptions(), nullptr);
  bool is_directory = false;
  if (!status.ok() && !IsMissing(status) &&
      file_system_->IsDirectory(path, NoOptions(), &is_directory, nullptr)
          .ok() &&
      is_directory) {
    status = file_system_->DeleteDir(path, NoOptions(), nullptr);
  }
  if (IsMissing(status)) return absl::OkStatus();
  return FromFileSystem(status, "can't remove", path);
}

absl::Status Files::RemoveTree(const std::string& path) const {
  ATTENDANT_RETURN_IF_ERROR(RemoveAll(path));
  const std::string parent = ParentOf(path);
  ATTENDANT_ASSIGN_OR_RETURN(const bool exists, PathExists(parent));
  return exists ? SyncDirectory(parent) : absl::OkStatus();
}

absl::Status Files::RemoveAll(const std::string& path) const {
  bool is_directory = false;
  // Removes a link, not what it points to.
  if (!file_system_->DeleteFile(path, NoOptions(), nullptr).ok() &&
      file_system_->IsDirectory(path, NoOptions(), &is_directory, nullptr)
          .ok() &&
      is_directory) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                               ListDirectory(path));
    for (const std::string& name : names) {
      ATTENDANT_RETURN_IF_ERROR(RemoveAll(absl::StrCat(path, "/", name)));
    }
  }
  return RemoveFile(path);
}

}  // namespace attendant
