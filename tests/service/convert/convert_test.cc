// Conversion of vectors, times, schemas and items between the wire and core:
// what is preserved, and which field is named for each error.
#include <gmock/gmock.h>
#include <google/protobuf/arena.h>
#include <grpcpp/support/byte_buffer.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "service/convert/enum.h"
#include "service/convert/item.h"
#include "service/convert/model.h"
#include "service/convert/read_mask.h"
#include "service/convert/schema.h"
#include "service/convert/time.h"
#include "service/convert/vector.h"
#include "service/convert/wire.h"
#include "service/handlers/import_call.h"
#include "tests/service/convert/convert_fixture.h"
#include "tests/support/parse_proto.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// As many messages of two bytes each as fit.
TEST(WireTest, WhatWouldTakeMuchMoreThanItsBytesIsRefused) {
  std::string bytes;
  for (int i = 0; i < 4'000'000; ++i) bytes.append("\x12\0", 2);
  const auto parse = [](const std::string& text) {
    google::protobuf::Arena arena(MessageArenaOptions());
    auto* request =
        google::protobuf::Arena::CreateMessage<v1::BatchAttendRequest>(&arena);
    const grpc::Slice slice(text);
    const absl::Status status =
        ParseMessage(grpc::ByteBuffer(&slice, 1), request);
    // In addition to the arena's own overhead.
    EXPECT_LE(static_cast<std::int64_t>(arena.SpaceAllocated()),
              MostParsedBytes(static_cast<std::int64_t>(text.size())) + 1024);
    return status;
  };
  const absl::Status refused = parse(bytes);
  EXPECT_EQ(ReasonOf(refused), kOverLimit);
  EXPECT_THAT(refused.message(), HasSubstr("8000000 bytes that take more"));
  // Messages within the limits are accepted, and so is the next one.
  EXPECT_OK(parse(bytes.substr(0, 2 * 4096)));
}

// The maximum number of items with the maximum number of attributes, each as
// small as possible.
TEST(WireTest, TheSmallestOfTheMostItemsAreNotRefused) {
  v1::ImportItemsRequest request;
  for (int i = 0; i < kMaxImportBatchSize; ++i) {
    v1::Item& item = *request.add_items();
    item.set_id("a");
    (*item.mutable_keys())["k"].mutable_floats()->add_values(1);
    for (int a = 0; a < kMaxAttributes; ++a) {
      (*item.mutable_attributes())[absl::StrCat(a)].set_bool_value(true);
    }
  }
  const grpc::Slice slice(request.SerializeAsString());
  google::protobuf::Arena arena(MessageArenaOptions());
  EXPECT_OK(ParseMessage(
      grpc::ByteBuffer(&slice, 1),
      google::protobuf::Arena::CreateMessage<v1::ImportItemsRequest>(&arena)));
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
  // Bits are identical: -0 and the subnormal survive.
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

TEST(ConvertTimeTest, KeepsNanosecondsAlsoBeforeTheEpoch) {
  for (const std::int64_t seconds :
       {-62135596800LL, -1LL, 0LL, 1700000000LL, 253402300799LL}) {
    google::protobuf::Timestamp wire;
    wire.set_seconds(seconds);
    wire.set_nanos(123456789);
    ASSERT_OK_AND_ASSIGN(const absl::Time time, TimeFromProto(wire));
    google::protobuf::Timestamp back;
    TimeToProto(time, &back);
    EXPECT_EQ(back.seconds(), seconds);
    EXPECT_EQ(back.nanos(), 123456789);
  }
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

// Each lacks its type, which would be reported for the first one that is
// checked.
TEST(ConvertSchemaTest, TooManyAreRefusedBeforeTheyAreCopied) {
  v1::CatalogSchema wire;
  wire.add_key_fields();
  for (int i = 0; i < kMaxAttributes; ++i) wire.add_attributes();
  EXPECT_EQ(FieldOf(SchemaFromProto(wire).status()),
            "schema.attributes[0].type");
  wire.add_attributes();
  absl::Status status = SchemaFromProto(wire).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(FieldOf(status), "schema.attributes");
  for (int i = 0; i < kMaxKeyFields; ++i) wire.add_key_fields();
  status = SchemaFromProto(wire).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(FieldOf(status), "schema.key_fields");
}

TEST(ConvertModelTest, TooManyProbesAreRefusedBeforeTheyAreCopied) {
  google::protobuf::RepeatedPtrField<v1::ProjectionProbe> wire;
  for (int i = 0; i < kMaxProbes; ++i) wire.Add();
  EXPECT_EQ(FieldOf(ProbesFromProto(wire).status()), "probes[0].projection");
  wire.Add();
  const absl::Status status = ProbesFromProto(wire).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(FieldOf(status), "probes");
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

TEST(UpdatedSchemaTest, ChangesOnlyWhatTheMaskNames) {
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
  ASSERT_OK_AND_ASSIGN(const CatalogSchema schema,
                       UpdatedSchema(request, ShopSchema()));
  CatalogSchema expected = ShopSchema();
  expected.key_fields[1].temperature = 0.5;
  expected.key_fields[1].index_kind = IndexKind::kFlat;
  EXPECT_EQ(schema, expected);
}

TEST(UpdatedSchemaTest, KeysGoToDiskAndBack) {
  CatalogSchema schema = ShopSchema();
  for (const bool on_disk : {true, false}) {
    auto request = Parse<v1::UpdateCatalogRequest>(
        "key_fields { name: 'image' } update_mask { paths: 'keys_on_disk' }");
    request.mutable_key_fields(0)->set_keys_on_disk(on_disk);
    ASSERT_OK_AND_ASSIGN(schema, UpdatedSchema(request, schema));
    EXPECT_EQ(schema.key_fields[1].keys_on_disk, on_disk);
    EXPECT_FALSE(schema.key_fields[0].keys_on_disk);
  }
}

TEST(UpdatedSchemaTest, NamedButUnsetGoesBackToTheDefault) {
  CatalogSchema schema = ShopSchema();
  schema.key_fields[0].combine_kind = CombineKind::kUnit;
  schema.key_fields[0].index_kind = IndexKind::kIvf;
  ASSERT_OK_AND_ASSIGN(
      const auto updated,
      UpdatedSchema(Parse<v1::UpdateCatalogRequest>(
                        "key_fields { name: 'title' } update_mask { "
                        "paths: 'combine_kind' paths: 'index_kind' }"),
                    schema));
  EXPECT_EQ(updated, ShopSchema());
}

TEST(UpdatedSchemaTest, NamesWhatIsWrong) {
  const auto status = [](const std::string& text) {
    return UpdatedSchema(Parse<v1::UpdateCatalogRequest>(text), ShopSchema())
        .status();
  };
  ExpectInvalid(status("key_fields { name: 'title' }"), "update_mask",
                "no paths");
  ExpectInvalid(status("update_mask { paths: 'temperature' }"), "key_fields",
                "none");
  ExpectInvalid(status("key_fields { name: 'title' } update_mask { paths: "
                       "'temperature' paths: 'dimension' }"),
                "update_mask.paths[1]", "got \"dimension\"");
  ExpectInvalid(status("key_fields { name: 'title' } "
                       "update_mask { paths: 'temperature' }"),
                "key_fields[0].temperature", "got none");
  ExpectInvalid(status("key_fields { name: 'x' } update_mask { paths: "
                       "'temperature' }"),
                "key_fields[0].name", "got \"x\"");
  ExpectInvalid(
      status("key_fields { name: 'title' } key_fields { name: 'title' } "
             "update_mask { paths: 'index_kind' }"),
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
  item.keys = {{1, 2}, {3, 4, 5}};
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
  EXPECT_EQ(keys.keys_size(), 2);
  const v1::Item image = read("paths: 'keys.image'");
  EXPECT_EQ(image.keys_size(), 1);
  EXPECT_EQ(image.keys().count("image"), 1u);
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
  const v1::Item all = read("paths: 'value' paths: '*'");
  EXPECT_EQ(all.keys_size(), 2);
  EXPECT_EQ(all.attributes_size(), 2);
  EXPECT_EQ(all.opaque_value(), "bytes");
  item.keys[0].clear();
  EXPECT_EQ(read("paths: 'keys'").keys_size(), 1);
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
  ExpectInvalid(status("paths: 'keys.sound'"), "read_mask.paths[0]",
                "got \"keys.sound\", want a key field");
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
  EXPECT_NE(text("paths: 'keys'"), text("paths: 'keys.title'"));
  EXPECT_NE(text("paths: 'keys.image'"), text("paths: 'keys.title'"));
  EXPECT_NE(text("paths: 'opaque_value'"), text("paths: 'value'"));
  EXPECT_NE(text("paths: 'opaque_value'"), text(""));
  EXPECT_NE(text("paths: 'attributes.price'"),
            text("paths: 'attributes.name'"));
  EXPECT_NE(text("paths: 'attributes.price'"), text("paths: 'attributes'"));
  EXPECT_NE(text(""), text("paths: 'keys'"));
}

}  // namespace
}  // namespace attendant
