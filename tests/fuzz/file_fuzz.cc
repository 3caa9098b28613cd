// Files that the command line reads: refused as InvalidArgument, or read as
// what is written back. The first byte says which kind of file the rest is.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>

#include "absl/strings/str_replace.h"
#include "client/files/csv.h"
#include "client/files/fvecs.h"
#include "client/files/ids.h"
#include "client/files/input.h"
#include "client/files/json.h"
#include "client/files/jsonl.h"
#include "client/files/npy.h"
#include "client/files/safetensors.h"
#include "client/files/text_rows.h"
#include "core/base/ids.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/scratch.h"

namespace attendant {
namespace {

void RequireBadFile(const absl::Status& status) {
  RequireRefusal(status, {absl::StatusCode::kInvalidArgument,
                          absl::StatusCode::kResourceExhausted});
}

using OpenVectors =
    absl::StatusOr<std::unique_ptr<VectorFile>> (*)(const std::string&);

// The rows that can be read, all of them in order.
std::vector<float> RowsOf(VectorFile& file, std::int64_t file_bytes) {
  Require(file.dim() >= 1 && file.dim() <= kMaxFileDim &&
              file.row_count() >= 0 &&
              file.row_count() <= file_bytes / file.dim(),
          "rows lie in the file");
  std::vector<float> rows;
  std::vector<float> row(static_cast<std::size_t>(file.dim()));
  for (std::int64_t i = 0; i < file.row_count(); ++i) {
    const absl::Status status = file.ReadRow(i, row);
    if (!status.ok()) {
      RequireBadFile(status);
      continue;
    }
    for (const float number : row) {
      Require(std::isfinite(number), "numbers are finite");
    }
    rows.insert(rows.end(), row.begin(), row.end());
  }
  // Any order works.
  for (std::int64_t i = file.row_count(); i > 0; --i) {
    file.ReadRow(i - 1, row).IgnoreError();
  }
  return rows;
}

void CheckVectors(OpenVectors open, absl::string_view bytes) {
  const auto file = open(WriteScratch("vectors", bytes));
  if (!file.ok()) return RequireBadFile(file.status());
  const std::int64_t dim = (*file)->dim();
  const std::vector<float> rows =
      RowsOf(**file, static_cast<std::int64_t>(bytes.size()));
  if (rows.empty()) return;
  Accept();
  const std::string written = NpyBytes(rows, dim);
  const auto again = OpenNpy(WriteScratch("vectors", written));
  Require(again.ok() && (*again)->dim() == dim, "what is written is read");
  const std::vector<float> same =
      RowsOf(**again, static_cast<std::int64_t>(written.size()));
  Require(same.size() == rows.size() &&
              std::memcmp(same.data(), rows.data(),
                          rows.size() * sizeof(float)) == 0,
          "the same numbers");
}

// By the end of its name, which the first byte says.
void CheckByName(absl::string_view bytes) {
  if (bytes.empty()) return;
  constexpr absl::string_view kNames[] = {"rows.npy", "rows.fvecs", "rows.txt",
                                          "rows.tsv"};
  const std::string name(
      kNames[static_cast<std::uint8_t>(bytes[0]) % std::size(kNames)]);
  const std::string path = WriteScratch(name, bytes.substr(1));
  const auto file = OpenVectorFile(path);
  Require(IsVectorFile(path) || absl::IsInvalidArgument(file.status()),
          "other names are refused");
  if (file.ok()) {
    Accept();
    RowsOf(**file, static_cast<std::int64_t>(bytes.size()));
  } else {
    RequireBadFile(file.status());
  }
  std::filesystem::remove(path);
  const auto gone = OpenVectorFile(path);
  RequireRefusal(gone.status(),
                 {IsVectorFile(path) ? absl::StatusCode::kNotFound
                                     : absl::StatusCode::kInvalidArgument});
}

// As a whole, and at an offset.
void CheckWhole(absl::string_view bytes) {
  constexpr std::int64_t kMaxBytes = 100;
  const std::string path = WriteScratch("whole", bytes);
  const auto content = ReadFile(path, kMaxBytes);
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (size > kMaxBytes) {
    RequireBadFile(content.status());
  } else {
    Accept();
    Require(content.ok() && *content == bytes, "all of it is read");
  }
  RequireBadFile(RandomFile::Open(Scratch().path()).status());
  auto file = RandomFile::Open(path);
  Require(file.ok() && file->size() == size, "a file has its size");
  // Past the end.
  std::string end(8, '\0');
  RequireBadFile(file->ReadAt(std::max<std::int64_t>(size - 7, 0), end));
}

void CheckIds(absl::string_view bytes) {
  const auto ids = ReadIds(WriteScratch("ids", bytes));
  if (!ids.ok()) return RequireBadFile(ids.status());
  Accept();
  const std::set<std::string> distinct(ids->begin(), ids->end());
  Require(distinct.size() == ids->size(), "ids are distinct");
  for (const std::string& id : *ids) {
    Require(ValidateItemId(id, "id").ok(), "ids are valid");
  }
}

using Table = std::vector<std::vector<std::string>>;

absl::StatusOr<Table> ReadTable(absl::string_view bytes) {
  Table table;
  std::int64_t line = 1;
  const absl::Status status = ReadCsv(
      WriteScratch("csv", bytes), {"id", "name"}, [&](const CsvRow& row) {
        Require(row.number == static_cast<std::int64_t>(table.size()) + 1 &&
                    row.line >= line && row.fields.size() == 2,
                "rows count up, and lines don't go back");
        line = row.line;
        table.emplace_back(row.fields.begin(), row.fields.end());
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  return table;
}

void CheckCsv(absl::string_view bytes) {
  const absl::StatusOr<Table> table = ReadTable(bytes);
  if (!table.ok()) return RequireBadFile(table.status());
  Accept();
  std::string written = "id,name\n";
  for (const auto& row : *table) {
    for (const std::string& field : row) {
      absl::StrAppend(&written, "\"",
                      absl::StrReplaceAll(field, {{"\"", "\"\""}}), "\"",
                      &field == &row.back() ? "\n" : ",");
    }
  }
  const absl::StatusOr<Table> again = ReadTable(written);
  Require(again.ok() && *again == *table, "what is written is read");
}

using Objects = std::vector<nlohmann::json>;

absl::StatusOr<Objects> ReadObjects(absl::string_view bytes) {
  Objects objects;
  std::int64_t last = 0;
  const absl::Status status = ReadJsonLines(
      WriteScratch("jsonl", bytes),
      [&](std::int64_t line, nlohmann::json object) {
        Require(line > last && object.is_object(), "an object a line");
        last = line;
        objects.push_back(std::move(object));
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  return objects;
}

void CheckJsonLines(absl::string_view bytes) {
  const absl::StatusOr<Objects> objects = ReadObjects(bytes);
  if (!objects.ok()) return RequireBadFile(objects.status());
  Accept();
  std::string written;
  for (const nlohmann::json& object : *objects) {
    absl::StrAppend(&written, object.dump(), "\n");
  }
  const absl::StatusOr<Objects> again = ReadObjects(written);
  Require(again.ok() && *again == *objects, "what is written is read");
}

void CheckSafetensors(absl::string_view bytes) {
  const auto file =
      SafetensorsFile::Open(WriteScratch("tensors.safetensors", bytes));
  if (!file.ok()) return RequireBadFile(file.status());
  std::int64_t all_bytes = 0;
  for (const auto& [name, entry] : file->tensors()) {
    const auto components = file->Read(name);
    if (!components.ok()) {
      RequireBadFile(components.status());
      continue;
    }
    Accept();
    all_bytes += entry.end - entry.begin;
    std::int64_t count = 1;
    for (const std::int64_t side : entry.shape) count *= side;
    Require(static_cast<std::int64_t>(components->size()) == count,
            "as many components as the shape says");
    for (const float component : *components) {
      Require(std::isfinite(component), "numbers are finite");
    }
  }
  Require(all_bytes <= static_cast<std::int64_t>(bytes.size()),
          "no byte is of two tensors");
}

}  // namespace

void CheckInput(absl::string_view input) {
  if (input.empty()) return;
  const absl::string_view bytes = input.substr(1);
  switch (input[0]) {
    case 'n':
      return CheckVectors(&OpenNpy, bytes);
    case 'f':
      return CheckVectors(&OpenFvecs, bytes);
    case 't':
      return CheckVectors(&OpenTextRows, bytes);
    case 'v':
      return CheckByName(bytes);
    case 'w':
      return CheckWhole(bytes);
    case 'i':
      return CheckIds(bytes);
    case 'c':
      return CheckCsv(bytes);
    case 'j':
      return CheckJsonLines(bytes);
    case 's':
      return CheckSafetensors(bytes);
    default:
      return;
  }
}

}  // namespace attendant
