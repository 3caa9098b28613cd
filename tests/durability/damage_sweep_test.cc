// Every file of a data directory, damaged at places spread over its length: a
// bit flipped, a byte turned around, a sector zeroed, the end cut off. Each
// time a server's worth of catalogs is opened in a process of its own: what was
// hit is reported, or nothing is missing and nothing is wrong; never a crash.
// Catalogs whose files were not hit are whole.
//
//   damage_sweep_test --places=64     the long form
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
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/long_work.h"
#include "core/base/status.h"
#include "core/catalog/catalog_set.h"
#include "tests/durability/flags.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kPlaces = 2;
constexpr std::size_t kSectorBytes = 512;
// What a child says by its exit status.
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
  schema.key_fields = {field};
  schema.attributes = {{"title", AttributeType::kString}};
  return schema;
}

// Item i of a catalog.
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
// Of these a restart makes a table; the others stay in the log.
constexpr int kTableItems = 60;
constexpr int kDeleted = 5;
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

absl::Status MakeGolden(const std::string& directory) {
  {
    ATTENDANT_ASSIGN_OR_RETURN(const auto set, OpenSet(directory));
    for (const std::string& name : Names()) {
      ATTENDANT_RETURN_IF_ERROR(set->Create(name, SchemaOf(), {}).status());
    }
    ATTENDANT_RETURN_IF_ERROR(WriteSome(*set, 0, kTableItems));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const auto set, OpenSet(directory));
  ATTENDANT_RETURN_IF_ERROR(
      set->models().Create("model", ModelOf(), {}).status());
  ATTENDANT_RETURN_IF_ERROR(WriteSome(*set, kTableItems, kItems));
  ATTENDANT_RETURN_IF_ERROR(
      set->SetAlias("alias", Names()[0], std::nullopt).status());
  std::vector<std::string> deleted;
  for (int i = 0; i < kDeleted; ++i) deleted.push_back(ItemOf("", i).id);
  for (const std::string& name : Names()) {
    ATTENDANT_ASSIGN_OR_RETURN(const auto catalog, set->Get(name));
    ATTENDANT_RETURN_IF_ERROR(catalog->Delete(deleted, "delete").status());
  }
  LongWork work;
  return set->CreateSnapshot(Names()[0], kSnapshot, work).status();
}

// What a child finds: an exit status, and why on standard error.
class Inspection {
 public:
  // `hit` is the file's path below the data directory; `neighbours` are the
  // catalogs that it is none of.
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
      if (std::count(neighbours_.begin(), neighbours_.end(), name) > 0) {
        Say(absl::StrCat("its neighbour ", name, ": ", status.ToString()));
        return kWrong;
      }
      Report(status);
    }
    const absl::Status snapshot = CheckSnapshot(**set);
    if (!snapshot.ok()) Report(snapshot);
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

  // Damage must be called so, and say where. FORMAT may look like that of a
  // newer program.
  int Report(const absl::Status& status) {
    const bool is_damage =
        absl::IsDataLoss(status) ||
        (absl::IsFailedPrecondition(status) && hit_ == "FORMAT");
    if (is_damage && !status.message().empty()) return result_ = kReported;
    Say(status.ToString());
    return result_ = kWrong;
  }

  // It is refused, or what is restored of it is what was there.
  absl::Status CheckSnapshot(CatalogSet& set) {
    LongWork work;
    ATTENDANT_ASSIGN_OR_RETURN(
        const auto restored,
        set.RestoreSnapshot({Names()[0], kSnapshot}, "restored", work));
    return Check(Names()[0], *restored);
  }

  // Internal if an answer is wrong.
  absl::Status Check(const std::string& name, const LiveCatalog& catalog) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::vector<StoredItem> stored,
                               catalog.List("", 2 * kItems));
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
      if (!address || snapshot->ItemAt(*address) != item) {
        return absl::InternalError(absl::StrCat("the row of ", item.id));
      }
    }
    return absl::OkStatus();
  }

  const std::string directory_;
  const std::string hit_;
  const std::vector<std::string> neighbours_;
  int result_ = kWhole;
};

// Runs it in a process of its own: RocksDB has threads, which a fork has not,
// so that this one must never have opened anything.
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

// Of one place of a file.
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

// Its name without numbers: what it is.
std::string KindOf(const fs::path& file) {
  std::string kind = file.filename().string();
  std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
  const std::string folder = file.begin()->string();
  return absl::StrCat(folder == file ? "" : folder + "/",
                      kind.empty() ? "N" : kind);
}

class DamageSweepTest : public ::testing::Test {
 protected:
  DamageSweepTest() : golden_(scratch_ / "golden"), copy_(scratch_ / "copy") {}

  void SetUp() override {
    ASSERT_EQ(RunInChild([this] {
                const absl::Status status = MakeGolden(golden_);
                if (!status.ok()) {
                  fprintf(stderr, "%s\n", status.ToString().c_str());
                }
                return status.ok() ? kWhole : kWrong;
              }),
              kWhole);
    fs::copy(golden_, copy_, fs::copy_options::recursive);
  }

  // Opening writes to the directory, so that it is made anew each time.
  void Restore() {
    fs::remove_all(copy_);
    fs::copy(golden_, copy_, fs::copy_options::recursive);
  }

  // Catalogs that the file is none of. Which uid is whose is told by the titles
  // in the files.
  std::vector<std::string> NeighboursOf(const fs::path& file) {
    std::vector<std::string> neighbours;
    if (*file.begin() == "models" || *file.begin() == "snapshots") {
      return Names();
    }
    if (*file.begin() != "items") return neighbours;
    const fs::path directory = fs::path(golden_) / file.parent_path();
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

  ScratchDirectory scratch_;
  const std::string golden_;
  const std::string copy_;
};

TEST_F(DamageSweepTest, DamageIsReportedOrHarmless) {
  const auto places = static_cast<std::size_t>(Flag("places", Short(kPlaces)));
  struct Counts {
    int reported = 0;
    int whole = 0;
  };
  std::map<std::string, Counts> counts;
  for (const auto& entry : fs::recursive_directory_iterator(golden_)) {
    if (!entry.is_regular_file() || entry.file_size() == 0) continue;
    const fs::path file = fs::relative(entry.path(), golden_);
    if (file.filename() == "LOCK") continue;  // a pid, for people
    const std::vector<std::string> neighbours = NeighboursOf(file);
    const std::string bytes = ReadBytes(entry.path());
    Counts& count = counts[KindOf(file)];
    for (std::size_t place = 0; place < places; ++place) {
      const std::size_t at = bytes.size() * place / places;
      if (place > 0 && at == bytes.size() * (place - 1) / places) continue;
      for (const Damage& damage : DamagesAt(bytes, at)) {
        Restore();
        WriteBytes(fs::path(copy_) / file, damage.bytes);
        const int status = RunInChild(
            [&] { return Inspection(copy_, file.string(), neighbours).Run(); });
        EXPECT_TRUE(status == kWhole || status == kReported)
            << file << ", " << damage.what << ": " << status;
        count.reported += status == kReported;
        count.whole += status == kWhole;
      }
    }
  }
  for (const auto& [kind, count] : counts) {
    printf("%-28s %4d reported, %4d harmless\n", kind.c_str(), count.reported,
           count.whole);
  }
}

TEST_F(DamageSweepTest, WithoutDamageAllIsWhole) {
  EXPECT_EQ(RunInChild([&] { return Inspection(copy_, "", Names()).Run(); }),
            kWhole);
}

}  // namespace
}  // namespace attendant
