#include "core/catalog/rows/attribute_columns.h"

#include <algorithm>
#include <string>

namespace attendant {
namespace {

// Returns `capacity` if the type needs the array, otherwise 0.
std::size_t SizeIf(bool needed, std::int64_t capacity) {
  return needed ? static_cast<std::size_t>(capacity) : 0;
}

// Writes one value into a row of its column and returns the bytes it uses.
struct ColumnWriter {
  AttributeColumn& column;
  RowIndex row;

  std::size_t at() const { return static_cast<std::size_t>(row); }

  std::int64_t operator()(bool value) const {
    if (value) column.truths.Set(row);
    return 0;
  }
  std::int64_t operator()(std::int64_t value) const {
    column.integers[at()] = value;
    return sizeof(value);
  }
  std::int64_t operator()(double value) const {
    column.doubles[at()] = value;
    return sizeof(value);
  }
  std::int64_t operator()(const std::string& value) const {
    column.codes[at()] = column.texts.Intern(value);
    return sizeof(std::int32_t);
  }
  std::int64_t operator()(const std::vector<std::string>& values) const {
    column.begins[at()] = column.entries.size();
    column.counts[at()] = static_cast<std::int32_t>(values.size());
    for (const std::string& value : values) {
      column.entries.Append({column.texts.Intern(value), row});
    }
    return static_cast<std::int64_t>(sizeof(std::int64_t) +
                                     sizeof(std::int32_t) +
                                     values.size() * sizeof(ListEntry));
  }
  std::int64_t operator()(absl::Time value) const {
    const std::int64_t micros = ToMicros(value);
    column.integers[at()] = micros;
    column.nanos[at()] = static_cast<std::int16_t>(
        absl::ToInt64Nanoseconds(value - absl::FromUnixMicros(micros)));
    return sizeof(std::int64_t) + sizeof(std::int16_t);
  }
};

AttributeValue ValueOf(const AttributeColumn& column, RowIndex row) {
  const auto at = static_cast<std::size_t>(row);
  switch (column.type) {
    case AttributeType::kBool:
      return column.truths.Test(row);
    case AttributeType::kInt64:
      return column.integers[at];
    case AttributeType::kDouble:
      return column.doubles[at];
    case AttributeType::kString:
      return std::string(column.texts.Text(column.codes[at]));
    case AttributeType::kTimestamp:
      return absl::FromUnixMicros(column.integers[at]) +
             absl::Nanoseconds(column.nanos[at]);
    case AttributeType::kStringList:
      break;
  }
  std::vector<std::string> values;
  values.reserve(static_cast<std::size_t>(column.counts[at]));
  for (std::int32_t i = 0; i < column.counts[at]; ++i) {
    values.emplace_back(
        column.texts.Text(column.entries[column.begins[at] + i].code));
  }
  return values;
}

}  // namespace

SharedBits::SharedBits(std::int64_t size)
    : words_(std::make_unique<std::atomic<std::uint64_t>[]>(
          static_cast<std::size_t>((size + 63) / 64))) {}

AttributeColumn::AttributeColumn(AttributeType column_type,
                                 std::int64_t capacity)
    : type(column_type),
      present(capacity),
      truths(type == AttributeType::kBool ? capacity : 0),
      integers(SizeIf(
          type == AttributeType::kInt64 || type == AttributeType::kTimestamp,
          capacity)),
      nanos(SizeIf(type == AttributeType::kTimestamp, capacity)),
      doubles(SizeIf(type == AttributeType::kDouble, capacity)),
      codes(SizeIf(type == AttributeType::kString, capacity)),
      begins(SizeIf(type == AttributeType::kStringList, capacity)),
      counts(SizeIf(type == AttributeType::kStringList, capacity)) {}

std::int64_t ToMicros(absl::Time time) { return absl::ToUnixMicros(time); }

AttributeColumn& AttributeColumns::ColumnFor(int attribute,
                                             AttributeType type) {
  std::atomic<AttributeColumn*>& slot = columns_[attribute];
  AttributeColumn* column = slot.load(std::memory_order_relaxed);
  if (column != nullptr) return *column;
  owned_.push_back(std::make_unique<AttributeColumn>(type, capacity_));
  column = owned_.back().get();
  slot.store(column, std::memory_order_release);
  if (attribute >= end_.load(std::memory_order_relaxed)) {
    end_.store(attribute + 1, std::memory_order_release);
  }
  row_bytes_.fetch_add(capacity_ / 8, std::memory_order_relaxed);
  return *column;
}

void AttributeColumns::Append(RowIndex row, const Attributes& attributes) {
  std::int64_t bytes = 0;
  for (const auto& [attribute, value] : attributes) {
    AttributeColumn& column = ColumnFor(attribute, TypeOf(value));
    bytes += std::visit(ColumnWriter{column, row}, value);
    column.present.Set(row);
  }
  row_bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

Attributes AttributeColumns::AttributesOf(
    RowIndex row, const std::vector<bool>* wanted) const {
  Attributes attributes;
  int end = end_.load(std::memory_order_acquire);
  if (wanted != nullptr) end = std::min(end, static_cast<int>(wanted->size()));
  for (int attribute = 0; attribute < end; ++attribute) {
    if (wanted != nullptr && !(*wanted)[attribute]) {
      continue;
    }
    const AttributeColumn* values = column(attribute);
    if (values == nullptr || !values->present.Test(row)) continue;
    attributes.emplace_back(attribute, ValueOf(*values, row));
  }
  return attributes;
}

void AttributeColumns::ReadNumbers(int attribute, const RowIndex* rows,
                                   std::int64_t row_count, double missing,
                                   double* numbers) const {
  const AttributeColumn* values = column(attribute);
  if (values == nullptr) {
    std::fill_n(numbers, row_count, missing);
    return;
  }
  const auto read = [&](const auto& array, double divisor) {
    for (std::int64_t i = 0; i < row_count; ++i) {
      numbers[i] = values->present.Test(rows[i])
                       ? static_cast<double>(array[rows[i]]) / divisor
                       : missing;
    }
  };
  constexpr double kMicrosPerSecond = 1e6;
  if (values->type == AttributeType::kDouble) {
    read(values->doubles, 1);
  } else {
    read(values->integers,
         values->type == AttributeType::kTimestamp ? kMicrosPerSecond : 1);
  }
}

std::int64_t AttributeColumns::memory_bytes() const {
  std::int64_t bytes = row_bytes_.load(std::memory_order_relaxed);
  const int end = end_.load(std::memory_order_acquire);
  for (int attribute = 0; attribute < end; ++attribute) {
    if (const AttributeColumn* values = column(attribute)) {
      bytes += static_cast<std::int64_t>(sizeof(*values)) +
               values->texts.memory_bytes();
    }
  }
  return bytes;
}

}  // namespace attendant
