#include "core/catalog/rows/text_dictionary.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/hash/hash.h"

namespace attendant {
namespace {

constexpr std::size_t kFirstSlots = 32;
constexpr std::size_t kFirstBlockBytes = 256;
constexpr std::size_t kMaxBlockBytes = std::size_t{1} << 20;

}  // namespace

TextDictionary::TextDictionary() {
  tables_.push_back(std::make_unique<const Table>(kFirstSlots));
  table_.store(tables_.back().get(), std::memory_order_release);
  memory_bytes_ = kFirstSlots * sizeof(std::int32_t);
}

TextDictionary::Place TextDictionary::PlaceOf(const Table& table,
                                              absl::string_view text) const {
  std::size_t at = absl::Hash<absl::string_view>{}(text)&table.mask;
  while (true) {
    std::atomic<std::int32_t>& slot = table.slots[at];
    const std::int32_t code = slot.load(std::memory_order_acquire) - 1;
    if (code < 0 || Text(code) == text) return {&slot, code};
    at = (at + 1) & table.mask;
  }
}

std::int32_t TextDictionary::Find(absl::string_view text) const {
  const Table& table = *table_.load(std::memory_order_acquire);
  return PlaceOf(table, text).code;
}

std::int32_t TextDictionary::Intern(absl::string_view text) {
  const std::int32_t known = Find(text);
  if (known >= 0) return known;
  if (2 * (static_cast<std::size_t>(size()) + 1) > tables_.back()->mask + 1) {
    Grow();
  }
  const std::int32_t code = size();
  texts_.Append(Store(text));
  memory_bytes_.fetch_add(sizeof(absl::string_view), std::memory_order_relaxed);
  PlaceOf(*tables_.back(), text)
      .slot->store(code + 1, std::memory_order_release);
  return code;
}

void TextDictionary::Grow() {
  const std::size_t slot_count = 2 * (tables_.back()->mask + 1);
  auto next = std::make_unique<const Table>(slot_count);
  for (std::int32_t code = 0; code < size(); ++code) {
    PlaceOf(*next, Text(code)).slot->store(code + 1, std::memory_order_relaxed);
  }
  tables_.push_back(std::move(next));
  table_.store(tables_.back().get(), std::memory_order_release);
  memory_bytes_.fetch_add(
      static_cast<std::int64_t>(slot_count * sizeof(std::int32_t)),
      std::memory_order_relaxed);
}

absl::string_view TextDictionary::Store(absl::string_view text) {
  if (text.empty()) return {};
  if (text.size() > free_bytes_) {
    // Blocks double, so that a small dictionary stays small.
    const std::size_t doubled =
        std::min(kFirstBlockBytes << std::min<std::size_t>(blocks_.size(), 16),
                 kMaxBlockBytes);
    const std::size_t bytes = std::max(doubled, text.size());
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(bytes));
    free_ = blocks_.back().get();
    free_bytes_ = bytes;
    memory_bytes_.fetch_add(static_cast<std::int64_t>(bytes),
                            std::memory_order_relaxed);
  }
  std::memcpy(free_, text.data(), text.size());
  const absl::string_view stored(free_, text.size());
  free_ += text.size();
  free_bytes_ -= text.size();
  return stored;
}

}  // namespace attendant
