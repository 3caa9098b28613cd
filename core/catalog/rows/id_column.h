// Item ids by row.
#ifndef ATTENDANT_CORE_CATALOG_ROWS_ID_COLUMN_H_
#define ATTENDANT_CORE_CATALOG_ROWS_ID_COLUMN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/aligned_buffer.h"
#include "core/base/ids.h"

namespace attendant {

// A fixed capacity of ids. One writer appends while readers read rows that were
// published to them with synchronisation. An id takes its own bytes plus two:
// ids are contiguous, eight rows share a pointer to the first, and each row
// stores its size.
class IdColumn {
 public:
  // Requires capacity >= 1.
  explicit IdColumn(std::int64_t capacity);

  // Appends the id of the next row, at most kMaxItemIdBytes. Requires fewer
  // than `capacity` rows. Writer only. Throws std::bad_alloc and then changes
  // nothing.
  void Append(absl::string_view id);

  absl::string_view operator[](RowIndex row) const {
    const RowIndex first = row / kRowsPerStart * kRowsPerStart;
    std::size_t offset = 0;
    for (RowIndex r = first; r < row; ++r) {
      offset += sizes_[r];
    }
    return {starts_[row / kRowsPerStart] + offset, sizes_[row]};
  }

  // Prefetch requests the memory that operator[] reads first; PrefetchBytes,
  // called once that has arrived, requests the id itself.
  void Prefetch(RowIndex row) const;
  void PrefetchBytes(RowIndex row) const;

  // Returns the memory of an id of `size` bytes.
  static std::int64_t BytesOf(std::size_t size) {
    return static_cast<std::int64_t>(size) + 2;
  }

 private:
  static constexpr RowIndex kRowsPerStart = 8;

  RowIndex row_count_ = 0;  // writer only, as are the members at the end
  AlignedBuffer<const char*> starts_;
  AlignedBuffer<std::uint8_t> sizes_;
  std::vector<std::unique_ptr<char[]>> chunks_;
  std::size_t chunk_bytes_;
  char* next_ = nullptr;
  std::size_t left_ = 0;  // bytes left in the last chunk, from next_ on
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_ROWS_ID_COLUMN_H_
