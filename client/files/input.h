// Reads files: whole, by lines, or at offsets. Errors name the file.
#ifndef ATTENDANT_CLIENT_FILES_INPUT_H_
#define ATTENDANT_CLIENT_FILES_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/file_descriptor.h"

namespace attendant {

// Bytes read at a time.
inline constexpr std::size_t kInputBufferBytes = 1 << 18;
// A mark that some programs write in front of UTF-8 text.
inline constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Returns InvalidArgument "PATH: MESSAGE", for wrong content of a file.
absl::Status FileError(absl::string_view path, absl::string_view message);
// Returns InvalidArgument "PATH: row ROW: MESSAGE". Rows count from 1.
absl::Status RowError(absl::string_view path, std::int64_t row,
                      absl::string_view message);

// A file read from front to end, decompressed if it is a gzip file. Movable.
// Not thread-safe.
class StreamFile {
 public:
  // NotFound, PermissionDenied or another code for the system's error.
  static absl::StatusOr<StreamFile> Open(const std::string& path);

  // Reads up to buffer.size() >= 1 bytes and returns their count, 0 at the end.
  // InvalidArgument if a gzip file is damaged or truncated.
  absl::StatusOr<std::size_t> Read(std::span<char> buffer);

  const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(void* file) const;
  };
  StreamFile(std::string path, void* file)
      : path_(std::move(path)), file_(file) {}

  std::string path_;
  std::unique_ptr<void, Close> file_;  // a gzFile
};

// Reads the lines of a file, without their ends ("\n" or "\r\n") and without a
// byte order mark. The last line needs no end. Not thread-safe.
class LineReader {
 public:
  static absl::StatusOr<LineReader> Open(const std::string& path);

  // Puts the next line into `line`, or returns false at the end of the file.
  // InvalidArgument if the line has more than 16 MiB.
  absl::StatusOr<bool> Next(std::string& line);

  // Returns the number of the line that Next read last, from 1.
  std::int64_t line_number() const { return line_number_; }
  const std::string& path() const { return file_.path(); }

 private:
  explicit LineReader(StreamFile file) : file_(std::move(file)) {}

  StreamFile file_;
  std::string buffer_;
  std::size_t position_ = 0;  // where the next line begins in buffer_
  bool at_end_ = false;
  std::int64_t line_number_ = 0;
};

// A regular file read at offsets. Movable. Thread-safe.
class RandomFile {
 public:
  static absl::StatusOr<RandomFile> Open(const std::string& path);

  // Returns the file's size when it was opened.
  std::int64_t size() const { return size_; }
  // Fills the buffer with the bytes from `offset` on. InvalidArgument if the
  // file ends before.
  absl::Status ReadAt(std::int64_t offset, std::span<char> buffer) const;

  const std::string& path() const { return path_; }

 private:
  RandomFile(std::string path, FileDescriptor descriptor, std::int64_t size)
      : path_(std::move(path)),
        descriptor_(std::move(descriptor)),
        size_(size) {}

  std::string path_;
  FileDescriptor descriptor_;
  std::int64_t size_;
};

// Returns the content of a file. InvalidArgument if it has more than
// `max_bytes`.
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     std::int64_t max_bytes);

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_FILES_INPUT_H_
