// A separate record of what was acknowledged.
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

// What a database was known to hold on disk at some time.
struct Acknowledged {
  std::int64_t sequence = 0;  // of the last write
  // RocksDB's sequence number at that time; it also grows by writes without a
  // `sequence`.
  std::uint64_t number = 0;
  // The manifest at that time; since then it has only been appended to.
  std::uint64_t manifest_number = 0;
  std::uint64_t manifest_bytes = 0;
  std::uint64_t manifest_hash = 0;  // of that many bytes
};

// Keeps an Acknowledged in a file next to the database. A log or manifest that
// ends early looks the same whether a crash tore off an unacknowledged write or
// damage hides an acknowledged one; this mark tells the two apart.
//
// The mark is written after the database is synced and is not synced itself: a
// killed process loses nothing of it, a power failure may leave it behind the
// database, and it is never ahead. A missing or torn file therefore reads as an
// empty mark: removing it loses no data, only this protection until the next
// write.
//
// Not thread-safe.
class AcknowledgedMark {
 public:
  static absl::StatusOr<AcknowledgedMark> Open(const std::string& path,
                                               const Files& files);
  ~AcknowledgedMark();
  AcknowledgedMark(AcknowledgedMark&& other) noexcept;

  const Acknowledged& get() const { return acknowledged_; }
  // Does not report failures: the database itself is safe, and the mark only
  // falls behind.
  void Put(const Acknowledged& acknowledged);

 private:
  explicit AcknowledgedMark(std::unique_ptr<rocksdb::FSRandomRWFile> file);

  std::unique_ptr<rocksdb::FSRandomRWFile> file_;
  Acknowledged acknowledged_;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_ROCKS_ACKNOWLEDGED_H_
