// An immutable object that many readers share and one writer replaces.
#ifndef ATTENDANT_CORE_BASE_PUBLISHED_H_
#define ATTENDANT_CORE_BASE_PUBLISHED_H_

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>

namespace attendant {

// The current version of an immutable T. Load is lock-free and never waits for
// a writer; Store waits only for the few instructions in which a reader copies
// a pointer. An old version dies with its last reader.
//
// Thread-safe for any number of concurrent Loads and one Store at a time.
//
// There are two slots, each with a reader count. A reader increments the count
// of the current slot and then checks that the slot is still current, so a slot
// is written only while nobody reads it. std::atomic<std::shared_ptr> would
// serve, but in libstdc++ 12 it spins on a lock bit whose release the thread
// sanitizer can't see.
template <typename T>
class Published {
 public:
  explicit Published(std::shared_ptr<const T> value) {
    slots_[0].value = std::move(value);
  }
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;

  std::shared_ptr<const T> Load() const {
    while (true) {
      const int index = current_.load(std::memory_order_seq_cst);
      Slot& slot = slots_[index];
      slot.readers.fetch_add(1, std::memory_order_seq_cst);
      if (current_.load(std::memory_order_seq_cst) == index) {
        std::shared_ptr<const T> value = slot.value;
        slot.readers.fetch_sub(1, std::memory_order_release);
        return value;
      }
      slot.readers.fetch_sub(1, std::memory_order_release);
    }
  }

  void Store(std::shared_ptr<const T> value) {
    const int old = current_.load(std::memory_order_relaxed);
    const int next = 1 - old;
    AwaitEmpty(slots_[next]);
    slots_[next].value = std::move(value);
    current_.store(next, std::memory_order_seq_cst);
    // Release the old version now, not at the next Store.
    AwaitEmpty(slots_[old]);
    slots_[old].value.reset();
  }

 private:
  struct alignas(64) Slot {
    std::atomic<int> readers = 0;
    std::shared_ptr<const T> value;
  };

  static void AwaitEmpty(const Slot& slot) {
    while (slot.readers.load(std::memory_order_seq_cst) != 0) {
      std::this_thread::yield();
    }
  }

  mutable std::array<Slot, 2> slots_;
  std::atomic<int> current_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_BASE_PUBLISHED_H_
