// Distinct texts with a small number, the code, for each.
#ifndef ATTENDANT_CORE_CATALOG_ROWS_TEXT_DICTIONARY_H_
#define ATTENDANT_CORE_CATALOG_ROWS_TEXT_DICTIONARY_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/catalog/rows/append_only_array.h"

namespace attendant {

// Codes are 0, 1, 2, ... in the order in which their texts came; texts are
// neither moved nor removed. One writer interns while readers look up, without
// locks. Besides each text it holds about 30 bytes.
//
// Publication: a text is written before its entry, the entry before size() and
// before its slot of the hash table, each by a release that a reader's acquire
// pairs with. A table that has become too small lives on beside the next one,
// as readers may be in it: all of them together are smaller than the last.
class TextDictionary {
 public:
  TextDictionary();

  // The code of a text, new if it is. Writer only. Throws std::bad_alloc.
  std::int32_t Intern(absl::string_view text);

  // The code of a text, or -1. A text that is interned meanwhile may be found
  // or not.
  std::int32_t Find(absl::string_view text) const;
  // code in [0, size()), or of a row that was published.
  absl::string_view Text(std::int32_t code) const { return texts_[code]; }
  std::int32_t size() const { return static_cast<std::int32_t>(texts_.size()); }
  // Any thread.
  std::int64_t memory_bytes() const {
    return memory_bytes_.load(std::memory_order_relaxed);
  }

 private:
  // Open addressing with linear probing, at most half full: code + 1; 0 is
  // free.
  struct Table {
    explicit Table(std::size_t slot_count)
        : mask(slot_count - 1),
          slots(std::make_unique<std::atomic<std::int32_t>[]>(slot_count)) {}
    std::size_t mask;
    std::unique_ptr<std::atomic<std::int32_t>[]> slots;
  };

  struct Place {
    std::atomic<std::int32_t>* slot;
    std::int32_t code;  // that stood there; -1: none
  };

  // Where `text` is, or the free slot where it would be. A reader goes by the
  // code: the writer may have filled the slot since, with another text.
  Place PlaceOf(const Table& table, absl::string_view text) const;
  void Grow();
  absl::string_view Store(absl::string_view text);

  AppendOnlyArray<absl::string_view> texts_;
  std::atomic<const Table*> table_;
  std::atomic<std::int64_t> memory_bytes_ = 0;
  // The writer's.
  std::vector<std::unique_ptr<const Table>> tables_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* free_ = nullptr;
  std::size_t free_bytes_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_ROWS_TEXT_DICTIONARY_H_
