#include "core/storage/records/store.h"

#include <fcntl.h>
#include <rocksdb/file_system.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/storage/files/files.h"
#include "tests/core/storage/test_store.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"
#include "tests/support/subprocess.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;

class StoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<Store> OpenStore() {
    auto store = Store::Open(directory_ / "data");
    EXPECT_OK(store);
    return store.ok() ? *std::move(store) : nullptr;
  }
  std::string Path(const std::string& name) {
    return directory_ / ("data/" + name);
  }
  void WriteFile(const std::string& name, const std::string& text) {
    std::ofstream(Path(name)) << text;
  }
  // Returns the names below models/, in order.
  std::vector<std::string> ModelFileNames() {
    std::vector<std::string> names;
    if (!std::filesystem::exists(Path("models"))) return names;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(Path("models"))) {
      names.push_back(
          std::filesystem::relative(entry.path(), Path("models")).string());
    }
    std::ranges::sort(names);
    return names;
  }

  ScratchDirectory directory_;
};

TEST_F(StoreTest, NewDirectoryIsMadeAndEmpty) {
  const auto store = OpenStore();
  ASSERT_OK_AND_ASSIGN(const CatalogList list, store->List());
  EXPECT_THAT(list.records, IsEmpty());
  std::string format;
  std::ifstream(Path("FORMAT")) >> format;
  EXPECT_EQ(format, "1");
}

TEST_F(StoreTest, ReopeningBringsEverythingBack) {
  const CatalogRecord shop = TestRecord();
  CatalogRecord empty = TestRecord("empty", "00000000000000ff");
  empty.schema.attributes.clear();
  empty.schema.value_dim = 0;
  {
    const auto store = OpenStore();
    ASSERT_OK(store->Put(shop));
    ASSERT_OK(store->Put(empty));
    ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(shop));
    EXPECT_EQ(catalog->sequence(), 0);
    ASSERT_OK(WriteItems(*catalog, 0, 50, 7, "request"));
    ASSERT_OK(PutTextEncoder(*catalog, std::string("\0encoder", 8)));
  }
  const auto store = OpenStore();
  ASSERT_OK_AND_ASSIGN(const CatalogList list, store->List());
  EXPECT_THAT(list.records, ElementsAre(empty, shop));
  ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(shop));
  EXPECT_EQ(catalog->sequence(), 7);
  ASSERT_OK_AND_ASSIGN(const auto items, ScanAll(*catalog));
  ASSERT_EQ(items.size(), 50u);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(items[i], TestItem(i));
  WriteOutcome outcome;
  outcome.sequence = 7;
  outcome.inserted_count = 50;
  ASSERT_OK_AND_ASSIGN(const auto found, catalog->FindRequest("request"));
  EXPECT_THAT(found, Optional(outcome));
  ASSERT_OK_AND_ASSIGN(const std::string encoder, catalog->GetEncoder("text"));
  EXPECT_EQ(encoder, std::string("\0encoder", 8));
  ASSERT_OK_AND_ASSIGN(const std::string none, catalog->GetEncoder("events"));
  EXPECT_EQ(none, "");
}

TEST_F(StoreTest, WritesReplaceAndDelete) {
  const auto store = OpenStore();
  ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(TestRecord()));
  ASSERT_OK(WriteItems(*catalog, 0, 3, 1));
  Item replaced = TestItem(5);
  replaced.id = TestId(1);
  const Item* const upserts[] = {&replaced};
  const std::string id0 = TestId(0);
  const absl::string_view deletes[] = {id0, "never there"};
  StoreWrite write;
  write.upserts = upserts;
  write.deletes = deletes;
  write.outcome.sequence = 2;
  ASSERT_OK(Write(*catalog, write));
  ASSERT_OK_AND_ASSIGN(const auto items, ScanAll(*catalog));
  EXPECT_THAT(items, ElementsAre(replaced, TestItem(2)));
}

// More items than are looked up in one batch, and more bytes than are held at
// once.
TEST_F(StoreTest, ManyLargeItemsAreFoundInTheOrderOfTheirIds) {
  const auto store = OpenStore();
  ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(TestRecord()));
  std::vector<Item> items;
  std::vector<std::string> wanted;
  for (int i = 0; i < 300; ++i) {
    items.push_back(TestItem(i));
    items.back().opaque_value.assign(50'000, static_cast<char>('a' + i % 26));
    wanted.push_back(TestId(299 - i));
    if (i % 3 == 0) wanted.push_back(absl::StrCat("none", i));
  }
  std::vector<const Item*> upserts;
  for (const Item& item : items) upserts.push_back(&item);
  StoreWrite write;
  write.upserts = upserts;
  write.outcome.sequence = 1;
  ASSERT_OK(Write(*catalog, write));
  const std::vector<absl::string_view> ids(wanted.begin(), wanted.end());
  std::size_t next = 0;
  EXPECT_OK(catalog->Get(
      ids, [&](std::size_t i, std::optional<StoredItem> item) -> absl::Status {
        EXPECT_EQ(i, next++);
        EXPECT_EQ(item.has_value(), !absl::StartsWith(ids[i], "none"));
        if (!item) return absl::OkStatus();
        EXPECT_EQ(item->id, ids[i]);
        EXPECT_EQ(item->opaque_value.size(), 50'000u);
        return absl::OkStatus();
      }));
  EXPECT_EQ(next, ids.size());
}

TEST_F(StoreTest, ScanBeginsAfterAnIdAndStopsWhenTold) {
  const auto store = OpenStore();
  ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(TestRecord()));
  ASSERT_OK(WriteItems(*catalog, 0, 5, 1));
  // The scan skips encoders, requests and the sequence.
  ASSERT_OK(PutTextEncoder(*catalog, "encoder"));
  ASSERT_OK_AND_ASSIGN(const auto after, ScanAll(*catalog, TestId(2)));
  EXPECT_THAT(after, ElementsAre(TestItem(3), TestItem(4)));
  // An id that does not exist still has a place in the order.
  ASSERT_OK_AND_ASSIGN(const auto between,
                       ScanAll(*catalog, TestId(3) + "-and-a-half"));
  EXPECT_THAT(between, ElementsAre(TestItem(4)));
  std::vector<Item> first;
  ASSERT_OK(catalog->Scan("", [&](Item item) {
    first.push_back(std::move(item));
    return first.size() < 2;
  }));
  EXPECT_THAT(first, ElementsAre(TestItem(0), TestItem(1)));
}

TEST_F(StoreTest, ScanSeesOneStateWhileWritesGoOn) {
  const auto store = OpenStore();
  ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(TestRecord()));
  ASSERT_OK(WriteItems(*catalog, 0, 10, 1));
  int count = 0;
  ASSERT_OK(catalog->Scan("", [&](const Item&) {
    EXPECT_OK(WriteItems(*catalog, 10 + count, 11 + count, 2 + count));
    ++count;
    return true;
  }));
  EXPECT_EQ(count, 10);
}

TEST_F(StoreTest, SequenceMustGrow) {
  const auto store = OpenStore();
  ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(TestRecord()));
  ASSERT_OK(WriteItems(*catalog, 0, 1, 5));
  EXPECT_THAT(WriteItems(*catalog, 1, 2, 5),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("5 after 5")));
  EXPECT_EQ(catalog->sequence(), 5);
  ASSERT_OK_AND_ASSIGN(const auto items, ScanAll(*catalog));
  EXPECT_THAT(items, ElementsAre(TestItem(0)));
}

TEST_F(StoreTest, PutReplacesARecord) {
  const auto store = OpenStore();
  CatalogRecord record = TestRecord();
  ASSERT_OK(store->Put(record));
  record.schema.key_fields[0].temperature = 1.0 / 3;
  record.schema.key_fields[1].index_kind = IndexKind::kFlat;
  record.schema.key_fields[1].combine_kind = CombineKind::kSumOverSqrtCount;
  ASSERT_OK(store->Put(record));
  ASSERT_OK_AND_ASSIGN(const CatalogList list, store->List());
  EXPECT_THAT(list.records, ElementsAre(record));
}

TEST_F(StoreTest, MalformedUidIsRefusedBeforeItIsAPath) {
  const auto store = OpenStore();
  for (const std::string uid : {"", "../../somewhere00", "0123456789ABCDEF"}) {
    const CatalogRecord record = TestRecord("shop", uid);
    EXPECT_THAT(store->Put(record),
                StatusIs(absl::StatusCode::kInternal, HasSubstr("uid")));
    EXPECT_THAT(store->OpenCatalog(record),
                StatusIs(absl::StatusCode::kInternal, HasSubstr("uid")));
    EXPECT_THAT(store->RemoveFiles(record),
                StatusIs(absl::StatusCode::kInternal, HasSubstr("uid")));
  }
}

TEST_F(StoreTest, RemovalEndsTheRecordThenTheFiles) {
  const CatalogRecord record = TestRecord();
  const auto store = OpenStore();
  ASSERT_OK(store->Put(record));
  ASSERT_OK_AND_ASSIGN(auto catalog, store->OpenCatalog(record));
  ASSERT_OK(WriteItems(*catalog, 0, 1, 1));
  // Removed while the catalog is open, so that a caller may continue with it if
  // this fails.
  ASSERT_OK(store->RemoveRecord(record.name));
  ASSERT_OK_AND_ASSIGN(const CatalogList list, store->List());
  EXPECT_THAT(list.records, IsEmpty());
  ASSERT_OK(WriteItems(*catalog, 1, 2, 2));
  catalog.reset();
  ASSERT_TRUE(std::filesystem::exists(Path("items/" + record.uid)));
  ASSERT_OK(store->RemoveFiles(record));
  EXPECT_FALSE(std::filesystem::exists(Path("items/" + record.uid)));
}

TEST_F(StoreTest, FilesOfACrashedRemovalGoAtTheNextOpen) {
  const CatalogRecord kept = TestRecord();
  const CatalogRecord removed = TestRecord("old", "00000000000000aa");
  {
    const auto store = OpenStore();
    ASSERT_OK(store->Put(kept));
    ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(kept));
    // As if the process had died after removing the record.
    ASSERT_OK_AND_ASSIGN(const auto left, store->OpenCatalog(removed));
  }
  WriteFile("items/README", "not a catalog's");
  ASSERT_TRUE(std::filesystem::exists(Path("items/" + removed.uid)));
  OpenStore();
  EXPECT_FALSE(std::filesystem::exists(Path("items/" + removed.uid)));
  EXPECT_TRUE(std::filesystem::exists(Path("items/" + kept.uid)));
  EXPECT_TRUE(std::filesystem::exists(Path("items/README")));
}

// Only catalogs that were begun or deleted are removed. A list that is older
// than the items, or that was lost, must not delete them.
TEST_F(StoreTest, ItemsThatTheListLostStay) {
  const CatalogRecord shop = TestRecord();
  OpenStore();
  const std::string older = directory_ / "older";
  std::filesystem::copy(Path("catalogs"), older);
  {
    const auto store = OpenStore();
    ASSERT_OK(store->Put(shop));
    ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(shop));
    ASSERT_OK(WriteItems(*catalog, 0, 50, 1));
  }
  const std::string newest = directory_ / "newest";
  std::filesystem::rename(Path("catalogs"), newest);
  std::filesystem::rename(older, Path("catalogs"));
  {
    const auto store = OpenStore();
    ASSERT_OK_AND_ASSIGN(const CatalogList list, store->List());
    EXPECT_THAT(list.records, IsEmpty());
    EXPECT_THAT(store->left_overs(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr("1 of its directories"),
                               HasSubstr(shop.uid))));
  }
  std::filesystem::remove_all(Path("catalogs"));
  std::filesystem::rename(newest, Path("catalogs"));
  const auto store = OpenStore();
  EXPECT_OK(store->left_overs());
  ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(shop));
  ASSERT_OK_AND_ASSIGN(const auto items, ScanAll(*catalog));
  EXPECT_EQ(items.size(), 50u);
}

TEST_F(StoreTest, AnEmptiedCatalogIsNotTakenForANewOne) {
  const CatalogRecord shop = TestRecord();
  {
    const auto store = OpenStore();
    ASSERT_OK(store->Put(shop));
    ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(shop));
    ASSERT_OK(WriteItems(*catalog, 0, 50, 1));
  }
  std::filesystem::remove_all(Path("items/" + shop.uid));
  std::filesystem::create_directory(Path("items/" + shop.uid));
  EXPECT_THAT(
      OpenStore()->OpenCatalog(shop),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("CURRENT is missing")));
  EXPECT_TRUE(std::filesystem::is_empty(Path("items/" + shop.uid)));
}

TEST_F(StoreTest, ADirectoryInPlaceOfAFileIsDamage) {
  OpenStore();
  std::filesystem::rename(Path("FORMAT"), Path("format"));
  std::filesystem::create_directory(Path("FORMAT"));
  EXPECT_THAT(Store::Open(directory_ / "data"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("FORMAT")));
}

// Refuses to delete files whose path contains given characters.
class Undeletable final : public rocksdb::FileSystemWrapper {
 public:
  explicit Undeletable(std::string part)
      : FileSystemWrapper(rocksdb::FileSystem::Default()),
        part_(std::move(part)) {}
  const char* Name() const override { return "Undeletable"; }
  rocksdb::IOStatus DeleteFile(const std::string& path,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override {
    if (absl::StrContains(path, part_)) {
      return rocksdb::IOStatus::IOError("no right to delete", path);
    }
    return FileSystemWrapper::DeleteFile(path, options, debug);
  }

 private:
  const std::string part_;
};

TEST_F(StoreTest, FilesThatCanNotBeRemovedKeepNothingFromOpening) {
  const CatalogRecord kept = TestRecord();
  const CatalogRecord first = TestRecord("old", "00000000000000aa");
  const CatalogRecord second = TestRecord("older", "00000000000000bb");
  {
    const auto store = OpenStore();
    ASSERT_OK(store->Put(kept));
    ASSERT_OK_AND_ASSIGN(const auto one, store->OpenCatalog(first));
    ASSERT_OK_AND_ASSIGN(const auto two, store->OpenCatalog(second));
  }
  {
    StoreOptions options;
    options.file_system = std::make_shared<Undeletable>(first.uid);
    ASSERT_OK_AND_ASSIGN(const auto store,
                         Store::Open(directory_ / "data", options));
    EXPECT_THAT(store->left_overs().message(), HasSubstr(first.uid));
    ASSERT_OK_AND_ASSIGN(const CatalogList list, store->List());
    EXPECT_THAT(list.records, ElementsAre(kept));
    // The other files were deleted.
    EXPECT_FALSE(std::filesystem::exists(Path("items/" + second.uid)));
  }
  const auto store = OpenStore();
  EXPECT_OK(store->left_overs());
  EXPECT_FALSE(std::filesystem::exists(Path("items/" + first.uid)));
}

TEST_F(StoreTest, DamagedRecordHidesNoOther) {
  const CatalogRecord whole = TestRecord();
  CatalogRecord damaged = TestRecord("damaged", "00000000000000aa");
  damaged.schema.key_fields[0].dim = -1;
  {
    const auto store = OpenStore();
    ASSERT_OK(store->Put(whole));
    ASSERT_OK(store->Put(damaged));
  }
  const auto store = OpenStore();
  ASSERT_OK_AND_ASSIGN(const CatalogList list, store->List());
  EXPECT_THAT(list.records, ElementsAre(whole));
  ASSERT_EQ(list.damages.count("damaged"), 1u);
  EXPECT_THAT(list.damages.at("damaged"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("\"damaged\"")));
  // Nothing identifies these as its files any more.
  EXPECT_TRUE(std::filesystem::exists(Path("items/" + damaged.uid)));
  ASSERT_OK(store->RemoveRecord("damaged"));
  ASSERT_OK_AND_ASSIGN(const CatalogList after, store->List());
  EXPECT_THAT(after.damages, IsEmpty());
  EXPECT_THAT(after.records, ElementsAre(whole));
}

TEST_F(StoreTest, ModelsComeBackByNameAndVersion) {
  {
    const auto store = OpenStore();
    ASSERT_OK(store->Put(TestRecord()));
    ASSERT_OK(store->PutModel(TestModel("text", 256)));
    ASSERT_OK(store->PutModel(TestModel("text", 257)));
    ASSERT_OK(store->PutModel(TestModel("image", 1)));
    ASSERT_OK(store->RemoveModel({"text", 257}));
    ASSERT_OK(store->RemoveModel({"never", 1}));
  }
  const auto store = OpenStore();
  ASSERT_OK_AND_ASSIGN(const ModelList list, store->ListModels());
  EXPECT_THAT(list.records,
              ElementsAre(TestModel("image", 1), TestModel("text", 256)));
  EXPECT_THAT(list.last_versions,
              ElementsAre(Pair("image", 1), Pair("text", 257)));
  EXPECT_THAT(list.damages, IsEmpty());
  // The lists of models and of catalogs don't mix.
  ASSERT_OK_AND_ASSIGN(const CatalogList catalogs, store->List());
  EXPECT_THAT(catalogs.records, ElementsAre(TestRecord()));
}

// The bytes of models stay out of the metadata database.
TEST_F(StoreTest, EachVersionHasAFileOfItsOwn) {
  const auto store = OpenStore();
  ASSERT_OK(store->PutModel(TestModel("text", 1)));
  ASSERT_OK(store->PutModel(TestModel("text", 2)));
  EXPECT_THAT(ModelFileNames(), ElementsAre("text", "text/1", "text/2"));
  ASSERT_OK(store->RemoveModel({"text", 1}));
  EXPECT_THAT(ModelFileNames(), ElementsAre("text", "text/2"));
  ASSERT_OK(store->RemoveModel({"text", 2}));
  EXPECT_THAT(ModelFileNames(), IsEmpty());

  ModelRecord large = TestModel("large", 1);
  constexpr std::int64_t kCount = 1 << 18;
  std::get<BilinearForm>(large.model.kind).weight = {
      512, 512, std::vector<float>(kCount, 1)};
  ASSERT_OK(store->PutModel(large));
  std::uintmax_t bytes = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(Path("catalogs"))) {
    bytes += entry.file_size();
  }
  EXPECT_LT(bytes, kCount * sizeof(float) / 10);
}

// Names become paths.
TEST_F(StoreTest, NamesThatAreNoModelsWriteNothing) {
  const auto store = OpenStore();
  for (const char* name : {"", ".", "..", "../items", "a/b", "/a"}) {
    EXPECT_THAT(store->PutModel(TestModel(name, 1)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("name")))
        << name;
    EXPECT_OK(store->RemoveModel({name, 1}));
  }
  EXPECT_THAT(store->PutModel(TestModel("text", 0)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("version: got 0")));
  EXPECT_FALSE(std::filesystem::exists(Path("models")));
}

// Left by a crash before the record was written, or between removing a record
// and its file.
TEST_F(StoreTest, ModelFilesWithoutARecordGoAtTheNextOpen) {
  ASSERT_OK(OpenStore()->PutModel(TestModel("text", 2)));
  std::filesystem::create_directory(Path("models/image"));
  std::filesystem::create_directory(Path("models/empty"));
  for (const char* name : {"text/1", "text/3", "text/2.tmp", "text/4.tmp",
                           "image/1", "README", "text/02", "text/notes"}) {
    WriteFile(std::string("models/") + name, "a left-over");
  }
  const auto store = OpenStore();
  EXPECT_THAT(ModelFileNames(),
              ElementsAre("README", "text", "text/02", "text/2", "text/notes"));
  ASSERT_OK_AND_ASSIGN(const ModelList list, store->ListModels());
  EXPECT_THAT(list.records, ElementsAre(TestModel("text", 2)));
  EXPECT_THAT(list.last_versions, ElementsAre(Pair("text", 2)));
  EXPECT_THAT(list.damages, IsEmpty());
}

TEST_F(StoreTest, RecordsWithoutAModelFileAreDamages) {
  {
    const auto store = OpenStore();
    for (std::int64_t version = 1; version <= 4; ++version) {
      ASSERT_OK(store->PutModel(TestModel("text", version)));
    }
  }
  std::filesystem::remove(Path("models/text/1"));
  std::filesystem::copy_file(Path("models/text/4"), Path("models/text/2"),
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::remove(Path("models/text/3"));
  std::filesystem::create_directory(Path("models/text/3"));
  const auto store = OpenStore();
  ASSERT_OK_AND_ASSIGN(const ModelList list, store->ListModels());
  EXPECT_THAT(list.records, ElementsAre(TestModel("text", 4)));
  EXPECT_THAT(list.last_versions, ElementsAre(Pair("text", 4)));
  ASSERT_EQ(list.damages.size(), 3u);
  for (const auto& [version, why] :
       {std::pair(1, "/models/text/1 is missing"),
        std::pair(2, "it is that of \"text\" version 4"),
        std::pair(3, "can't read")}) {
    EXPECT_THAT(list.damages.at({"text", version}),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("of model \"text\" is damaged"),
                               HasSubstr(why))));
  }
  ASSERT_OK(store->RemoveModel({"text", 1}));
  ASSERT_OK_AND_ASSIGN(const ModelList after, store->ListModels());
  EXPECT_EQ(after.damages.size(), 2u);
}

// The same holds for anything else in its place: the catalogs don't need it.
TEST_F(StoreTest, AFileInPlaceOfTheModelsKeepsNothingFromOpening) {
  {
    const auto store = OpenStore();
    ASSERT_OK(store->Put(TestRecord()));
    ASSERT_OK(store->PutModel(TestModel("text", 1)));
  }
  std::filesystem::remove_all(Path("models"));
  WriteFile("models", "");
  const auto store = OpenStore();
  ASSERT_OK_AND_ASSIGN(const CatalogList catalogs, store->List());
  EXPECT_THAT(catalogs.records, ElementsAre(TestRecord()));
  ASSERT_OK_AND_ASSIGN(const ModelList list, store->ListModels());
  EXPECT_THAT(list.damages.at({"text", 1}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("can't open")));
}

// Stands in for a disk that fills up halfway through the file.
TEST_F(StoreTest, AModelThatCanNotBeWrittenLeavesNothingBehind) {
  {
    const auto store = OpenStore();
    const auto previous = signal(SIGXFSZ, SIG_IGN);
    rlimit limit;
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const rlimit little = {10, limit.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
    const absl::Status status = store->PutModel(TestModel("text", 1));
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, previous);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                                 HasSubstr("can't write")));
    EXPECT_THAT(ModelFileNames(), IsEmpty());
    ASSERT_OK_AND_ASSIGN(const ModelList list, store->ListModels());
    EXPECT_THAT(list.last_versions, IsEmpty());
    ASSERT_OK(store->PutModel(TestModel("text", 2)));
  }
  const auto store = OpenStore();
  ASSERT_OK_AND_ASSIGN(const ModelList list, store->ListModels());
  EXPECT_THAT(list.records, ElementsAre(TestModel("text", 2)));
}

// RocksDB removes logs that are in tables in any order, so a crash may leave
// one that the next log does not continue.
TEST_F(StoreTest, ALogThatIsInTablesIsNotMissed) {
  const std::filesystem::path items = Path("items/" + TestRecord().uid);
  const std::string saved = directory_ / "saved.log";
  std::filesystem::path log;
  for (int i = 0; i < 3; ++i) {
    const auto store = OpenStore();
    if (i == 0) {
      ASSERT_OK(store->Put(TestRecord()));
    }
    ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(TestRecord()));
    ASSERT_OK(WriteItems(*catalog, 10 * i, 10 * i + 10, i + 1));
    if (i > 0) continue;
    for (const auto& entry : std::filesystem::directory_iterator(items)) {
      if (entry.path().extension() == ".log") log = entry.path();
    }
    std::filesystem::copy_file(log, saved);
  }
  ASSERT_FALSE(std::filesystem::exists(log));
  std::filesystem::copy_file(saved, log);
  const auto store = OpenStore();
  ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(TestRecord()));
  ASSERT_OK_AND_ASSIGN(const auto found, ScanAll(*catalog));
  EXPECT_EQ(found.size(), 30u);
}

// Whoever removes the mark accepts that the last entries of the list may be
// missing: a model's record, or a catalog's record of which only the note that
// it was begun is left.
TEST_F(StoreTest, WithoutAMarkNothingIsTakenForALeftOver) {
  const CatalogRecord begun = TestRecord();
  {
    const auto store = OpenStore();
    ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(begun));
    ASSERT_OK(WriteItems(*catalog, 0, 50, 1));
  }
  std::filesystem::create_directories(Path("models/text"));
  WriteFile("models/text/1", "a model");
  std::filesystem::remove(Path("catalogs/ACKNOWLEDGED"));
  for (int i = 0; i < 2; ++i) {
    const auto store = OpenStore();
    EXPECT_THAT(store->left_overs().message(), HasSubstr(begun.uid));
    EXPECT_TRUE(std::filesystem::exists(Path("items/" + begun.uid)));
    EXPECT_EQ(std::filesystem::exists(Path("models/text/1")), i == 0);
  }
}

// A record that may have reached the log keeps its file; a refused record does
// not.
TEST_F(StoreTest, AModelIsLeftOnlyIfItsRecordMayBeFound) {
  {
    const auto store = OpenStore();
    // Makes the log longer than a model's file.
    for (std::int64_t version = 1; version <= 8; ++version) {
      ASSERT_OK(store->PutModel(TestModel("old", version)));
    }
    const auto previous = signal(SIGXFSZ, SIG_IGN);
    rlimit limit;
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const rlimit little = {200, limit.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
    const absl::Status begun = store->PutModel(TestModel("text", 1));
    const absl::Status refused = store->PutModel(TestModel("text", 2));
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, previous);
    for (const absl::Status& status : {begun, refused}) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                                   HasSubstr("File too large")));
      EXPECT_EQ(ReasonOf(status), kFileTooLarge);
    }
    EXPECT_TRUE(std::filesystem::exists(Path("models/text/1")));
    EXPECT_FALSE(std::filesystem::exists(Path("models/text/2")));
    ASSERT_OK(store->PutModel(TestModel("text", 3)));
  }
  const auto store = OpenStore();
  EXPECT_FALSE(std::filesystem::exists(Path("models/text/1")));
  ASSERT_OK_AND_ASSIGN(const ModelList list, store->ListModels());
  EXPECT_EQ(list.records.size(), 9u);
  EXPECT_THAT(list.damages, IsEmpty());
}

TEST_F(StoreTest, ModelsWithoutAFormatAreDamage) {
  ASSERT_OK(OpenStore()->PutModel(TestModel("text", 1)));
  std::filesystem::remove(Path("FORMAT"));
  EXPECT_THAT(Store::Open(directory_ / "data"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("FORMAT")));
}

TEST_F(StoreTest, CatalogIsOpenOnceAtATime) {
  const auto store = OpenStore();
  ASSERT_OK_AND_ASSIGN(auto catalog, store->OpenCatalog(TestRecord()));
  EXPECT_THAT(store->OpenCatalog(TestRecord()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("open already")));
  catalog.reset();
  EXPECT_OK(store->OpenCatalog(TestRecord()));
}

TEST_F(StoreTest, AnotherProcessHoldsTheDirectory) {
  Subprocess holder({STORE_CHILD, "hold", directory_ / "data"});
  ASSERT_THAT(holder.ReadLine(), Optional(std::string("open")));
  const auto store = Store::Open(directory_ / "data");
  EXPECT_THAT(
      store,
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("another process"), HasSubstr(Path("LOCK")),
                     HasSubstr("pid " + std::to_string(holder.pid())))));
  EXPECT_THAT(ReasonOf(store.status()),
              Optional(std::string("DATA_DIRECTORY_IN_USE")));
  // The lock of a dead process does not count.
  holder.Kill();
  EXPECT_OK(Store::Open(directory_ / "data"));
}

TEST_F(StoreTest, NewerFormatIsRefused) {
  OpenStore();
  WriteFile("FORMAT", "2\n");
  EXPECT_THAT(Store::Open(directory_ / "data"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("version 2"), HasSubstr("up to 1"),
                             HasSubstr("start the newer program"))));
  // Nothing was changed, so the right program still opens it.
  WriteFile("FORMAT", "1\n");
  OpenStore();
}

TEST_F(StoreTest, PathThatCannotBeADirectoryIsRefused) {
  std::ofstream(directory_ / "file") << "text";
  EXPECT_THAT(Store::Open(directory_ / "file/data"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr(directory_ / "file/data")));
  EXPECT_THAT(Store::Open(""), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("directory")));
}

TEST_F(StoreTest, UnwritableDirectoryIsRefused) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  std::filesystem::permissions(
      directory_.path(),
      std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  const absl::Status status = Store::Open(directory_ / "data").status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr(directory_ / "data")));
  EXPECT_EQ(ReasonOf(status), kFilesNotAccessible);
  std::filesystem::permissions(directory_.path(),
                               std::filesystem::perms::owner_all);
}

// Killed repeatedly in the middle of a stream of writes: acknowledged writes
// are there, in order and without gaps, and at most one further write.
TEST_F(StoreTest, AcknowledgedWritesSurviveKill) {
  std::int64_t acknowledged = 0;
  for (int round = 0; round < 5; ++round) {
    {
      Subprocess writer({STORE_CHILD, "write", directory_ / "data"});
      for (int i = 0; i < 40 + 13 * round; ++i) {
        const auto line = writer.ReadLine();
        ASSERT_TRUE(line.has_value());
        ASSERT_EQ(*line, std::to_string(acknowledged));
        ++acknowledged;
      }
      writer.Kill();
      // Acknowledged before the kill, but not read yet.
      while (const auto line = writer.ReadLine()) ++acknowledged;
    }
    const auto store = OpenStore();
    ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(TestRecord()));
    ASSERT_OK_AND_ASSIGN(const auto items, ScanAll(*catalog));
    const auto count = static_cast<std::int64_t>(items.size());
    EXPECT_GE(count, acknowledged);
    EXPECT_LE(count, acknowledged + 1);
    for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(items[i], TestItem(i));
    // A write's parts are there together.
    EXPECT_EQ(catalog->sequence(), count);
    ASSERT_OK_AND_ASSIGN(const auto last,
                         catalog->FindRequest(TestId(count - 1)));
    ASSERT_TRUE(last.has_value());
    EXPECT_EQ(last->sequence, count);
    ASSERT_OK_AND_ASSIGN(const auto next, catalog->FindRequest(TestId(count)));
    EXPECT_EQ(next, std::nullopt);
    acknowledged = count;
  }
}

// While it lives, lowers the number of files that this process may have open.
class OpenFilesLimit {
 public:
  OpenFilesLimit() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int free = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(free);
    first_free_ = static_cast<rlim_t>(free);
  }
  ~OpenFilesLimit() { setrlimit(RLIMIT_NOFILE, &before_); }

  // Allows at most `count` files more than are open now.
  void Allow(int count) {
    rlimit limit = before_;
    limit.rlim_cur = first_free_ + static_cast<rlim_t>(count);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }

 private:
  rlimit before_;
  rlim_t first_free_ = 0;
};

// Whichever file exceeds the limit, the stored data is not taken for damaged.
TEST_F(StoreTest, TooManyOpenFilesAreReportedAsSuch) {
  {
    const auto store = OpenStore();
    ASSERT_OK(store->Put(TestRecord()));
    ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(TestRecord()));
    ASSERT_OK(WriteItems(*catalog, 0, 50, 1));
  }
  // The first open writes the log to a table, so that the others find one. The
  // second does what the others do, but with enough files: a sanitizer opens
  // some to inspect types that it sees for the first time.
  OpenStore()->OpenCatalog(TestRecord()).IgnoreError();
  OpenStore()->OpenCatalog(TestRecord()).IgnoreError();
  std::vector<absl::Status> refused;
  for (int allowed = 0; allowed < 100; ++allowed) {
    OpenFilesLimit limit;
    limit.Allow(allowed);
    const auto store = Store::Open(directory_ / "data");
    absl::Status status = store.status();
    if (store.ok()) status = (*store)->OpenCatalog(TestRecord()).status();
    if (status.ok()) break;
    refused.push_back(status);
  }
  // Checked only now, because a sanitizer's checks open files too.
  for (const absl::Status& status : refused) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                                 HasSubstr("raise the limit on open files")));
    EXPECT_THAT(ReasonOf(status), Optional(std::string("TOO_MANY_OPEN_FILES")));
  }
  EXPECT_LT(refused.size(), 100u);
  EXPECT_GT(refused.size(), 5u);
  const auto store = OpenStore();
  ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(TestRecord()));
  ASSERT_OK_AND_ASSIGN(const auto items, ScanAll(*catalog));
  EXPECT_EQ(items.size(), 50u);
}

TEST_F(StoreTest, FilesOfAnotherCatalogAreNotServed) {
  const CatalogRecord shop = TestRecord();
  const CatalogRecord other = TestRecord("other", "00000000000000aa");
  {
    const auto store = OpenStore();
    for (const CatalogRecord& record : {shop, other}) {
      ASSERT_OK(store->Put(record));
      ASSERT_OK_AND_ASSIGN(const auto catalog, store->OpenCatalog(record));
      // The empty database also belongs to a catalog.
      if (record == shop) {
        ASSERT_OK(WriteItems(*catalog, 0, 1, 1));
      }
    }
  }
  std::filesystem::rename(Path("items/" + shop.uid), Path("swapped"));
  std::filesystem::rename(Path("items/" + other.uid),
                          Path("items/" + shop.uid));
  std::filesystem::rename(Path("swapped"), Path("items/" + other.uid));
  const auto store = OpenStore();
  for (const CatalogRecord& record : {shop, other}) {
    EXPECT_THAT(store->OpenCatalog(record),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("\"" + record.name + "\""),
                               HasSubstr(shop.uid), HasSubstr(other.uid))));
  }
}

TEST_F(StoreTest, FullDiskRefusesWritesUntilItHasSpaceAgain) {
  Subprocess child({STORE_CHILD, "fill", directory_.path()});
  std::string output;
  while (const auto line = child.ReadLine()) output += *line + "\n";
  const int status = child.Wait();
  if (status == 77) GTEST_SKIP() << "may not mount a file system of its own";
  EXPECT_EQ(status, 0) << output;
  EXPECT_THAT(output, HasSubstr("restarted\nrecovered\ncomplete\n"));
}

}  // namespace
}  // namespace attendant
