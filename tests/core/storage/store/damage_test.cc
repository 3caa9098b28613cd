// Damaged files: the store reports the damage, or all data is there. An
// acknowledged write never disappears without an error.
#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/storage/records/store.h"
#include "tests/core/storage/test_store.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr std::int64_t kTableItems = 20;
constexpr std::int64_t kItems = 26;
// Number of places damaged in each file, evenly spread.
constexpr std::size_t kPlaces = 40;

std::string ReadBytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteBytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

class DamageTest : public ::testing::Test {
 protected:
  // The first items are in a table, the last in the log.
  void SetUp() override {
    {
      ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(golden()));
      // Opened only once, so that there is one table.
      ASSERT_OK_AND_ASSIGN(const auto catalog,
                           store->OpenCatalog(TestRecord()));
      ASSERT_OK(store->Put(TestRecord()));
      ASSERT_OK(WriteItems(*catalog, 0, kTableItems, 1, "first"));
    }
    ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(golden()));
    ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(TestRecord()));
    for (std::int64_t i = kTableItems; i < kItems; ++i) {
      ASSERT_OK(WriteItems(*catalog, i, i + 1, i, TestId(i)));
    }
  }

  std::string golden() const { return scratch_ / "golden"; }
  std::string copy() const { return scratch_ / "copy"; }
  fs::path ItemsOf(const std::string& directory) const {
    return fs::path(directory) / "items" / TestRecord().uid;
  }

  // Returns the only non-empty file of the catalog (or of the list of catalogs)
  // whose name has this beginning and end.
  fs::path Find(const fs::path& directory, const std::string& begin,
                const std::string& end) {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(directory)) {
      const std::string name = entry.path().filename().string();
      if (absl::StartsWith(name, begin) && absl::EndsWith(name, end) &&
          entry.file_size() > 0) {
        found.push_back(fs::relative(entry.path(), golden()));
      }
    }
    EXPECT_EQ(found.size(), 1u) << directory << " " << begin << "*" << end;
    return found.empty() ? fs::path() : found[0];
  }

  void MakeCopy() {
    fs::remove_all(copy());
    fs::copy(golden(), copy(), fs::copy_options::recursive);
  }

  // Returns OK if all acknowledged data is there, an error if the store reports
  // one; adds a test failure if something is silently missing or changed.
  absl::Status Check(const std::string& what) {
    ATTENDANT_ASSIGN_OR_RETURN(const auto store, Store::Open(copy()));
    ATTENDANT_ASSIGN_OR_RETURN(const CatalogList list, store->List());
    if (!list.damages.empty()) return list.damages.begin()->second;
    EXPECT_EQ(list.records, std::vector<CatalogRecord>{TestRecord()}) << what;
    ATTENDANT_ASSIGN_OR_RETURN(const auto catalog,
                               store->OpenCatalog(TestRecord()));
    ATTENDANT_ASSIGN_OR_RETURN(const auto items, ScanAll(*catalog));
    std::vector<Item> want;
    for (std::int64_t i = 0; i < kItems; ++i) want.push_back(TestItem(i));
    EXPECT_EQ(items, want) << what;
    EXPECT_EQ(catalog->sequence(), kItems - 1) << what;
    return absl::OkStatus();
  }

  // Damages one byte of the file at a time. Returns how often the damage was
  // reported.
  int DamageEach(const fs::path& file) {
    const std::string bytes = ReadBytes(fs::path(golden()) / file);
    return DamageEach(file, 0,
                      std::max<std::size_t>(bytes.size() / kPlaces, 1));
  }

  // The same from `begin` on, for one byte in each `step`.
  int DamageEach(const fs::path& file, std::size_t begin, std::size_t step) {
    const std::string bytes = ReadBytes(fs::path(golden()) / file);
    int reported = 0;
    for (std::size_t i = begin; i < bytes.size(); i += step) {
      for (const int mask : {0x01, 0xff}) {
        MakeCopy();
        std::string damaged = bytes;
        damaged[i] = static_cast<char>(damaged[i] ^ mask);
        WriteBytes(fs::path(copy()) / file, damaged);
        const absl::Status status =
            Check(file.string() + " byte " + std::to_string(i));
        if (status.ok()) continue;
        ++reported;
        EXPECT_THAT(status,
                    StatusIs(absl::StatusCode::kDataLoss, HasSubstr("")))
            << file << " byte " << i;
      }
      if (HasFailure()) break;
    }
    return reported;
  }

  absl::Status CheckWithout(const fs::path& file) {
    MakeCopy();
    fs::remove_all(fs::path(copy()) / file);
    return Check("without " + file.string());
  }

  ScratchDirectory scratch_;
};

TEST_F(DamageTest, UndamagedCopyIsWhole) {
  MakeCopy();
  EXPECT_OK(Check("nothing"));
}

TEST_F(DamageTest, TableIsNeverMisread) {
  const fs::path table = Find(ItemsOf(golden()), "", ".sst");
  EXPECT_GT(DamageEach(table), 0);
}

// A table's properties lie near its end. RocksDB reads them before it verifies
// their checksum: one wrong bit there would end the process.
TEST_F(DamageTest, PropertiesOfATableDoNotEndTheProcess) {
  constexpr std::size_t kTailBytes = 1500;
  const fs::path table = Find(ItemsOf(golden()), "", ".sst");
  const std::size_t size = fs::file_size(fs::path(golden()) / table);
  ASSERT_GT(size, kTailBytes);
  EXPECT_GT(DamageEach(table, size - kTailBytes, kSanitized ? 15 : 5),
            kSanitized ? 60 : 180);
}

// A crash leaves tables that nobody needs, with any contents.
TEST_F(DamageTest, ATableThatIsNotNeededIsNoDamage) {
  const fs::path table = Find(ItemsOf(golden()), "", ".sst");
  std::string bytes = ReadBytes(fs::path(golden()) / table);
  MakeCopy();
  WriteBytes(fs::path(copy()) / table.parent_path() / "900000.sst",
             bytes.substr(0, bytes.size() / 2));
  std::fill(bytes.end() - 800, bytes.end() - 200, '\0');
  WriteBytes(fs::path(copy()) / table.parent_path() / "900001.sst", bytes);
  EXPECT_OK(Check("with tables that nobody needs"));
}

// RocksDB alone is not enough here. Damage to a record's length in the last
// block of the log looks like a write that a crash cut off, and RocksDB would
// open without that record and everything after it.
TEST_F(DamageTest, LogIsNeverMisread) {
  const fs::path log = Find(ItemsOf(golden()), "", ".log");
  EXPECT_GT(DamageEach(log), 0);
}

TEST_F(DamageTest, LengthsInTheLogAreNotBelieved) {
  const fs::path log = Find(ItemsOf(golden()), "", ".log");
  const std::string bytes = ReadBytes(fs::path(golden()) / log);
  // A record is: checksum (4 bytes), length (2), type (1), and the rest.
  for (std::size_t at = 0; at + 7 <= bytes.size();) {
    const std::size_t length = static_cast<unsigned char>(bytes[at + 4]) +
                               256 * static_cast<unsigned char>(bytes[at + 5]);
    MakeCopy();
    std::string damaged = bytes;
    damaged[at + 5] = '\x7f';
    WriteBytes(fs::path(copy()) / log, damaged);
    EXPECT_THAT(Check("length"),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("acknowledged writes are lost")));
    // RocksDB would have dropped everything after the damage.
    EXPECT_EQ(ReadBytes(fs::path(copy()) / log), damaged);
    at += 7 + length;
  }
}

// RocksDB takes a header of zeros for the end of a block and continues with the
// next: writes in the middle would be missing, but the last one present. Nor
// may the last write be taken for torn and be cut off with everything after the
// zeros.
TEST_F(DamageTest, ZerosInALogAreNotSkipped) {
  constexpr std::int64_t kWrites = 20;
  constexpr std::int64_t kItemsPerWrite = 60;
  const std::string directory = scratch_ / "zeros";
  {
    ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(directory));
    ASSERT_OK(store->Put(TestRecord()));
    ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(TestRecord()));
    for (std::int64_t i = 0; i < kWrites; ++i) {
      ASSERT_OK(WriteItems(*catalog, i * kItemsPerWrite,
                           (i + 1) * kItemsPerWrite, i + 1));
    }
  }
  fs::path log;
  for (const auto& entry : fs::directory_iterator(ItemsOf(directory))) {
    if (entry.path().extension() == ".log") log = entry.path();
  }
  const std::string bytes = ReadBytes(log);
  constexpr std::size_t kBlockBytes = 32768;
  constexpr std::size_t kSectorBytes = 512;
  ASSERT_GT(bytes.size(), 3 * kBlockBytes);
  for (std::size_t at = 0; at + 7 <= bytes.size();) {
    const std::size_t length = static_cast<unsigned char>(bytes[at + 4]) +
                               256 * static_cast<unsigned char>(bytes[at + 5]);
    const std::size_t sector = at / kSectorBytes * kSectorBytes;
    for (const std::size_t begin : {at, sector}) {
      fs::remove_all(copy());
      fs::copy(directory, copy(), fs::copy_options::recursive);
      std::string damaged = bytes;
      std::fill(
          damaged.begin() + begin,
          damaged.begin() + std::min(sector + kSectorBytes, damaged.size()),
          '\0');
      const fs::path file = fs::path(copy()) / fs::relative(log, directory);
      WriteBytes(file, damaged);
      ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(copy()));
      EXPECT_THAT(store->OpenCatalog(TestRecord()),
                  StatusIs(absl::StatusCode::kDataLoss, HasSubstr("database")))
          << "zeros from " << begin;
      ASSERT_EQ(ReadBytes(file), damaged) << "zeros from " << begin;
    }
    at += 7 + length;
    if (kBlockBytes - at % kBlockBytes < 7)
      at += kBlockBytes - at % kBlockBytes;
  }
}

TEST_F(DamageTest, ManifestIsNeverMisread) {
  const fs::path manifest = Find(ItemsOf(golden()), "MANIFEST", "");
  EXPECT_GT(DamageEach(manifest), 0);
}

TEST_F(DamageTest, ListOfCatalogsIsNeverMisread) {
  const fs::path catalogs = fs::path(golden()) / "catalogs";
  EXPECT_GT(DamageEach(Find(catalogs, "", ".sst")), 0);
  EXPECT_GT(DamageEach(Find(catalogs, "MANIFEST", "")), 0);
}

TEST_F(DamageTest, MissingFilesAreReported) {
  const fs::path items = fs::path("items") / TestRecord().uid;
  for (const fs::path& file :
       {Find(ItemsOf(golden()), "", ".sst"),
        Find(ItemsOf(golden()), "", ".log"),
        Find(ItemsOf(golden()), "MANIFEST", ""), items / "CURRENT", items,
        fs::path("FORMAT"), fs::path("catalogs"),
        fs::path("catalogs/CURRENT")}) {
    EXPECT_THAT(CheckWithout(file),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(copy())))
        << file;
  }
}

TEST_F(DamageTest, TablesAloneAreReported) {
  MakeCopy();
  for (const fs::path& file :
       {Find(ItemsOf(golden()), "", ".log"),
        Find(ItemsOf(golden()), "MANIFEST", ""),
        fs::path("items") / TestRecord().uid / "ACKNOWLEDGED"}) {
    ASSERT_TRUE(fs::remove(fs::path(copy()) / file)) << file;
  }
  EXPECT_THAT(Check("tables alone"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(copy())));
}

// A log's end that a crash tore off was not acknowledged and is dropped. An
// acknowledged end is reported as missing, and the rest of the log stays until
// somebody removes the mark.
TEST_F(DamageTest, ShortLogIsATornWriteOrALoss) {
  const fs::path log = Find(ItemsOf(golden()), "", ".log");
  const std::string bytes = ReadBytes(fs::path(golden()) / log);
  const fs::path mark = fs::path("items") / TestRecord().uid / "ACKNOWLEDGED";
  MakeCopy();
  const std::string short_log = bytes.substr(0, bytes.size() - 10);
  WriteBytes(fs::path(copy()) / log, short_log);
  for (int start = 0; start < 2; ++start) {
    EXPECT_THAT(Check("short"),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("acknowledged writes are lost")));
    EXPECT_EQ(ReadBytes(fs::path(copy()) / log), short_log);
  }
  fs::remove(fs::path(copy()) / mark);
  ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(copy()));
  ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(TestRecord()));
  EXPECT_EQ(catalog->sequence(), 24);
  ASSERT_OK_AND_ASSIGN(const auto items, ScanAll(*catalog));
  EXPECT_EQ(items.size(), static_cast<std::size_t>(kItems - 1));
}

// Some acknowledged data, such as an encoder, is not an item with a sequence.
TEST_F(DamageTest, ShortLogThatLacksAnEncoderIsALoss) {
  {
    ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(golden()));
    ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(TestRecord()));
    ASSERT_OK(PutTextEncoder(*catalog, "first"));
    ASSERT_OK(PutTextEncoder(*catalog, "second"));
  }
  const fs::path log = Find(ItemsOf(golden()), "", ".log");
  const std::string bytes = ReadBytes(fs::path(golden()) / log);
  MakeCopy();
  EXPECT_OK(Check("whole"));
  MakeCopy();
  WriteBytes(fs::path(copy()) / log, bytes.substr(0, bytes.size() - 10));
  EXPECT_THAT(Check("short"),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("acknowledged writes are lost")));
}

// As earlier releases wrote it: 40 bytes, without RocksDB's number.
TEST_F(DamageTest, AMarkOfTheOldFormGuardsToo) {
  const fs::path log = Find(ItemsOf(golden()), "", ".log");
  const std::string bytes = ReadBytes(fs::path(golden()) / log);
  const fs::path mark = fs::path("items") / TestRecord().uid / "ACKNOWLEDGED";
  const std::string now = ReadBytes(fs::path(golden()) / mark);
  std::string old = now.substr(0, 8) + now.substr(16, 24);
  const std::uint64_t hash = XXH3_64bits(old.data(), old.size());
  old.append(reinterpret_cast<const char*>(&hash), sizeof(hash));
  MakeCopy();
  WriteBytes(fs::path(copy()) / mark, old);
  EXPECT_OK(Check("whole"));
  MakeCopy();
  WriteBytes(fs::path(copy()) / mark, old);
  WriteBytes(fs::path(copy()) / log, bytes.substr(0, bytes.size() - 10));
  EXPECT_THAT(Check("short"), StatusIs(absl::StatusCode::kDataLoss,
                                       HasSubstr("acknowledged were 25")));
}

TEST_F(DamageTest, DamagedMarkHidesNothing) {
  const fs::path mark = fs::path("items") / TestRecord().uid / "ACKNOWLEDGED";
  const std::string bytes = ReadBytes(fs::path(golden()) / mark);
  ASSERT_EQ(bytes.size(), 48u);
  for (std::size_t size = 0; size < 48; size += 3) {
    MakeCopy();
    WriteBytes(fs::path(copy()) / mark, bytes.substr(0, size));
    EXPECT_OK(Check("mark"));
  }
  for (std::size_t i = 0; i < 48; i += 3) {
    MakeCopy();
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    WriteBytes(fs::path(copy()) / mark, damaged);
    EXPECT_OK(Check("mark"));
  }
}

TEST_F(DamageTest, FormatThatIsNoNumberIsReported) {
  for (const std::string text : {"", "x", "0\n", "-1\n"}) {
    MakeCopy();
    WriteBytes(fs::path(copy()) / "FORMAT", text);
    EXPECT_THAT(Check("format"),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("FORMAT")));
  }
}

// Every byte and every length of the model's file is damaged; its neighbour
// must stay intact.
TEST_F(DamageTest, AModelFileCostsItsVersionAlone) {
  {
    ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(golden()));
    ASSERT_OK(store->PutModel(TestModel("text", 1)));
    ASSERT_OK(store->PutModel(TestModel("text", 2)));
  }
  MakeCopy();
  const fs::path file = fs::path(copy()) / "models/text/1";
  const std::string bytes = ReadBytes(file);
  ASSERT_GT(bytes.size(), 0u);
  const auto expect_one_lost = [](const Store& store, const std::string& what) {
    ASSERT_OK_AND_ASSIGN(const ModelList list, store.ListModels());
    EXPECT_EQ(list.records, std::vector{TestModel("text", 2)}) << what;
    EXPECT_EQ(list.last_versions.at("text"), 2) << what;
    ASSERT_EQ(list.damages.size(), 1u) << what;
    EXPECT_THAT(list.damages.at({"text", 1}),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("version 1 of model \"text\"")))
        << what;
  };
  {
    ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(copy()));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string damaged = bytes;
        damaged[i] = static_cast<char>(damaged[i] ^ 1 << bit);
        WriteBytes(file, damaged);
        expect_one_lost(*store, absl::StrCat("bit ", bit, " of byte ", i));
      }
    }
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      WriteBytes(file, bytes.substr(0, size));
      expect_one_lost(*store, absl::StrCat(size, " bytes"));
    }
    WriteBytes(file, bytes + '\0');
    expect_one_lost(*store, "a byte more");
  }
  // The catalogs are unaffected, and the file is not taken for a left-over.
  EXPECT_OK(Check("with a damaged model"));
  EXPECT_TRUE(fs::exists(file));
  WriteBytes(file, bytes);
  ASSERT_OK_AND_ASSIGN(const auto store, Store::Open(copy()));
  ASSERT_OK_AND_ASSIGN(const ModelList list, store->ListModels());
  EXPECT_EQ(list.records.size(), 2u);
}

}  // namespace
}  // namespace attendant
