#include "core/storage/acknowledged.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>

namespace attendant {
namespace {

struct Record {
  Acknowledged acknowledged;
  std::uint64_t hash = 0;  // of `acknowledged`
};
static_assert(sizeof(Record) == 5 * sizeof(std::uint64_t), "no padding");

std::uint64_t HashOf(const Acknowledged& acknowledged) {
  return XXH3_64bits(&acknowledged, sizeof(acknowledged));
}

}  // namespace

absl::StatusOr<AcknowledgedMark> AcknowledgedMark::Open(
    const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file.valid()) return FileError(errno, "can't open", path);
  AcknowledgedMark mark(std::move(file));
  Record record;
  const ssize_t size = pread(mark.file_.get(), &record, sizeof(record), 0);
  if (size < 0) return FileError(errno, "can't read", path);
  if (size == sizeof(record) && record.hash == HashOf(record.acknowledged)) {
    mark.acknowledged_ = record.acknowledged;
  }
  return mark;
}

void AcknowledgedMark::Put(const Acknowledged& acknowledged) {
  const Record record = {acknowledged, HashOf(acknowledged)};
  if (pwrite(file_.get(), &record, sizeof(record), 0) != sizeof(record)) return;
  acknowledged_ = acknowledged;
}

}  // namespace attendant
