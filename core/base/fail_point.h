// Points at which tests let the process die, or an operation fail, and bugs
// that they plant to see whether other tests find them. In builds without tests
// all of it is nothing.
#ifndef ATTENDANT_CORE_BASE_FAIL_POINT_H_
#define ATTENDANT_CORE_BASE_FAIL_POINT_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"

namespace attendant {

// Every fail point: the crash loop kills a server at each of them.
inline constexpr std::string_view kFailPoints[] = {
    // A file that was written under another name gets its own.
    "file.after_append",
    "file.before_rename",
    "file.after_rename",
    // A write of a database: synced, then noted as acknowledged.
    "log.before_sync",
    "log.after_sync",
    "log.after_mark",
    // A table of a database: when its log is left, or tables are merged.
    "table.before_write",
    "table.after_write",
    "compaction.before_tables",
    "compaction.after_manifest",
    // A write of a catalog, which is in the log before anybody sees it.
    "update.before_log",
    "delete_matching.before_log",
    "write.before_publish",
    "write.after_publish",
    // Segments become one: all of them, or those behind the first.
    "merge.before_publish",
    "merge.after_publish",
    "seal.before_publish",
    "seal.after_publish",
    // The files of a catalog's segments, then the log of changes is cut.
    "segments.between_files",
    "segments.before_manifest",
    "segments.after_manifest",
    "segments.after_cut",
    // A catalog is made: its files, then its record.
    "create.before_record",
    "create.after_record",
    // A catalog is deleted: its record, then its files.
    "drop.before_record",
    "drop.after_record",
    "drop.after_files",
    // A version of a model: its file, then its record; and backwards.
    "model.before_record",
    "model.before_file_removal",
    // An alias is made or moved, and deleted.
    "alias.before_record",
    "alias.after_record",
    "alias.after_removal",
    // A stored snapshot: its files, its name; and backwards.
    "snapshot.before_manifest",
    "snapshot.before_name",
    "snapshot.after_name",
    "snapshot.before_file_removal",
    // One is verified and copied, then the new catalog's record is written.
    "restore.before_copy",
    "restore.before_record",
    "restore.after_record",
    // One comes in: its files are there, and not verified yet.
    "import.before_verification",
    // A start: changes after the files of segments; files that are damaged.
    "recovery.before_replay",
    "recovery.after_replay",
    "recovery.before_clear",
    "recovery.after_clear",
};

// Every planted bug: each is found by the test that planted_bugs_test names.
inline constexpr std::string_view kPlantedBugs[] = {
    "acknowledge_before_commit",  // a write is answered before it is stored
    "drop_tombstone",             // a delete leaves the item in the store
    "merge_dead_rows",            // a merge takes over rows that are dead
    "merge_max",                  // sums are joined as if of one maximum
    "skip_log_sync",              // the log is not synced
    "skip_file_sync",             // a file gets its name before it is synced
    "skip_segment_checksum",      // a segment's file is believed
    "skip_model_checksum",        // a model's file is believed
};

constexpr bool IsFailPoint(std::string_view name) {
  for (const std::string_view known : kFailPoints) {
    if (known == name) return true;
  }
  return false;
}

constexpr bool IsPlantedBug(std::string_view name) {
  for (const std::string_view known : kPlantedBugs) {
    if (known == name) return true;
  }
  return false;
}

// Arms fail points and plants bugs in this process, in place of what was armed
// before; "" for nothing. A process starts with what the environment variable
// ATTENDANT_FAIL_POINT says. `specs` are, with commas between them, of
//
//   NAME[:COUNT]=kill    dies by SIGKILL when it comes by the COUNT-th time
//                        (from 1, the default)
//   NAME[:COUNT]=error   that time the operation fails with Internal, if it can
//   NAME[:COUNT]=wait    that time waits until what is armed is without it
//   NAME=bug             the bug of this name is there
//
// InvalidArgument, and nothing armed, if one is none, names what there is not,
// or what another does; the environment's then aborts the process. Thread-safe.
absl::Status ArmFailPoint(absl::string_view specs);

// Threads that wait at fail points now. Thread-safe.
int WaitingAtFailPoints();

// What the macros call.
absl::Status ComeByFailPoint(absl::string_view name);
bool HasPlantedBug(absl::string_view name);

}  // namespace attendant

// ATTENDANT_FAIL_POINT("name"): where the process may die.
// ATTENDANT_FAIL_POINT_OR_RETURN("name"): or the function return an error.
// ATTENDANT_PLANTED_BUG("name"): an expression, true while the bug is planted.
#ifdef ATTENDANT_NO_FAIL_POINTS
#define ATTENDANT_FAIL_POINT(name) static_cast<void>(0)
#define ATTENDANT_FAIL_POINT_OR_RETURN(name) static_cast<void>(0)
#define ATTENDANT_PLANTED_BUG(name) false
#else
#define ATTENDANT_FAIL_POINT(name)                    \
  do {                                                \
    static_assert(::attendant::IsFailPoint(name));    \
    ::attendant::ComeByFailPoint(name).IgnoreError(); \
  } while (false)
#define ATTENDANT_FAIL_POINT_OR_RETURN(name)                       \
  do {                                                             \
    static_assert(::attendant::IsFailPoint(name));                 \
    ATTENDANT_RETURN_IF_ERROR(::attendant::ComeByFailPoint(name)); \
  } while (false)
#define ATTENDANT_PLANTED_BUG(name)                 \
  [] {                                              \
    static_assert(::attendant::IsPlantedBug(name)); \
    return ::attendant::HasPlantedBug(name);        \
  }()
#endif

#endif  // ATTENDANT_CORE_BASE_FAIL_POINT_H_
