// How full the disk of the data directory is, for pages that wait for nothing.
#ifndef ATTENDANT_SERVICE_DISK_WATCH_H_
#define ATTENDANT_SERVICE_DISK_WATCH_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/published.h"
#include "core/base/repeated_work.h"
#include "core/catalog/live/catalog_set.h"

namespace attendant {

// Asks the disk every second, on a thread of its own: a disk behind a network
// may take for ever to answer, and then what is known is what it said last.
// Thread-safe.
class DiskWatch {
 public:
  struct State {
    // As CatalogSet::free_disk_bytes.
    absl::StatusOr<std::uint64_t> free_bytes;
    // As CatalogSet::CheckDiskRoom, for any write and for the largest.
    absl::Status any_write;
    absl::Status largest_write;
  };

  // Asks once before it returns. `catalogs` must outlive the object.
  DiskWatch(const CatalogSet& catalogs, std::uint64_t largest_write_bytes);

  std::shared_ptr<const State> state() const { return state_.Load(); }

 private:
  Published<State> state_;
  RepeatedWork looks_;  // last: it uses the other
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_DISK_WATCH_H_
