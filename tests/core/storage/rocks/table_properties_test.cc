#include "core/storage/rocks/table_properties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;

// A table written by RocksDB.
class TablePropertiesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.compression = rocksdb::kNoCompression;
    rocksdb::DB* opened = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options, directory_ / "db", &opened).ok());
    const std::unique_ptr<rocksdb::DB> db(opened);
    ASSERT_TRUE(db->Put({}, "key", std::string(5000, 'x')).ok());
    ASSERT_TRUE(db->Flush({}).ok());
    for (const auto& entry :
         std::filesystem::directory_iterator(directory_ / "db")) {
      if (entry.path().extension() != ".sst") continue;
      std::ifstream file(entry.path(), std::ios::binary);
      table_.assign(std::istreambuf_iterator<char>(file), {});
    }
    ASSERT_GT(table_.size(), 5000u);
  }

  absl::Status Check(const std::string& bytes) const {
    const std::string path = directory_ / "table";
    std::ofstream(path, std::ios::binary) << bytes;
    return CheckTableProperties(Files(), path);
  }

  const ScratchDirectory directory_;
  std::string table_;
};

TEST_F(TablePropertiesTest, TakesATable) { EXPECT_OK(Check(table_)); }

TEST_F(TablePropertiesTest, NoByteOfThePropertiesMayBeAnother) {
  // From RocksDB's first property name on, everything is part of the
  // properties, except what the footer holds behind the 4 bytes that lead to
  // them and before the last 12.
  const std::size_t first = table_.find("rocksdb.");
  ASSERT_NE(first, std::string::npos);
  const std::size_t footer = table_.size() - 53;
  for (std::size_t i = first; i < table_.size(); ++i) {
    const bool unused = i >= footer + 4 && i < footer + 41;
    std::string damaged = table_;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x80);
    if (!unused) {
      EXPECT_THAT(Check(damaged),
                  StatusIs(absl::StatusCode::kDataLoss, HasSubstr("its ")))
          << i << " of " << table_.size();
    }
  }
}

TEST_F(TablePropertiesTest, NoEndMayBeMissing) {
  for (std::size_t size = 0; size < table_.size(); size += 97) {
    EXPECT_THAT(Check(table_.substr(0, size)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("its ")))
        << size;
  }
}

TEST_F(TablePropertiesTest, AMissingTableIsAnErrorOfFiles) {
  EXPECT_FALSE(CheckTableProperties(Files(), directory_ / "none").ok());
}

}  // namespace
}  // namespace attendant
