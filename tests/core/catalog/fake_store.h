// A CatalogStore in memory that fails when told to. The shared FakeDisk lets
// its data outlive restarts of the catalog above it.
#ifndef ATTENDANT_TESTS_CORE_CATALOG_FAKE_STORE_H_
#define ATTENDANT_TESTS_CORE_CATALOG_FAKE_STORE_H_

#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/storage/records/store.h"
#include "tests/support/memory_files.h"

namespace attendant {

struct FakeDisk {
  Mutex mutex;
  CondVar changed;
  std::map<std::string, StoredItem> items ABSL_GUARDED_BY(mutex);
  std::map<std::string, WriteOutcome> requests ABSL_GUARDED_BY(mutex);
  std::map<std::string, std::string> encoders ABSL_GUARDED_BY(mutex);
  std::map<std::string, ModelName> active_models ABSL_GUARDED_BY(mutex);
  std::int64_t sequence ABSL_GUARDED_BY(mutex) = 0;
  absl::Status write_status ABSL_GUARDED_BY(mutex);  // of the next writes
  bool held ABSL_GUARDED_BY(mutex) = false;    // writes wait until it is false
  int write_count ABSL_GUARDED_BY(mutex) = 0;  // writes begun, one sync each
  // Number of writes that succeed before writes fail.
  int succeed_count ABSL_GUARDED_BY(mutex) = 0;
  // Result of taking back a failed write.
  absl::Status take_back_status ABSL_GUARDED_BY(mutex);
  // Writes that fail were synced: reads find them until they are taken back.
  bool fails_after_sync ABSL_GUARDED_BY(mutex) = false;
  bool take_back_throws ABSL_GUARDED_BY(mutex) = false;
  MemoryFiles scratch_files;
  bool out_of_memory ABSL_GUARDED_BY(mutex) = false;  // the next writes throw
  // Called at the end of each write that succeeds.
  std::function<void()> when_written ABSL_GUARDED_BY(mutex);
};

class FakeStore : public CatalogStore {
 public:
  explicit FakeStore(std::shared_ptr<FakeDisk> disk) : disk_(std::move(disk)) {}

  absl::Status WriteGroup(std::span<const StoreWrite> writes) override {
    MutexLock lock(&disk_->mutex);
    BeginWrite();
    if (disk_->succeed_count > 0) {
      --disk_->succeed_count;
    } else {
      if (!disk_->write_status.ok()) {
        if (disk_->fails_after_sync) {
          before_failure_ = {disk_->items, disk_->requests};
          Apply(writes);
        }
        return disk_->write_status;
      }
      if (disk_->out_of_memory) throw std::bad_alloc();
    }
    Apply(writes);
    disk_->sequence = writes.back().outcome.sequence;
    if (disk_->when_written) disk_->when_written();
    return absl::OkStatus();
  }

  void AdoptSchema(std::shared_ptr<const CatalogSchema>) override {}

  absl::Status TakeBackFailed() override {
    MutexLock lock(&disk_->mutex);
    if (disk_->take_back_throws) throw std::bad_alloc();
    if (disk_->take_back_status.ok() && before_failure_) {
      disk_->items = std::move(before_failure_->items);
      disk_->requests = std::move(before_failure_->requests);
      before_failure_.reset();
    }
    return disk_->take_back_status;
  }

  std::int64_t sequence() const override {
    MutexLock lock(&disk_->mutex);
    return disk_->sequence;
  }

  absl::Status Scan(
      absl::string_view after,
      absl::FunctionRef<bool(StoredItem item)> visit) const override {
    std::map<std::string, StoredItem> items;
    {
      MutexLock lock(&disk_->mutex);
      items = disk_->items;
    }
    for (auto at = items.upper_bound(std::string(after)); at != items.end();
         ++at) {
      if (!visit(at->second)) break;
    }
    return absl::OkStatus();
  }

  absl::Status Get(std::span<const absl::string_view> ids,
                   VisitItem visit) const override {
    MutexLock lock(&disk_->mutex);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto found = disk_->items.find(std::string(ids[i]));
      std::optional<StoredItem> item;
      if (found != disk_->items.end()) item = found->second;
      ATTENDANT_RETURN_IF_ERROR(visit(i, std::move(item)));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<WriteOutcome>> FindRequest(
      absl::string_view request_id) const override {
    MutexLock lock(&disk_->mutex);
    const auto found = disk_->requests.find(std::string(request_id));
    if (found == disk_->requests.end()) return std::optional<WriteOutcome>();
    return std::optional<WriteOutcome>(found->second);
  }

  absl::StatusOr<std::string> GetEncoder(
      absl::string_view key_field) const override {
    MutexLock lock(&disk_->mutex);
    return disk_->encoders[std::string(key_field)];
  }

  absl::Status PutEncoders(std::span<const EncoderBytes> encoders) override {
    MutexLock lock(&disk_->mutex);
    BeginWrite();
    if (!disk_->write_status.ok()) return disk_->write_status;
    for (const EncoderBytes& encoder : encoders) {
      disk_->encoders[encoder.key_field] = encoder.bytes;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<ModelName>> GetActiveModel(
      absl::string_view key_field) const override {
    MutexLock lock(&disk_->mutex);
    const auto found = disk_->active_models.find(std::string(key_field));
    if (found == disk_->active_models.end()) return std::nullopt;
    return found->second;
  }

  absl::Status PutActiveModel(absl::string_view key_field,
                              const ModelName& model) override {
    MutexLock lock(&disk_->mutex);
    if (!disk_->write_status.ok()) return disk_->write_status;
    disk_->active_models[std::string(key_field)] = model;
    return absl::OkStatus();
  }

  absl::Status Checkpoint(const std::string&) override {
    return absl::UnimplementedError("there are no files");
  }
  absl::Status ScanChanges(
      std::int64_t,
      absl::FunctionRef<bool(absl::string_view id)>) const override {
    return absl::UnimplementedError("the fake keeps no log");
  }
  absl::Status CutChanges(std::int64_t) override { return absl::OkStatus(); }
  const SegmentDirectory* segment_directory() const override { return nullptr; }

  ScratchFiles& scratch_files() override { return disk_->scratch_files; }

  StoreFigures figures() const override { return {}; }

 private:
  void BeginWrite() ABSL_EXCLUSIVE_LOCKS_REQUIRED(disk_->mutex) {
    ++disk_->write_count;
    disk_->changed.NotifyAll();
    while (disk_->held) disk_->changed.Wait(&disk_->mutex);
  }

  void Apply(std::span<const StoreWrite> writes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(disk_->mutex) {
    for (const StoreWrite& write : writes) {
      for (const absl::string_view id : write.deletes) {
        disk_->items.erase(std::string(id));
      }
      for (const Item* item : write.upserts) {
        disk_->items[item->id] = {*item, write.outcome.sequence};
      }
      if (!write.request_id.empty()) {
        disk_->requests[std::string(write.request_id)] = write.outcome;
      }
    }
  }

  // What TakeBackFailed restores.
  struct Before {
    std::map<std::string, StoredItem> items;
    std::map<std::string, WriteOutcome> requests;
  };

  const std::shared_ptr<FakeDisk> disk_;
  std::optional<Before> before_failure_ ABSL_GUARDED_BY(disk_->mutex);
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_CORE_CATALOG_FAKE_STORE_H_
