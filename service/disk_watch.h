// Watches the free space of the data directory's disk, so that readers never
// wait.
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

// Queries the disk every second on its own thread: a network disk may never
// answer, and then the last known state is returned. Thread-safe.
class DiskWatch {
 public:
  struct State {
    // As returned by CatalogSet::free_disk_bytes.
    absl::StatusOr<std::uint64_t> free_bytes;
    // As returned by CatalogSet::CheckDiskRoom, for any write and for the
    // largest one.
    absl::Status any_write;
    absl::Status largest_write;
  };

  // Queries the disk once before it returns. `catalogs` must outlive the
  // object.
  DiskWatch(const CatalogSet& catalogs, std::uint64_t largest_write_bytes);

  std::shared_ptr<const State> state() const { return state_.Load(); }

 private:
  Published<State> state_;
  RepeatedWork looks_;  // last: its thread uses the member above
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_DISK_WATCH_H_
