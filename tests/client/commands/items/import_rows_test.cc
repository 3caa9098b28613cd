#include "client/commands/items/import_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/api/wire_vector.h"
#include "client/commands/fits/model_directory.h"
#include "client/commands/shared/convert.h"
#include "client/files/npy.h"
#include "tests/client/temporary_file.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ImportRowsTest : public ::testing::Test {
 protected:
  ImportRowsTest() {
    AddKeyField("events", 2);
    AddKeyField("text", 3);
    AddAttribute("name", v1::ATTRIBUTE_TYPE_STRING);
    AddAttribute("added", v1::ATTRIBUTE_TYPE_TIMESTAMP);
    schema_.set_value_dimension(1);
  }

  void AddKeyField(const std::string& name, int dim) {
    auto* field = schema_.add_key_fields();
    field->set_name(name);
    field->set_dimension(dim);
  }
  void AddAttribute(const std::string& name, v1::AttributeType type) {
    auto* attribute = schema_.add_attributes();
    attribute->set_name(name);
    attribute->set_type(type);
  }

  std::string File(const std::string& name, const std::string& content) {
    return WriteIn(directory_, name, content);
  }
  std::string Npy(const std::string& name, const std::vector<float>& values,
                  std::int64_t dim) {
    return File(name, NpyBytes(values, dim));
  }

  // Writes a directory as a fit does.
  std::string Fit(const std::string& field, const std::string& ids,
                  const std::vector<float>& keys, std::int64_t dim,
                  const std::string& attributes = "") {
    const std::string path = directory_ / field;
    Model model;
    model.key_field.set_name(field);
    model.key_field.set_dimension(static_cast<int>(dim));
    SetDefaults({}, model.key_field);
    if (!attributes.empty()) {
      model.attributes.emplace_back().set_name("name");
      model.attributes.back().set_type(v1::ATTRIBUTE_TYPE_STRING);
    }
    std::vector<OutputFile> files = {{kIdsFile, ids},
                                     {kKeysFile, NpyBytes(keys, dim)}};
    if (!attributes.empty()) files.push_back({kAttributesFile, attributes});
    files.push_back({kModelFile, ModelJson(model)});
    EXPECT_OK(WriteDirectory(path, files));
    return path;
  }

  absl::StatusOr<std::unique_ptr<ImportRows>> Open(const ImportInputs& inputs) {
    return ImportRows::Open(inputs, schema_);
  }

  static std::vector<float> Key(const v1::Item& item, const std::string& name) {
    const auto key = item.keys().find(name);
    if (key == item.keys().end()) return {};
    return *FromVector(key->second);
  }

  ScratchDirectory directory_;
  v1::CatalogSchema schema_;
};

TEST_F(ImportRowsTest, AttributesOfAnotherFitAreNotRead) {
  Fit("events", "a\n", {5, 6}, 2, "{\"id\":\"a\",\"name\":\"old\"}");
  ImportInputs inputs;
  inputs.directories = {Fit("events", "a\n", {1, 2}, 2)};
  ASSERT_OK_AND_ASSIGN(const auto rows, Open(inputs));
  ASSERT_EQ(rows->row_count(), 1);
  ASSERT_OK_AND_ASSIGN(const v1::Item item, rows->ReadItem(0));
  EXPECT_THAT(Key(item, "events"), ElementsAre(1, 2));
  EXPECT_EQ(item.attributes_size(), 0);
}

TEST_F(ImportRowsTest, JoinsDirectoriesAndAttributesById) {
  ImportInputs inputs;
  inputs.directories = {
      Fit("events", "a\nb\n", {1, 2, 3, 4}, 2),
      Fit("text", "c\nb\n", {5, 6, 7, 8, 9, 10}, 3,
          "{\"id\":\"b\",\"name\":\"Clock\"}\n{\"id\":\"c\",\"name\":\"Bag\"}"),
  };
  inputs.attributes =
      File("more.jsonl",
           "{\"id\":\"b\",\"added\":\"1970-01-01T01:00:00.5+01:00\",\"name\":"
           "\"Clock\"}");
  ASSERT_OK_AND_ASSIGN(const auto rows, Open(inputs));
  ASSERT_EQ(rows->row_count(), 3);
  ASSERT_OK_AND_ASSIGN(const v1::Item a, rows->ReadItem(0));
  EXPECT_EQ(a.id(), "a");
  EXPECT_THAT(Key(a, "events"), ElementsAre(1, 2));
  EXPECT_EQ(a.keys_size(), 1);
  EXPECT_EQ(a.attributes_size(), 0);
  ASSERT_OK_AND_ASSIGN(const v1::Item b, rows->ReadItem(1));
  EXPECT_THAT(Key(b, "events"), ElementsAre(3, 4));
  EXPECT_THAT(Key(b, "text"), ElementsAre(8, 9, 10));
  EXPECT_EQ(b.attributes().at("name").string_value(), "Clock");
  EXPECT_EQ(b.attributes().at("added").timestamp_value().seconds(), 0);
  EXPECT_EQ(b.attributes().at("added").timestamp_value().nanos(), 500000000);
  ASSERT_OK_AND_ASSIGN(const v1::Item c, rows->ReadItem(2));
  EXPECT_EQ(c.id(), "c");
  EXPECT_THAT(Key(c, "text"), ElementsAre(5, 6, 7));
}

TEST_F(ImportRowsTest, TellsWhatNoFileBrings) {
  ImportInputs inputs;
  inputs.directories = {Fit("events", "a\n", {1, 2}, 2)};
  ASSERT_OK_AND_ASSIGN(auto rows, Open(inputs));
  ASSERT_OK_AND_ASSIGN(UnseenParts unseen, rows->Unseen());
  EXPECT_THAT(unseen.paths(),
              ElementsAre("keys.text", "value", "attributes.name",
                          "attributes.added", "opaque_value"));
  EXPECT_TRUE(unseen.HasId("a"));
  EXPECT_FALSE(unseen.HasId("b"));
  inputs.ids = File("ids.txt", "a\nb\n");
  inputs.keys = {"text=" + Npy("text.npy", {1, 2, 3, 4, 5, 6}, 3)};
  inputs.values = Npy("values.npy", {1, 2}, 1);
  inputs.attributes = File("more.jsonl",
                           "{\"id\":\"a\",\"name\":null}\n"
                           "{\"id\":\"b\",\"added\":\"2011-12-09T00:00:00Z\","
                           "\"opaque_value\":\"AP8A\"}\n");
  ASSERT_OK_AND_ASSIGN(rows, Open(inputs));
  ASSERT_OK_AND_ASSIGN(unseen, rows->Unseen());
  EXPECT_FALSE(unseen.empty());
  EXPECT_THAT(unseen.paths(), ElementsAre("attributes.name"));
  EXPECT_TRUE(unseen.HasId("b"));
}

TEST(PartNamesTest, NamesWhatAnItemHas) {
  v1::Item item;
  EXPECT_THAT(PartNames(item), ElementsAre());
  (*item.mutable_keys())["text"];
  (*item.mutable_attributes())["price"];
  item.mutable_value();
  item.set_opaque_value("x");
  EXPECT_THAT(PartNames(item), ElementsAre("its key in text", "its value",
                                           "price", "its opaque value"));
}

TEST(ShellFlagsTest, AreWhatAShellReads) {
  ImportInputs inputs;
  inputs.directories = {"fit/text", "my fit"};
  inputs.ids = "ids.txt";
  inputs.keys = {"text=it's.npy"};
  EXPECT_EQ(ShellFlags(inputs),
            " --from fit/text --from 'my fit' --ids ids.txt"
            " --keys 'text=it'\\''s.npy'");
}

TEST_F(ImportRowsTest, ReadsAttributesFromCsvByTheSchemasTypes) {
  AddAttribute("price", v1::ATTRIBUTE_TYPE_DOUBLE);
  AddAttribute("minutes", v1::ATTRIBUTE_TYPE_INT64);
  AddAttribute("vegan", v1::ATTRIBUTE_TYPE_BOOL);
  AddAttribute("tags", v1::ATTRIBUTE_TYPE_STRING_LIST);
  ImportInputs inputs;
  inputs.partial = true;
  inputs.attributes = File("a.csv",
                           "name,item_id,price,minutes,vegan,tags,added\n"
                           "12,a,4.99,30,True,\"[\"\"x\"\",\"\"y\"\"]\","
                           "2011-12-09\n"
                           ",b,,30.0,,,\n");
  ASSERT_OK_AND_ASSIGN(const auto rows, Open(inputs));
  ASSERT_EQ(rows->row_count(), 2);
  ASSERT_OK_AND_ASSIGN(const v1::Item a, rows->ReadItem(0));
  EXPECT_EQ(a.id(), "a");
  EXPECT_EQ(a.attributes().at("name").string_value(), "12");
  EXPECT_EQ(a.attributes().at("price").double_value(), 4.99);
  EXPECT_EQ(a.attributes().at("minutes").int64_value(), 30);
  EXPECT_TRUE(a.attributes().at("vegan").bool_value());
  EXPECT_THAT(a.attributes().at("tags").string_list_value().values(),
              ElementsAre("x", "y"));
  EXPECT_EQ(a.attributes().at("added").timestamp_value().seconds(), 1323388800);
  ASSERT_OK_AND_ASSIGN(const v1::Item b, rows->ReadItem(1));
  EXPECT_EQ(b.attributes_size(), 1);
  EXPECT_EQ(b.attributes().at("minutes").int64_value(), 30);
  const struct {
    const char* content;
    const char* message;
  } cases[] = {
      {"name\nx\n", "got the columns name, want one named id or item_id"},
      {"id,minutes\na,1.5\n", "row 1 (line 2): minutes: got \"1.5\", want a"},
      {"id,price\na,inf\n", "price: got \"inf\", want a finite number"},
      {"id,tags\na,\"1,\"\"x\"\":2\"\n", "tags: got "},
      {"id,prise,price,colour\na,1,,\n",
       "bad.csv: the catalog declares no attribute prise, colour; it declares "
       "name (string), added (timestamp), price (double), minutes (int64), "
       "vegan (bool), tags (string_list). `attendant catalog update CATALOG "
       "--attribute "
       "NAME:TYPE` declares another; to leave the others out: --columns price"},
      {"id,tags\na,sale\n",
       "tags: got \"sale\", want a list of texts, as in [\"a\", \"b\"]"},
      {"id\na\na\n", "row 2 (line 3): id 'a' is not unique"},
  };
  for (const auto& test : cases) {
    inputs.attributes = File("bad.csv", test.content);
    EXPECT_THAT(Open(inputs), StatusIs(kInvalid, HasSubstr(test.message)))
        << test.content;
  }
}

TEST(ToAttributeTest, MomentsMayBeDays) {
  const auto seconds = [](const char* text) {
    const auto attribute =
        ToAttribute(nlohmann::json(text), v1::ATTRIBUTE_TYPE_TIMESTAMP);
    EXPECT_OK(attribute);
    return attribute.ok() ? attribute->timestamp_value().seconds() : -1;
  };
  EXPECT_EQ(seconds("2011-12-09"), 1323388800);
  EXPECT_EQ(seconds("2011-12-09T12:50:00Z"), 1323435000);
  EXPECT_EQ(seconds("9999-12-31T23:59:59.5Z"), 253402300799);
  // A bare number could be a year or a Unix time.
  for (const char* bad : {"2011", "1323388800", "infinite-past", "noon",
                          "10000-01-01", "9999-12-31T23:59:59-01:00"}) {
    EXPECT_THAT(ToAttribute(nlohmann::json(bad), v1::ATTRIBUTE_TYPE_TIMESTAMP),
                StatusIs(kInvalid, HasSubstr("want a time of the years")))
        << bad;
  }
}

TEST(AttributeTextTest, MomentsAreWrittenAsFiltersTakeThem) {
  v1::AttributeValue value;
  value.mutable_timestamp_value()->set_seconds(-31588531201);
  value.mutable_timestamp_value()->set_nanos(500000000);
  EXPECT_EQ(AttributeText(value), "0968-12-30T23:59:59.5Z");
}

TEST_F(ImportRowsTest, ReadsKeysAndValuesByLine) {
  ImportInputs inputs;
  inputs.ids = File("ids.txt", "a\nb\n");
  inputs.keys = {"events=" + Npy("keys.npy", {1, 2, 3, 4}, 2)};
  inputs.values = Npy("values.npy", {7, 8}, 1);
  ASSERT_OK_AND_ASSIGN(const auto rows, Open(inputs));
  ASSERT_OK_AND_ASSIGN(const v1::Item b, rows->ReadItem(1));
  EXPECT_EQ(b.id(), "b");
  EXPECT_THAT(Key(b, "events"), ElementsAre(3, 4));
  EXPECT_THAT(*FromVector(b.value()), ElementsAre(8));
}

TEST_F(ImportRowsTest, ChecksFilesAgainstTheSchema) {
  ImportInputs inputs;
  inputs.ids = File("ids.txt", "a\nb\n");
  const std::string keys = Npy("keys.npy", {1, 2, 3, 4}, 2);
  inputs.keys = {"image=" + keys};
  EXPECT_THAT(Open(inputs),
              StatusIs(kInvalid,
                       "--keys: the catalog has no key field 'image'; it "
                       "has: events, text"));
  inputs.keys = {"text=" + keys};
  EXPECT_THAT(
      Open(inputs),
      StatusIs(kInvalid, keys + ": got rows of 2 components, want 3 for the "
                                "catalog's key field text"));
  inputs.keys = {"events=" + keys, "events=" + keys};
  EXPECT_THAT(Open(inputs), StatusIs(kInvalid, HasSubstr("more than one")));
  inputs.keys = {"events=" + Npy("one.npy", {1, 2}, 2)};
  EXPECT_THAT(Open(inputs), StatusIs(kInvalid, HasSubstr("got 1 row, want 2")));
  inputs.keys = {"events=" + keys};
  inputs.ids = File("ids3.txt", "a\nb\nc\n");
  EXPECT_THAT(Open(inputs),
              StatusIs(kInvalid, AllOf(HasSubstr("got 2 rows, want 3"),
                                       HasSubstr("ids3.txt"))));
}

TEST_F(ImportRowsTest, ReadsTheNamedColumnsOnly) {
  ImportInputs inputs;
  inputs.partial = true;
  inputs.columns = {"name"};
  for (const std::string& path :
       {File("a.csv", "colour,id,name,added\nred,a,Clock,never\n"),
        File("a.jsonl",
             R"({"id":"a","name":"Clock","colour":"red","added":"never"})")}) {
    inputs.attributes = path;
    ASSERT_OK_AND_ASSIGN(const auto rows, Open(inputs));
    ASSERT_OK_AND_ASSIGN(const v1::Item item, rows->ReadItem(0));
    EXPECT_EQ(item.attributes_size(), 1);
    EXPECT_EQ(item.attributes().at("name").string_value(), "Clock");
  }
  inputs.columns = {"name", "nme"};
  inputs.attributes = File("b.csv", "id,name\na,Clock\n");
  EXPECT_THAT(Open(inputs),
              StatusIs(kInvalid, HasSubstr("b.csv: --columns: no column 'nme'; "
                                           "the columns are id, name")));
  EXPECT_EQ(ShellFlags(inputs),
            " --attributes " + inputs.attributes + " --columns name,nme");
}

// Rows of an import, by file; each is told with what it is.
TEST_F(ImportRowsTest, AWrongRowOfAttributesIsRejectedAlone) {
  ImportInputs inputs;
  inputs.ids = File("ids.txt", "a\nb\nc\n");
  inputs.keys = {"events=" + Npy("keys.npy", {1, 2, 3, 4, 5, 6}, 2)};
  const auto reasons = [&](const std::string& path) {
    inputs.attributes = path;
    std::vector<std::string> told;
    const auto rows = Open(inputs);
    EXPECT_OK(rows);
    if (!rows.ok()) return told;
    while (true) {
      const auto row = (*rows)->Next();
      EXPECT_OK(row);
      if (!row.ok() || !row->has_value()) break;
      const SourceRow& read = **row;
      if (read.item.ok()) continue;
      told.push_back(absl::StrCat(read.number, " (", read.id,
                                  "): ", read.item.status().message()));
    }
    EXPECT_EQ((*rows)->without_attributes_count(), 1);
    return told;
  };
  const std::string csv =
      File("a.csv", "id,name,added\nb,Bag,noon\nc,x\nd\nb,Bag,\n");
  EXPECT_THAT(
      reasons(csv),
      ElementsAre(
          HasSubstr("2 (b): " + csv + ": row 1 (line 2): added: got \"noon\""),
          HasSubstr("3 (c): " + csv + ": row 2 (line 3): got 2 fields, want 3"),
          HasSubstr("4 (d): " + csv + ": row 3 (line 4): ")));
  const std::string lines =
      File("a.jsonl",
           "{\"id\":\"b\",\"name\":3}\n{\"id\":\"c\",\"nme\":\"Clock\"}\n");
  EXPECT_THAT(
      reasons(lines),
      ElementsAre(HasSubstr("2 (b): " + lines + ": line 1: name: got 3"),
                  HasSubstr("3 (c): " + lines +
                            ": line 2: nme: the catalog "
                            "declares no such attribute; it declares name")));
  // What a row without an id leaves out could be any item's.
  for (const std::string& path :
       {File("b.jsonl", "{\"id\":\"b\"}\n{\"name\":\"x\"}\n"),
        File("c.jsonl", "{\"id\":\"b\"}\n{\"id\":\"c\n"),
        File("b.csv", "id,name\nb,Bag\n,x\n"),
        File("c.csv", "name,id\nBag,b\nc\n")}) {
    inputs.attributes = path;
    EXPECT_THAT(Open(inputs), StatusIs(kInvalid, HasSubstr(path))) << path;
  }
}

TEST_F(ImportRowsTest, ChecksAttributesAgainstTheSchema) {
  ImportInputs inputs;
  inputs.partial = true;
  inputs.ids = File("ids.txt", "a\n");
  inputs.keys = {"events=" + Npy("keys.npy", {1, 2}, 2)};
  const struct {
    const char* line;
    const char* message;
  } cases[] = {
      {R"({"name":"x"})", "line 2: every line needs the item's \"id\""},
      {R"({"id":"a","name":3})", "line 2: name: got 3, want a text"},
      {R"({"id":"a","price":3})",
       "line 2: price: the catalog declares no such attribute"},
      {R"({"id":"a","added":"yesterday"})", "line 2: added: got \"yesterday\""},
      {R"({"id":"b"})", "line 2: id 'b' is not unique"},
      {R"({"id":""})", "line 2: id"},
      {R"({"id":"a","opaque_value":"a!"})",
       "line 2: opaque_value: got another text, want base64"},
      {R"({"id":"a","opaque_value":3})",
       "line 2: opaque_value: got number, want base64"},
  };
  for (const auto& test : cases) {
    inputs.attributes = File(
        "a.jsonl", std::string("{\"id\":\"b\",\"name\":\"x\"}\n") + test.line);
    EXPECT_THAT(Open(inputs), StatusIs(kInvalid, HasSubstr(test.message)))
        << test.line;
  }
}

TEST_F(ImportRowsTest, RefusesTwoValuesOfOneAttribute) {
  ImportInputs inputs;
  inputs.directories = {
      Fit("events", "a\n", {1, 2}, 2, "{\"id\":\"a\",\"name\":\"Clock\"}\n")};
  inputs.attributes = File("a.jsonl", "{\"id\":\"a\",\"name\":\"Bag\"}\n");
  ASSERT_OK_AND_ASSIGN(const auto rows, Open(inputs));
  EXPECT_THAT(rows->ReadItem(0),
              StatusIs(kInvalid, HasSubstr("a.jsonl: line 1: name: another "
                                           "file gives 'a' another value")));
}

TEST_F(ImportRowsTest, ReadsOpaqueValuesFromBase64) {
  ImportInputs inputs;
  inputs.ids = File("ids.txt", "a\nb\nc\n");
  inputs.keys = {"events=" + Npy("keys.npy", {1, 2, 3, 4, 5, 6}, 2)};
  inputs.attributes =
      File("a.jsonl",
           "{\"id\":\"a\",\"opaque_value\":\"AP8A\",\"name\":\"x\"}\n"
           "{\"id\":\"b\",\"opaque_value\":null}\n");
  ASSERT_OK_AND_ASSIGN(const auto rows, Open(inputs));
  ASSERT_OK_AND_ASSIGN(const v1::Item a, rows->ReadItem(0));
  EXPECT_EQ(a.opaque_value(), std::string("\0\xff\0", 3));
  EXPECT_EQ(a.attributes_size(), 1);
  for (const int row : {1, 2}) {
    ASSERT_OK_AND_ASSIGN(const v1::Item item, rows->ReadItem(row));
    EXPECT_EQ(item.opaque_value(), "");
  }
}

TEST_F(ImportRowsTest, AnAttributeNamedOpaqueValueStaysAnAttribute) {
  AddAttribute("opaque_value", v1::ATTRIBUTE_TYPE_STRING);
  ImportInputs inputs;
  inputs.ids = File("ids.txt", "a\n");
  inputs.keys = {"events=" + Npy("keys.npy", {1, 2}, 2)};
  inputs.attributes =
      File("a.jsonl", "{\"id\":\"a\",\"opaque_value\":\"AP8A\"}\n");
  ASSERT_OK_AND_ASSIGN(const auto rows, Open(inputs));
  ASSERT_OK_AND_ASSIGN(const v1::Item a, rows->ReadItem(0));
  EXPECT_EQ(a.opaque_value(), "");
  EXPECT_EQ(a.attributes().at("opaque_value").string_value(), "AP8A");
}

TEST_F(ImportRowsTest, ABadRowLeavesTheOthers) {
  ImportInputs inputs;
  inputs.ids = File("ids.txt", "a\nb\nc\n");
  inputs.keys = {"events=" +
                 Npy("keys.npy",
                     {1, 2, std::numeric_limits<float>::infinity(), 4, 5, 6},
                     2)};
  inputs.attributes = File("a.jsonl", "{\"id\":\"keyless\"}\n");
  ASSERT_OK_AND_ASSIGN(const auto rows, Open(inputs));
  ASSERT_EQ(rows->row_count(), 4);
  EXPECT_OK(rows->ReadItem(0));
  EXPECT_THAT(rows->ReadItem(1),
              StatusIs(kInvalid, HasSubstr("row 2: column 1: got inf")));
  EXPECT_OK(rows->ReadItem(2));
  EXPECT_THAT(rows->ReadItem(3),
              StatusIs(kInvalid, HasSubstr("no file gives this id a key")));
  // Next has the row number, so its message does not repeat it.
  ASSERT_OK(rows->Next());
  ASSERT_OK_AND_ASSIGN(const auto second, rows->Next());
  EXPECT_EQ(second->number, 2);
  EXPECT_THAT(second->item,
              StatusIs(kInvalid, HasSubstr("keys.npy: column 1: got inf")));
}

}  // namespace
}  // namespace attendant
