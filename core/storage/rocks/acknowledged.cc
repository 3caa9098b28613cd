#include "core/storage/rocks/acknowledged.h"

#include <rocksdb/file_system.h>
#include <xxhash.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace attendant {
namespace {

struct Record {
  Acknowledged acknowledged;
  std::uint64_t hash = 0;  // of `acknowledged`
};
static_assert(sizeof(Record) == 6 * sizeof(std::uint64_t), "no padding");

// The format before RocksDB's number was added.
struct OldRecord {
  std::int64_t sequence = 0;
  std::uint64_t manifest_number = 0;
  std::uint64_t manifest_bytes = 0;
  std::uint64_t manifest_hash = 0;
  std::uint64_t hash = 0;  // of the other members
};

std::uint64_t HashOf(const Acknowledged& acknowledged) {
  return XXH3_64bits(&acknowledged, sizeof(acknowledged));
}

}  // namespace

AcknowledgedMark::AcknowledgedMark(
    std::unique_ptr<rocksdb::FSRandomRWFile> file)
    : file_(std::move(file)) {}
AcknowledgedMark::~AcknowledgedMark() = default;
AcknowledgedMark::AcknowledgedMark(AcknowledgedMark&& other) noexcept = default;

absl::StatusOr<AcknowledgedMark> AcknowledgedMark::Open(const std::string& path,
                                                        const Files& files) {
  ATTENDANT_ASSIGN_OR_RETURN(auto file, files.OpenInPlace(path));
  AcknowledgedMark mark(std::move(file));
  Record record;
  rocksdb::Slice bytes;
  const rocksdb::IOStatus read =
      mark.file_->Read(0, sizeof(record), rocksdb::IOOptions(), &bytes,
                       reinterpret_cast<char*>(&record), nullptr);
  if (!read.ok()) {
    return absl::InternalError(
        absl::StrCat("can't read ", path, ": ", read.ToString()));
  }
  if (bytes.size() == sizeof(OldRecord)) {
    OldRecord old;
    std::memcpy(&old, bytes.data(), sizeof(old));
    if (old.hash == XXH3_64bits(&old, offsetof(OldRecord, hash))) {
      mark.acknowledged_ = {.sequence = old.sequence,
                            .manifest_number = old.manifest_number,
                            .manifest_bytes = old.manifest_bytes,
                            .manifest_hash = old.manifest_hash};
    }
  }
  if (bytes.size() != sizeof(record)) return mark;
  std::memcpy(&record, bytes.data(), sizeof(record));
  if (record.hash == HashOf(record.acknowledged)) {
    mark.acknowledged_ = record.acknowledged;
  }
  return mark;
}

void AcknowledgedMark::Put(const Acknowledged& acknowledged) {
  const Record record = {acknowledged, HashOf(acknowledged)};
  const rocksdb::Slice bytes(reinterpret_cast<const char*>(&record),
                             sizeof(record));
  if (!file_->Write(0, bytes, rocksdb::IOOptions(), nullptr).ok()) return;
  acknowledged_ = acknowledged;
}

}  // namespace attendant
