// Examines the end of RocksDB's log, which a crash may tear and damage may hit.
#ifndef ATTENDANT_CORE_STORAGE_ROCKS_LOG_TAIL_H_
#define ATTENDANT_CORE_STORAGE_ROCKS_LOG_TAIL_H_

#include <cstddef>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace attendant {

// Logs and manifests consist of blocks of 32 KiB that hold records: a masked
// CRC-32C (4 bytes), a length (2), a type (1: whole; 2, 3, 4: first, middle and
// last part of a write), and the payload.

// Calls `visit` for each write, in order, until it returns false or a record is
// not valid. Passes the position where the write begins, and its payload, which
// is valid until `visit` returns. Returns the position of the first write that
// is incomplete or was not visited; the log's size if there is none.
// Thread-safe.
std::size_t ForEachWrite(
    absl::string_view log,
    absl::FunctionRef<bool(std::size_t begin, absl::string_view payload)>
        visit);

// True if the write at `begin`, where ForEachWrite ended, is cut off by the end
// of the log and has no other defect. Thread-safe.
bool EndsEarly(absl::string_view log, std::size_t begin);

// True if another write begins after the invalid record of the write at
// `begin`, where ForEachWrite ended: no power failure leaves that. Thread-safe.
bool IsFollowed(absl::string_view log, std::size_t begin);

// Returns the position of a last write that never reached the disk in full. A
// power failure leaves zeros where a file system had allocated space but not
// written it: whole sectors within the write's record or in its place, or
// everything from some point on. Cut off there, the log is like one that a
// crash tore, which RocksDB opens. Returns nothing if the log is whole; if it
// only ends early, which RocksDB detects by itself; or if it is damaged: an
// invalid record has no such zeros, or a later write follows, before which this
// one was synced.
//
// Damage that consists of such zeros in the last write alone can't be told from
// a power failure (but see AcknowledgedMark). Thread-safe.
std::optional<std::size_t> FindTornTail(absl::string_view log);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_ROCKS_LOG_TAIL_H_
