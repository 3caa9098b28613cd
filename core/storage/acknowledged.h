// A second witness of the last acknowledged write.
#ifndef ATTENDANT_CORE_STORAGE_ACKNOWLEDGED_H_
#define ATTENDANT_CORE_STORAGE_ACKNOWLEDGED_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/storage/files.h"

namespace attendant {

// The number of the last write that was synced, in a file of its own beside the
// database. A log that ends early looks the same whether the crash tore off a
// write nobody was told of, or damage hides one that was acknowledged; this
// number tells them apart.
//
// It is written after the log is synced and not synced itself: a killed process
// loses nothing of it, a power failure may leave it behind the truth, and it is
// never ahead. A missing or torn file therefore reads as 0.
//
// Not thread-safe.
class AcknowledgedMark {
 public:
  static absl::StatusOr<AcknowledgedMark> Open(const std::string& path);

  std::int64_t sequence() const { return sequence_; }
  // A failure is not reported: the write itself is safe, and the mark merely
  // stays behind.
  void Advance(std::int64_t sequence);

 private:
  explicit AcknowledgedMark(FileDescriptor file) : file_(std::move(file)) {}

  FileDescriptor file_;
  std::int64_t sequence_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_ACKNOWLEDGED_H_
