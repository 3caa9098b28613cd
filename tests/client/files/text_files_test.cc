// Tests of CSV, JSON Lines and id files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/files/csv.h"
#include "client/files/ids.h"
#include "client/files/input.h"
#include "client/files/json.h"
#include "client/files/jsonl.h"
#include "client/files/vector_file.h"
#include "tests/client/temporary_file.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Returns the rows as "number@line:field|field".
absl::StatusOr<std::vector<std::string>> Rows(
    const std::string& path, const std::vector<std::string>& columns) {
  std::vector<std::string> rows;
  const absl::Status status = ReadCsv(path, columns, [&](const CsvRow& row) {
    rows.push_back(
        absl::StrCat(row.number, "@", row.line, ":",
                     absl::StrJoin(row.fields.begin(), row.fields.end(), "|")));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return rows;
}

// Returns the text as the bytes of a gzip file.
std::string Gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(
      deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY),
      Z_OK);
  std::string packed(text.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

TEST(CsvTest, SelectsColumnsByName) {
  const TemporaryFile file("items.csv", "id,name,price\na,Lamp,3\nb,Clock,4\n");
  ASSERT_OK_AND_ASSIGN(const auto rows, Rows(file.path(), {"price", "id"}));
  EXPECT_THAT(rows, ElementsAre("1@2:3|a", "2@3:4|b"));
}

TEST(CsvTest, SelectsAllColumns) {
  const TemporaryFile file("items.csv", "id,name\na,Lamp\n");
  std::vector<std::string> rows;
  ASSERT_OK(ReadWholeCsv(file.path(), [&](const CsvRow& row) {
    rows.push_back(absl::StrCat(absl::StrJoin(row.columns, "|"), "=",
                                absl::StrJoin(row.fields, "|")));
    return absl::OkStatus();
  }));
  EXPECT_THAT(rows, ElementsAre("id|name=a|Lamp"));
  const TemporaryFile twice("items.csv", "id,id\n");
  EXPECT_THAT(ReadWholeCsv(twice.path(),
                           [](const CsvRow&) { return absl::OkStatus(); }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("column 'id' is there twice")));
}

TEST(CsvTest, ReadsQuotesLineBreaksBlankLinesAndMarks) {
  const TemporaryFile file("items.csv",
                           "\xEF\xBB\xBFid,name\r\n"
                           "a,\"Lamp, \"\"red\"\"\nlarge\"\r\n"
                           "\r\n"
                           "b,\"\n\"\r\n"
                           "c,");
  ASSERT_OK_AND_ASSIGN(const auto rows, Rows(file.path(), {"id", "name"}));
  EXPECT_THAT(rows,
              ElementsAre("1@2:a|Lamp, \"red\"\nlarge", "2@5:b|\n", "3@7:c|"));
}

TEST(CsvTest, ReadsGzipAndRefusesEveryTruncationOfIt) {
  const std::string packed = Gzip("id\na\nb\n");
  const TemporaryFile whole("items.csv.gz", packed);
  ASSERT_OK_AND_ASSIGN(const auto rows, Rows(whole.path(), {"id"}));
  EXPECT_THAT(rows, ElementsAre("1@2:a", "2@3:b"));
  // With less than the two magic bytes, the file is read as plain text.
  for (std::size_t size = 0; size < packed.size(); ++size) {
    const TemporaryFile file("items.csv.gz", packed.substr(0, size));
    EXPECT_THAT(Rows(file.path(), {"id"}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         StartsWith(file.path() + ": ")))
        << size;
  }
}

TEST(CsvTest, NamesTheMissingColumnAndThoseThere) {
  const TemporaryFile file("items.csv", "id,name\na,Lamp\n");
  EXPECT_THAT(
      Rows(file.path(), {"id", "title"}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               file.path() + ": no column 'title'; the columns are id, name"));
}

TEST(CsvTest, RefusesAmbiguousColumns) {
  const TemporaryFile file("items.csv", "id,id\na,b\n");
  EXPECT_THAT(Rows(file.path(), {"id"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("column 'id' is there twice")));
}

TEST(CsvTest, NamesRowAndLineOfAnotherFieldCount) {
  const TemporaryFile file("items.csv", "id,name\n\na,Lamp\nb\n");
  EXPECT_THAT(Rows(file.path(), {"id"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       file.path() + ": row 2 (line 4): got 1 field, want 2 "
                                     "as in the header"));
}

TEST(CsvTest, NamesRowAndLineOfAQuoteNotClosed) {
  const TemporaryFile file("items.csv", "id,name\na,Lamp\nb,\"Clo\nck\n");
  EXPECT_THAT(Rows(file.path(), {"id"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("row 2 (line 3)"), HasSubstr("quote"))));
  const TemporaryFile stray("items.csv", "id,name\na,\"La\"mp\n");
  EXPECT_THAT(Rows(stray.path(), {"id"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("row 1 (line 2)"), HasSubstr("quote"))));
}

TEST(CsvTest, RefusesAnEmptyFile) {
  const TemporaryFile file("items.csv", "\n\n");
  EXPECT_THAT(
      Rows(file.path(), {"id"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no header row")));
}

TEST(CsvTest, StopsAtTheVisitorsError) {
  const TemporaryFile file("items.csv", "id\na\nb\nc\n");
  int visits = 0;
  EXPECT_THAT(ReadCsv(file.path(), {"id"},
                      [&](const CsvRow& row) {
                        ++visits;
                        return row.fields[0] == "b"
                                   ? absl::InvalidArgumentError("bad b")
                                   : absl::OkStatus();
                      }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       file.path() + ": row 2 (line 3): bad b"));
  EXPECT_EQ(visits, 2);
}

TEST(CsvTest, ReadsAFileLargerThanItsBuffer) {
  std::string text = "id,name\n";
  for (int i = 0; i < 50000; ++i) {
    absl::StrAppend(&text, i, ",\"name ", i, "\"\n");
  }
  const TemporaryFile file("items.csv", text);
  ASSERT_OK_AND_ASSIGN(const auto rows, Rows(file.path(), {"name"}));
  ASSERT_EQ(rows.size(), 50000U);
  for (int i = 0; i < 50000; ++i) {
    ASSERT_EQ(rows[i], absl::StrCat(i + 1, "@", i + 2, ":name ", i));
  }
}

TEST(JsonLinesTest, ReadsObjectsWithTheirLines) {
  const TemporaryFile file("a.jsonl", "{\"id\":\"a\"}\n\n{\"id\":\"b\"}");
  std::vector<std::string> seen;
  EXPECT_OK(ReadJsonLines(file.path(),
                          [&](std::int64_t line, const nlohmann::json& object) {
                            seen.push_back(absl::StrCat(line, object.dump()));
                            return absl::OkStatus();
                          }));
  EXPECT_THAT(seen, ElementsAre("1{\"id\":\"a\"}", "3{\"id\":\"b\"}"));
}

TEST(JsonLinesTest, NamesTheLineThatIsNoObject) {
  for (const char* line : {"[1]", "{\"id\":", "\xff", "{} {}", "nul", "3"}) {
    const TemporaryFile file("a.jsonl", absl::StrCat("{}\n", line, "\n"));
    EXPECT_THAT(ReadJsonLines(file.path(),
                              [](std::int64_t, const nlohmann::json&) {
                                return absl::OkStatus();
                              }),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         file.path() + ": line 2: not a JSON object"))
        << line;
  }
}

// Copies of deep values used to overflow the stack.
TEST(JsonLinesTest, NamesTheLineThatIsNestedTooDeep) {
  const auto nested = [](int depth) {
    const auto inner = static_cast<std::size_t>(depth - 1);
    return absl::StrCat("{\"id\":\"[[[\",\"l\":", std::string(inner, '['),
                        std::string(inner, ']'), "}");
  };
  const auto read = [](const std::string& lines) {
    const TemporaryFile file("a.jsonl", lines);
    const absl::Status status =
        ReadJsonLines(file.path(), [](std::int64_t, nlohmann::json object) {
          const nlohmann::json copy = object;
          return copy.dump().empty() ? absl::InternalError("")
                                     : absl::OkStatus();
        });
    return std::string(status.message())
        .substr(status.ok() ? 0 : file.path().size());
  };
  EXPECT_EQ(read(nested(kMaxJsonDepth)), "");
  const std::string error = ": line 2: nested more than 32 levels deep";
  EXPECT_EQ(read("{}\n" + nested(kMaxJsonDepth + 1)), error);
  EXPECT_EQ(read("{}\n" + nested(70000)), error);
  // The same without closing brackets.
  EXPECT_EQ(read("{}\n{\"l\":" + std::string(70000, '[')), error);
}

TEST(IdsTest, ReadsOneALine) {
  const TemporaryFile file("ids.txt", "85123A\r\nPOST é\n c=1 ");
  ASSERT_OK_AND_ASSIGN(const auto ids, ReadIds(file.path()));
  EXPECT_THAT(ids, ElementsAre("85123A", "POST é", " c=1 "));
  const TemporaryFile empty("ids.txt", "");
  ASSERT_OK_AND_ASSIGN(const auto none, ReadIds(empty.path()));
  EXPECT_THAT(none, IsEmpty());
}

TEST(IdsTest, NamesBothLinesOfARepeatedId) {
  const TemporaryFile file("ids.txt", "a\nb\na\n");
  EXPECT_THAT(
      ReadIds(file.path()),
      StatusIs(absl::StatusCode::kInvalidArgument,
               file.path() + ": line 3: id 'a' is not unique: line 1 has it "
                             "too"));
}

TEST(IdsTest, NamesTheLineOfABadId) {
  const auto expect = [](const std::string& id, absl::StatusCode code) {
    const TemporaryFile file("ids.txt", absl::StrCat("a\n", id, "\nb\n"));
    EXPECT_THAT(ReadIds(file.path()),
                StatusIs(code, StartsWith(file.path() + ": line 2")));
  };
  expect("", absl::StatusCode::kInvalidArgument);
  expect("\xff", absl::StatusCode::kInvalidArgument);
  expect(std::string(129, 'x'), absl::StatusCode::kResourceExhausted);
}

TEST(LineReaderTest, BoundsALine) {
  const TemporaryFile file("long", std::string(17 << 20, 'x'));
  ASSERT_OK_AND_ASSIGN(LineReader lines, LineReader::Open(file.path()));
  std::string line;
  EXPECT_THAT(lines.Next(line), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("longer than 16 MiB")));
}

TEST(TextRowsTest, ReadsNumbersPartedByWhatPeopleType) {
  const TemporaryFile file("rows.txt",
                           "# two words\n1 0.5,-2e1\n\n\t3,  4 5 \r\n");
  ASSERT_OK_AND_ASSIGN(const auto rows, OpenVectorFile(file.path()));
  EXPECT_EQ(rows->row_count(), 2);
  EXPECT_EQ(rows->dim(), 3);
  std::vector<float> row(3);
  ASSERT_OK(rows->ReadRow(1, row));
  EXPECT_THAT(row, ElementsAre(3, 4, 5));
  ASSERT_OK(rows->ReadRow(0, row));
  EXPECT_THAT(row, ElementsAre(1, 0.5, -20));
}

TEST(TextRowsTest, ACsvFileOfNumbersIsText) {
  const TemporaryFile file("rows.csv", "1,0.5\n-2, 3\n");
  EXPECT_TRUE(IsVectorFile(file.path()));
  ASSERT_OK_AND_ASSIGN(const auto rows, OpenVectorFile(file.path()));
  EXPECT_EQ(rows->row_count(), 2);
  std::vector<float> row(2);
  ASSERT_OK(rows->ReadRow(1, row));
  EXPECT_THAT(row, ElementsAre(-2, 3));
  const TemporaryFile header("header.csv", "id,x\na,1\n");
  EXPECT_THAT(
      OpenVectorFile(header.path()),
      StatusIs(kInvalid, HasSubstr("line 1: got 'id', want a number; rows have "
                                   "neither a header nor ids")));
}

TEST(TextRowsTest, SaysWhichLineIsWrong) {
  const auto error = [](const std::string& content) {
    const TemporaryFile file("rows.txt", content);
    return OpenVectorFile(file.path()).status();
  };
  EXPECT_THAT(error("1 2\n\n3\n"),
              StatusIs(kInvalid,
                       HasSubstr("line 3: numbers in the row: got 1, want 2")));
  EXPECT_THAT(error("1 two\n"),
              StatusIs(kInvalid, HasSubstr("line 1: got 'two'")));
  EXPECT_LT(error(std::string(3'000'000, 'x')).message().size(), 1000u);
  EXPECT_THAT(error("# nothing\n"), StatusIs(kInvalid, HasSubstr("no row")));
  const TemporaryFile infinite("rows.txt", "1\n1e50\n");
  ASSERT_OK_AND_ASSIGN(const auto rows, OpenVectorFile(infinite.path()));
  std::vector<float> row(1);
  EXPECT_THAT(rows->ReadRow(1, row), StatusIs(kInvalid, HasSubstr("row 2")));
}

}  // namespace
}  // namespace attendant
