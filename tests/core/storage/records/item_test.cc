#include "core/storage/records/item.h"

#include <cmath>
#include <limits>
#include <string>

#include "core/base/status.h"
#include "tests/core/storage/test_store.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::StartsWith;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

auto Invalid(const std::string& field) {
  return StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(field + ": "));
}

TEST(ItemTest, TypesOfValuesAreTheDeclaredOnes) {
  EXPECT_EQ(TypeOf(true), AttributeType::kBool);
  EXPECT_EQ(TypeOf(std::int64_t{1}), AttributeType::kInt64);
  EXPECT_EQ(TypeOf(1.0), AttributeType::kDouble);
  EXPECT_EQ(TypeOf(std::string("a")), AttributeType::kString);
  EXPECT_EQ(TypeOf(std::vector<std::string>{"a"}), AttributeType::kStringList);
  EXPECT_EQ(TypeOf(absl::UnixEpoch()), AttributeType::kTimestamp);
  EXPECT_EQ(Name(AttributeType::kStringList), "string list");
  EXPECT_EQ(Name(AttributeType::kTimestamp), "timestamp");
}

TEST(ItemTest, FieldsAreFoundByName) {
  const CatalogSchema schema = TestRecord().schema;
  EXPECT_EQ(schema.KeyFieldIndex("events"), 0);
  EXPECT_EQ(schema.KeyFieldIndex("text"), 1);
  EXPECT_EQ(schema.KeyFieldIndex("price"), -1);
  EXPECT_EQ(schema.AttributeIndex("price"), 2);
  EXPECT_EQ(schema.AttributeIndex("text"), -1);
}

TEST(ValidateCatalogNameTest, AcceptsWhatTheWireAllows) {
  EXPECT_OK(ValidateCatalogName("a"));
  EXPECT_OK(ValidateCatalogName("0-shop_1"));
  EXPECT_OK(ValidateCatalogName(std::string(64, 'a')));
}

TEST(ValidateCatalogNameTest, RefusesTheRest) {
  for (const std::string& name :
       {std::string(), std::string("-a"), std::string("_a"), std::string("A"),
        std::string("a/b"), std::string("a b"), std::string("\xc3\xa4"),
        std::string(65, 'a'), std::string("a\0", 2)}) {
    EXPECT_THAT(ValidateCatalogName(name), Invalid("name")) << name;
  }
}

TEST(ValidateSchemaTest, AcceptsTheLimits) {
  CatalogSchema schema = TestRecord().schema;
  EXPECT_OK(ValidateSchema(schema));
  schema.key_fields[0].dim = 8192;
  schema.key_fields[1].dim = 1;
  schema.value_dim = 8192;
  schema.key_fields.resize(kMaxKeyFields, schema.key_fields[0]);
  for (std::size_t i = 0; i < schema.key_fields.size(); ++i) {
    schema.key_fields[i].name = "k_" + std::to_string(i);
  }
  schema.attributes.resize(kMaxAttributes);
  for (std::size_t i = 0; i < schema.attributes.size(); ++i) {
    schema.attributes[i].name = "a" + std::to_string(i);
  }
  EXPECT_OK(ValidateSchema(schema));
}

// Each mutation of a valid schema is refused with the name of the field.
TEST(ValidateSchemaTest, NamesTheFieldThatIsWrong) {
  struct Case {
    std::string field;
    void (*mutate)(CatalogSchema&);
  };
  const Case cases[] = {
      {"schema.key_fields", [](CatalogSchema& s) { s.key_fields.clear(); }},
      {"schema.key_fields[1].name",
       [](CatalogSchema& s) { s.key_fields[1].name = "Text"; }},
      {"schema.key_fields[1].name",
       [](CatalogSchema& s) { s.key_fields[1].name = "events"; }},
      {"schema.key_fields[0].name",
       [](CatalogSchema& s) { s.key_fields[0].name = ""; }},
      {"schema.key_fields[0].name",
       [](CatalogSchema& s) { s.key_fields[0].name = "1a"; }},
      {"schema.key_fields[0].name",
       [](CatalogSchema& s) { s.key_fields[0].name = "a-b"; }},
      {"schema.key_fields[0].name",
       [](CatalogSchema& s) { s.key_fields[0].name = std::string(65, 'a'); }},
      {"schema.key_fields[0].dimension",
       [](CatalogSchema& s) { s.key_fields[0].dim = 0; }},
      {"schema.key_fields[0].temperature",
       [](CatalogSchema& s) { s.key_fields[0].temperature = 0; }},
      {"schema.key_fields[0].temperature",
       [](CatalogSchema& s) { s.key_fields[0].temperature = NAN; }},
      {"schema.key_fields[0].score_kind",
       [](CatalogSchema& s) {
         s.key_fields[0].score_kind = static_cast<ScoreKind>(9);
       }},
      {"schema.key_fields[0].index_kind",
       [](CatalogSchema& s) {
         s.key_fields[0].index_kind = static_cast<IndexKind>(0);
       }},
      {"schema.key_fields[0].combine_kind",
       [](CatalogSchema& s) {
         s.key_fields[0].combine_kind = static_cast<CombineKind>(0);
       }},
      {"schema.key_fields[0].keys_on_disk",
       [](CatalogSchema& s) {
         s.key_fields[0].index_kind = IndexKind::kHnsw;
         s.key_fields[0].keys_on_disk = true;
       }},
      {"schema.value_dimension", [](CatalogSchema& s) { s.value_dim = -1; }},
      {"schema.attributes[2].name",
       [](CatalogSchema& s) { s.attributes[2].name = "sold"; }},
      {"schema.attributes[2].name",
       [](CatalogSchema& s) { s.attributes[2].name = "a.b"; }},
      {"schema.attributes[2].type",
       [](CatalogSchema& s) {
         s.attributes[2].type = static_cast<AttributeType>(7);
       }},
  };
  for (const Case& c : cases) {
    CatalogSchema schema = TestRecord().schema;
    c.mutate(schema);
    const absl::Status status = ValidateSchema(schema);
    EXPECT_THAT(status, Invalid(c.field));
    EXPECT_THAT(FieldOf(status), Optional(c.field));
  }
}

TEST(ValidateItemTest, AcceptsItemsOfTheSchema) {
  const CatalogSchema schema = TestRecord().schema;
  for (int i = 0; i < 6; ++i) EXPECT_OK(ValidateItem(TestItem(i), schema)) << i;
}

TEST(ValidateSchemaTest, KeysMayLieOnDiskWhereFewOfThemAreRead) {
  CatalogSchema schema = TestRecord().schema;
  schema.key_fields[0].keys_on_disk = true;
  for (const IndexKind kind :
       {IndexKind::kAuto, IndexKind::kIvf, IndexKind::kPq}) {
    schema.key_fields[0].index_kind = kind;
    EXPECT_OK(ValidateSchema(schema)) << Name(kind);
  }
  for (const IndexKind kind :
       {IndexKind::kFlat, IndexKind::kHnsw, IndexKind::kLsh}) {
    schema.key_fields[0].index_kind = kind;
    EXPECT_THAT(ValidateSchema(schema),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(std::string(Name(kind))),
                               HasSubstr("AUTO, IVF or PQ"))));
  }
}

TEST(ValidateSchemaTest, NamesTheLimitThatIsExceeded) {
  CatalogSchema schema = TestRecord().schema;
  schema.key_fields.resize(17);
  EXPECT_THAT(ValidateSchema(schema),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("schema.key_fields: got 17")));
  schema = TestRecord().schema;
  schema.key_fields[0].dim = 8193;
  EXPECT_THAT(ValidateSchema(schema),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("schema.key_fields[0].dimension: got 8193")));
  schema = TestRecord().schema;
  schema.value_dim = 8193;
  EXPECT_THAT(ValidateSchema(schema),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("schema.value_dimension: got 8193")));
  schema = TestRecord().schema;
  schema.attributes.resize(257);
  EXPECT_THAT(ValidateSchema(schema),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("schema.attributes: got 257")));
}

TEST(ValidateItemTest, NamesTheLimitThatIsExceeded) {
  Item item = TestItem(0);
  item.id = std::string(129, 'a');
  EXPECT_THAT(ValidateItem(item, TestRecord().schema),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("id: got 129 bytes")));
  item = TestItem(0);
  item.attributes = {{3, std::string((1 << 20) + 1, 'a')}};
  EXPECT_THAT(ValidateItem(item, TestRecord().schema),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("attributes: got 1048577 bytes")));
}

TEST(ValidateItemTest, NamesTheFieldThatIsWrong) {
  struct Case {
    std::string field;
    void (*mutate)(Item&);
  };
  const Case cases[] = {
      {"id", [](Item& item) { item.id = ""; }},
      {"id", [](Item& item) { item.id = "\xff"; }},
      {"keys", [](Item& item) { item.keys.pop_back(); }},
      {"keys",
       [](Item& item) {
         item.keys = {{}, {}};
       }},
      {"keys[events]", [](Item& item) { item.keys[0].push_back(1); }},
      {"keys[text]",
       [](Item& item) {
         item.keys[1] = {0, 0};
       }},
      {"value", [](Item& item) { item.value = {1}; }},
      {"value", [](Item& item) { item.value.clear(); }},
      {"attributes",
       [](Item& item) { std::swap(item.attributes[0], item.attributes[1]); }},
      {"attributes", [](Item& item) { item.attributes[5].first = 6; }},
      {"attributes", [](Item& item) { item.attributes[0].first = -1; }},
      {"attributes[stock]",
       [](Item& item) { item.attributes[1].second = 1.5; }},
      {"attributes[price]",
       [](Item& item) { item.attributes[2].second = HUGE_VAL; }},
      {"attributes[title]",
       [](Item& item) { item.attributes[3].second = std::string("\xc3"); }},
      {"attributes[tags][1]",
       [](Item& item) {
         item.attributes[4].second = std::vector<std::string>{"a", "\x80"};
       }},
      {"attributes[listed]",
       [](Item& item) { item.attributes[5].second = absl::InfiniteFuture(); }},
  };
  const CatalogSchema schema = TestRecord().schema;
  for (const Case& c : cases) {
    Item item = TestItem(2);
    ASSERT_OK(ValidateItem(item, schema));
    c.mutate(item);
    const absl::Status status = ValidateItem(item, schema);
    EXPECT_THAT(status, Invalid(c.field));
    EXPECT_THAT(FieldOf(status), Optional(c.field));
  }
}

TEST(ValidateItemTest, FindsTheFirstNumberThatIsNotFinite) {
  CatalogSchema schema = TestRecord().schema;
  schema.key_fields[1].dim = 20;
  Item item = TestItem(2);
  item.keys[1].assign(20, 1.0f);
  ASSERT_OK(ValidateItem(item, schema));
  item.keys[1][17] = kNan;
  item.keys[1][18] = HUGE_VALF;
  EXPECT_THAT(ValidateItem(item, schema),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "keys[text][17]: got nan, want a finite number"));
  item.keys[1].assign(20, 1.0f);
  item.value[3] = -HUGE_VALF;
  EXPECT_THAT(ValidateItem(item, schema), Invalid("value[3]"));
}

TEST(ValidateItemTest, ValueMayBeLeftOutWhereEveryKeyCanBePooled) {
  const CatalogSchema schema = TestRecord().schema;
  Item item = TestItem(2);
  item.value.clear();
  // keys[text] has 2 components, a value 4.
  EXPECT_THAT(ValidateItem(item, schema),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("value"), HasSubstr("keys[text]"))));
  item.keys[1].clear();
  EXPECT_OK(ValidateItem(item, schema));
}

TEST(ValidateItemTest, CatalogWithoutValuesTakesNone) {
  CatalogSchema schema = TestRecord().schema;
  schema.value_dim = 0;
  Item item = TestItem(2);
  EXPECT_THAT(ValidateItem(item, schema), Invalid("value"));
  item.value.clear();
  EXPECT_OK(ValidateItem(item, schema));
}

TEST(ValidateItemTest, ZeroKeyIsRefusedUnderCosineOnly) {
  const CatalogSchema schema = TestRecord().schema;
  Item item = TestItem(2);
  item.keys[0] = {0, 0, 0, 0};
  EXPECT_OK(ValidateItem(item, schema));
  // The norm is not 0, although its square underflows to 0 as a float.
  item.keys[1] = {1e-40f, 0};
  EXPECT_OK(ValidateItem(item, schema));
}

}  // namespace
}  // namespace attendant
