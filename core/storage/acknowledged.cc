#include "core/storage/acknowledged.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace attendant {
namespace {

struct Record {
  std::int64_t sequence;
  std::int64_t complement;  // ~sequence, so that zeros are no record
};

}  // namespace

absl::StatusOr<AcknowledgedMark> AcknowledgedMark::Open(
    const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file.valid()) return FileError(errno, "can't open", path);
  AcknowledgedMark mark(std::move(file));
  Record record;
  const ssize_t size = pread(mark.file_.get(), &record, sizeof(record), 0);
  if (size < 0) return FileError(errno, "can't read", path);
  if (size == sizeof(record) && record.complement == ~record.sequence) {
    mark.sequence_ = record.sequence;
  }
  return mark;
}

void AcknowledgedMark::Advance(std::int64_t sequence) {
  const Record record = {sequence, ~sequence};
  if (pwrite(file_.get(), &record, sizeof(record), 0) != sizeof(record)) return;
  sequence_ = sequence;
}

}  // namespace attendant
