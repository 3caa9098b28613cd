// Attributes of rows, stored by column: the input of filters and biases.
#ifndef ATTENDANT_CORE_CATALOG_ROWS_ATTRIBUTE_COLUMNS_H_
#define ATTENDANT_CORE_CATALOG_ROWS_ATTRIBUTE_COLUMNS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/base/aligned_buffer.h"
#include "core/base/ids.h"
#include "core/catalog/rows/append_only_array.h"
#include "core/catalog/rows/text_dictionary.h"
#include "core/storage/records/item.h"

namespace attendant {

// A bitmap in which one writer sets bits while readers read others of the same
// word.
class SharedBits {
 public:
  explicit SharedBits(std::int64_t size);

  // Writer only.
  void Set(std::int64_t i) {
    std::atomic<std::uint64_t>& word = words_[i >> 6];
    word.store(
        word.load(std::memory_order_relaxed) | std::uint64_t{1} << (i & 63),
        std::memory_order_relaxed);
  }
  bool Test(std::int64_t i) const { return (Word(i >> 6) >> (i & 63)) & 1; }
  // Returns bits 64 w to 64 w + 63. Bits of rows not yet published may change.
  std::uint64_t Word(std::int64_t w) const {
    return words_[w].load(std::memory_order_relaxed);
  }

 private:
  std::unique_ptr<std::atomic<std::uint64_t>[]> words_;
};

// A text of a list, with the row that has the list.
struct ListEntry {
  std::int32_t code = 0;
  RowIndex row = 0;
};

// One attribute of all rows. The type determines which arrays are allocated.
// Elements of rows without a value are unspecified. Memory per row: 1 bit for
// presence, plus 8 bytes for a number, 10 for a timestamp, 4 for a text, 12 for
// a list of texts and 8 for each text in it, 1 bit for a boolean. Each distinct
// text is stored once (see TextDictionary).
//
// Published like RowTable: rows below a published row_end are complete.
struct AttributeColumn {
  AttributeColumn(AttributeType column_type, std::int64_t capacity);

  AttributeType type;
  SharedBits present;
  SharedBits truths;                     // kBool
  AlignedBuffer<std::int64_t> integers;  // kInt64; kTimestamp: see ToMicros
  AlignedBuffer<std::int16_t> nanos;     // kTimestamp: below a microsecond
  AlignedBuffer<double> doubles;         // kDouble
  TextDictionary texts;                  // kString, kStringList
  AlignedBuffer<std::int32_t> codes;     // kString
  // kStringList: row r's list is entries[begins[r]] and the counts[r] - 1
  // entries after it.
  AlignedBuffer<std::int64_t> begins;
  AlignedBuffer<std::int32_t> counts;
  AppendOnlyArray<ListEntry> entries;  // ordered by row
};

// Returns microseconds since 1970, rounded down: the precision at which filters
// compare, and all that is kept of a timestamp from the wire.
std::int64_t ToMicros(absl::Time time);

// Columns of the attributes that at least one row has. One writer appends while
// readers use rows below the row_end of their snapshot, without locks.
class AttributeColumns {
 public:
  // Requires capacity >= 1.
  explicit AttributeColumns(std::int64_t capacity) : capacity_(capacity) {}

  // Appends the attributes of a row that is not yet published; they must fit
  // the schema. Writer only. Throws std::bad_alloc: the row must then not be
  // published.
  void Append(RowIndex row, const Attributes& attributes);

  // Returns the attributes that Append received for the row. If `wanted` is not
  // null, returns only attributes i with (*wanted)[i]; those past its end are
  // not wanted.
  Attributes AttributesOf(RowIndex row,
                          const std::vector<bool>* wanted = nullptr) const;

  // Returns null if no row has the attribute.
  const AttributeColumn* column(int attribute) const {
    return columns_[attribute].load(std::memory_order_acquire);
  }

  // Sets numbers[i] to the attribute of rows[i], or to `missing` if the row
  // does not have it. The attribute is an int64 (rounded to the nearest
  // double), a double, or a timestamp (seconds since 1970). Does not allocate.
  void ReadNumbers(int attribute, const RowIndex* rows, std::int64_t row_count,
                   double missing, double* numbers) const;

  // Callable from any thread.
  std::int64_t memory_bytes() const;

 private:
  AttributeColumn& ColumnFor(int attribute, AttributeType type);

  const std::int64_t capacity_;
  // Bytes that rows use in columns, without the texts.
  std::atomic<std::int64_t> row_bytes_ = 0;
  // Attributes from this position on have no column.
  std::atomic<int> end_ = 0;
  std::array<std::atomic<AttributeColumn*>, kMaxAttributes> columns_ = {};
  std::vector<std::unique_ptr<AttributeColumn>> owned_;  // writer only
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_ROWS_ATTRIBUTE_COLUMNS_H_
