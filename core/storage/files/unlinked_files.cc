#include "core/storage/files/unlinked_files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/file_descriptor.h"
#include "core/base/status.h"
#include "core/storage/files/disk_space.h"

namespace attendant {
namespace {

constexpr absl::string_view kPrefix = "unnamed-";

class UnlinkedFile : public ScratchFile {
 public:
  UnlinkedFile(FileDescriptor file, std::string directory,
               std::int64_t byte_count)
      : file_(std::move(file)),
        directory_(std::move(directory)),
        left_bytes_(byte_count) {}

  absl::Status Append(std::span<const std::byte> bytes) override {
    // Check again, as others write too and RocksDB must not meet a full disk.
    ATTENDANT_RETURN_IF_ERROR(CheckDiskSpace(
        directory_,
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, left_bytes_))));
    while (!bytes.empty()) {
      const ssize_t written = write(file_.get(), bytes.data(), bytes.size());
      if (written < 0) {
        if (errno == EINTR) continue;
        return FileError(errno, "can't write a file in", directory_);
      }
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      size_ += static_cast<std::size_t>(written);
      left_bytes_ -= written;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<FileMapping> Map() override {
    // Some file systems only detect here that they have no room.
    if (fsync(file_.get()) != 0) {
      return FileError(errno, "can't sync a file in", directory_);
    }
    return FileMapping::Map(file_.get(), size_);
  }

 private:
  const FileDescriptor file_;
  const std::string directory_;
  std::size_t size_ = 0;
  std::int64_t left_bytes_;
};

}  // namespace

absl::Status UnlinkedFiles::CheckRoom(std::int64_t byte_count) const {
  return CheckDiskSpace(directory_, static_cast<std::uint64_t>(byte_count));
}

absl::StatusOr<std::unique_ptr<ScratchFile>> UnlinkedFiles::Create(
    std::int64_t byte_count) {
  ATTENDANT_RETURN_IF_ERROR(CheckRoom(byte_count));
  ATTENDANT_RETURN_IF_ERROR(files_.MakeDirectory(directory_));
  std::string path = absl::StrCat(directory_, "/", kPrefix, "XXXXXX");
  FileDescriptor file(mkostemp(path.data(), O_CLOEXEC));
  if (!file.valid()) return FileError(errno, "can't make", path);
  if (unlink(path.c_str()) != 0) {
    return FileError(errno, "can't remove the name of", path);
  }
  return std::make_unique<UnlinkedFile>(std::move(file), directory_,
                                        byte_count);
}

void UnlinkedFiles::RemoveLeftOvers() {
  const absl::StatusOr<std::vector<std::string>> names =
      files_.ListDirectory(directory_);
  if (!names.ok()) return;  // leftovers take almost no space
  for (const std::string& name : *names) {
    if (!absl::StartsWith(name, kPrefix)) continue;
    files_.RemoveFile(absl::StrCat(directory_, "/", name)).IgnoreError();
  }
}

}  // namespace attendant
