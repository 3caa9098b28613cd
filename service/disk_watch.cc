#include "service/disk_watch.h"

#include "absl/time/time.h"

namespace attendant {
namespace {

std::shared_ptr<const DiskWatch::State> Look(
    const CatalogSet& catalogs, std::uint64_t largest_write_bytes) {
  return std::make_shared<const DiskWatch::State>(DiskWatch::State{
      .free_bytes = catalogs.free_disk_bytes(),
      .any_write = catalogs.CheckDiskRoom(0),
      .largest_write = catalogs.CheckDiskRoom(largest_write_bytes)});
}

}  // namespace

DiskWatch::DiskWatch(const CatalogSet& catalogs,
                     std::uint64_t largest_write_bytes)
    : state_(Look(catalogs, largest_write_bytes)),
      looks_(absl::Seconds(1), [this, &catalogs, largest_write_bytes] {
        state_.Store(Look(catalogs, largest_write_bytes));
      }) {}

}  // namespace attendant
