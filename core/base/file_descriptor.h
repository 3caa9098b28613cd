// Owns a file descriptor.
#ifndef ATTENDANT_CORE_BASE_FILE_DESCRIPTOR_H_
#define ATTENDANT_CORE_BASE_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace attendant {

// A file descriptor, closed when destroyed. Movable.
//
// An error of close() is not seen: where it matters, sync the file before.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(FileDescriptor&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  int get() const { return fd_; }
  // False after a failed open().
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_FILE_DESCRIPTOR_H_
