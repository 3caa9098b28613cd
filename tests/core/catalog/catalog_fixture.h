// A live catalog on a fake disk, with helpers named after domain operations.
#ifndef ATTENDANT_TESTS_CORE_CATALOG_CATALOG_FIXTURE_H_
#define ATTENDANT_TESTS_CORE_CATALOG_CATALOG_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/catalog/live/live_catalog.h"
#include "core/catalog/query/attend.h"
#include "tests/core/catalog/fake_store.h"
#include "tests/support/reference.h"
#include "tests/support/status_matchers.h"

namespace attendant {

inline CatalogSchema OneFieldSchema(std::int64_t dim,
                                    ScoreKind kind = ScoreKind::kDot) {
  CatalogSchema schema;
  KeyFieldSchema field;
  field.name = "vec";
  field.dim = dim;
  field.score_kind = kind;
  schema.key_fields.push_back(field);
  return schema;
}

inline Item MakeItem(std::string id, std::vector<float> key,
                     std::vector<float> value = {}) {
  Item item;
  item.id = std::move(id);
  item.keys.push_back(std::move(key));
  item.value = std::move(value);
  return item;
}

// Returns `count` items item0, item1, ... with standard normal keys.
inline std::vector<Item> RandomItems(int count, int dim, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<Item> items;
  for (int i = 0; i < count; ++i) {
    std::vector<float> key(dim);
    for (float& component : key) component = normal(random);
    items.push_back(MakeItem("item" + std::to_string(i), std::move(key)));
  }
  return items;
}

inline AttendQuery VectorQuery(std::vector<float> vector) {
  AttendQuery query;
  query.query = std::move(vector);
  return query;
}

inline AttendQuery LikeQuery(std::vector<std::string> ids) {
  ExamplesQuery examples;
  for (std::string& id : ids) examples.examples.push_back({std::move(id), 1});
  AttendQuery query;
  query.query = std::move(examples);
  return query;
}

// Sets the encoder of the first key field.
inline absl::Status SetEncoder(LiveCatalog& catalog, TextEncoder encoder) {
  std::vector<LiveCatalog::FieldEncoder> encoders;
  encoders.push_back({0, std::move(encoder)});
  return catalog.SetEncoders(std::move(encoders));
}

class CatalogFixture : public ::testing::Test {
 protected:
  void OpenCatalog(CatalogSchema schema, LiveCatalogOptions options = {}) {
    schema_ = std::move(schema);
    options_ = options;
    Restart();
  }

  // Reopens the catalog, which then has only what the disk holds.
  void Restart() {
    catalog_ = nullptr;
    CatalogRecord record;
    record.name = "shop";
    record.uid = "0123456789abcdef";
    record.schema = schema_;
    std::vector<NamedModel> models = models_;
    models.resize(schema_.key_fields.size());
    auto opened = LiveCatalog::Open(record, std::move(models),
                                    std::make_unique<FakeStore>(disk_),
                                    &background_, options_);
    ASSERT_OK(opened);
    catalog_ = *std::move(opened);
  }

  void Upsert(const std::vector<Item>& items) {
    ASSERT_OK(catalog_->Upsert(items, ""));
  }
  void Delete(const std::vector<std::string>& ids) {
    ASSERT_OK(catalog_->Delete(ids, ""));
  }
  // Returns the catalog's schema with other key fields.
  CatalogSchema WithFields(const std::vector<KeyFieldSchema>& fields) const {
    CatalogSchema schema = *catalog_->snapshot()->schema;
    schema.key_fields = fields;
    return schema;
  }
  // Sets the defaults as if they had been stored.
  void SetDefaults(const std::vector<KeyFieldSchema>& fields,
                   std::vector<NamedModel> models) {
    ASSERT_OK(catalog_->UpdateSchema(WithFields(fields), std::move(models),
                                     [] { return absl::OkStatus(); }));
  }
  absl::StatusOr<AttendAnswer> Ask(const AttendQuery& query) {
    asked_ = catalog_->snapshot();
    return Attend(*asked_, query, Interrupt());
  }
  // Ids of the last answer, best first. The catalog may have moved its rows
  // since.
  std::vector<std::string> IdsOf(const AttendAnswer& answer) const {
    std::vector<std::string> ids;
    for (const AttendedItem& item : answer.items) {
      ids.emplace_back(asked_->IdOf(item.address.segment, item.address.row));
    }
    return ids;
  }

  CatalogSchema schema_;
  std::vector<NamedModel> models_;  // of the first key fields; none if empty
  LiveCatalogOptions options_;
  std::shared_ptr<FakeDisk> disk_ = std::make_shared<FakeDisk>();
  BackgroundWorker background_;
  std::unique_ptr<LiveCatalog> catalog_;
  std::shared_ptr<const Snapshot> asked_;  // by Ask
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_CORE_CATALOG_CATALOG_FIXTURE_H_
