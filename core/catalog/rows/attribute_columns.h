// Attributes of rows, column by column: what filters compare and biases read.
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

// Bits that one writer sets while readers look at others of the same word.
class SharedBits {
 public:
  explicit SharedBits(std::int64_t size);

  // Writer only.
  void Set(std::int64_t i) {
    std::atomic<std::uint64_t>& word = words_[static_cast<std::size_t>(i >> 6)];
    word.store(
        word.load(std::memory_order_relaxed) | std::uint64_t{1} << (i & 63),
        std::memory_order_relaxed);
  }
  bool Test(std::int64_t i) const { return (Word(i >> 6) >> (i & 63)) & 1; }
  // Bits 64 w to 64 w + 63; those of rows not yet published may come and go.
  std::uint64_t Word(std::int64_t w) const {
    return words_[static_cast<std::size_t>(w)].load(std::memory_order_relaxed);
  }

 private:
  std::unique_ptr<std::atomic<std::uint64_t>[]> words_;
};

// A text of a list, and the row whose list it is in.
struct ListEntry {
  std::int32_t code = 0;
  RowIndex row = 0;
};

// One attribute of all rows. Which arrays there are follows from the type;
// where a row has no value they hold anything. Memory: a bit a row for
// presence, and 8 bytes a row for numbers, 10 for moments, 4 for texts, 12 for
// lists of texts and 8 for each text in one, 1 bit for booleans; each distinct
// text once (see TextDictionary).
//
// Publication as RowTable's: rows below a published row_end are complete.
struct AttributeColumn {
  AttributeColumn(AttributeType column_type, std::int64_t capacity);

  AttributeType type;
  SharedBits present;
  SharedBits truths;                     // kBool
  AlignedBuffer<std::int64_t> integers;  // kInt64; kTimestamp: see ToMicros
  AlignedBuffer<std::int16_t> nanos;     // kTimestamp: beyond the microseconds
  AlignedBuffer<double> doubles;         // kDouble
  TextDictionary texts;                  // kString, kStringList
  AlignedBuffer<std::int32_t> codes;     // kString
  // kStringList: row r's list is entries[begins[r]] and counts[r] - 1 more.
  AlignedBuffer<std::int64_t> begins;
  AlignedBuffer<std::int32_t> counts;
  AppendOnlyArray<ListEntry> entries;  // by row
};

// Microseconds since 1970, rounded down. This is what filters compare; it holds
// all of a moment that came over the wire.
std::int64_t ToMicros(absl::Time time);

// Columns for the attributes that some row has. One writer appends while
// readers use rows below the row_end of their snapshot, without locks.
class AttributeColumns {
 public:
  // capacity >= 1.
  explicit AttributeColumns(std::int64_t capacity) : capacity_(capacity) {}

  // The attributes of a row that is not yet published; they fit the schema.
  // Writer only. Throws std::bad_alloc: the row must then not be published.
  void Append(RowIndex row, const Attributes& attributes);

  // What Append was given for the row; of that, where `wanted` is not null, the
  // attributes that it is true of. None past its end is wanted.
  Attributes AttributesOf(RowIndex row,
                          const std::vector<bool>* wanted = nullptr) const;

  // Null if no row has the attribute.
  const AttributeColumn* column(int attribute) const {
    return columns_[static_cast<std::size_t>(attribute)].load(
        std::memory_order_acquire);
  }

  // numbers[i] = the attribute of rows[i], or `missing` where it has none. The
  // attribute is an int64 (rounded to the nearest double), a double, or a
  // timestamp (seconds since 1970). Does not allocate.
  void ReadNumbers(int attribute, const RowIndex* rows, std::int64_t row_count,
                   double missing, double* numbers) const;

  // Any thread.
  std::int64_t memory_bytes() const;

 private:
  AttributeColumn& ColumnFor(int attribute, AttributeType type);

  const std::int64_t capacity_;
  // What rows took of columns, beside the texts.
  std::atomic<std::int64_t> row_bytes_ = 0;
  // Positions at and past this have no column.
  std::atomic<int> end_ = 0;
  std::array<std::atomic<AttributeColumn*>, kMaxAttributes> columns_ = {};
  std::vector<std::unique_ptr<AttributeColumn>> owned_;  // the writer's
};

}  // namespace attendant

#endif  // ATTENDANT_CORE_CATALOG_ROWS_ATTRIBUTE_COLUMNS_H_
