// A catalog and its items, for the tests of the store and their child process.
#ifndef ATTENDANT_TESTS_CORE_STORAGE_TEST_STORE_H_
#define ATTENDANT_TESTS_CORE_STORAGE_TEST_STORE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/storage/records/store.h"

namespace attendant {

inline CatalogRecord TestRecord(std::string name = "shop",
                                std::string uid = "0123456789abcdef") {
  CatalogRecord record;
  record.name = std::move(name);
  record.uid = std::move(uid);
  record.create_time = absl::FromUnixNanos(1700000000123456789);
  KeyFieldSchema events;
  events.name = "events";
  events.dim = 4;
  events.score_kind = ScoreKind::kScaledDot;
  events.index_kind = IndexKind::kIvf;
  events.temperature = 0.1;
  events.combine_kind = CombineKind::kUnit;
  KeyFieldSchema text;
  text.name = "text";
  text.dim = 2;
  text.score_kind = ScoreKind::kCosine;
  record.schema.key_fields = {events, text};
  record.schema.value_dim = 4;
  record.schema.attributes = {{"sold", AttributeType::kBool},
                              {"stock", AttributeType::kInt64},
                              {"price", AttributeType::kDouble},
                              {"title", AttributeType::kString},
                              {"tags", AttributeType::kStringList},
                              {"listed", AttributeType::kTimestamp}};
  return record;
}

// A model whose weights and time depend on its version.
inline ModelRecord TestModel(std::string name, std::int64_t version) {
  const float weight = static_cast<float>(version);
  return {{std::move(name), version},
          absl::FromUnixNanos(version),
          std::nullopt,
          {BilinearForm{{1, 2, {weight, 1}}}}};
}

inline std::string TestId(std::int64_t i) {
  return absl::StrFormat("item-%06d", i);
}

// Every number and text in the item depends on i.
inline Item TestItem(std::int64_t i) {
  const float f = static_cast<float>(i);
  Item item;
  item.id = TestId(i);
  item.keys = {{f, 1, -f, 0.5f}, {}};
  if (i % 2 == 0) item.keys[1] = {1, f};
  if (i % 3 == 0 || i % 2 == 0) item.value = {f, f + 1, f + 2, f + 3};
  item.attributes = {
      {0, i % 2 == 0},
      {1, i * 1000},
      {2, static_cast<double>(i) / 3},
      {3, absl::StrFormat("title of %d", i)},
      {4, std::vector<std::string>{"", absl::StrFormat("tag %d", i)}},
      {5, absl::FromUnixNanos(1700000000000000001 + i)}};
  if (i % 4 == 2) item.opaque_value = absl::StrFormat("%c\xff%d", '\0', i);
  return item;
}

inline absl::Status Write(CatalogStore& store, const StoreWrite& write) {
  return store.WriteGroup({&write, 1});
}

// Writes the items [begin, end) as write number `sequence`.
inline absl::Status WriteItems(CatalogStore& store, std::int64_t begin,
                               std::int64_t end, std::int64_t sequence,
                               absl::string_view request_id = "") {
  std::vector<Item> items;
  for (std::int64_t i = begin; i < end; ++i) items.push_back(TestItem(i));
  std::vector<const Item*> pointers;
  for (const Item& item : items) pointers.push_back(&item);
  StoreWrite write;
  write.upserts = pointers;
  write.request_id = request_id;
  write.outcome.sequence = sequence;
  write.outcome.inserted_count = end - begin;
  return Write(store, write);
}

inline absl::StatusOr<std::vector<Item>> ScanAll(const CatalogStore& store,
                                                 absl::string_view after = "") {
  std::vector<Item> items;
  const absl::Status status = store.Scan(after, [&](Item item) {
    items.push_back(std::move(item));
    return true;
  });
  if (!status.ok()) return status;
  return items;
}

inline absl::Status PutTextEncoder(CatalogStore& catalog, std::string bytes) {
  const CatalogStore::EncoderBytes encoder = {"text", std::move(bytes)};
  return catalog.PutEncoders({&encoder, 1});
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_CORE_STORAGE_TEST_STORE_H_
