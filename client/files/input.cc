#include "client/files/input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {
namespace {

constexpr std::size_t kMaxLineBytes = 16 << 20;

absl::Status SystemError(int error, const std::string& path) {
  return absl::ErrnoToStatus(error, path);
}

}  // namespace

absl::Status FileError(absl::string_view path, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", message));
}

absl::Status RowError(absl::string_view path, std::int64_t row,
                      absl::string_view message) {
  return FileError(path, absl::StrCat("row ", row, ": ", message));
}

void StreamFile::Close::operator()(void* file) const {
  gzclose_r(static_cast<gzFile>(file));
}

absl::StatusOr<StreamFile> StreamFile::Open(const std::string& path) {
  errno = 0;
  gzFile file = gzopen(path.c_str(), "rbe");
  if (file == nullptr) {
    return SystemError(errno == 0 ? ENOMEM : errno, path);
  }
  gzbuffer(file, kInputBufferBytes);
  return StreamFile(path, file);
}

absl::StatusOr<std::size_t> StreamFile::Read(std::span<char> buffer) {
  auto* file = static_cast<gzFile>(file_.get());
  const std::size_t wanted = std::min<std::size_t>(buffer.size(), 1 << 30);
  const int count =
      gzread(file, buffer.data(), static_cast<unsigned int>(wanted));
  if (count > 0) return static_cast<std::size_t>(count);
  int error = Z_OK;
  const char* message = gzerror(file, &error);
  if (error == Z_ERRNO) return SystemError(errno, path_);
  if (error == Z_BUF_ERROR) {
    return FileError(path_, "the compressed file is cut off");
  }
  if (error != Z_OK && error != Z_STREAM_END) {
    return FileError(path_, absl::StrCat("damaged: ", message));
  }
  return 0;
}

absl::StatusOr<LineReader> LineReader::Open(const std::string& path) {
  ATTENDANT_ASSIGN_OR_RETURN(StreamFile file, StreamFile::Open(path));
  return LineReader(std::move(file));
}

absl::StatusOr<bool> LineReader::Next(std::string& line) {
  std::size_t searched = position_;
  std::size_t end = buffer_.find('\n', searched);
  while (end == std::string::npos && !at_end_) {
    buffer_.erase(0, position_);
    position_ = 0;
    searched = buffer_.size();
    if (searched > kMaxLineBytes) {
      return FileError(path(), absl::StrCat("line ", line_number_ + 1,
                                            ": longer than 16 MiB"));
    }
    buffer_.resize(searched + kInputBufferBytes);
    ATTENDANT_ASSIGN_OR_RETURN(
        const std::size_t count,
        file_.Read({buffer_.data() + searched, kInputBufferBytes}));
    buffer_.resize(searched + count);
    at_end_ = count == 0;
    end = buffer_.find('\n', searched);
  }
  if (end == std::string::npos) {
    if (position_ == buffer_.size()) return false;
    end = buffer_.size();
  }
  std::size_t begin = position_;
  position_ = std::min(end + 1, buffer_.size());
  ++line_number_;
  absl::string_view text(buffer_.data() + begin, end - begin);
  if (line_number_ == 1 && absl::StartsWith(text, kByteOrderMark)) {
    text.remove_prefix(kByteOrderMark.size());
  }
  if (absl::EndsWith(text, "\r")) text.remove_suffix(1);
  line.assign(text.data(), text.size());
  return true;
}

absl::StatusOr<RandomFile> RandomFile::Open(const std::string& path) {
  FileDescriptor descriptor(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!descriptor.valid()) return SystemError(errno, path);
  struct stat status {};
  if (fstat(descriptor.get(), &status) != 0) return SystemError(errno, path);
  if (!S_ISREG(status.st_mode)) return FileError(path, "not a regular file");
  return RandomFile(path, std::move(descriptor), status.st_size);
}

absl::Status RandomFile::ReadAt(std::int64_t offset,
                                std::span<char> buffer) const {
  std::size_t done = 0;
  while (done < buffer.size()) {
    const ssize_t count =
        pread(descriptor_.get(), buffer.data() + done, buffer.size() - done,
              offset + static_cast<std::int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(errno, path_);
    if (count == 0) return FileError(path_, "the file is cut off");
    done += static_cast<std::size_t>(count);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     std::int64_t max_bytes) {
  ATTENDANT_ASSIGN_OR_RETURN(RandomFile file, RandomFile::Open(path));
  if (file.size() > max_bytes) {
    return FileError(path, absl::StrCat("got ", file.size(),
                                        " bytes, want at most ", max_bytes));
  }
  std::string content(static_cast<std::size_t>(file.size()), '\0');
  ATTENDANT_RETURN_IF_ERROR(file.ReadAt(0, {content.data(), content.size()}));
  return content;
}

}  // namespace attendant
