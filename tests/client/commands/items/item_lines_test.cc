#include "client/commands/items/item_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "client/api/wire_vector.h"
#include "tests/client/temporary_file.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ItemLinesTest : public ::testing::Test {
 protected:
  ItemLinesTest() {
    for (const char* name : {"taste", "text"}) {
      schema_.add_key_fields()->set_name(name);
    }
    const auto add = [this](const char* name, v1::AttributeType type) {
      auto* attribute = schema_.add_attributes();
      attribute->set_name(name);
      attribute->set_type(type);
    };
    add("new", v1::ATTRIBUTE_TYPE_BOOL);
    add("count", v1::ATTRIBUTE_TYPE_INT64);
    add("price", v1::ATTRIBUTE_TYPE_DOUBLE);
    add("name", v1::ATTRIBUTE_TYPE_STRING);
    add("tags", v1::ATTRIBUTE_TYPE_STRING_LIST);
    add("added", v1::ATTRIBUTE_TYPE_TIMESTAMP);
  }

  // Reads all rows of a file of this content.
  std::vector<SourceRow> Read(const std::string& content) {
    const TemporaryFile file("items.jsonl", content);
    auto lines = ItemLines::Open(file.path(), schema_);
    EXPECT_OK(lines);
    std::vector<SourceRow> rows;
    while (true) {
      auto row = (*lines)->Next();
      EXPECT_OK(row);
      if (!row.ok() || !row->has_value()) break;
      rows.push_back(**std::move(row));
    }
    EXPECT_EQ((*lines)->row_count(), static_cast<std::int64_t>(rows.size()));
    return rows;
  }
  // Returns why a line is not an item.
  std::string ErrorOf(const std::string& line) {
    const auto rows = Read(line + "\n");
    if (rows.size() != 1) return "other rows";
    EXPECT_EQ(rows[0].item.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(rows[0].item.status().message());
  }

  v1::CatalogSchema schema_;
};

TEST_F(ItemLinesTest, ReadsAllThatAnItemHas) {
  const auto rows =
      Read(R"({"id": "a", "keys": {"taste": [0.5, -2, 1e3], "text": [1]},)"
           R"( "value": [3, 4], "attributes": {"new": true, "count": -7,)"
           R"( "price": 2.5, "name": "é", "tags": ["x", "y"],)"
           R"( "added": "2011-12-09T12:50:00Z"}, "opaque_value": "AP8="})"
           "\n\n"
           R"({"id":"b","keys":{"taste":[1,2,3],"text":null},"value":null})");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].number, 1);
  EXPECT_EQ(rows[0].id, "a");
  ASSERT_OK(rows[0].item);
  const v1::Item& a = *rows[0].item;
  EXPECT_EQ(a.id(), "a");
  EXPECT_THAT(*FromVector(a.keys().at("taste")), ElementsAre(0.5f, -2, 1000));
  EXPECT_THAT(*FromVector(a.keys().at("text")), ElementsAre(1));
  EXPECT_THAT(*FromVector(a.value()), ElementsAre(3, 4));
  EXPECT_TRUE(a.attributes().at("new").bool_value());
  EXPECT_EQ(a.attributes().at("count").int64_value(), -7);
  EXPECT_EQ(a.attributes().at("price").double_value(), 2.5);
  EXPECT_EQ(a.attributes().at("name").string_value(), "é");
  EXPECT_THAT(a.attributes().at("tags").string_list_value().values(),
              ElementsAre("x", "y"));
  EXPECT_EQ(a.attributes().at("added").timestamp_value().seconds(), 1323435000);
  EXPECT_EQ(a.opaque_value(), std::string("\0\xff", 2));
  EXPECT_EQ(rows[1].number, 3);
  ASSERT_OK(rows[1].item);
  EXPECT_EQ(rows[1].item->keys().size(), 1u);
  EXPECT_FALSE(rows[1].item->has_value());
}

TEST_F(ItemLinesTest, WhatIsWrittenComesBack) {
  const auto rows =
      Read(R"({"id": "a \"b\"\n", "keys": {"text": [1], "taste": [0.1, 2]},)"
           R"( "value": [3], "attributes": {"new": false,)"
           R"( "count": 9223372036854775807, "price": 0.1, "name": "\u0001",)"
           R"( "tags": [], "added": "0969-12-09T12:50:00.000000001Z"},)"
           R"( "opaque_value": "AP8="})");
  ASSERT_EQ(rows.size(), 1u);
  ASSERT_OK(rows[0].item);
  ASSERT_OK_AND_ASSIGN(const std::string line, ItemToLine(*rows[0].item));
  const auto again = Read(line);
  ASSERT_EQ(again.size(), 1u);
  ASSERT_OK(again[0].item);
  ASSERT_OK_AND_ASSIGN(const std::string second, ItemToLine(*again[0].item));
  EXPECT_EQ(second, line);
  EXPECT_THAT(line, HasSubstr(R"("taste":[0.1,2])"));
  EXPECT_THAT(line, HasSubstr("9223372036854775807"));
  EXPECT_THAT(line, HasSubstr("0969-12-09T12:50:00.000000001Z"));
  v1::Item bare;
  bare.set_id("x");
  ASSERT_OK_AND_ASSIGN(const std::string shortest, ItemToLine(bare));
  EXPECT_EQ(shortest, "{\"id\":\"x\"}\n");
}

// Floats of all magnitudes come back to the bit.
TEST_F(ItemLinesTest, NumbersComeBackToTheBit) {
  std::vector<float> floats = {0.f,
                               -0.f,
                               -1.f,
                               16777216.f,
                               std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::min(),
                               std::numeric_limits<float>::denorm_min(),
                               8.41e21f};
  std::mt19937_64 random(1);
  while (floats.size() < 200000) {
    const auto number =
        std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isfinite(number)) floats.push_back(number);
  }
  v1::Item item;
  item.set_id("a");
  *item.mutable_value() = ToVector(floats);
  ASSERT_OK_AND_ASSIGN(const std::string line, ItemToLine(item));
  const auto rows = Read(line);
  ASSERT_EQ(rows.size(), 1u);
  ASSERT_OK(rows[0].item);
  ASSERT_OK_AND_ASSIGN(const auto read, FromVector(rows[0].item->value()));
  ASSERT_EQ(read.size(), floats.size());
  for (std::size_t i = 0; i < floats.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(read[i]),
              std::bit_cast<std::uint32_t>(floats[i]))
        << floats[i];
  }
}

TEST_F(ItemLinesTest, ALineThatIsNoItemIsOneRow) {
  const auto rows = Read("{\"id\": \"a\"\n[1]\n{\"id\": \"c\"}\n");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_FALSE(rows[0].item.ok());
  EXPECT_FALSE(rows[1].item.ok());
  EXPECT_EQ(rows[1].number, 2);
  EXPECT_EQ(rows[1].id, "");
  EXPECT_OK(rows[2].item);
  EXPECT_EQ(rows[2].id, "c");
}

TEST_F(ItemLinesTest, SaysWhatIsWrong) {
  EXPECT_THAT(ErrorOf(R"({"keys": {"taste": [1]}})"), HasSubstr("id: "));
  EXPECT_THAT(ErrorOf(R"({"id": 7})"),
              HasSubstr("id: got number, want a text"));
  EXPECT_THAT(ErrorOf(R"({"id": ""})"), HasSubstr("id: "));
  EXPECT_THAT(ErrorOf(R"({"id": "a", "id": "b"})"), HasSubstr("two members"));
  EXPECT_THAT(ErrorOf(R"({"id": "a", "price": 2.5})"),
              HasSubstr("price: an item has no such member"));
  EXPECT_THAT(ErrorOf(R"({"id": "a", "keys": [1, 2]})"),
              HasSubstr("keys: got array, want an object"));
  EXPECT_THAT(ErrorOf(R"({"id": "a", "keys": {"taste": 1}})"),
              HasSubstr("keys: taste: got number, want a list of numbers"));
  EXPECT_THAT(ErrorOf(R"({"id": "a", "keys": {"taste": [1, null]}})"),
              HasSubstr("keys: taste: got null, want numbers"));
  EXPECT_THAT(ErrorOf(R"({"id": "a", "value": [-1e39]})"),
              HasSubstr("value: got -1e+39, want numbers of a 32-bit float"));
  EXPECT_THAT(ErrorOf(R"({"id": "a", "value": ["1"]})"),
              HasSubstr("value: got string, want numbers"));
  EXPECT_THAT(ErrorOf(R"({"id": "a", "attributes": {"prise": 1}})"),
              HasSubstr("attributes: prise: the catalog declares no such"));
  EXPECT_THAT(ErrorOf(R"({"id": "a", "attributes": {"price": "1"}})"),
              HasSubstr("attributes: price: got \"1\", want a finite number"));
  EXPECT_THAT(ErrorOf(R"({"id": "a", "opaque_value": "?"})"),
              HasSubstr("opaque_value: got another text, want base64"));
  EXPECT_THAT(ErrorOf(R"({"id": "a", "opaque_value": 1})"),
              HasSubstr("opaque_value: got number, want base64"));
}

TEST_F(ItemLinesTest, TellsWhatNoLineBrings) {
  const TemporaryFile file(
      "items.jsonl",
      R"({"id": "a", "keys": {"taste": [1]}, "attributes": {"name": "x"}})"
      "\n\nno item\n"
      R"({"id": "b", "attributes": {"new": true, "count": 1, "price": null}})"
      "\n"
      R"({"id": "c", "attributes": {"tags": [], "added": null, "no": 1}})");
  ASSERT_OK_AND_ASSIGN(const auto lines, ItemLines::Open(file.path(), schema_));
  ASSERT_OK_AND_ASSIGN(const UnseenParts unseen, lines->Unseen());
  // The last line is not an item.
  EXPECT_THAT(unseen.paths(),
              ElementsAre("keys.text", "attributes.price", "attributes.tags",
                          "attributes.added", "opaque_value"));
  EXPECT_TRUE(unseen.HasId("b"));
  EXPECT_FALSE(unseen.HasId("c"));
  ASSERT_OK_AND_ASSIGN(const auto first, lines->Next());
  EXPECT_EQ(first->id, "a");
}

// Reads the items of `items get --json`, on lines of their own (jq -c) and in
// the reply.
TEST_F(ItemLinesTest, ReadsItemsAsRepliesHaveThem) {
  const std::string item =
      R"({"id": "a", "keys": {"taste": {"floats": {"values": [0.5, 1]}}},)"
      R"( "value": {"floats": {"values": [3]}}, "attributes":)"
      R"( {"price": {"doubleValue": 4.99}, "count": {"int64Value": "7"},)"
      R"( "tags": {"stringListValue": {"values": ["x"]}}, "name": "plain",)"
      R"( "added": {"timestampValue": "1970-01-01T00:00:01Z"}},)"
      R"( "opaqueValue": "AP8=", "sequence": "12"})";
  for (const std::string& content : {item + "\n", "{\n\"items\": [\n" + item +
                                                      "\n],\n\"stateToken\": "
                                                      "\"x\"\n}\n"}) {
    const auto rows = Read(content);
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0].number, 1);
    EXPECT_EQ(rows[0].id, "a");
    ASSERT_OK(rows[0].item);
    const v1::Item& a = *rows[0].item;
    EXPECT_THAT(*FromVector(a.keys().at("taste")), ElementsAre(0.5f, 1));
    EXPECT_THAT(*FromVector(a.value()), ElementsAre(3));
    EXPECT_EQ(a.attributes().at("price").double_value(), 4.99);
    EXPECT_EQ(a.attributes().at("count").int64_value(), 7);
    EXPECT_THAT(a.attributes().at("tags").string_list_value().values(),
                ElementsAre("x"));
    EXPECT_EQ(a.attributes().at("name").string_value(), "plain");
    EXPECT_EQ(a.attributes().at("added").timestamp_value().seconds(), 1);
    EXPECT_EQ(a.opaque_value(), std::string("\0\xff", 2));
    EXPECT_EQ(a.sequence(), 0);
  }
  EXPECT_THAT(
      ErrorOf(R"({"id": "a", "attributes": {"price": {"doubleValu": 1}}})"),
      HasSubstr("attributes: price: got object, want a value, or"));
  const auto rows = Read("{\n\"items\": [7, {\"id\": \"b\"}]\n}\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_FALSE(rows[0].item.ok());
  EXPECT_EQ(rows[1].number, 2);
  EXPECT_OK(rows[1].item);
  const TemporaryFile other("items.jsonl", "{\n\"id\": \"a\"\n}\n");
  EXPECT_THAT(ItemLines::Open(other.path(), schema_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("over several lines without \"items\"")));
}

TEST_F(ItemLinesTest, ACsvFileIsRefusedAsSuch) {
  const TemporaryFile file("items.csv", "id,name\na,Lamp\n");
  EXPECT_THAT(ItemLines::Open(file.path(), schema_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("items.csv: got CSV, want one JSON object per "
                                 "line")));
}

TEST_F(ItemLinesTest, WhatCanNotBeReadTwiceIsRefused) {
  EXPECT_THAT(ItemLines::Open("/dev/null", schema_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("/dev/null: it is read twice")));
  const TemporaryFile file("items.jsonl", "{\"id\": \"a\"}\n{\"id\": \"b\"}\n");
  ASSERT_OK_AND_ASSIGN(const auto lines, ItemLines::Open(file.path(), schema_));
  std::filesystem::resize_file(file.path(), 0);
  EXPECT_THAT(lines->Next().status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("got 0 items, and 2")));
}

TEST_F(ItemLinesTest, AFileThatIsNotThereIsNamed) {
  EXPECT_THAT(
      ItemLines::Open("/no/such/file", schema_).status(),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/file")));
}

}  // namespace
}  // namespace attendant
