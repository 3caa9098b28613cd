// A second witness of what was acknowledged.
#ifndef ATTENDANT_CORE_STORAGE_ROCKS_ACKNOWLEDGED_H_
#define ATTENDANT_CORE_STORAGE_ROCKS_ACKNOWLEDGED_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/storage/files/files.h"

namespace rocksdb {
class FSRandomRWFile;
}  // namespace rocksdb

namespace attendant {

// What a database was known to hold at some time, on disk.
struct Acknowledged {
  std::int64_t sequence = 0;  // of the last write
  // RocksDB's number of that time, which writes without a sequence move too.
  std::uint64_t number = 0;
  // The manifest at that time, which since has only been appended to.
  std::uint64_t manifest_number = 0;
  std::uint64_t manifest_bytes = 0;
  std::uint64_t manifest_hash = 0;  // of that many bytes
};

// Keeps it in a file of its own beside the database. A log or a manifest that
// ends early looks the same whether a crash tore off what nobody was told of,
// or damage hides what was acknowledged; this tells them apart.
//
// It is written after the database is synced and not synced itself: a killed
// process loses nothing of it, a power failure may leave it behind the truth,
// and it is never ahead. A missing or torn file therefore reads as nothing:
// whoever removes it loses no data, only this guard until the next write.
//
// Not thread-safe.
class AcknowledgedMark {
 public:
  static absl::StatusOr<AcknowledgedMark> Open(const std::string& path,
                                               const Files& files);
  ~AcknowledgedMark();
  AcknowledgedMark(AcknowledgedMark&& other) noexcept;

  const Acknowledged& get() const { return acknowledged_; }
  // A failure is not reported: the database itself is safe, and the mark merely
  // stays behind.
  void Put(const Acknowledged& acknowledged);

 private:
  explicit AcknowledgedMark(std::unique_ptr<rocksdb::FSRandomRWFile> file);

  std::unique_ptr<rocksdb::FSRandomRWFile> file_;
  Acknowledged acknowledged_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_ROCKS_ACKNOWLEDGED_H_
