// Fail points, at which tests kill the process or make an operation fail, and
// planted bugs, which tests switch on to see whether other tests find them. In
// builds without tests the macros do nothing.
#ifndef ATTENDANT_CORE_BASE_FAIL_POINT_H_
#define ATTENDANT_CORE_BASE_FAIL_POINT_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"

namespace attendant {

// Every fail point. The crash loop kills a server at each of them.
inline constexpr std::string_view kFailPoints[] = {
    // A file that was written under a temporary name is renamed.
    "file.after_append",
    "file.before_rename",
    "file.after_rename",
    // A database write is synced, then recorded as acknowledged.
    "log.before_sync",
    "log.after_sync",
    "log.after_mark",
    // A database table is written from the log or by a compaction.
    "table.before_write",
    "table.after_write",
    "compaction.before_tables",
    "compaction.after_manifest",
    // A catalog write is logged before anybody sees it.
    "update.before_log",
    "delete_matching.before_log",
    "delete_matching.before_turn",
    "write.before_publish",
    "write.after_publish",
    // Segments are merged: all of them, or all but the first.
    "merge.before_publish",
    "merge.after_publish",
    "seal.before_publish",
    "seal.after_publish",
    // The files of a catalog's segments are written, then the change log is
    // cut.
    "segments.between_files",
    "segments.before_manifest",
    "segments.after_manifest",
    "segments.after_cut",
    // A catalog is created: its files, then its record.
    "create.before_record",
    "create.after_record",
    // A catalog is deleted: its record, then its files.
    "drop.before_record",
    "drop.after_record",
    "drop.after_files",
    // A model version is written, its file before its record, and removed in
    // reverse order.
    "model.before_record",
    "model.before_file_removal",
    // An alias is set or moved, and deleted.
    "alias.before_record",
    "alias.after_record",
    "alias.after_removal",
    // A stored snapshot is written, its files before its name, and removed in
    // reverse order.
    "snapshot.before_files",
    "snapshot.before_manifest",
    "snapshot.before_name",
    "snapshot.after_name",
    "snapshot.before_file_removal",
    // A snapshot is verified and copied, then the new catalog's record is
    // written.
    "restore.before_copy",
    "restore.before_record",
    "restore.after_record",
    // An imported snapshot's files are stored but not verified yet.
    "import.before_verification",
    // At startup, changes are replayed over segment files, and damaged files
    // are cleared.
    "recovery.before_replay",
    "recovery.after_replay",
    "recovery.before_clear",
    "recovery.after_clear",
};

// Every planted bug. The test that planted_bugs_test names finds it.
inline constexpr std::string_view kPlantedBugs[] = {
    "acknowledge_before_commit",  // a write is answered before it is stored
    "drop_tombstone",             // a delete leaves the item in the store
    "merge_dead_rows",            // a merge copies dead rows
    "merge_max",                  // sums are joined without rescaling to one
                                  // maximum
    "skip_log_sync",              // the log is not synced
    "skip_file_sync",             // a file is renamed before it is synced
    "skip_segment_checksum",      // a segment file's checksum is ignored
    "skip_model_checksum",        // a model file's checksum is ignored
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

// Arms fail points and plants bugs in this process, replacing all that were
// armed before; "" arms nothing. At start a process arms what the environment
// variable ATTENDANT_FAIL_POINT specifies. `specs` is a comma-separated list of
//
//   NAME[:COUNT]=kill    dies by SIGKILL the COUNT-th time (default 1) that
//                        it reaches the fail point
//   NAME[:COUNT]=error   fails the operation that time with Internal, if the
//                        operation can fail there
//   NAME[:COUNT]=wait    waits there that time until the point is disarmed
//   NAME=bug             plants the bug of this name
//
// InvalidArgument, with nothing armed, if a spec is malformed, names an unknown
// fail point or bug, or repeats a name. The process aborts if that happens with
// the environment variable. Thread-safe.
absl::Status ArmFailPoint(absl::string_view specs);

// Returns the number of threads now waiting at fail points. Thread-safe.
int WaitingAtFailPoints();

// Called by the macros below.
absl::Status ComeByFailPoint(absl::string_view name);
bool HasPlantedBug(absl::string_view name);

}  // namespace attendant

// ATTENDANT_FAIL_POINT("name"): the process may die here.
// ATTENDANT_FAIL_POINT_OR_RETURN("name"): or the function returns an error.
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
