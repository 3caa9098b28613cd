// Damages every file of a data directory at places spread over its length:
// flips a bit, inverts a byte, zeroes a sector, cuts off the end; and replaces
// it with another file, an older one or one of another catalog. Each time a
// separate process opens a server's worth of catalogs: the damage is reported,
// or nothing is missing or wrong; it never crashes. Catalogs whose files were
// not hit are intact.
//
//   damage_sweep_test --places=64                 the long forms
//   damage_sweep_test --flips=10000 --seed=1
//
// Sanitizers make opening five times slower and run half of the short form.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/interrupt.h"
#include "core/base/long_work.h"
#include "core/base/status.h"
#include "core/catalog/live/catalog_set.h"
#include "core/catalog/query/attend.h"
#include "tests/durability/flags.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"
#include "tests/support/stored_items.h"

namespace attendant {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kPlaces = kSanitized ? 2 : 4;
constexpr std::int64_t kFlips = kSanitized ? 5 : 20;
// Most files begin with a header that identifies them.
constexpr std::size_t kHeadBytes = 64;
constexpr std::size_t kSectorBytes = 512;
// Exit statuses of a child, the worse the greater.
constexpr int kWhole = 10;
constexpr int kReported = 11;
constexpr int kWrong = 12;

const std::vector<std::string>& Names() {
  static const auto* const names = new std::vector<std::string>{"one", "two"};
  return *names;
}

CatalogSchema SchemaOf() {
  CatalogSchema schema;
  KeyFieldSchema field;
  field.name = "key";
  field.dim = 8;
  field.index_kind = IndexKind::kIvf;
  schema.key_fields = {field};
  schema.attributes = {{"title", AttributeType::kString}};
  return schema;
}

// Returns item i of a catalog.
Item ItemOf(const std::string& name, int i) {
  Item item;
  item.id = absl::StrCat("item", 1000 + i);
  std::vector<float> key;
  for (int d = 0; d < 8; ++d) {
    key.push_back(static_cast<float>((i * 7 + d * 3) % 11 - 5) + 0.25f);
  }
  item.keys.push_back(std::move(key));
  // Long, so that logs and tables have several blocks.
  item.attributes.emplace_back(
      0, absl::StrCat(name, " title of ", i, std::string(1500, 'x')));
  return item;
}

constexpr int kItems = 120;
// A restart writes these items to a table; the others stay in the log.
constexpr int kTableItems = 60;
// kDeleted items are deleted once the segments have files; the last kLate items
// are written then.
constexpr int kDeleted = 5;
constexpr int kLate = 10;
constexpr char kSnapshot[] = "snapshot";

std::vector<Item> ItemsOf(const std::string& name) {
  std::vector<Item> items;
  for (int i = kDeleted; i < kItems; ++i) items.push_back(ItemOf(name, i));
  return items;
}

AttentionModel ModelOf() { return {BilinearForm{{1, 2, {2, 1}}}}; }

absl::StatusOr<std::unique_ptr<CatalogSet>> OpenSet(
    const std::string& directory) {
  return CatalogSet::Open(directory, {});
}

absl::Status WriteSome(CatalogSet& set, int begin, int end) {
  for (const std::string& name : Names()) {
    ATTENDANT_ASSIGN_OR_RETURN(const auto catalog, set.Get(name));
    for (int i = begin; i < end; i += 10) {
      std::vector<Item> items;
      for (int j = i; j < i + 10; ++j) items.push_back(ItemOf(name, j));
      ATTENDANT_RETURN_IF_ERROR(
          catalog->Upsert(items, absl::StrCat("upsert", i)).status());
    }
  }
  return absl::OkStatus();
}

absl::Status SaveSegments(CatalogSet& set) {
  for (const std::string& name : Names()) {
    ATTENDANT_ASSIGN_OR_RETURN(const auto catalog, set.Get(name));
    catalog->AwaitIndexes();
    ATTENDANT_RETURN_IF_ERROR(catalog->merge_status());
    ATTENDANT_RETURN_IF_ERROR(catalog->save_status());
  }
  return absl::OkStatus();
}

// `older` receives a copy of the state when half was written.
absl::Status MakeGolden(const std::string& directory,
                        const std::string& older) {
  LongWork work;
  {
    ATTENDANT_ASSIGN_OR_RETURN(const auto set, OpenSet(directory));
    for (const std::string& name : Names()) {
      ATTENDANT_RETURN_IF_ERROR(set->Create(name, SchemaOf(), {}).status());
    }
    ATTENDANT_RETURN_IF_ERROR(WriteSome(*set, 0, kTableItems));
    ATTENDANT_RETURN_IF_ERROR(SaveSegments(*set));
    ATTENDANT_RETURN_IF_ERROR(
        set->SetAlias("alias", Names()[1], std::nullopt).status());
  }
  fs::copy(directory, older, fs::copy_options::recursive);
  ATTENDANT_ASSIGN_OR_RETURN(const auto set, OpenSet(directory));
  ATTENDANT_RETURN_IF_ERROR(
      set->models().Create("model", ModelOf(), {}).status());
  ATTENDANT_RETURN_IF_ERROR(WriteSome(*set, kTableItems, kItems - kLate));
  ATTENDANT_RETURN_IF_ERROR(SaveSegments(*set));
  ATTENDANT_RETURN_IF_ERROR(WriteSome(*set, kItems - kLate, kItems));
  ATTENDANT_RETURN_IF_ERROR(
      set->SetAlias("alias", Names()[0], std::nullopt).status());
  std::vector<std::string> deleted;
  for (int i = 0; i < kDeleted; ++i) deleted.push_back(ItemOf("", i).id);
  for (const std::string& name : Names()) {
    ATTENDANT_ASSIGN_OR_RETURN(const auto catalog, set->Get(name));
    ATTENDANT_RETURN_IF_ERROR(catalog->Delete(deleted, "delete").status());
    ATTENDANT_RETURN_IF_ERROR(
        set->CreateSnapshot(name, kSnapshot, work).status());
    // One more write, for the log, which is empty now.
    const std::vector<Item> late = {ItemOf(name, kItems - 2),
                                    ItemOf(name, kItems - 1)};
    ATTENDANT_RETURN_IF_ERROR(catalog->Upsert(late, "").status());
  }
  return absl::OkStatus();
}

// Inspects the directory in a child: returns an exit status and prints the
// reason on standard error.
class Inspection {
 public:
  // `hit` is the damaged file's path below the data directory; `neighbours` are
  // the catalogs that it does not belong to.
  Inspection(std::string directory, std::string hit,
             std::vector<std::string> neighbours)
      : directory_(std::move(directory)),
        hit_(std::move(hit)),
        neighbours_(std::move(neighbours)) {}

  int Run() {
    const auto set = OpenSet(directory_);
    if (!set.ok()) return Report(set.status());
    for (const std::string& name : Names()) {
      const auto catalog = (*set)->Get(name);
      const absl::Status status =
          catalog.ok() ? Check(name, **catalog) : catalog.status();
      if (status.ok()) continue;
      if (std::ranges::count(neighbours_, name) > 0) {
        Say(absl::StrCat("its neighbour ", name, ": ", status.ToString()));
        return kWrong;
      }
      Report(status);
    }
    for (const std::string& name : Names()) {
      const absl::Status snapshot = CheckSnapshot(**set, name);
      if (!snapshot.ok()) Report(snapshot);
    }
    const auto alias = (*set)->GetAlias("alias");
    if (!alias.ok()) {
      Report(alias.status());
    } else if (alias->catalog != Names()[0]) {
      Say(absl::StrCat("the alias names ", alias->catalog));
      return kWrong;
    }
    const auto model = (*set)->models().Get("model", std::nullopt);
    if (!model.ok()) {
      Report(model.status());
    } else if (!((*model)->model == ModelOf())) {
      Say("the model is another");
      return kWrong;
    }
    return result_;
  }

 private:
  static void Say(const std::string& what) {
    fprintf(stderr, "%s\n", what.c_str());
  }

  // Damage must be reported as such, with its place. A damaged FORMAT may look
  // like a newer program's. What is wrong stays so, whatever is reported later.
  int Report(const absl::Status& status) {
    const bool is_damage =
        absl::IsDataLoss(status) ||
        (absl::IsFailedPrecondition(status) && hit_ == "FORMAT");
    const bool is_reported = is_damage && !status.message().empty();
    if (!is_reported) Say(status.ToString());
    return result_ = std::max(result_, is_reported ? kReported : kWrong);
  }

  // Passes if the snapshot is refused or restores its original contents.
  absl::Status CheckSnapshot(CatalogSet& set, const std::string& name) {
    LongWork work;
    ATTENDANT_ASSIGN_OR_RETURN(
        const auto restored,
        set.RestoreSnapshot({name, kSnapshot}, "restored-" + name, work));
    return Check(name, *restored);
  }

  // Returns Internal if an answer is wrong.
  absl::Status Check(const std::string& name, const LiveCatalog& catalog) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::vector<StoredItem> stored,
                               StoredItems(catalog, "", 2 * kItems));
    const std::vector<Item> listed(stored.begin(), stored.end());
    const std::vector<Item> want = ItemsOf(name);
    if (listed != want) {
      return absl::InternalError(
          absl::StrCat("lists ", listed.size(), " items"));
    }
    const auto snapshot = catalog.snapshot();
    if (snapshot->item_count() != static_cast<std::int64_t>(want.size())) {
      return absl::InternalError("counts other items");
    }
    for (const Item& item : want) {
      const auto address = snapshot->Find(item.id);
      if (!address || ItemAt(*snapshot, *address) != item) {
        return absl::InternalError(absl::StrCat("the row of ", item.id));
      }
    }
    // Queries through the index, if there is one, and over every key.
    for (const ScanMode mode : {ScanMode::kAuto, ScanMode::kExact}) {
      ATTENDANT_RETURN_IF_ERROR(CheckQuery(*snapshot, want, mode));
    }
    return absl::OkStatus();
  }

  static absl::Status CheckQuery(const Snapshot& snapshot,
                                 const std::vector<Item>& items,
                                 ScanMode mode) {
    AttendQuery query;
    const std::vector<float> vector = {1, -2, 3, 1, 0, 2, -1, 1};
    query.query = vector;
    query.scan_mode = mode;
    if (mode == ScanMode::kAuto) query.recall = 1;
    query.result_count = 10;
    ATTENDANT_ASSIGN_OR_RETURN(const AttendAnswer answer,
                               Attend(snapshot, query, Interrupt()));
    // Keys are multiples of 1/4, so this is exact.
    std::vector<std::pair<float, std::string>> want;
    for (const Item& item : items) {
      want.emplace_back(-std::inner_product(vector.begin(), vector.end(),
                                            item.keys[0].begin(), 0.0F),
                        item.id);
    }
    std::ranges::sort(want);
    want.resize(10);
    std::vector<std::pair<float, std::string>> found;
    for (const AttendedItem& item : answer.items) {
      found.emplace_back(-item.logit,
                         snapshot.IdOf(item.address.segment, item.address.row));
    }
    return found == want ? absl::OkStatus()
                         : absl::InternalError("a query finds other items");
  }

  const std::string directory_;
  const std::string hit_;
  const std::vector<std::string> neighbours_;
  int result_ = kWhole;
};

// Runs `run` in a child process. A fork does not copy RocksDB's threads, so
// this process must never have opened a database.
int RunInChild(const std::function<int()>& run) {
  const pid_t pid = fork();
  if (pid == 0) _exit(run());
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string ReadBytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteBytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

struct Damage {
  std::string what;
  std::string bytes;
};

Damage FlipOf(const std::string& bytes, std::size_t at, std::uint64_t bit) {
  std::string damaged = bytes;
  damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
  return {absl::StrCat("bit ", bit, " of byte ", at), std::move(damaged)};
}

// Returns the damages to try at one place of a file.
std::vector<Damage> DamagesAt(const std::string& bytes, std::size_t at) {
  std::vector<Damage> damages;
  for (const int mask : {0x04, 0xff}) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ mask);
    damages.push_back({absl::StrCat("byte ", at, " ^ ", mask), damaged});
  }
  damages.push_back({absl::StrCat("cut off at ", at), bytes.substr(0, at)});
  std::string zeroed = bytes;
  const auto begin = zeroed.begin() + static_cast<std::ptrdiff_t>(
                                          at / kSectorBytes * kSectorBytes);
  std::fill(
      begin,
      begin + std::min<std::ptrdiff_t>(kSectorBytes, zeroed.end() - begin),
      '\0');
  if (zeroed != bytes) {
    damages.push_back({absl::StrCat("zeros about ", at), zeroed});
  }
  return damages;
}

// Returns the file's name without numbers, which identifies its kind.
std::string KindOf(const fs::path& file) {
  std::string kind = file.filename().string();
  std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
  const std::string folder = file.begin()->string();
  return absl::StrCat(folder == file ? "" : folder + "/",
                      kind.empty() ? "N" : kind);
}

class DamageSweepTest : public ::testing::Test {
 protected:
  struct File {
    fs::path path;  // below the data directory
    std::string bytes;
    std::vector<std::string> neighbours;  // catalogs that it is none of
  };
  struct Counts {
    int reported = 0;
    int whole = 0;
  };

  DamageSweepTest()
      : golden_(scratch_ / "golden"),
        older_(scratch_ / "older"),
        copy_(scratch_ / "copy") {}

  void SetUp() override {
    ASSERT_EQ(RunInChild([this] {
                const absl::Status status = MakeGolden(golden_, older_);
                if (!status.ok()) {
                  fprintf(stderr, "%s\n", status.ToString().c_str());
                }
                return status.ok() ? kWhole : kWrong;
              }),
              kWhole);
    fs::copy(golden_, copy_, fs::copy_options::recursive);
  }

  void TearDown() override {
    for (const auto& [kind, count] : counts_) {
      printf("%-28s %4d reported, %4d harmless\n", kind.c_str(), count.reported,
             count.whole);
    }
  }

  // Returns all non-empty files except the lock, whose pid is only informative.
  std::vector<File> Files() {
    std::vector<File> files;
    for (const auto& entry : fs::recursive_directory_iterator(golden_)) {
      if (!entry.is_regular_file() || entry.file_size() == 0) continue;
      const fs::path path = fs::relative(entry.path(), golden_);
      if (path.filename() == "LOCK") continue;
      files.push_back({path, ReadBytes(entry.path()), NeighboursOf(path)});
    }
    std::ranges::sort(
        files, [](const File& a, const File& b) { return a.path < b.path; });
    return files;
  }

  // Opening writes to the directory, so each case starts from a fresh copy.
  void Restore() {
    fs::remove_all(copy_);
    fs::copy(golden_, copy_, fs::copy_options::recursive);
  }

  // Returns the catalogs that the file does not belong to. The titles in the
  // files tell which uid belongs to which catalog.
  std::vector<std::string> NeighboursOf(const fs::path& file) {
    std::vector<std::string> neighbours;
    // Segment files can be rebuilt.
    if (*file.begin() == "models" || *file.begin() == "snapshots" ||
        *file.begin() == "segments") {
      return Names();
    }
    if (*file.begin() != "items") return neighbours;
    const fs::path directory = golden_ / file.parent_path();
    std::string bytes;
    for (const auto& entry : fs::directory_iterator(directory)) {
      bytes += ReadBytes(entry.path());
    }
    for (const std::string& name : Names()) {
      if (!absl::StrContains(bytes, name + " title")) {
        neighbours.push_back(name);
      }
    }
    return neighbours;
  }

  void ExpectNothingWrong(const File& file, const Damage& damage) {
    Restore();
    WriteBytes(copy_ / file.path, damage.bytes);
    const int status = RunInChild([&] {
      return Inspection(copy_, file.path.string(), file.neighbours).Run();
    });
    EXPECT_TRUE(status == kWhole || status == kReported)
        << file.path << ", " << damage.what << ": " << status;
    Count(KindOf(file.path), status);
  }

  void Count(const std::string& kind, int status) {
    ++(status == kWhole ? counts_[kind].whole : counts_[kind].reported);
  }

  // Puts the contents of `path` in directory `from` in the place of `target`.
  void ExpectNothingWrong(const fs::path& from, const fs::path& target) {
    Restore();
    fs::remove_all(copy_ / target);
    fs::copy(from, copy_ / target, fs::copy_options::recursive);
    const int status =
        RunInChild([&] { return Inspection(copy_, target, {}).Run(); });
    EXPECT_TRUE(status == kWhole || status == kReported)
        << from << " in place of " << target << ": " << status;
    Count("in the place of another", status);
  }

  // Deletes an item of the catalog in the copy.
  int DeleteOne(const std::string& name) {
    const auto set = OpenSet(copy_);
    if (!set.ok()) return kWrong;
    const auto catalog = (*set)->Get(name);
    if (!catalog.ok()) return kWrong;
    const std::vector<std::string> ids = {ItemOf(name, kDeleted).id};
    return (*catalog)->Delete(ids, "").ok() ? kWhole : kWrong;
  }

  // Inverts a byte of each file of the snapshots in the copy; returns their
  // number.
  int DamageSnapshots() {
    int count = 0;
    for (const auto& entry :
         fs::recursive_directory_iterator(copy_ / "snapshots")) {
      if (!entry.is_regular_file() || entry.file_size() == 0) continue;
      std::string bytes = ReadBytes(entry.path());
      char& middle = bytes[bytes.size() / 2];
      middle = static_cast<char>(~middle);
      WriteBytes(entry.path(), bytes);
      ++count;
    }
    return count;
  }

  // Returns the corresponding path in the other catalog's directory, or an
  // empty path if there is none.
  fs::path TwinOf(const fs::path& path) const {
    auto at = path.begin();
    const fs::path kind = *at;
    if (kind != "items" && kind != "segments" && kind != "snapshots") return "";
    if (++at == path.end()) return "";
    const fs::path owner = *at;
    for (const auto& entry : fs::directory_iterator(golden_ / kind)) {
      if (entry.path().filename() == owner) continue;
      fs::path twin = kind / entry.path().filename();
      for (++at; at != path.end(); ++at) twin /= *at;
      return twin;
    }
    return "";
  }

  ScratchDirectory scratch_;
  const fs::path golden_;
  const fs::path older_;
  const fs::path copy_;
  std::map<std::string, Counts> counts_;  // by kind of file
};

TEST_F(DamageSweepTest, DamageIsReportedOrHarmless) {
  const auto places = static_cast<std::size_t>(Flag("places", kPlaces));
  const bool is_long = places > kPlaces;
  std::size_t turn = 0;
  std::size_t file_count = 0;
  for (const File& file : Files()) {
    ++file_count;
    const std::size_t size = file.bytes.size();
    for (std::size_t place = 0; place < places; ++place) {
      const std::size_t at = size * place / places;
      if (place > 0 && at == size * (place - 1) / places) continue;
      std::vector<Damage> damages = DamagesAt(file.bytes, at);
      if (!is_long) {
        // One kind of damage per place, in turn; under a sanitizer, only at
        // every third place.
        if (kSanitized && (file_count + place) % 3 != 0) continue;
        damages = {damages[turn++ % damages.size()]};
      }
      for (const Damage& damage : damages) ExpectNothingWrong(file, damage);
    }
  }
}

// Flips random bits; the long form also flips one in each byte of the header of
// each kind of file.
TEST_F(DamageSweepTest, AFlippedBitIsReportedOrHarmless) {
  const std::int64_t flips = Flag("flips", kFlips);
  const std::int64_t seed = Flag("seed", 1);
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  const std::vector<File> files = Files();
  const auto flip = [&](const File& file, std::size_t at) {
    ExpectNothingWrong(file, FlipOf(file.bytes, at, random() % 8));
  };
  for (std::int64_t i = 0; i < flips; ++i) {
    const File& file = files[random() % files.size()];
    flip(file, random() % file.bytes.size());
  }
  if (flips <= kFlips) return;
  std::set<std::string> kinds;
  for (const File& file : files) {
    if (!kinds.insert(KindOf(file.path)).second) continue;
    const std::size_t head = std::min(kHeadBytes, file.bytes.size());
    for (std::size_t at = 0; at < head; ++at) flip(file, at);
  }
}

// Uses files and directories from halfway through the history, and of the other
// catalog.
TEST_F(DamageSweepTest, AnotherFileInItsPlaceIsReportedOrHarmless) {
  int turn = 0;
  for (const auto& entry : fs::recursive_directory_iterator(golden_)) {
    const fs::path path = fs::relative(entry.path(), golden_);
    if (path.filename() == "LOCK") continue;
    if (kSanitized && turn++ % 3 != 0) continue;
    // A catalog's complete older database is still a valid database.
    const bool is_database =
        entry.is_directory() &&
        (*path.begin() == "items" || *path.begin() == "catalogs");
    if (fs::exists(older_ / path) && !is_database) {
      ExpectNothingWrong(older_ / path, path);
    }
    const fs::path twin = TwinOf(path);
    if (!twin.empty() && fs::exists(golden_ / twin)) {
      ExpectNothingWrong(golden_ / twin, path);
    }
  }
  const Counts& count = counts_["in the place of another"];
  EXPECT_GT(count.reported, 5);
  EXPECT_GT(count.whole, 5);
}

// A catalog that lacks an item is checked before snapshots that are damaged.
TEST_F(DamageSweepTest, WhatIsReportedDoesNotHideWhatIsWrong) {
  for (const bool is_wrong : {false, true}) {
    for (const bool is_reported : {false, true}) {
      Restore();
      if (is_wrong) {
        ASSERT_EQ(RunInChild([&] { return DeleteOne(Names()[0]); }), kWhole);
      }
      if (is_reported) {
        ASSERT_GT(DamageSnapshots(), 0);
      }
      const int want = is_wrong ? kWrong : is_reported ? kReported : kWhole;
      EXPECT_EQ(RunInChild([&] { return Inspection(copy_, "", {}).Run(); }),
                want)
          << is_wrong << ", " << is_reported;
    }
  }
}

TEST_F(DamageSweepTest, WithoutDamageAllIsWhole) {
  EXPECT_EQ(RunInChild([&] { return Inspection(copy_, "", Names()).Run(); }),
            kWhole);
}

}  // namespace
}  // namespace attendant
