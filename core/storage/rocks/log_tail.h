// The log of RocksDB, whose end a crash tears and damage hits.
#ifndef ATTENDANT_CORE_STORAGE_ROCKS_LOG_TAIL_H_
#define ATTENDANT_CORE_STORAGE_ROCKS_LOG_TAIL_H_

#include <cstddef>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace attendant {

// Logs and manifests are blocks of 32 KiB that hold records: a masked CRC-32C
// (4 bytes), a length (2), a type (1: whole; 2, 3, 4: first, middle and last
// part of a write), and the payload.

// Calls `visit` for each write, in order, until it returns false or a record is
// not valid: where the write begins, and its payload, which lives until `visit`
// returns. Returns where the first write begins that is not whole, or not
// visited; the log's size if there is none. Thread-safe.
std::size_t ForEachWrite(
    absl::string_view log,
    absl::FunctionRef<bool(std::size_t begin, absl::string_view payload)>
        visit);

// True if the write that begins at `begin`, where ForEachWrite ended, is cut
// off by the end of the log, and nothing else is wrong with it. Thread-safe.
bool EndsEarly(absl::string_view log, std::size_t begin);

// True if another write begins behind the record that is wrong in the one at
// `begin`, where ForEachWrite ended: no power cut leaves that. Thread-safe.
bool IsFollowed(absl::string_view log, std::size_t begin);

// Where a last write begins that never got to the disk as a whole: a power cut
// leaves zeros where a file system had made room and not written yet: whole
// sectors in the write's record or in place of it, or all from somewhere on.
// Cut off there the log is one that a crash tore, which RocksDB opens. Nothing
// if the log is whole; if it only ends early, which RocksDB tells by itself; or
// if it is damaged: a record is wrong and has no such zeros, or a later write
// follows, before which this one was synced.
//
// Damage that is such zeros in the last write alone can't be told from a
// power cut (but see AcknowledgedMark). Thread-safe.
std::optional<std::size_t> FindTornTail(absl::string_view log);

}  // namespace attendant

#endif  // ATTENDANT_CORE_STORAGE_ROCKS_LOG_TAIL_H_
