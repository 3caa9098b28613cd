#include "tests/durability/world.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/fail_point.h"
#include "core/base/interrupt.h"
#include "core/base/status.h"
#include "core/catalog/query/attend.h"
#include "tests/support/stored_items.h"

namespace attendant {
namespace {

constexpr int kIdCount = 96;
constexpr int kCatalogCount = 3;
constexpr std::int64_t kDim = 4;
constexpr std::int64_t kAllItems = 1000;
constexpr char kModel[] = "model";
constexpr char kColor[] = "color";
constexpr int kColorCount = 6;

CatalogSchema SchemaOf() {
  CatalogSchema schema;
  KeyFieldSchema field;
  field.name = "key";
  field.dim = kDim;
  schema.key_fields = {field};
  schema.attributes = {{"title", AttributeType::kString},
                       {kColor, AttributeType::kInt64}};
  return schema;
}

// With these limits a few dozen writes take segments through all stages: an
// index is trained early, later rows are sealed, sealed segments are merged
// with or without their dead rows, and their files are written, a tail's too.
// Where writes settle at once, all become one segment instead.
LiveCatalogOptions CatalogOptions(bool settles_at_once) {
  LiveCatalogOptions options;
  options.auto_ivf_min_count = kIdCount / 4;
  options.settle_time =
      settles_at_once ? absl::ZeroDuration() : absl::Seconds(1);
  options.max_logged_changes = kIdCount / 2;
  options.merge_limits = {
      .min_merge_count = 8, .seal_count = 8, .min_dead_bytes = 20000};
  return options;
}

// Arms a fail point, or none for "", in addition to those armed for the whole
// process, such as a planted bug.
absl::Status ArmBeside(absl::string_view spec) {
  std::vector<absl::string_view> specs;
  if (const char* const always = std::getenv("ATTENDANT_FAIL_POINT")) {
    specs.emplace_back(always);
  }
  if (!spec.empty()) specs.push_back(spec);
  return ArmFailPoint(absl::StrJoin(specs, ","));
}

std::string NameOf(int number) { return absl::StrCat("catalog", number); }

std::string IdsOf(const std::vector<Item>& items) {
  std::vector<std::string> ids;
  for (const Item& item : items) ids.push_back(item.id);
  return absl::StrJoin(ids, " ");
}

absl::Status Different(absl::string_view what) {
  return absl::InternalError(absl::StrCat("unlike the model: ", what));
}

std::vector<Item> ItemsOf(const PlainCatalog& plain) {
  std::vector<Item> items;
  for (const auto& [id, item] : plain.items) items.push_back(item);
  return items;
}

// Keys and queries are small whole numbers, so that this is exact.
float LogitOf(const Item& item, const std::vector<float>& query) {
  float logit = 0;
  for (std::size_t i = 0; i < query.size(); ++i) {
    logit += query[i] * item.keys[0][i];
  }
  return logit;
}

std::string Text(const PlainLists& lists) {
  return absl::StrCat(
      "catalogs ", absl::StrJoin(lists.catalogs, " "), ", aliases ",
      absl::StrJoin(lists.aliases, " ", absl::PairFormatter("=")), ", models ",
      absl::StrJoin(lists.models, " "));
}

AttentionModel ModelOf(std::int64_t version) {
  return {BilinearForm{{1, 1, {static_cast<float>(version)}}}};
}

bool SameCounts(const WriteOutcome& a, const WriteOutcome& b) {
  return a.inserted_count == b.inserted_count &&
         a.updated_count == b.updated_count &&
         a.deleted_count == b.deleted_count &&
         a.missing_count == b.missing_count;
}

std::string Text(const WriteOutcome& outcome) {
  return absl::StrCat(outcome.inserted_count, " inserted, ",
                      outcome.updated_count, " updated, ",
                      outcome.deleted_count, " deleted, ",
                      outcome.missing_count, " missing");
}

}  // namespace

bool Explains(const FileFault& fault, const absl::Status& status) {
  if (fault.kind == FileFault::Kind::kDelay ||
      fault.kind == FileFault::Kind::kHold ||
      !absl::StrContains(status.message(), fault.path_part)) {
    return false;
  }
  if (fault.kind == FileFault::Kind::kNoSpace) {
    return absl::IsResourceExhausted(status);
  }
  if (!absl::StrContains(status.message(), kInjectedError)) return false;
  // A part of a snapshot that can't be read is lost.
  const bool is_part = fault.call == FileCall::kOpen &&
                       absl::StartsWith(fault.path_part, "snapshots/");
  return absl::IsInternal(status) || (is_part && absl::IsDataLoss(status));
}

World::World(std::string directory, std::shared_ptr<FaultyFileSystem> files,
             std::uint64_t seed)
    : directory_(std::move(directory)),
      files_(std::move(files)),
      settles_at_once_(seed % 3 == 0),
      random_(seed) {}

bool World::IsExplained(const absl::Status& status) const {
  const std::vector<FileFault> struck = files_->struck();
  return std::any_of(
      struck.begin() + static_cast<std::ptrdiff_t>(struck_before_),
      struck.end(),
      [&](const FileFault& fault) { return Explains(fault, status); });
}

absl::Status World::CheckFailure(const absl::Status& status,
                                 const std::string& what) const {
  if (IsExplained(status)) return absl::OkStatus();
  return Different(absl::StrCat(what, " failed: ", status.ToString()));
}

std::string World::RandomId() {
  // There are few ids, so that items are replaced and deleted repeatedly.
  return absl::StrCat("id", Random(kIdCount));
}

Item World::RandomItem(const std::string& id) {
  Item item;
  item.id = id;
  std::vector<float> key;
  for (std::int64_t i = 0; i < kDim; ++i) {
    key.push_back(static_cast<float>(Random(17) - 8));
  }
  item.keys.push_back(std::move(key));
  // Sometimes larger than a log block.
  const int size = Random(8) == 0 ? Random(40000) : Random(40);
  item.attributes.emplace_back(
      kTitlePosition, absl::StrCat(++write_count_, std::string(size, 'x')));
  if (Random(3) == 0) {
    item.attributes.emplace_back(kColorPosition,
                                 std::int64_t{Random(kColorCount)});
  }
  return item;
}

std::string World::RandomRequestId() {
  if (Random(3) == 0) return "";
  return absl::StrCat("request", ++write_count_);
}

absl::Status World::Open() {
  struck_before_ = files_->struck().size();
  CatalogSet::Options options;
  options.store.file_system = files_;
  options.catalog = CatalogOptions(settles_at_once_);
  absl::StatusOr<std::unique_ptr<CatalogSet>> opened =
      CatalogSet::Open(directory_, options);
  if (!opened.ok()) return CheckFailure(opened.status(), "opening");
  catalogs_ = *std::move(opened);
  bool is_whole = true;
  for (const auto& [name, damage] : catalogs_->damages()) {
    is_whole = false;
    ATTENDANT_RETURN_IF_ERROR(
        CheckFailure(damage, absl::StrCat("opening ", name)));
  }
  for (const auto& [model, damage] : catalogs_->models().damages()) {
    is_whole = false;
    ATTENDANT_RETURN_IF_ERROR(CheckFailure(
        damage,
        absl::StrCat("opening ", model.first, " version ", model.second)));
  }
  if (is_whole) return Settle();
  catalogs_ = nullptr;
  return absl::OkStatus();
}

// Determines which of the states possible after failures is the actual one.
absl::Status World::Settle() {
  const PlainLists found = ReadLists();
  if (!found.LooksLike(lists_)) {
    const auto other = std::ranges::find_if(
        other_lists_,
        [&](const PlainLists& lists) { return lists.LooksLike(found); });
    if (other == other_lists_.end()) {
      return Different(absl::StrCat("there are ", Text(found),
                                    ", and there should be ", Text(lists_)));
    }
    lists_ = *other;
  }
  other_lists_.clear();
  tried_model_ = lists_.last_model;
  ATTENDANT_RETURN_IF_ERROR(CompareModels());
  std::erase_if(plain_, [&](const auto& entry) {
    return !lists_.catalogs.contains(entry.first);
  });
  for (const std::string& name : lists_.catalogs) {
    UncertainCatalog& uncertain = plain_[name];
    absl::Status status = Compare(name, uncertain.now, uncertain.now.sequence);
    for (const PlainCatalog& other : uncertain.others) {
      if (status.ok()) break;
      if (!Compare(name, other, uncertain.now.sequence).ok()) continue;
      uncertain.now.items = other.items;
      status = absl::OkStatus();
    }
    ATTENDANT_RETURN_IF_ERROR(status);
    uncertain.others.clear();
  }
  return SettleSnapshots();
}

absl::Status World::SettleSnapshots() {
  SnapshotFiles& files = catalogs_->snapshots();
  ATTENDANT_ASSIGN_OR_RETURN(const SnapshotList list, files.List(""));
  for (const auto& [id, damage] : list.damages) {
    return Different(absl::StrCat("snapshot ", id.name, " of ", id.catalog,
                                  ": ", damage.ToString()));
  }
  std::set<SnapshotId> found;
  for (const SnapshotManifest& manifest : list.manifests) {
    const SnapshotId id{manifest.catalog, manifest.name};
    found.insert(id);
    LongWork work;
    ATTENDANT_ASSIGN_OR_RETURN(const auto lease, files.Open(id));
    const absl::Status verified = files.Verify(*lease, work).status();
    if (!snapshots_.contains(id) || !verified.ok()) {
      return Different(absl::StrCat("snapshot ", id.name, " of ", id.catalog,
                                    " is there: ", verified.ToString()));
    }
  }
  for (const auto& [id, plain] : snapshots_) {
    if (found.contains(id) || uncertain_snapshots_.contains(id)) continue;
    return Different(
        absl::StrCat("snapshot ", id.name, " of ", id.catalog, " is gone"));
  }
  std::erase_if(snapshots_, [&](const auto& entry) {
    return !found.contains(entry.first);
  });
  uncertain_snapshots_.clear();
  return absl::OkStatus();
}

PlainLists World::ReadLists() const {
  PlainLists lists;
  for (const Catalog& catalog : catalogs_->List("", kAllItems)) {
    lists.catalogs.insert(catalog->record().name);
  }
  for (const Alias& alias : catalogs_->ListAliases("", kAllItems)) {
    lists.aliases[alias.name] = alias.catalog;
  }
  for (const auto& model : catalogs_->models().List({}, kAllItems)) {
    lists.models.insert(model->name.version);
  }
  return lists;
}

void World::Close() { catalogs_ = nullptr; }

absl::Status World::Compare(const std::string& name, const PlainCatalog& plain,
                            std::int64_t least_sequence) const {
  ATTENDANT_ASSIGN_OR_RETURN(const Catalog catalog, catalogs_->Get(name));
  const auto snapshot = catalog->snapshot();
  if (snapshot->sequence < least_sequence) {
    return Different(absl::StrCat(name, " is at sequence ", snapshot->sequence,
                                  ", acknowledged was ", least_sequence));
  }
  ATTENDANT_ASSIGN_OR_RETURN(const std::vector<StoredItem> stored,
                             StoredItems(*catalog, "", kAllItems));
  const std::vector<Item> listed(stored.begin(), stored.end());
  const std::vector<Item> want = ItemsOf(plain);
  if (listed != want) {
    return Different(absl::StrCat(name, " lists ", listed.size(),
                                  " items: ", IdsOf(listed), "\nand should ",
                                  want.size(), ": ", IdsOf(want)));
  }
  // The snapshot, made of rows and tombstones, must agree.
  if (snapshot->item_count() != static_cast<std::int64_t>(want.size())) {
    return Different(absl::StrCat(name, " counts ", snapshot->item_count(),
                                  " items of ", want.size()));
  }
  for (const Item& item : want) {
    const std::optional<RowAddress> address = snapshot->Find(item.id);
    if (!address || ItemAt(*snapshot, *address) != item) {
      return Different(absl::StrCat(name, ": the row of ", item.id));
    }
  }
  return absl::OkStatus();
}

absl::Status World::CompareModels() const {
  for (const std::int64_t version : lists_.models) {
    const auto model = catalogs_->models().Get(kModel, version);
    if (!model.ok() || !((*model)->model == ModelOf(version))) {
      return Different(absl::StrCat(
          "version ", version, " of the model: ", model.status().ToString()));
    }
  }
  return absl::OkStatus();
}

absl::Status World::CompareAll() {
  const PlainLists found = ReadLists();
  if (!found.LooksLike(lists_)) {
    return Different(absl::StrCat("there are ", Text(found),
                                  ", and there should be ", Text(lists_)));
  }
  ATTENDANT_RETURN_IF_ERROR(CompareModels());
  for (const std::string& name : lists_.catalogs) {
    const PlainCatalog& plain = plain_[name].now;
    ATTENDANT_RETURN_IF_ERROR(Compare(name, plain, plain.sequence));
  }
  return absl::OkStatus();
}

absl::Status World::Step() {
  if (!is_open()) return Open();
  const std::string name = NameOf(Random(kCatalogCount));
  if (!lists_.catalogs.contains(name)) {
    return snapshots_.empty() || Random(2) == 0 ? Create(name) : Restore(name);
  }
  struct Choice {
    int weight;
    absl::Status (World::*run)(const std::string& name);
  };
  // clang-format off
  static constexpr Choice kChoices[] = {
      {30, &World::Upsert},
      {6, &World::WriteTogether},
      {5, &World::InsertAbsent},
      {3, &World::UpsertIfUnchanged},
      {8, &World::Update},
      {3, &World::DeleteMatching},
      {4, &World::UpsertWithOneThatIsInvalid},
      {16, &World::Delete},
      {12, &World::Import},
      {6, &World::Repeat},
      {10, &World::Query},
      {6, &World::GetOne},
      {6, &World::ListPage},
      {2, &World::AwaitIndexes},
      {3, &World::Drop},
      {4, &World::PointAlias},
      {2, &World::RemoveAlias},
      {3, &World::AddModel},
      {2, &World::RemoveModel},
      {2, &World::TakeSnapshot},
      {1, &World::RemoveSnapshot},
  };
  // clang-format on
  int total = 0;
  for (const Choice& choice : kChoices) total += choice.weight;
  int at = Random(total);
  for (const Choice& choice : kChoices) {
    at -= choice.weight;
    if (at < 0) return (this->*choice.run)(name);
  }
  return absl::OkStatus();
}

absl::StatusOr<WriteOutcome> World::Submit(LiveCatalog& catalog,
                                           const PlainWrite& write) {
  if (!write.deletes.empty()) {
    return catalog.Delete(write.deletes, write.request_id);
  }
  if (write.deletes_color) {
    return catalog.DeleteMatching(
        Filter::Compare(kColor, ComparisonKind::kEqual, write.color),
        write.request_id);
  }
  if (write.updates.empty()) {
    WriteCondition absent;
    absent.absent = true;
    const std::vector<WriteCondition> conditions(
        write.if_absent ? write.upserts.size() : 0, absent);
    return catalog.Upsert(write.upserts, write.request_id, conditions);
  }
  std::vector<ItemPatch> patches;
  for (const std::string& id : write.updates) {
    ItemPatch& patch = patches.emplace_back();
    patch.id = id;
    patch.attributes.emplace_back(kColorPosition, write.color);
  }
  return catalog.Update(patches, write.request_id);
}

absl::Status World::CheckRefusal(const absl::Status& status,
                                 absl::StatusCode want,
                                 const std::string& what) const {
  if (status.code() == want || IsExplained(status)) {
    return absl::OkStatus();
  }
  return Different(absl::StrCat(what, " is answered with ", status.ToString(),
                                ", and should be with ",
                                absl::StatusCodeToString(want)));
}

absl::Status World::Send(const std::string& name, const PlainWrite& write) {
  ATTENDANT_ASSIGN_OR_RETURN(const Catalog catalog, catalogs_->Get(name));
  UncertainCatalog& uncertain = plain_[name];
  if (const auto refusal = uncertain.now.Refusal(write);
      refusal != absl::StatusCode::kOk) {
    return CheckRefusal(Submit(*catalog, write).status(), refusal,
                        "a write that can't be");
  }
  PlainCatalog after = uncertain.now;
  WriteOutcome want = after.Apply(write);
  const auto before = uncertain.now.outcomes.find(write.request_id);
  const bool repeated =
      !write.request_id.empty() && before != uncertain.now.outcomes.end();
  if (repeated) {
    after = uncertain.now;
    want = before->second;
  }
  const absl::StatusOr<WriteOutcome> outcome = Submit(*catalog, write);
  if (!outcome.ok() || files_->cut()) {
    if (!outcome.ok()) {
      ATTENDANT_RETURN_IF_ERROR(CheckFailure(outcome.status(), "a write"));
    }
    uncertain.others.push_back(std::move(after));
    // Whether a conditional write would now be refused depends on whether it
    // happened.
    if (!write.request_id.empty() && !write.if_absent) {
      unanswered_ = {name, write};
    }
    return absl::OkStatus();
  }
  if (!SameCounts(*outcome, want) ||
      (repeated && outcome->sequence != want.sequence)) {
    return Different(absl::StrCat(
        "the outcome of a ", repeated ? "repeated " : "", "write to ", name,
        " is ", Text(*outcome), ", and should be ", Text(want)));
  }
  if (!repeated && outcome->sequence <= uncertain.now.sequence) {
    return Different(absl::StrCat("sequence ", outcome->sequence, " after ",
                                  uncertain.now.sequence));
  }
  ++acknowledged_count_;
  after.sequence = std::max(after.sequence, outcome->sequence);
  if (!write.request_id.empty()) after.outcomes[write.request_id] = *outcome;
  uncertain.now = std::move(after);
  // Once a later write is acknowledged, a write that failed before it did not
  // happen, nor did a change of the lists: deleting this catalog would have
  // removed the write.
  if (!repeated) {
    uncertain.others.clear();
    other_lists_.clear();
  }
  return absl::OkStatus();
}

absl::Status World::SettleGroup(
    const std::string& name, std::span<const PlainWrite> writes,
    std::span<const absl::StatusOr<WriteOutcome>> outcomes,
    PlainCatalog& state) {
  UncertainCatalog& uncertain = plain_[name];
  PlainCatalog after = state;
  std::size_t failed_count = 0;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const WriteOutcome want = after.Apply(writes[i]);
    if (!outcomes[i].ok()) {
      ++failed_count;
      ATTENDANT_RETURN_IF_ERROR(
          CheckFailure(outcomes[i].status(), "a write of a group"));
      continue;
    }
    if (!SameCounts(*outcomes[i], want)) {
      return Different(absl::StrCat("the outcome of a write of a group is ",
                                    Text(*outcomes[i]), ", and should be ",
                                    Text(want)));
    }
    if (outcomes[i]->sequence <= after.sequence) {
      return Different(absl::StrCat("sequence ", outcomes[i]->sequence,
                                    " after ", after.sequence));
    }
    after.sequence = outcomes[i]->sequence;
  }
  if (failed_count != 0 && failed_count != writes.size()) {
    return Different(absl::StrCat("of ", writes.size(), " writes of a group ",
                                  failed_count, " failed"));
  }
  if (failed_count != 0) {
    uncertain.others.push_back(std::move(after));
    return absl::OkStatus();
  }
  state = after;
  if (files_->cut()) {
    uncertain.others.push_back(std::move(after));
    return absl::OkStatus();
  }
  acknowledged_count_ += static_cast<std::int64_t>(writes.size());
  uncertain.now = std::move(after);
  uncertain.others.clear();
  other_lists_.clear();
  return absl::OkStatus();
}

absl::Status World::WriteTogether(const std::string& name) {
  ATTENDANT_ASSIGN_OR_RETURN(const Catalog catalog, catalogs_->Get(name));
  // None is refused or reads what the ones before it wrote.
  std::vector<PlainWrite> writes(static_cast<std::size_t>(3 + Random(3)));
  for (PlainWrite& write : writes) {
    std::set<std::string> ids;
    for (int count = 1 + Random(4); count > 0; --count) ids.insert(RandomId());
    if (Random(3) == 0) {
      write.deletes.assign(ids.begin(), ids.end());
      continue;
    }
    for (const std::string& id : ids) write.upserts.push_back(RandomItem(id));
  }
  std::vector<absl::StatusOr<WriteOutcome>> outcomes(writes.size());
  std::vector<std::thread> threads;
  std::atomic<std::size_t> done_count = 0;
  const auto start_one = [&] {
    threads.emplace_back([&, i = threads.size()] {
      outcomes[i] = Submit(*catalog, writes[i]);
      ++done_count;
    });
  };
  // Holds the first write after it is stored and before it is visible, so that
  // the others queue behind it.
  ATTENDANT_RETURN_IF_ERROR(ArmBeside("write.before_publish=wait"));
  while (WaitingAtFailPoints() == 0 && threads.size() < writes.size()) {
    start_one();
    while (WaitingAtFailPoints() == 0 && done_count < threads.size()) {
      std::this_thread::yield();
    }
  }
  const std::size_t held = threads.size() - 1;
  while (threads.size() < writes.size()) {
    start_one();
    while (catalog->waiting_write_count() <
           static_cast<int>(threads.size() - held)) {
      std::this_thread::yield();
    }
  }
  ATTENDANT_RETURN_IF_ERROR(ArmBeside(""));
  for (std::thread& thread : threads) thread.join();
  PlainCatalog state = plain_[name].now;
  const std::span<const PlainWrite> all(writes);
  const std::span<const absl::StatusOr<WriteOutcome>> all_outcomes(outcomes);
  for (std::size_t i = 0; i <= held; ++i) {
    ATTENDANT_RETURN_IF_ERROR(SettleGroup(name, all.subspan(i, 1),
                                          all_outcomes.subspan(i, 1), state));
  }
  if (held + 1 == writes.size()) return absl::OkStatus();
  return SettleGroup(name, all.subspan(held + 1),
                     all_outcomes.subspan(held + 1), state);
}

absl::Status World::Upsert(const std::string& name) {
  PlainWrite write;
  write.request_id = RandomRequestId();
  std::set<std::string> ids;
  for (int count = 1 + Random(8); count > 0; --count) ids.insert(RandomId());
  for (const std::string& id : ids) write.upserts.push_back(RandomItem(id));
  return Send(name, write);
}

absl::Status World::InsertAbsent(const std::string& name) {
  PlainWrite write;
  write.request_id = RandomRequestId();
  write.if_absent = true;
  std::set<std::string> ids;
  for (int count = 1 + Random(2); count > 0; --count) ids.insert(RandomId());
  for (const std::string& id : ids) write.upserts.push_back(RandomItem(id));
  return Send(name, write);
}

// The condition either matches the current item or does not.
absl::Status World::UpsertIfUnchanged(const std::string& name) {
  UncertainCatalog& uncertain = plain_[name];
  const std::vector<std::string> ids = {RandomId()};
  // A failed write may be in the store, which sequences are read from.
  if (!uncertain.now.items.contains(ids[0]) || !uncertain.others.empty()) {
    return absl::OkStatus();
  }
  ATTENDANT_ASSIGN_OR_RETURN(const Catalog catalog, catalogs_->Get(name));
  std::int64_t sequence = 0;
  const absl::Status read =
      catalog->VisitStored(ids, [&](const StoredItem& item) {
        sequence = item.sequence;
        return absl::OkStatus();
      });
  if (!read.ok()) return CheckFailure(read, "reading an item");
  const bool holds = Random(2) == 0;
  const std::vector<WriteCondition> conditions = {
      {.sequence = sequence + (holds ? 0 : 1)}};
  PlainWrite write;
  write.upserts = {RandomItem(ids[0])};
  const auto outcome = catalog->Upsert(write.upserts, "", conditions);
  if (!holds) {
    return CheckRefusal(outcome.status(), absl::StatusCode::kAborted,
                        "a write of an item that changed");
  }
  PlainCatalog after = uncertain.now;
  after.Apply(write);
  if (!outcome.ok() || files_->cut()) {
    uncertain.others.push_back(std::move(after));
    return outcome.ok() ? absl::OkStatus()
                        : CheckFailure(outcome.status(), "a write");
  }
  ++acknowledged_count_;
  after.sequence = outcome->sequence;
  uncertain.now = std::move(after);
  return absl::OkStatus();
}

absl::Status World::Update(const std::string& name) {
  PlainWrite write;
  write.request_id = RandomRequestId();
  write.color = Random(kColorCount);
  std::set<std::string> ids;
  for (int count = 1 + Random(3); count > 0; --count) ids.insert(RandomId());
  write.updates.assign(ids.begin(), ids.end());
  return Send(name, write);
}

absl::Status World::DeleteMatching(const std::string& name) {
  PlainWrite write;
  write.request_id = RandomRequestId();
  write.deletes_color = true;
  write.color = Random(kColorCount);
  return Send(name, write);
}

absl::Status World::UpsertWithOneThatIsInvalid(const std::string& name) {
  ATTENDANT_ASSIGN_OR_RETURN(const Catalog catalog, catalogs_->Get(name));
  std::vector<Item> items = {RandomItem("good"), RandomItem("bad")};
  items[1].keys[0][0] = std::numeric_limits<float>::quiet_NaN();
  const absl::Status status = catalog->Upsert(items, "").status();
  if (!absl::IsInvalidArgument(status)) {
    return Different(
        absl::StrCat("an invalid item is answered with ", status.ToString()));
  }
  return absl::OkStatus();
}

absl::Status World::Delete(const std::string& name) {
  PlainWrite write;
  write.request_id = RandomRequestId();
  std::set<std::string> ids;
  for (int count = 1 + Random(6); count > 0; --count) ids.insert(RandomId());
  write.deletes.assign(ids.begin(), ids.end());
  return Send(name, write);
}

absl::Status World::Import(const std::string& name) {
  ATTENDANT_ASSIGN_OR_RETURN(const Catalog catalog, catalogs_->Get(name));
  std::vector<Item> items;
  std::vector<bool> valid;
  UncertainCatalog& uncertain = plain_[name];
  PlainCatalog after = uncertain.now;
  for (int count = 1 + Random(8); count > 0; --count) {
    items.push_back(RandomItem(RandomId()));  // ids may repeat
    valid.push_back(Random(6) != 0);
    if (valid.back()) {
      after.items[items.back().id] = items.back();
    } else {
      items.back().keys[0].push_back(1);
    }
  }
  const absl::StatusOr<ImportOutcome> outcome = catalog->Import(items);
  if (!outcome.ok() || files_->cut()) {
    if (!outcome.ok()) {
      ATTENDANT_RETURN_IF_ERROR(CheckFailure(outcome.status(), "an import"));
    }
    uncertain.others.push_back(std::move(after));
    return absl::OkStatus();
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (outcome->statuses[i].ok() == valid[i]) continue;
    return Different(
        absl::StrCat("an imported item is ", outcome->statuses[i].ToString()));
  }
  if (outcome->sequence > uncertain.now.sequence) uncertain.others.clear();
  ++acknowledged_count_;
  after.sequence = outcome->sequence;
  uncertain.now = std::move(after);
  return absl::OkStatus();
}

absl::Status World::Repeat(const std::string& name) {
  ATTENDANT_ASSIGN_OR_RETURN(const Catalog catalog, catalogs_->Get(name));
  const auto& outcomes = plain_[name].now.outcomes;
  if (outcomes.empty()) return absl::OkStatus();
  auto at = outcomes.begin();
  std::advance(at, Random(static_cast<int>(outcomes.size())));
  // Other content under the same request_id is refused.
  return CheckRefusal(
      catalog->Delete(std::vector<std::string>{"never"}, at->first).status(),
      absl::StatusCode::kInvalidArgument,
      absl::StrCat("other content of request ", at->first));
}

absl::Status World::Query(const std::string& name) {
  ATTENDANT_ASSIGN_OR_RETURN(const Catalog catalog, catalogs_->Get(name));
  AttendQuery query;
  std::vector<float> vector;
  for (std::int64_t i = 0; i < kDim; ++i) {
    vector.push_back(static_cast<float>(Random(9) - 4));
  }
  query.query = vector;
  // Modes that never change the answer: an index result that is certain is the
  // exact one.
  constexpr ScanMode kModes[] = {ScanMode::kExact, ScanMode::kAuto,
                                 ScanMode::kIndex};
  query.scan_mode = kModes[Random(3)];
  if (query.scan_mode != ScanMode::kExact) query.recall = 1;
  query.result_count = 1 + Random(2 * kIdCount);
  const auto snapshot = catalog->snapshot();
  const auto answer = Attend(*snapshot, query, Interrupt());
  // There is no index, or it cannot be certain.
  if (query.scan_mode == ScanMode::kIndex &&
      absl::IsFailedPrecondition(answer.status())) {
    return absl::OkStatus();
  }
  ATTENDANT_RETURN_IF_ERROR(answer.status());
  if (answer->visited_list_count > 0) ++index_answer_count_;
  std::vector<std::pair<float, std::string>> want;
  for (const auto& [id, item] : plain_[name].now.items) {
    want.emplace_back(-LogitOf(item, vector), id);
  }
  std::ranges::sort(want);
  if (want.size() > static_cast<std::size_t>(*query.result_count)) {
    want.resize(static_cast<std::size_t>(*query.result_count));
  }
  std::vector<std::pair<float, std::string>> found;
  for (const AttendedItem& item : answer->items) {
    found.emplace_back(-item.logit,
                       snapshot->IdOf(item.address.segment, item.address.row));
  }
  if (found == want) return absl::OkStatus();
  const auto text = [](const auto& pairs) {
    return absl::StrJoin(pairs, " ", [](std::string* out, const auto& pair) {
      absl::StrAppend(out, pair.second, "=", -pair.first);
    });
  };
  return Different(absl::StrCat("a query of ", name, " in mode ",
                                static_cast<int>(query.scan_mode), " finds ",
                                text(found), "\nand should ", text(want)));
}

absl::Status World::GetOne(const std::string& name) {
  ATTENDANT_ASSIGN_OR_RETURN(const Catalog catalog, catalogs_->Get(name));
  const std::string id = RandomId();
  const auto& items = plain_[name].now.items;
  const auto want = items.find(id);
  const auto found = ItemsIn(*catalog, {id});
  const bool same = want == items.end()
                        ? absl::IsNotFound(found.status())
                        : found.ok() && found->front() == want->second;
  if (same) return absl::OkStatus();
  return Different(absl::StrCat("item ", id, " of ", name, ": ",
                                found.status().ToString(), ", and it is ",
                                want == items.end() ? "not there" : "there"));
}

absl::Status World::ListPage(const std::string& name) {
  ATTENDANT_ASSIGN_OR_RETURN(const Catalog catalog, catalogs_->Get(name));
  const std::string after = Random(4) == 0 ? "" : RandomId();
  const int limit = 1 + Random(kIdCount);
  const auto found = StoredItems(*catalog, after, limit);
  if (!found.ok()) return CheckFailure(found.status(), "a listing");
  std::vector<Item> want;
  const auto& items = plain_[name].now.items;
  for (auto at = items.upper_bound(after);
       at != items.end() && static_cast<int>(want.size()) < limit; ++at) {
    want.push_back(at->second);
  }
  const std::vector<Item> page(found->begin(), found->end());
  // A failed write may be in the store, which listings are read from.
  if (page == want || !plain_[name].others.empty()) return absl::OkStatus();
  return Different(absl::StrCat("a page of ", name, " is ", IdsOf(page),
                                "\nand should be ", IdsOf(want)));
}

absl::Status World::AwaitIndexes(const std::string& name) {
  ATTENDANT_ASSIGN_OR_RETURN(const Catalog catalog, catalogs_->Get(name));
  catalog->AwaitIndexes();
  const absl::Status status = catalog->merge_status();
  return status.ok() ? absl::OkStatus() : CheckFailure(status, "a merge");
}

absl::Status World::SetLists(const absl::Status& status, PlainLists after,
                             const std::string& what) {
  if (!status.ok() || files_->cut()) {
    other_lists_.push_back(std::move(after));
    return status.ok() ? absl::OkStatus() : CheckFailure(status, what);
  }
  lists_ = std::move(after);
  // Earlier failed changes did not happen: the lists share one database.
  other_lists_.clear();
  const PlainLists found = ReadLists();
  if (found.LooksLike(lists_)) return absl::OkStatus();
  return Different(absl::StrCat("after ", what, " there are ", Text(found),
                                ", and there should be ", Text(lists_)));
}

absl::Status World::Create(const std::string& name) {
  PlainLists after = lists_;
  after.catalogs.insert(name);
  const auto created = catalogs_->Create(name, SchemaOf(), {});
  if (created.ok() && !files_->cut()) {
    if (!created->created) return Different(name + " was there");
    plain_[name] = {};
  } else {
    plain_[name].others.emplace_back();
  }
  return SetLists(created.status(), std::move(after), "a creation");
}

absl::Status World::Drop(const std::string& name) {
  PlainLists after = lists_;
  after.catalogs.erase(name);
  const absl::Status status = catalogs_->Delete(name);
  for (const auto& [alias, catalog] : lists_.aliases) {
    if (catalog != name) continue;
    if (absl::IsFailedPrecondition(status)) return absl::OkStatus();
    return Different(absl::StrCat(name, " has the alias ", alias,
                                  " and is deleted: ", status.ToString()));
  }
  if (status.ok() && !files_->cut()) {
    plain_.erase(name);
    if (unanswered_ && unanswered_->name == name) unanswered_.reset();
  }
  return SetLists(status, std::move(after), "a deletion");
}

absl::Status World::PointAlias(const std::string& name) {
  const std::string alias = absl::StrCat("alias", Random(2));
  PlainLists after = lists_;
  after.aliases[alias] = name;
  const auto moved = catalogs_->SetAlias(alias, name, std::nullopt);
  return SetLists(moved.status(), std::move(after), "pointing an alias");
}

absl::Status World::RemoveAlias(const std::string&) {
  if (lists_.aliases.empty()) return absl::OkStatus();
  const std::string alias = lists_.aliases.begin()->first;
  PlainLists after = lists_;
  after.aliases.erase(alias);
  return SetLists(catalogs_->DeleteAlias(alias), std::move(after),
                  "removing an alias");
}

absl::Status World::AddModel(const std::string&) {
  const std::int64_t version = ++tried_model_;
  PlainLists after = lists_;
  after.models.insert(version);
  after.last_model = version;
  const auto created = catalogs_->models().Create(kModel, ModelOf(version), {});
  if (created.ok() && (*created)->name.version != version) {
    return Different(absl::StrCat("version ", (*created)->name.version,
                                  " after ", version - 1));
  }
  return SetLists(created.status(), std::move(after), "adding a model");
}

absl::Status World::RemoveModel(const std::string&) {
  if (lists_.models.empty()) return absl::OkStatus();
  const std::int64_t version = *lists_.models.begin();
  PlainLists after = lists_;
  after.models.erase(version);
  return SetLists(catalogs_->DeleteModel({kModel, version}), std::move(after),
                  "removing a model");
}

absl::Status World::TakeSnapshot(const std::string& name) {
  const SnapshotId id{name, absl::StrCat("snapshot", ++snapshot_count_)};
  LongWork work;
  const auto taken = catalogs_->CreateSnapshot(name, id.name, work);
  snapshots_[id] = plain_[name].now;
  if (taken.ok() && !files_->cut()) return absl::OkStatus();
  uncertain_snapshots_.insert(id);
  return taken.ok() ? absl::OkStatus()
                    : CheckFailure(taken.status(), "taking a snapshot");
}

absl::Status World::RemoveSnapshot(const std::string&) {
  if (snapshots_.empty()) return absl::OkStatus();
  const SnapshotId id = snapshots_.begin()->first;
  if (uncertain_snapshots_.contains(id)) return absl::OkStatus();
  const absl::Status status = catalogs_->snapshots().Remove(id);
  if (status.ok() && !files_->cut()) {
    snapshots_.erase(id);
    return absl::OkStatus();
  }
  uncertain_snapshots_.insert(id);
  return status.ok() ? absl::OkStatus()
                     : CheckFailure(status, "removing a snapshot");
}

absl::Status World::Restore(const std::string& name) {
  auto at = snapshots_.begin();
  std::advance(at, Random(static_cast<int>(snapshots_.size())));
  if (uncertain_snapshots_.contains(at->first)) return absl::OkStatus();
  PlainLists after = lists_;
  after.catalogs.insert(name);
  LongWork work;
  const auto restored = catalogs_->RestoreSnapshot(at->first, name, work);
  if (restored.ok() && !files_->cut()) {
    plain_[name] = {at->second, {}};
    // The restored catalog is another one, with its own history.
    plain_[name].now.sequence = (*restored)->snapshot()->sequence;
    ATTENDANT_RETURN_IF_ERROR(Compare(name, plain_[name].now, 0));
  } else {
    plain_[name].others.push_back(at->second);
  }
  return SetLists(restored.status(), std::move(after), "restoring");
}

absl::Status World::RepeatUnanswered() {
  if (!unanswered_) return absl::OkStatus();
  const Unanswered repeated = *std::exchange(unanswered_, std::nullopt);
  if (!lists_.catalogs.contains(repeated.name)) return absl::OkStatus();
  // Whether or not the write had happened, it has now happened exactly once.
  ATTENDANT_ASSIGN_OR_RETURN(const Catalog catalog,
                             catalogs_->Get(repeated.name));
  const PlainWrite& write = repeated.write;
  UncertainCatalog& uncertain = plain_[repeated.name];
  const auto refusal = uncertain.now.Refusal(write);
  const absl::StatusOr<WriteOutcome> outcome = Submit(*catalog, write);
  if (refusal != absl::StatusCode::kOk) {
    return CheckRefusal(outcome.status(), refusal, "a repeated write");
  }
  PlainCatalog after = uncertain.now;
  after.Apply(write);
  if (!outcome.ok() || files_->cut()) {
    uncertain.others.push_back(std::move(after));
    return outcome.ok() ? absl::OkStatus()
                        : CheckFailure(outcome.status(), "a repeated write");
  }
  after.outcomes[write.request_id] = *outcome;
  after.sequence = std::max(after.sequence, outcome->sequence);
  uncertain.now = std::move(after);
  return Compare(repeated.name, uncertain.now, uncertain.now.sequence);
}

}  // namespace attendant
