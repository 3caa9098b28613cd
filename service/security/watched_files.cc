#include "service/security/watched_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

WatchedFiles::WatchedFiles(std::vector<std::string> paths)
    : paths_(std::move(paths)), signature_(Signature()) {}

bool WatchedFiles::HaveChanged() {
  std::string signature = Signature();
  if (signature == signature_) return false;
  signature_ = std::move(signature);
  return true;
}

std::string WatchedFiles::Signature() const {
  std::string signature;
  for (const std::string& path : paths_) {
    if (path.empty()) continue;
    struct stat status = {};
    if (stat(path.c_str(), &status) != 0) {
      absl::StrAppend(&signature, "missing;");
      continue;
    }
    absl::StrAppend(&signature, status.st_dev, " ", status.st_ino, " ",
                    status.st_size, " ", status.st_mtim.tv_sec, ".",
                    status.st_mtim.tv_nsec, " ", status.st_ctim.tv_sec, ".",
                    status.st_ctim.tv_nsec, ";");
  }
  return signature;
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path) {
  const auto failed = [&] {
    return absl::ErrnoToStatus(errno, absl::StrCat(path, " can't be read"));
  };
  // Checked first, since opening a pipe would block.
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return failed();
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " can't be read: it is not a regular file"));
  }
  const std::unique_ptr<std::FILE, CloseFile> file(
      std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return failed();
  std::string content;
  std::size_t room =
      std::min(static_cast<std::size_t>(status.st_size), kMaxSmallFileBytes) +
      1;
  while (content.size() < room) {
    const std::size_t size = content.size();
    content.resize(room);
    content.resize(
        size + std::fread(content.data() + size, 1, room - size, file.get()));
    if (content.size() < room) break;
    room = kMaxSmallFileBytes + 1;  // the file has grown
  }
  if (std::ferror(file.get()) != 0) return failed();
  if (content.size() > kMaxSmallFileBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, " has more than ", kMaxSmallFileBytes, " bytes"));
  }
  return content;
}

}  // namespace attendant
