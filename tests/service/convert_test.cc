// Conversion between the wire and core: what comes through, and for each thing
// that can't, the field that is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "service/convert/answer.h"
#include "service/convert/attend.h"
#include "service/convert/enum.h"
#include "service/convert/item.h"
#include "service/convert/read_mask.h"
#include "service/convert/schema.h"
#include "service/convert/time.h"
#include "service/convert/tokens.h"
#include "service/convert/vector.h"
#include "tests/support/parse_proto.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Expects InvalidArgument that names `field` and says `message`.
void ExpectInvalid(const absl::Status& status, const std::string& field,
                   const std::string& message) {
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  EXPECT_EQ(FieldOf(status).value_or("none"), field) << status;
}

CatalogSchema ShopSchema() {
  CatalogSchema schema;
  schema.key_fields.push_back({.name = "title", .dim = 2});
  schema.key_fields.push_back({.name = "image", .dim = 3});
  schema.value_dim = 2;
  schema.attributes = {
      {"sold", AttributeType::kBool},
      {"stock", AttributeType::kInt64},
      {"price", AttributeType::kDouble},
      {"name", AttributeType::kString},
      {"tags", AttributeType::kStringList},
      {"added", AttributeType::kTimestamp},
  };
  return schema;
}

TEST(ConvertVectorTest, BothEncodingsGiveTheSameFloats) {
  const std::vector<float> components = {1.5f, -0.0f, 3e38f, 1e-40f};
  v1::Vector floats;
  VectorToProto(components, &floats);
  v1::Vector bytes;
  bytes.set_float32_le(
      std::string(reinterpret_cast<const char*>(components.data()),
                  components.size() * sizeof(float)));
  ASSERT_OK_AND_ASSIGN(const auto from_floats, VectorFromProto(floats));
  ASSERT_OK_AND_ASSIGN(const auto from_bytes, VectorFromProto(bytes));
  // Bit for bit: -0 and the subnormal survive.
  for (const auto* got : {&from_floats, &from_bytes}) {
    ASSERT_EQ(got->size(), components.size());
    EXPECT_EQ(std::memcmp(got->data(), components.data(),
                          components.size() * sizeof(float)),
              0);
  }
}

TEST(ConvertVectorTest, BytesAreLittleEndian) {
  v1::Vector vector;
  vector.set_float32_le(std::string("\x00\x00\x80\x3F\x00\x00\x00\xC0", 8));
  ASSERT_OK_AND_ASSIGN(const auto floats, VectorFromProto(vector));
  EXPECT_THAT(floats, ElementsAre(1.0f, -2.0f));
}

TEST(ConvertVectorTest, NamesWhatIsWrong) {
  ExpectInvalid(VectorFromProto(v1::Vector()).status(), "encoding",
                "want floats or float32_le");
  ExpectInvalid(VectorFromProto(Parse<v1::Vector>("floats {}")).status(),
                "floats.values", "got none");
  ExpectInvalid(VectorFromProto(Parse<v1::Vector>("float32_le: ''")).status(),
                "float32_le", "got no bytes");
  for (int size : {1, 2, 3, 5, 7}) {
    v1::Vector vector;
    vector.set_float32_le(std::string(static_cast<std::size_t>(size), 'x'));
    ExpectInvalid(VectorFromProto(vector).status(), "float32_le",
                  absl::StrCat("got ", size, " bytes"));
  }
}

TEST(ConvertTimeTest, KeepsMicrosecondsAlsoBeforeTheEpoch) {
  for (const std::int64_t seconds :
       {-62135596800LL, -1LL, 0LL, 1700000000LL, 253402300799LL}) {
    google::protobuf::Timestamp wire;
    wire.set_seconds(seconds);
    wire.set_nanos(123456000);
    ASSERT_OK_AND_ASSIGN(const absl::Time time, TimeFromProto(wire));
    google::protobuf::Timestamp back;
    TimeToProto(time, &back);
    EXPECT_EQ(back.seconds(), seconds);
    EXPECT_EQ(back.nanos(), 123456000);
  }
}

TEST(ConvertTimeTest, RoundsDownToMicroseconds) {
  google::protobuf::Timestamp wire;
  wire.set_nanos(1999);
  ASSERT_OK_AND_ASSIGN(const absl::Time time, TimeFromProto(wire));
  EXPECT_EQ(time, absl::UnixEpoch() + absl::Microseconds(1));
}

TEST(ConvertTimeTest, RefusesWhatATimestampCannotHold) {
  google::protobuf::Timestamp wire;
  wire.set_seconds(-62135596801);
  ExpectInvalid(TimeFromProto(wire).status(), "seconds", "-62135596801");
  wire.set_seconds(253402300800);
  ExpectInvalid(TimeFromProto(wire).status(), "seconds", "253402300800");
  wire.set_seconds(0);
  wire.set_nanos(-1);
  ExpectInvalid(TimeFromProto(wire).status(), "nanos", "got -1");
  wire.set_nanos(1000000000);
  ExpectInvalid(TimeFromProto(wire).status(), "nanos", "got 1000000000");
}

TEST(ConvertTimeTest, DurationIsSecondsAndNanos) {
  google::protobuf::Duration wire;
  DurationToProto(absl::Milliseconds(2500), &wire);
  EXPECT_EQ(wire.seconds(), 2);
  EXPECT_EQ(wire.nanos(), 500000000);
}

TEST(ConvertSchemaTest, AllComesThroughAndBack) {
  const auto wire = Parse<v1::CatalogSchema>(R"pb(
    key_fields {
      name: "title"
      dimension: 64
      score_kind: SCORE_KIND_COSINE
      index_kind: INDEX_KIND_IVF
      temperature: 0.25
      combine_kind: COMBINE_KIND_UNIT
      keys_on_disk: true
    }
    key_fields {
      name: "image"
      dimension: 8
      score_kind: SCORE_KIND_SCALED_DOT
      index_kind: INDEX_KIND_FLAT
      temperature: 2
      combine_kind: COMBINE_KIND_SUM_OVER_SQRT_COUNT
    }
    value_dimension: 3
    attributes { name: "price" type: ATTRIBUTE_TYPE_DOUBLE }
    attributes { name: "tags" type: ATTRIBUTE_TYPE_STRING_LIST }
  )pb");
  ASSERT_OK_AND_ASSIGN(const CatalogSchema schema, SchemaFromProto(wire));
  EXPECT_EQ(schema.key_fields[0].score_kind, ScoreKind::kCosine);
  EXPECT_EQ(schema.key_fields[0].dim, 64);
  EXPECT_TRUE(schema.key_fields[0].keys_on_disk);
  EXPECT_EQ(schema.value_dim, 3);
  v1::CatalogSchema back;
  SchemaToProto(schema, &back);
  EXPECT_EQ(back.SerializeAsString(), wire.SerializeAsString());
}

TEST(ConvertSchemaTest, UnsetMeansTheDocumentedDefault) {
  ASSERT_OK_AND_ASSIGN(const CatalogSchema schema,
                       SchemaFromProto(Parse<v1::CatalogSchema>(
                           "key_fields { name: 'k' dimension: 2 }")));
  EXPECT_EQ(schema.key_fields[0],
            (KeyFieldSchema{.name = "k",
                            .dim = 2,
                            .score_kind = ScoreKind::kDot,
                            .index_kind = IndexKind::kAuto,
                            .temperature = 1,
                            .combine_kind = CombineKind::kSum}));
}

TEST(ConvertSchemaTest, TemperatureZeroIsNotTakenForUnset) {
  ASSERT_OK_AND_ASSIGN(
      const CatalogSchema schema,
      SchemaFromProto(Parse<v1::CatalogSchema>(
          "key_fields { name: 'k' dimension: 2 temperature: 0 }")));
  EXPECT_EQ(schema.key_fields[0].temperature, 0);
  EXPECT_EQ(FieldOf(ValidateSchema(schema)),
            "schema.key_fields[0].temperature");
}

TEST(ConvertSchemaTest, NamesTheEnumThatIsUnknown) {
  v1::CatalogSchema wire;
  wire.add_key_fields();
  v1::KeyField* field = wire.add_key_fields();
  field->set_score_kind(static_cast<v1::ScoreKind>(99));
  ExpectInvalid(SchemaFromProto(wire).status(),
                "schema.key_fields[1].score_kind", "got 99");
  EXPECT_THAT(SchemaFromProto(wire).status().message(),
              HasSubstr("SCORE_KIND_COSINE"));
  field->set_score_kind(v1::SCORE_KIND_DOT);
  field->set_index_kind(static_cast<v1::IndexKind>(-1));
  ExpectInvalid(SchemaFromProto(wire).status(),
                "schema.key_fields[1].index_kind", "got -1");
  field->set_index_kind(v1::INDEX_KIND_FLAT);
  field->set_combine_kind(static_cast<v1::CombineKind>(4));
  ExpectInvalid(SchemaFromProto(wire).status(),
                "schema.key_fields[1].combine_kind", "got 4");
  field->set_combine_kind(v1::COMBINE_KIND_SUM);
  v1::AttributeField* attribute = wire.add_attributes();
  ExpectInvalid(SchemaFromProto(wire).status(), "schema.attributes[0].type",
                "got ATTRIBUTE_TYPE_UNSPECIFIED");
  EXPECT_THAT(SchemaFromProto(wire).status().message(),
              Not(HasSubstr("want one of ATTRIBUTE_TYPE_UNSPECIFIED")));
  attribute->set_type(static_cast<v1::AttributeType>(7));
  ExpectInvalid(SchemaFromProto(wire).status(), "schema.attributes[0].type",
                "got 7");
}

TEST(ConvertSchemaTest, EncoderFitsItsKeyField) {
  v1::CreateCatalogRequest request;
  v1::TextEncoder* wire = request.add_text_encoders();
  wire->set_key_field("title");
  wire->add_terms("alarm");
  wire->add_idf(0.5f);
  const float row[] = {0.25f, -1.0f};
  wire->set_projection_float32_le(
      std::string(reinterpret_cast<const char*>(row), sizeof(row)));
  ASSERT_OK_AND_ASSIGN(
      const auto encoders,
      EncodersFromProto(request.text_encoders(), ShopSchema()));
  ASSERT_EQ(encoders.size(), 1u);
  EXPECT_EQ(encoders[0].key_field, "title");
  EXPECT_EQ(encoders[0].encoder.parts(),
            (TextEncoderParts{.terms = {"alarm"},
                              .idf = {0.5f},
                              .dim = 2,
                              .projection = {0.25f, -1.0f}}));

  *request.add_text_encoders() = request.text_encoders(0);
  ExpectInvalid(
      EncodersFromProto(request.text_encoders(), ShopSchema()).status(),
      "text_encoders[1].key_field", "again");
  request.mutable_text_encoders(1)->set_key_field("sound");
  ExpectInvalid(
      EncodersFromProto(request.text_encoders(), ShopSchema()).status(),
      "text_encoders[1].key_field", "got \"sound\"");
  request.mutable_text_encoders(1)->set_key_field("image");
  EXPECT_THAT(EncodersFromProto(request.text_encoders(), ShopSchema()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("text_encoders[1].")));
  request.mutable_text_encoders(1)->set_projection_float32_le("12345");
  ExpectInvalid(
      EncodersFromProto(request.text_encoders(), ShopSchema()).status(),
      "text_encoders[1].projection_float32_le", "got 5 bytes");
}

TEST(UpdatedKeyFieldsTest, ChangesOnlyWhatTheMaskNames) {
  const auto request = Parse<v1::UpdateCatalogRequest>(R"pb(
    key_fields {
      name: "image"
      dimension: 77
      temperature: 0.5
      combine_kind: COMBINE_KIND_UNIT
      index_kind: INDEX_KIND_FLAT
    }
    update_mask { paths: "temperature" paths: "index_kind" }
  )pb");
  ASSERT_OK_AND_ASSIGN(const auto fields,
                       UpdatedKeyFields(request, ShopSchema().key_fields));
  CatalogSchema expected = ShopSchema();
  expected.key_fields[1].temperature = 0.5;
  expected.key_fields[1].index_kind = IndexKind::kFlat;
  EXPECT_EQ(fields, expected.key_fields);
}

TEST(UpdatedKeyFieldsTest, KeysGoToDiskAndBack) {
  std::vector<KeyFieldSchema> fields = ShopSchema().key_fields;
  for (const bool on_disk : {true, false}) {
    auto request = Parse<v1::UpdateCatalogRequest>(
        "key_fields { name: 'image' } update_mask { paths: 'keys_on_disk' }");
    request.mutable_key_fields(0)->set_keys_on_disk(on_disk);
    ASSERT_OK_AND_ASSIGN(fields, UpdatedKeyFields(request, fields));
    EXPECT_EQ(fields[1].keys_on_disk, on_disk);
    EXPECT_FALSE(fields[0].keys_on_disk);
  }
}

TEST(UpdatedKeyFieldsTest, NamedButUnsetGoesBackToTheDefault) {
  std::vector<KeyFieldSchema> fields = ShopSchema().key_fields;
  fields[0].temperature = 7;
  fields[0].combine_kind = CombineKind::kUnit;
  fields[0].index_kind = IndexKind::kIvf;
  ASSERT_OK_AND_ASSIGN(
      const auto updated,
      UpdatedKeyFields(
          Parse<v1::UpdateCatalogRequest>(
              "key_fields { name: 'title' } update_mask { paths: 'temperature' "
              "paths: 'combine_kind' paths: 'index_kind' }"),
          fields));
  EXPECT_EQ(updated, ShopSchema().key_fields);
}

TEST(UpdatedKeyFieldsTest, NamesWhatIsWrong) {
  const auto status = [](const std::string& text) {
    return UpdatedKeyFields(Parse<v1::UpdateCatalogRequest>(text),
                            ShopSchema().key_fields)
        .status();
  };
  ExpectInvalid(status("key_fields { name: 'title' }"), "update_mask",
                "no paths");
  ExpectInvalid(status("update_mask { paths: 'temperature' }"), "key_fields",
                "none");
  ExpectInvalid(status("key_fields { name: 'title' } update_mask { paths: "
                       "'temperature' paths: 'dimension' }"),
                "update_mask.paths[1]", "got \"dimension\"");
  ExpectInvalid(status("key_fields { name: 'x' } update_mask { paths: "
                       "'temperature' }"),
                "key_fields[0].name", "got \"x\"");
  ExpectInvalid(
      status("key_fields { name: 'title' } key_fields { name: 'title' } "
             "update_mask { paths: 'temperature' }"),
      "key_fields[1].name", "again");
  for (const char* temperature : {"0", "-1", "inf", "nan"}) {
    ExpectInvalid(status(absl::StrCat(
                      "key_fields { name: 'title' temperature: ", temperature,
                      " } update_mask { paths: "
                      "'temperature' }")),
                  "key_fields[0].temperature", "got");
  }
}

TEST(ConvertItemTest, AllComesThroughAndBack) {
  const auto wire = Parse<v1::Item>(R"pb(
    id: "a"
    keys {
      key: "title"
      value { floats { values: [ 1, 2 ] } }
    }
    keys {
      key: "image"
      value { floats { values: [ 3, 4, 5 ] } }
    }
    value { floats { values: [ 6, 7 ] } }
    attributes {
      key: "sold"
      value { bool_value: true }
    }
    attributes {
      key: "stock"
      value { int64_value: -9223372036854775808 }
    }
    attributes {
      key: "price"
      value { double_value: 0.1 }
    }
    attributes {
      key: "name"
      value { string_value: "\303\204pfel" }
    }
    attributes {
      key: "tags"
      value { string_list_value { values: "z" values: "a" } }
    }
    attributes {
      key: "added"
      value { timestamp_value { seconds: 1700000000 nanos: 5000 } }
    }
    opaque_value: "\000\377\000"
  )pb");
  const CatalogSchema schema = ShopSchema();
  ASSERT_OK_AND_ASSIGN(const Item item, ItemFromProto(wire, schema));
  EXPECT_OK(ValidateItem(item, schema));
  EXPECT_THAT(item.keys, ElementsAre(ElementsAre(1, 2), ElementsAre(3, 4, 5)));
  EXPECT_THAT(item.value, ElementsAre(6, 7));
  ASSERT_EQ(item.attributes.size(), 6u);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(item.attributes[i].first, i);
  EXPECT_EQ(std::get<std::int64_t>(item.attributes[1].second),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(item.opaque_value, std::string("\0\xff\0", 3));

  v1::Item back;
  ItemToProto({item, 7}, schema, ReadMask::All(schema), &back);
  EXPECT_EQ(back.sequence(), 7);
  ASSERT_OK_AND_ASSIGN(const Item again, ItemFromProto(back, schema));
  EXPECT_EQ(again, item);
}

TEST(ConvertItemTest, MaskChoosesWhatComesBack) {
  const CatalogSchema schema = ShopSchema();
  Item item;
  item.id = "a";
  item.keys = {{1, 2}, {}};
  item.value = {3, 4};
  item.attributes.emplace_back(2, 1.5);
  item.attributes.emplace_back(3, std::string("n"));
  item.opaque_value = "bytes";
  const auto read = [&](const std::string& paths) {
    const auto mask =
        ReadMaskFromProto(Parse<google::protobuf::FieldMask>(paths), schema);
    EXPECT_OK(mask);
    v1::Item wire;
    ItemToProto({item, 7}, schema, *mask, &wire);
    return wire;
  };
  EXPECT_EQ(read("").SerializeAsString(),
            Parse<v1::Item>("id: 'a' sequence: 7").SerializeAsString());
  const v1::Item keys = read("paths: 'keys'");
  EXPECT_EQ(keys.keys_size(), 1);
  EXPECT_EQ(keys.keys().count("title"), 1u);
  EXPECT_FALSE(keys.has_value());
  EXPECT_THAT(keys.attributes(), IsEmpty());
  EXPECT_TRUE(read("paths: 'value'").has_value());
  EXPECT_EQ(read("paths: 'value'").opaque_value(), "");
  const v1::Item opaque = read("paths: 'opaque_value'");
  EXPECT_EQ(opaque.opaque_value(), "bytes");
  EXPECT_FALSE(opaque.has_value());
  EXPECT_EQ(read("paths: 'attributes'").attributes_size(), 2);
  const v1::Item price = read("paths: 'attributes.price'");
  ASSERT_EQ(price.attributes_size(), 1);
  EXPECT_EQ(price.attributes().at("price").double_value(), 1.5);
  EXPECT_EQ(read("paths: 'attributes.price' paths: 'attributes.name'")
                .attributes_size(),
            2);
}

TEST(ConvertItemTest, NamesWhatIsWrong) {
  struct Case {
    const char* item;
    const char* field;
    const char* message;
  };
  const Case cases[] = {
      {"keys { key: 'sound' value { floats { values: 1 } } }", "keys[sound]",
       "undeclared"},
      {"keys { key: 'title' value {} }", "keys[title].encoding", "none"},
      {"keys { key: 'title' value { floats {} } }", "keys[title].floats.values",
       "none"},
      {"keys { key: 'title' value { float32_le: '123' } }",
       "keys[title].float32_le", "3 bytes"},
      {"value {}", "value.encoding", "none"},
      {"value { floats {} }", "value.floats.values", "none"},
      {"attributes { key: 'color' value { bool_value: true } }",
       "attributes[color]", "undeclared"},
      {"attributes { key: 'price' value {} }", "attributes[price].kind",
       "none"},
      {"attributes { key: 'added' value { timestamp_value { nanos: -1 } } }",
       "attributes[added].timestamp_value.nanos", "got -1"},
      {"attributes { key: 'added' value { timestamp_value { seconds: "
       "253402300800 } } }",
       "attributes[added].timestamp_value.seconds", "253402300800"},
  };
  for (const Case& bad : cases) {
    ExpectInvalid(
        ItemFromProto(Parse<v1::Item>(bad.item), ShopSchema()).status(),
        bad.field, bad.message);
  }
}

TEST(ReadMaskTest, NamesThePathThatIsUnknown) {
  const auto status = [](const std::string& paths) {
    return ReadMaskFromProto(Parse<google::protobuf::FieldMask>(paths),
                             ShopSchema())
        .status();
  };
  ExpectInvalid(status("paths: 'keys' paths: 'colour'"), "read_mask.paths[1]",
                "got \"colour\"");
  ExpectInvalid(status("paths: 'attributes.colour'"), "read_mask.paths[0]",
                "an attribute that the schema declares");
  ExpectInvalid(status("paths: 'attributes.'"), "read_mask.paths[0]",
                "attributes.");
  ExpectInvalid(status("paths: ''"), "read_mask.paths[0]", "got \"\"");
  ExpectInvalid(status("paths: 'Keys'"), "read_mask.paths[0]", "Keys");
}

TEST(ReadMaskTest, CanonicalTextTellsMasksApart) {
  const auto text = [](const std::string& paths) {
    return CanonicalText(*ReadMaskFromProto(
        Parse<google::protobuf::FieldMask>(paths), ShopSchema()));
  };
  EXPECT_EQ(text("paths: 'keys' paths: 'value'"),
            text("paths: 'value' paths: 'keys' paths: 'keys'"));
  EXPECT_NE(text("paths: 'keys'"), text("paths: 'value'"));
  EXPECT_NE(text("paths: 'opaque_value'"), text("paths: 'value'"));
  EXPECT_NE(text("paths: 'opaque_value'"), text(""));
  EXPECT_NE(text("paths: 'attributes.price'"),
            text("paths: 'attributes.name'"));
  EXPECT_NE(text("paths: 'attributes.price'"), text("paths: 'attributes'"));
  EXPECT_NE(text(""), text("paths: 'keys'"));
}

TEST(ConvertAttendTest, AllComesThrough) {
  ASSERT_OK_AND_ASSIGN(const AttendQuery query,
                       AttendQueryFromProto(Parse<v1::AttendRequest>(R"pb(
                         query {
                           examples {
                             examples { id: "a" weight: -0.5 }
                             examples { id: "b" }
                             examples { id: "c" weight: 0 }
                             combine_kind: COMBINE_KIND_SUM_OVER_SQRT_COUNT
                             require_all: true
                             exclude_examples: false
                           }
                         }
                         key_field: "title"
                         select_kind: SELECT_KIND_HARD
                         result_count: 5
                         shortlist_count: 50
                         temperature: 0.25
                         score_kind: SCORE_KIND_COSINE
                         weight_scope: WEIGHT_SCOPE_RETURNED
                         pool_scope: WEIGHT_SCOPE_CATALOG
                         omit_pooled_value: true
                         scan_mode: SCAN_MODE_INDEX
                         recall: 0.95
                         probe_count: 7
                         mass_precision: 0.01
                         mass_method: MASS_METHOD_BOUND
                         allow_list { ids: "x" ids: "y" }
                         deny_list { ids: "z" }
                       )pb")));
  const auto& examples = std::get<ExamplesQuery>(query.query);
  ASSERT_EQ(examples.examples.size(), 3u);
  EXPECT_EQ(examples.examples[0].id, "a");
  EXPECT_EQ(examples.examples[0].weight, -0.5);
  EXPECT_EQ(examples.examples[1].weight, 1);
  EXPECT_EQ(examples.examples[2].weight, 0);
  EXPECT_EQ(examples.combine_kind, CombineKind::kSumOverSqrtCount);
  EXPECT_TRUE(examples.require_all);
  EXPECT_FALSE(examples.exclude_examples);
  EXPECT_EQ(query.key_field, "title");
  EXPECT_EQ(query.select_kind, SelectKind::kHard);
  EXPECT_EQ(query.result_count, 5);
  EXPECT_EQ(query.shortlist_count, 50);
  EXPECT_EQ(query.temperature, 0.25);
  EXPECT_EQ(query.score_kind, ScoreKind::kCosine);
  EXPECT_EQ(query.weight_scope, WeightScope::kReturned);
  EXPECT_EQ(query.pool_scope, WeightScope::kCatalog);
  EXPECT_TRUE(query.omit_pooled_value);
  EXPECT_EQ(query.scan_mode, ScanMode::kIndex);
  EXPECT_EQ(query.recall, 0.95);
  EXPECT_EQ(query.probe_count, 7);
  EXPECT_EQ(query.mass_precision, 0.01);
  EXPECT_EQ(query.mass_method, MassMethod::kBound);
  ASSERT_TRUE(query.allow_list.has_value());
  EXPECT_THAT(*query.allow_list, ElementsAre("x", "y"));
  EXPECT_THAT(query.deny_list, ElementsAre("z"));
}

TEST(ConvertAttendTest, UnsetMeansTheDocumentedDefault) {
  ASSERT_OK_AND_ASSIGN(const AttendQuery query,
                       AttendQueryFromProto(Parse<v1::AttendRequest>(
                           "query { examples { examples { id: 'a' } } }")));
  const auto& examples = std::get<ExamplesQuery>(query.query);
  EXPECT_FALSE(examples.combine_kind.has_value());
  EXPECT_FALSE(examples.require_all);
  EXPECT_TRUE(examples.exclude_examples);
  EXPECT_EQ(query.select_kind, SelectKind::kSoft);
  EXPECT_FALSE(query.result_count.has_value());
  EXPECT_FALSE(query.shortlist_count.has_value());
  EXPECT_FALSE(query.temperature.has_value());
  EXPECT_FALSE(query.score_kind.has_value());
  EXPECT_FALSE(query.weight_scope.has_value());
  EXPECT_FALSE(query.pool_scope.has_value());
  EXPECT_FALSE(query.omit_pooled_value);
  EXPECT_EQ(query.scan_mode, ScanMode::kAuto);
  EXPECT_FALSE(query.recall.has_value());
  EXPECT_FALSE(query.probe_count.has_value());
  EXPECT_FALSE(query.mass_precision.has_value());
  EXPECT_FALSE(query.mass_method.has_value());
  EXPECT_FALSE(query.allow_list.has_value());
  EXPECT_THAT(query.deny_list, IsEmpty());
}

TEST(ConvertAttendTest, EmptyAllowListIsNotTakenForUnset) {
  ASSERT_OK_AND_ASSIGN(const AttendQuery query,
                       AttendQueryFromProto(Parse<v1::AttendRequest>(
                           "query { text: 'x' } allow_list {}")));
  ASSERT_TRUE(query.allow_list.has_value());
  EXPECT_THAT(*query.allow_list, IsEmpty());
}

TEST(ConvertAttendTest, ZeroIsNotTakenForUnset) {
  ASSERT_OK_AND_ASSIGN(
      const AttendQuery query,
      AttendQueryFromProto(Parse<v1::AttendRequest>(
          "query { text: 'x' } result_count: 0 shortlist_count: 0 "
          "temperature: 0 recall: 0 probe_count: 0 mass_precision: 0")));
  EXPECT_EQ(query.result_count, 0);
  EXPECT_EQ(query.shortlist_count, 0);
  EXPECT_EQ(query.temperature, 0);
  EXPECT_EQ(query.recall, 0);
  EXPECT_EQ(query.probe_count, 0);
  EXPECT_EQ(query.mass_precision, 0);
}

TEST(ConvertAttendTest, NamesWhatIsWrong) {
  const auto status = [](const std::string& text) {
    return AttendQueryFromProto(Parse<v1::AttendRequest>(text)).status();
  };
  ExpectInvalid(status(""), "query", "vector, examples or text");
  ExpectInvalid(status("query {}"), "query", "vector, examples or text");
  ExpectInvalid(status("query { vector {} }"), "query.vector.encoding", "none");
  ExpectInvalid(status("query { vector { floats {} } }"),
                "query.vector.floats.values", "none");
  ExpectInvalid(status("query { vector { float32_le: '12' } }"),
                "query.vector.float32_le", "2 bytes");
}

TEST(ConvertAttendTest, NamesTheEnumThatIsUnknown) {
  const auto expect = [](const std::string& field,
                         const std::function<void(v1::AttendRequest&)>& set) {
    v1::AttendRequest request;
    request.mutable_query()->mutable_examples()->add_examples();
    set(request);
    ExpectInvalid(AttendQueryFromProto(request).status(), field, "got 50");
  };
  expect("select_kind", [](auto& request) {
    request.set_select_kind(static_cast<v1::SelectKind>(50));
  });
  expect("score_kind", [](auto& request) {
    request.set_score_kind(static_cast<v1::ScoreKind>(50));
  });
  expect("weight_scope", [](auto& request) {
    request.set_weight_scope(static_cast<v1::WeightScope>(50));
  });
  expect("pool_scope", [](auto& request) {
    request.set_pool_scope(static_cast<v1::WeightScope>(50));
  });
  expect("scan_mode", [](auto& request) {
    request.set_scan_mode(static_cast<v1::ScanMode>(50));
  });
  expect("mass_method", [](auto& request) {
    request.set_mass_method(static_cast<v1::MassMethod>(50));
  });
  expect("query.examples.combine_kind", [](auto& request) {
    request.mutable_query()->mutable_examples()->set_combine_kind(
        static_cast<v1::CombineKind>(50));
  });
}

TEST(ConvertAnswerTest, WhatIsKnownOfTheMassComesThrough) {
  Snapshot snapshot;
  snapshot.schema = std::make_shared<CatalogSchema>(ShopSchema());
  AttendAnswer answer;
  answer.log_partition = 2;
  answer.log_partition_interval = {MassMethod::kEstimate, 1.5, 2.25};
  answer.results_exact = true;
  answer.visited_list_count = 12;
  answer.shared_query_count = 3;
  answer.pooled_value = PooledValue{.values = {1},
                                    .scope = WeightScope::kCatalog,
                                    .method = MassMethod::kEstimate,
                                    .relative_error = 0.125};
  answer.slate.emplace().distance = 0.25;
  HeadAnswer head;
  head.log_partition_interval = {MassMethod::kBound, -1, 1};
  answer.heads.push_back(head);
  v1::AttendResponse wire;
  ASSERT_OK(AttendAnswerToProto(answer, snapshot, {}, 16 << 20, &wire));
  EXPECT_EQ(wire.log_partition_interval().method(), v1::MASS_METHOD_ESTIMATE);
  EXPECT_EQ(wire.log_partition_interval().lower_bound(), 1.5);
  EXPECT_EQ(wire.log_partition_interval().upper_bound(), 2.25);
  EXPECT_TRUE(wire.results_exact());
  EXPECT_EQ(wire.stats().visited_list_count(), 12);
  EXPECT_EQ(wire.stats().shared_query_count(), 3);
  EXPECT_EQ(wire.pooled_value().method(), v1::MASS_METHOD_ESTIMATE);
  EXPECT_EQ(wire.pooled_value().relative_error(), 0.125);
  EXPECT_EQ(wire.slate().distance(), 0.25);
  EXPECT_EQ(wire.heads(0).log_partition_interval().method(),
            v1::MASS_METHOD_BOUND);
  EXPECT_EQ(wire.heads(0).log_partition_interval().upper_bound(), 1);
}

TEST(ConvertAnswerTest, UnknownMassCarriesNoNumber) {
  Snapshot snapshot;
  snapshot.schema = std::make_shared<CatalogSchema>(ShopSchema());
  AttendAnswer answer;
  answer.returned_mass = {MassMethod::kExact, 0.25, 0.25, 0.25};
  answer.key_field = 1;
  v1::AttendResponse wire;
  ASSERT_OK(AttendAnswerToProto(answer, snapshot, {}, 16 << 20, &wire));
  EXPECT_EQ(wire.returned_mass().method(), v1::MASS_METHOD_EXACT);
  EXPECT_EQ(wire.returned_mass().value(), 0.25);
  EXPECT_EQ(wire.returned_mass().lower_bound(), 0.25);
  EXPECT_EQ(wire.returned_mass().upper_bound(), 0.25);
  EXPECT_EQ(wire.shortlist_mass().method(), v1::MASS_METHOD_UNKNOWN);
  EXPECT_FALSE(wire.shortlist_mass().has_value());
  EXPECT_FALSE(wire.shortlist_mass().has_lower_bound());
  EXPECT_FALSE(wire.shortlist_mass().has_upper_bound());
  EXPECT_FALSE(wire.has_log_partition());
  EXPECT_FALSE(wire.has_log_partition_interval());
  EXPECT_FALSE(wire.has_entropy());
  EXPECT_FALSE(wire.has_effective_item_count());
  EXPECT_FALSE(wire.has_pooled_value());
  EXPECT_EQ(wire.key_field(), "image");
}

TEST(TokensTest, SnapshotTokensTellStatesApart) {
  EXPECT_EQ(SnapshotToken("00ff", 7), SnapshotToken("00ff", 7));
  EXPECT_NE(SnapshotToken("00ff", 7), SnapshotToken("00ff", 8));
  EXPECT_NE(SnapshotToken("00ff", 7), SnapshotToken("00fe", 7));
}

TEST(TokensTest, SnapshotTokenLeadsBackToItsState) {
  const std::string token = SnapshotToken("0123456789abcdef", 7);
  ASSERT_OK_AND_ASSIGN(const CatalogState state,
                       ParseSnapshotToken(token, "snapshot_token"));
  EXPECT_EQ(state.catalog_uid, "0123456789abcdef");
  EXPECT_EQ(state.sequence, 7);
}

TEST(TokensTest, WhatIsNoSnapshotTokenIsRefused) {
  const std::string token = SnapshotToken("0123456789abcdef", 7);
  std::vector<std::string> bad = {"x",
                                  "!!!",
                                  PageToken("items", "a"),
                                  SnapshotToken("00ff", -1),
                                  token + "A",
                                  absl::WebSafeBase64Escape("s1\n00ff\n7")};
  for (std::size_t i = 0; i < token.size(); ++i) {
    bad.push_back(token.substr(0, i));
    bad.push_back(token);
    bad.back()[i] = token[i] == 'A' ? 'B' : 'A';
  }
  for (const std::string& each : bad) {
    ExpectInvalid(ParseSnapshotToken(each, "snapshot_token").status(),
                  "snapshot_token", "no token of ours");
  }
}

TEST(TokensTest, PageTokenLeadsBackToItsPlace) {
  // Ids may hold any character.
  for (const std::string after : {"a", "\n", "x\ny", "\xC3\x84", " "}) {
    ASSERT_OK_AND_ASSIGN(const std::string got,
                         ParsePageToken(PageToken("list", after), "list"));
    EXPECT_EQ(got, after);
  }
  ASSERT_OK_AND_ASSIGN(const std::string first, ParsePageToken("", "list"));
  EXPECT_EQ(first, "");
}

TEST(TokensTest, PageTokenOfAnotherRequestIsRefused) {
  const std::string token = PageToken("items 1 k", "a");
  ExpectInvalid(ParsePageToken(token, "items 1 kv").status(), "page_token",
                "another request");
  ExpectInvalid(ParsePageToken(token, "items 1").status(), "page_token",
                "another request");
  for (const std::string& bad :
       {std::string("x"), std::string("!!!"), token.substr(1),
        SnapshotToken("00ff", 1), absl::WebSafeBase64Escape("p2\nitems 1 k\na"),
        PageToken("items 1 k", "")}) {
    ExpectInvalid(ParsePageToken(bad, "items 1 k").status(), "page_token",
                  "token");
  }
}

}  // namespace
}  // namespace attendant
