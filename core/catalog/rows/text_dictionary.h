// Maps distinct texts to small integer codes.
#ifndef ATTENDANT_CORE_CATALOG_ROWS_TEXT_DICTIONARY_H_
#define ATTENDANT_CORE_CATALOG_ROWS_TEXT_DICTIONARY_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/catalog/rows/append_only_array.h"

namespace attendant {

// Codes are 0, 1, 2, ... in the order in which texts are added; texts are
// neither moved nor removed. One writer interns while readers look up, without
// locks. Memory per text: its bytes and about 30 more.
//
// Publication: a text is written before its entry, and the entry before size()
// and before its hash table slot, each by a release that a reader's acquire
// pairs with. A table that became too small is kept alongside its successor
// because readers may still use it; all old tables together are smaller than
// the newest.
class TextDictionary {
 public:
  TextDictionary();

  // Returns the code of a text, which is added if it is new. Writer only.
  // Throws std::bad_alloc.
  std::int32_t Intern(absl::string_view text);

  // Returns the code of a text, or -1. A text that is interned concurrently may
  // or may not be found.
  std::int32_t Find(absl::string_view text) const;
  // Returns the text of a code. `code` is in [0, size()), or belongs to a
  // published row.
  absl::string_view Text(std::int32_t code) const { return texts_[code]; }
  std::int32_t size() const { return static_cast<std::int32_t>(texts_.size()); }
  // Callable from any thread.
  std::int64_t memory_bytes() const {
    return memory_bytes_.load(std::memory_order_relaxed);
  }

 private:
  // Open addressing with linear probing, at most half full. A slot holds code +
  // 1; 0: free.
  struct Table {
    explicit Table(std::size_t slot_count)
        : mask(slot_count - 1),
          slots(std::make_unique<std::atomic<std::int32_t>[]>(slot_count)) {}
    std::size_t mask;
    std::unique_ptr<std::atomic<std::int32_t>[]> slots;
  };

  struct Place {
    std::atomic<std::int32_t>* slot;
    std::int32_t code;  // read from the slot; -1: none
  };

  // Returns the slot of `text`, or the free slot where it belongs. A reader
  // must use the returned code: the writer may have filled the slot since with
  // another text.
  Place PlaceOf(const Table& table, absl::string_view text) const;
  void Grow();
  absl::string_view Store(absl::string_view text);

  AppendOnlyArray<absl::string_view> texts_;
  std::atomic<const Table*> table_;
  std::atomic<std::int64_t> memory_bytes_ = 0;
  // Writer only.
  std::vector<std::unique_ptr<const Table>> tables_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* free_ = nullptr;
  std::size_t free_bytes_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_ROWS_TEXT_DICTIONARY_H_
