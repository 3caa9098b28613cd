#include "core/storage/catalogs/catalog_store.h"

#include <rocksdb/slice.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/fail_point.h"
#include "core/base/published.h"
#include "core/base/status.h"
#include "core/storage/records/item_codec.h"
#include "core/storage/records/model_codec.h"
#include "core/storage/rocks/tagged_key.h"

// Keys, by their first byte:
//   c SEQUENCE the ids that a write changed; ids beyond an entry's bytes are in
//              further entries, whose keys end in the entry's number (ORDER)
//   d          the last write whose changes were cut
//   e FIELD    the text encoder of a key field
//   i ID       an item, as EncodeStoredItem writes it
//   m          the sequence (see Database)
//   o ORDER    the request_id of the ORDER-th remembered request
//   r REQUEST  the outcome of a request
//   s FIELD    the active model of a key field, as EncodeModelKey writes it;
//              empty for no model. Versions before models skip it.
//   u          the uid of the catalog
// ORDER and SEQUENCE are big-endian, so that keys sort by them.
namespace attendant {
namespace {

constexpr char kChangesTag = 'c';
constexpr char kCutTag = 'd';
constexpr char kEncoderTag = 'e';
constexpr char kItemTag = 'i';
constexpr char kOrderTag = 'o';
constexpr char kRequestTag = 'r';
constexpr char kActiveModelTag = 's';
constexpr char kUidTag = 'u';

// Approximate size of an entry of changes.
constexpr std::size_t kChangesEntryBytes = std::size_t{1} << 20;

std::string OrderKey(char tag, std::int64_t order) {
  std::string key(1, tag);
  AppendSorting(order, key);
  return key;
}

// The value under kRequestTag, as stored in memory.
struct StoredRequest {
  static constexpr std::int64_t kVersion = 1;

  std::int64_t version = kVersion;
  std::int64_t order = 0;
  WriteOutcome outcome;
};
static_assert(std::is_trivially_copyable_v<StoredRequest>);
static_assert(sizeof(StoredRequest) == 8 * sizeof(std::int64_t), "no padding");

class RocksCatalogStore : public CatalogStore {
 public:
  RocksCatalogStore(std::unique_ptr<Database> database, Database* list,
                    const CatalogRecord& record,
                    std::int64_t remembered_request_count,
                    std::int64_t last_order, ScratchFiles* files,
                    SegmentDirectory segments)
      : uid_(record.uid),
        schema_(std::make_shared<const CatalogSchema>(record.schema)),
        remembered_request_count_(remembered_request_count),
        database_(std::move(database)),
        list_(list),
        files_(files),
        segments_(std::move(segments)),
        last_order_(last_order) {}

  absl::Status WriteGroup(std::span<const StoreWrite> writes) override {
    rocksdb::WriteBatch batch;
    std::int64_t order = last_order_;
    for (const StoreWrite& write : writes) {
      for (const absl::string_view id : write.deletes) {
        if (ATTENDANT_PLANTED_BUG("drop_tombstone")) break;
        batch.Delete(TaggedKey(kItemTag, id));
      }
      for (const Item* const item : write.upserts) {
        batch.Put(TaggedKey(kItemTag, item->id),
                  EncodeStoredItem(*item, write.outcome.sequence));
      }
      LogChanges(write, batch);
      if (write.request_id.empty()) continue;
      ++order;
      ATTENDANT_RETURN_IF_ERROR(
          Remember(write.request_id, write.outcome, order, batch));
    }
    // A removal of the catalog may have failed since TakeBackFailed.
    ATTENDANT_RETURN_IF_ERROR(
        Write(batch, writes.back().outcome.sequence, DiskReserve::kKept,
              [this] { return list_->TakeBackFailed(); }));
    last_order_ = order;
    return absl::OkStatus();
  }

  absl::Status TakeBackFailed() override {
    // A removal of the catalog may have failed: if it is found at the next
    // start, it would also remove what was written since.
    ATTENDANT_RETURN_IF_ERROR(list_->TakeBackFailed());
    return database_->TakeBackFailed();
  }

  std::int64_t sequence() const override { return database_->sequence(); }

  void AdoptSchema(std::shared_ptr<const CatalogSchema> schema) override {
    schema_.Store(std::move(schema));
  }

  absl::Status Scan(
      absl::string_view after,
      absl::FunctionRef<bool(StoredItem item)> visit) const override {
    std::string begin = TaggedKey(kItemTag, after);
    // Just after the item `after`. Ids are not empty, so "i" is not an item's
    // key.
    begin.push_back('\0');
    if (after.empty()) begin.pop_back();
    absl::Status damage;
    ATTENDANT_RETURN_IF_ERROR(database_->Scan(
        begin, EndOfTag(kItemTag),
        [&](absl::string_view key, absl::string_view value) {
          absl::StatusOr<StoredItem> item = Decode(key.substr(1), value);
          if (item.ok()) return visit(*std::move(item));
          damage = item.status();
          return false;
        }));
    return damage;
  }

  absl::Status Get(std::span<const absl::string_view> ids,
                   VisitItem visit) const override {
    std::vector<std::string> keys;
    keys.reserve(ids.size());
    for (const absl::string_view id : ids) {
      keys.push_back(TaggedKey(kItemTag, id));
    }
    return database_->GetAll(
        keys,
        [&](std::size_t i,
            std::optional<absl::string_view> record) -> absl::Status {
          std::optional<StoredItem> item;
          if (record.has_value()) {
            ATTENDANT_ASSIGN_OR_RETURN(item, Decode(ids[i], *record));
          }
          return visit(i, std::move(item));
        });
  }

  absl::StatusOr<std::optional<WriteOutcome>> FindRequest(
      absl::string_view request_id) const override {
    ATTENDANT_ASSIGN_OR_RETURN(const std::optional<StoredRequest> request,
                               ReadRequest(request_id));
    if (!request.has_value()) return std::nullopt;
    return request->outcome;
  }

  absl::StatusOr<std::string> GetEncoder(
      absl::string_view key_field) const override {
    ATTENDANT_ASSIGN_OR_RETURN(
        std::optional<std::string> bytes,
        database_->Get(TaggedKey(kEncoderTag, key_field)));
    return std::move(bytes).value_or("");
  }

  absl::Status PutEncoders(std::span<const EncoderBytes> encoders) override {
    rocksdb::WriteBatch batch;
    for (const EncoderBytes& encoder : encoders) {
      batch.Put(TaggedKey(kEncoderTag, encoder.key_field), encoder.bytes);
    }
    return Write(batch, std::nullopt);
  }

  absl::StatusOr<std::optional<ModelName>> GetActiveModel(
      absl::string_view key_field) const override {
    ATTENDANT_ASSIGN_OR_RETURN(
        const std::optional<std::string> bytes,
        database_->Get(TaggedKey(kActiveModelTag, key_field)));
    if (!bytes.has_value()) return std::nullopt;
    if (bytes->empty()) return ModelName();
    ModelName model = DecodeModelKey(*bytes);
    if (!model.empty() && model.version >= 1) return model;
    return absl::DataLossError(absl::StrCat("the active model of key field \"",
                                            key_field, "\" is damaged"));
  }

  absl::Status PutActiveModel(absl::string_view key_field,
                              const ModelName& model) override {
    rocksdb::WriteBatch batch;
    batch.Put(TaggedKey(kActiveModelTag, key_field),
              model.empty() ? std::string() : EncodeModelKey(model));
    // Uses the reserve: the write is small, and a build of hours may end with
    // it.
    return Write(batch, std::nullopt, DiskReserve::kUsed);
  }

  absl::Status Checkpoint(const std::string& directory) override {
    return database_->Checkpoint(directory);
  }

  absl::Status ScanChanges(
      std::int64_t sequence,
      absl::FunctionRef<bool(absl::string_view id)> visit) const override {
    ATTENDANT_ASSIGN_OR_RETURN(const std::int64_t cut, ReadCut());
    if (sequence < cut) {
      return absl::DataLossError(
          absl::StrCat("the log of changes begins after write ", cut,
                       ", want those after ", sequence));
    }
    bool damaged = false;
    bool stopped = false;
    const auto visit_one = [&](absl::string_view id) {
      stopped = !visit(id);
      return !stopped;
    };
    ATTENDANT_RETURN_IF_ERROR(database_->Scan(
        OrderKey(kChangesTag, sequence + 1), EndOfTag(kChangesTag),
        [&](absl::string_view, absl::string_view value) {
          damaged = !ForEachChange(value, visit_one);
          return !damaged && !stopped;
        }));
    if (damaged) return absl::DataLossError("the log of changes is damaged");
    return absl::OkStatus();
  }

  absl::Status CutChanges(std::int64_t sequence) override {
    ATTENDANT_ASSIGN_OR_RETURN(const std::int64_t cut, ReadCut());
    if (sequence <= cut) return absl::OkStatus();
    rocksdb::WriteBatch batch;
    batch.DeleteRange(OrderKey(kChangesTag, 0),
                      OrderKey(kChangesTag, sequence + 1));
    batch.Put(TaggedKey(kCutTag),
              rocksdb::Slice(reinterpret_cast<const char*>(&sequence),
                             sizeof(sequence)));
    return Write(batch, std::nullopt);
  }

  const SegmentDirectory* segment_directory() const override {
    return &segments_;
  }

  ScratchFiles& scratch_files() override { return *files_; }

  StoreFigures figures() const override { return database_->figures(); }

 private:
  // The schema is loaded after the record was read, so that it has all of the
  // record's attributes.
  absl::StatusOr<StoredItem> Decode(absl::string_view id,
                                    absl::string_view record) const {
    return DecodeItem(id, record, *schema_.Load());
  }

  // Adds the uid to every write, so that another catalog's log in this place is
  // detected (see CheckOwner): sequences alone don't tell them apart.
  absl::Status Write(
      rocksdb::WriteBatch& batch, std::optional<std::int64_t> sequence,
      DiskReserve reserve = DiskReserve::kKept,
      absl::FunctionRef<absl::Status()> confirm = absl::OkStatus) {
    batch.Put(TaggedKey(kUidTag), uid_);
    return database_->Write(&batch, sequence, reserve, /*begun=*/nullptr,
                            confirm);
  }

  // Writes each id after its size, a byte. A write may have several entries,
  // because RocksDB accepts no value of 4 GiB.
  static void LogChanges(const StoreWrite& write, rocksdb::WriteBatch& batch) {
    const std::string key = OrderKey(kChangesTag, write.outcome.sequence);
    std::string ids;
    std::int64_t entry_count = 0;
    const auto put = [&] {
      if (ids.empty()) return;
      std::string entry = key;
      if (entry_count > 0) AppendSorting(entry_count, entry);
      batch.Put(entry, ids);
      ++entry_count;
      ids.clear();
    };
    const auto add = [&](absl::string_view id) {
      if (ids.size() >= kChangesEntryBytes) put();
      ids.push_back(static_cast<char>(id.size()));
      ids.append(id.data(), id.size());
    };
    for (const Item* const item : write.upserts) add(item->id);
    for (const absl::string_view id : write.deletes) add(id);
    put();
  }

  // Calls `visit` until it returns false. Returns false if `ids` is not what
  // LogChanges wrote.
  static bool ForEachChange(
      absl::string_view ids,
      absl::FunctionRef<bool(absl::string_view id)> visit) {
    while (!ids.empty()) {
      const auto size = static_cast<unsigned char>(ids[0]);
      if (size == 0 || ids.size() <= size) return false;
      if (!visit(ids.substr(1, size))) break;
      ids.remove_prefix(std::size_t{1} + size);
    }
    return true;
  }

  // Returns the sequence after which the log has all writes. A database written
  // before there was a log has none of the writes before its first entry.
  absl::StatusOr<std::int64_t> ReadCut() const {
    ATTENDANT_ASSIGN_OR_RETURN(const std::optional<std::string> bytes,
                               database_->Get(TaggedKey(kCutTag)));
    std::int64_t cut = 0;
    if (!bytes.has_value()) return cut;
    if (bytes->size() != sizeof(cut)) {
      return absl::DataLossError("the beginning of the log is damaged");
    }
    std::memcpy(&cut, bytes->data(), sizeof(cut));
    return cut;
  }

  absl::StatusOr<std::optional<StoredRequest>> ReadRequest(
      absl::string_view request_id) const {
    ATTENDANT_ASSIGN_OR_RETURN(
        const std::optional<std::string> bytes,
        database_->Get(TaggedKey(kRequestTag, request_id)));
    if (!bytes.has_value()) return std::nullopt;
    StoredRequest request;
    if (bytes->size() == sizeof(request)) {
      std::memcpy(&request, bytes->data(), sizeof(request));
      if (request.version == StoredRequest::kVersion) return request;
    }
    return absl::DataLossError(absl::StrCat(
        "the remembered outcome of request \"", request_id, "\" is damaged"));
  }

  // Adds the request and removes the one that is now too old. A remembered
  // request is never written a second time, so its outcome has no other order.
  absl::Status Remember(absl::string_view request_id,
                        const WriteOutcome& outcome, std::int64_t order,
                        rocksdb::WriteBatch& batch) const {
    StoredRequest request;
    request.order = order;
    request.outcome = outcome;
    const std::int64_t expired = request.order - remembered_request_count_;
    if (expired > 0) {
      const absl::StatusOr<std::optional<std::string>> expired_id =
          database_->Get(OrderKey(kOrderTag, expired));
      // Damage must not prevent every later request from being written, so the
      // outcome of this one stays.
      if (!absl::IsDataLoss(expired_id.status())) {
        ATTENDANT_RETURN_IF_ERROR(expired_id.status());
        if (expired_id->has_value()) {
          batch.Delete(OrderKey(kOrderTag, expired));
          batch.Delete(TaggedKey(kRequestTag, **expired_id));
        }
      }
    }
    batch.Put(TaggedKey(kRequestTag, request_id),
              rocksdb::Slice(reinterpret_cast<const char*>(&request),
                             sizeof(request)));
    batch.Put(OrderKey(kOrderTag, request.order),
              rocksdb::Slice(request_id.data(), request_id.size()));
    return absl::OkStatus();
  }

  const std::string uid_;
  Published<CatalogSchema> schema_;
  const std::int64_t remembered_request_count_;
  const std::unique_ptr<Database> database_;
  Database* const list_;  // the list of catalogs
  ScratchFiles* const files_;
  const SegmentDirectory segments_;
  std::int64_t last_order_;  // used only by the one writing thread
};

// Checks that the database belongs to the catalog, and marks a new one.
// Directories look alike, and one in another's place would be served as the
// other.
absl::Status CheckOwner(Database& database, const CatalogRecord& record) {
  const std::string uid_key = TaggedKey(kUidTag);
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<std::string> uid,
                             database.Get(uid_key));
  if (uid == record.uid) return absl::OkStatus();
  ATTENDANT_ASSIGN_OR_RETURN(const std::optional<std::string> any,
                             database.LastKey("", EndOfTag(kUidTag)));
  if (any.has_value()) {
    return absl::DataLossError(absl::StrCat(
        "the files of catalog \"", record.name, "\" with uid ", record.uid,
        " are those of ",
        uid.has_value() ? absl::StrCat("the catalog with uid ", *uid)
                        : "no catalog: their uid is missing"));
  }
  rocksdb::WriteBatch batch;
  batch.Put(uid_key, record.uid);
  return database.Write(&batch, std::nullopt);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CatalogStore>> MakeCatalogStore(
    std::unique_ptr<Database> database, Database* list,
    const CatalogRecord& record, std::int64_t remembered_request_count,
    ScratchFiles* files, SegmentDirectory segments) {
  ATTENDANT_RETURN_IF_ERROR(CheckOwner(*database, record));
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::optional<std::string> last,
      database->LastKey(TaggedKey(kOrderTag), EndOfTag(kOrderTag)));
  // Skips the tag.
  const std::int64_t last_order =
      last.has_value() ? ReadSorting(absl::string_view(*last).substr(1)) : 0;
  return std::make_unique<RocksCatalogStore>(
      std::move(database), list, record, remembered_request_count, last_order,
      files, std::move(segments));
}

absl::StatusOr<CatalogContents> ReadCatalogContents(
    const std::string& directory, const CatalogSchema& schema,
    const DatabaseResources& resources, Blocks verified,
    const Interrupt& interrupt) {
  CatalogContents contents;
  ATTENDANT_ASSIGN_OR_RETURN(
      contents.sequence,
      ReadWholeDatabase(
          directory, resources, verified, interrupt,
          [&](absl::string_view key, absl::string_view value) {
            if (key == absl::string_view(&kUidTag, 1)) {
              contents.uid = std::string(value);
            }
            if (key.empty() || key[0] != kItemTag) return absl::OkStatus();
            ++contents.item_count;
            return DecodeItem(key.substr(1), value, schema).status();
          }));
  return contents;
}

absl::Status AdoptDatabase(Database& database, const CatalogRecord& record) {
  rocksdb::WriteBatch batch;
  batch.Put(TaggedKey(kUidTag), record.uid);
  batch.DeleteRange(TaggedKey(kActiveModelTag), EndOfTag(kActiveModelTag));
  return database.Write(&batch, std::nullopt);
}

}  // namespace attendant
