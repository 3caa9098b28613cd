#include "client/doctor/stored_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/doctor/user_name.h"
#include "client/format/text.h"

namespace attendant {
namespace {

constexpr std::size_t kMaxNamed = 3;

struct StoredFiles {
  std::int64_t count = 0;  // folders included
  std::int64_t refused_count = 0;
  std::vector<std::string> refused = {};  // the first of them
  int error = 0;                          // of the first

  void Refuse(const std::string& path, int why) {
    if (refused_count++ == 0) error = why;
    if (refused.size() < kMaxNamed) refused.push_back(path);
  }
};

// 0, or why the file may not be used.
int ErrorOf(const std::string& path, bool is_folder) {
  const int rights = R_OK | W_OK | (is_folder ? X_OK : 0);
  const int flags = AT_EACCESS | AT_SYMLINK_NOFOLLOW;
  return faccessat(AT_FDCWD, path.c_str(), rights, flags) == 0 ? 0 : errno;
}

StoredFiles LookAt(const std::string& path) {
  StoredFiles files;
  std::vector<std::string> folders = {path};
  while (!folders.empty()) {
    const std::string folder = std::move(folders.back());
    folders.pop_back();
    std::error_code end;  // of the listing
    std::filesystem::directory_iterator entry(folder, end);
    for (; !end && entry != std::filesystem::directory_iterator();
         entry.increment(end)) {
      std::error_code gone;
      const auto status = entry->symlink_status(gone);
      // The last is the file system's own, where it has the directory for root.
      if (gone || std::filesystem::is_symlink(status) ||
          entry->path() == std::filesystem::path(path) / "lost+found") {
        continue;
      }
      const bool is_folder = std::filesystem::is_directory(status);
      const std::string name = entry->path().string();
      const int error = ErrorOf(name, is_folder);
      if (error == ENOENT) continue;
      ++files.count;
      if (error != 0) {
        files.Refuse(name, error);
      } else if (is_folder) {
        folders.push_back(name);
      }
    }
    // A folder that was removed meanwhile is not an error.
    if (end && end != std::errc::no_such_file_or_directory) {
      files.Refuse(folder, end.value());
    }
  }
  return files;
}

}  // namespace

Finding ExamineStoredFiles(const std::string& path) {
  struct stat directory;
  if (stat(path.c_str(), &directory) != 0) {
    return {"files", Verdict::kFailure,
            absl::StrCat(path, ": ", std::strerror(errno)),
            "see to the disk and its file system"};
  }
  const std::string owner = UserName(directory.st_uid);
  // Root's rights say nothing about those of attendantd's user.
  if (geteuid() == 0 && directory.st_uid != 0) {
    return {"files", Verdict::kSkipped,
            "not examined, as root may read and write them all",
            absl::StrCat("run as the directory's owner: sudo -u ", owner,
                         " attendant doctor --data-dir ", path)};
  }
  const StoredFiles files = LookAt(path);
  if (files.refused_count == 0) {
    return {.subject = "files",
            .text = absl::StrCat(FormatCount(files.count),
                                 ", which can be read and written")};
  }
  const std::int64_t more_count =
      files.refused_count - static_cast<std::int64_t>(files.refused.size());
  return {
      "files", Verdict::kFailure,
      absl::StrCat(
          FormatCount(files.refused_count), " of ", FormatCount(files.count),
          " can't be read and written (", std::strerror(files.error),
          "): ", absl::StrJoin(files.refused, ", "),
          more_count == 0
              ? ""
              : absl::StrCat(" and ", FormatCount(more_count), " more")),
      absl::StrCat("run this as the user that runs attendantd; if it is, let "
                   "it in: chown -R ",
                   absl::StripPrefix(owner, "#"), " ", path,
                   "; chmod -R u+rwX ", path)};
}

}  // namespace attendant
