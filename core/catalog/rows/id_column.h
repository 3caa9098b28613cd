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

// A fixed capacity of ids that one writer appends to while readers look at
// those they know of, by something that synchronises. An id takes its bytes and
// two more: ids lie one after the other, eight rows share a pointer to the
// first, and each has its size.
class IdColumn {
 public:
  // capacity >= 1.
  explicit IdColumn(std::int64_t capacity);

  // The id of the next row, at most kMaxItemIdBytes; fewer than capacity rows
  // so far. Writer only. Throws std::bad_alloc; then nothing has changed.
  void Append(absl::string_view id);

  absl::string_view operator[](RowIndex row) const {
    const RowIndex first = row / kRowsPerStart * kRowsPerStart;
    std::size_t offset = 0;
    for (RowIndex r = first; r < row; ++r) {
      offset += sizes_[static_cast<std::size_t>(r)];
    }
    return {starts_[static_cast<std::size_t>(row / kRowsPerStart)] + offset,
            sizes_[static_cast<std::size_t>(row)]};
  }

  // Asks for what operator[] looks at first, and when that is there, for the
  // id.
  void Prefetch(RowIndex row) const;
  void PrefetchBytes(RowIndex row) const;

  // Of an id of so many bytes.
  static std::int64_t BytesOf(std::size_t size) {
    return static_cast<std::int64_t>(size) + 2;
  }

 private:
  static constexpr RowIndex kRowsPerStart = 8;

  RowIndex row_count_ = 0;  // writer only, as the members at the end
  AlignedBuffer<const char*> starts_;
  AlignedBuffer<std::uint8_t> sizes_;
  std::vector<std::unique_ptr<char[]>> chunks_;
  std::size_t chunk_bytes_;
  char* next_ = nullptr;
  std::size_t left_ = 0;  // bytes of the last chunk from next_ on
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_ROWS_ID_COLUMN_H_
