// Reads of a store that do not wait for writes, and that finish before the
// store is closed.
#ifndef ATTENDANT_CORE_CATALOG_LIVE_STORE_READS_H_
#define ATTENDANT_CORE_CATALOG_LIVE_STORE_READS_H_

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "core/base/mutex.h"
#include "core/storage/records/store.h"

namespace attendant {

// Thread-safe.
class StoreReads {
 public:
  // `store` must outlive Close.
  explicit StoreReads(CatalogStore* store) : store_(store) {}

  // Calls `read` with the store, concurrently with other reads. Returns false
  // after Close.
  bool Read(absl::FunctionRef<void(CatalogStore& store)> read) const {
    CatalogStore* store = nullptr;
    {
      MutexLock lock(&mutex_);
      if (store_ == nullptr) return false;
      store = store_;
      ++count_;
    }
    const absl::Cleanup done = [this] {
      MutexLock lock(&mutex_);
      if (--count_ == 0) none_.NotifyAll();
    };
    read(*store);
    return true;
  }

  // Waits for running reads to finish and prevents new ones.
  void Close() {
    MutexLock lock(&mutex_);
    store_ = nullptr;
    while (count_ > 0) none_.Wait(&mutex_);
  }

 private:
  mutable Mutex mutex_;
  mutable CondVar none_;
  CatalogStore* store_ ABSL_GUARDED_BY(mutex_);    // null: closed
  mutable int count_ ABSL_GUARDED_BY(mutex_) = 0;  // reads under way
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_LIVE_STORE_READS_H_
