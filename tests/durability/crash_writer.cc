#include "tests/durability/crash_writer.h"

#include <gtest/gtest.h>

#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/requests.h"

namespace attendant {
namespace {

constexpr int kIds = 60;
constexpr int kNotes = 4;
constexpr int kMaxKeptSnapshots = 3;
constexpr int kMaxOperations = 2000;
constexpr char kNote[] = "note";

bool IsOfADeadServer(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE;
}

// Sends the request, and stores the token if the reply has one.
template <typename Response, typename Method, typename Request>
auto SendOf(Method method, const Request& request) {
  return [method, request](Connection& connection, std::string* token) {
    Response response;
    const grpc::Status status = connection.Call(method, request, &response);
    if constexpr (requires { response.state_token(); }) {
      *token = response.state_token();
    }
    return status;
  };
}

// Reads by a query, which reads memory, and by a listing, which reads the
// database.
std::optional<CrashItems> ReadItems(Connection& connection,
                                    const std::string& catalog,
                                    const std::string& token, bool* exists) {
  CrashItems items;
  v1::AttendResponse answer;
  grpc::Status status = connection.Attend(catalog, token, &answer);
  *exists = status.ok();
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) return items;
  std::map<std::string, std::int64_t> attended;
  for (const v1::AttendedItem& item : answer.items()) {
    // The key encodes the version. An item that appears twice is a bug.
    EXPECT_TRUE(
        attended.emplace(item.id(), static_cast<std::int64_t>(item.logit()))
            .second)
        << item.id();
  }
  if (status.ok()) {
    v1::ListItemsRequest request;
    request.set_catalog(catalog);
    request.set_page_size(1000);
    v1::ListItemsResponse page;
    status = connection.Call(&v1::ItemService::Stub::ListItems, request, &page);
    for (const v1::Item& item : page.items()) {
      CrashItem& state = items[item.id()];
      state.version =
          static_cast<std::int64_t>(item.keys().at("key").floats().values(0));
      const auto note = item.attributes().find(kNote);
      if (note != item.attributes().end()) {
        state.note = note->second.int64_value();
      }
    }
  }
  if (IsOfADeadServer(status)) return std::nullopt;
  EXPECT_TRUE(status.ok()) << catalog << ": " << status.error_message();
  std::map<std::string, std::int64_t> listed;
  for (const auto& [id, item] : items) listed[id] = item.version;
  EXPECT_EQ(attended, listed);
  return items;
}

}  // namespace

void CrashWriter::WriteUntilKilled(Connection& connection) {
  for (int i = 0; i < kMaxOperations; ++i) {
    const Operation operation = Next();
    std::string token;
    const grpc::Status status = operation.send(connection, &token);
    if (status.error_code() != operation.code) {
      EXPECT_TRUE(IsOfADeadServer(status))
          << name_ << ": " << status.error_code() << " "
          << status.error_message();
      unanswered_ = operation;
      return;
    }
    state_ = operation.after;
    if (!token.empty()) state_.token = token;
    ++acknowledged_count_;
    if (Random(10) != 0) continue;
    const std::optional<Found> found = Read(connection);
    if (!found) return;
    EXPECT_TRUE(*found == Visible(state_))
        << name_ << " found " << Text(*found) << "\nacknowledged "
        << Text(Visible(state_));
  }
}

void CrashWriter::Check(Connection& connection) {
  const std::optional<Found> found = Read(connection);
  ASSERT_TRUE(found) << "the server is gone";
  const State after = unanswered_ ? unanswered_->after : state_;
  EXPECT_TRUE(*found == Visible(state_) || *found == Visible(after))
      << name_ << " found " << Text(*found) << "\nacknowledged "
      << Text(Visible(state_)) << "\nwith the unanswered "
      << Text(Visible(after));
  if (*found == Visible(after)) state_ = after;
  if (unanswered_ && unanswered_->repeatable) {
    std::string token;
    const grpc::Status status = unanswered_->send(connection, &token);
    EXPECT_TRUE(status.ok()) << status.error_message();
    state_ = after;
    if (!token.empty()) state_.token = token;
    EXPECT_TRUE(Read(connection) == Visible(state_));
  }
  unanswered_.reset();
  CheckTokens(connection);
}

CrashWriter::Found CrashWriter::Visible(const State& state) {
  Found found;
  found.catalogs = state.catalogs;
  found.target = state.target;
  found.models = state.models;
  for (const auto& [snapshot, items] : state.snapshots) {
    found.snapshots[snapshot] = static_cast<std::int64_t>(items.size());
  }
  return found;
}

std::string CrashWriter::Text(const Found& found) {
  std::string text;
  for (const auto& [catalog, items] : found.catalogs) {
    absl::StrAppend(&text, catalog, ":");
    for (const auto& [id, item] : items) {
      absl::StrAppend(&text, " ", id, "=", item.version, "/", item.note);
    }
    absl::StrAppend(&text, "; ");
  }
  return absl::StrCat(text, "snapshots ",
                      ::testing::PrintToString(found.snapshots), ", alias of '",
                      found.target, "', models ",
                      ::testing::PrintToString(found.models));
}

std::optional<CrashWriter::Found> CrashWriter::Read(
    Connection& connection) const {
  Found found;
  for (const std::string& catalog : {name_, copy()}) {
    bool exists = false;
    const auto items =
        ReadItems(connection, catalog,
                  catalog == name_ ? state_.token : std::string(), &exists);
    if (!items) return std::nullopt;
    if (exists) found.catalogs[catalog] = *items;
  }
  if (!ReadSnapshots(connection, found) || !ReadModels(connection, found) ||
      !ReadAlias(connection, found)) {
    return std::nullopt;
  }
  return found;
}

bool CrashWriter::ReadSnapshots(Connection& connection, Found& found) const {
  v1::ListSnapshotsRequest request;
  request.set_catalog(name_);
  v1::ListSnapshotsResponse list;
  const grpc::Status status = connection.Call(
      &v1::SnapshotService::Stub::ListSnapshots, request, &list);
  if (IsOfADeadServer(status)) return false;
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(list.damaged_snapshots_size(), 0);
  for (const v1::StoredSnapshot& snapshot : list.snapshots()) {
    found.snapshots[snapshot.name()] = snapshot.item_count();
  }
  return true;
}

bool CrashWriter::ReadModels(Connection& connection, Found& found) const {
  v1::ListModelsRequest request;
  request.set_page_size(1000);
  v1::ListModelsResponse list;
  const grpc::Status status =
      connection.Call(&v1::ModelService::Stub::ListModels, request, &list);
  if (IsOfADeadServer(status)) return false;
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(list.damaged_models_size(), 0);
  for (const v1::ModelSummary& model : list.models()) {
    if (model.name() == name_) found.models.insert(model.version());
  }
  return true;
}

bool CrashWriter::ReadAlias(Connection& connection, Found& found) const {
  v1::GetAliasRequest request;
  request.set_alias(alias());
  v1::GetAliasResponse response;
  const grpc::Status status =
      connection.Call(&v1::AliasService::Stub::GetAlias, request, &response);
  if (IsOfADeadServer(status)) return false;
  EXPECT_TRUE(status.ok() || status.error_code() == grpc::StatusCode::NOT_FOUND)
      << status.error_message();
  found.target = response.alias().catalog();
  return true;
}

// Reads with the token of an acknowledged write are served (see ReadItems);
// reads with a token of an earlier catalog of that name never are.
void CrashWriter::CheckTokens(Connection& connection) const {
  if (!state_.catalogs.contains(name_) || state_.stale_token.empty()) return;
  v1::AttendResponse answer;
  EXPECT_EQ(connection.Attend(name_, state_.stale_token, &answer).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

std::vector<std::string> CrashWriter::RandomIds() {
  std::set<std::string> ids;
  for (int count = 1 + Random(12); count > 0; --count) {
    ids.insert(absl::StrCat(name_, "-", Random(kIds)));
  }
  return {ids.begin(), ids.end()};
}

std::vector<std::string> CrashWriter::KnownIds() {
  std::vector<std::string> ids = RandomIds();
  std::erase_if(ids, [&](const std::string& id) {
    return !state_.items(name_).contains(id);
  });
  return ids;
}

std::string CrashWriter::RandomSnapshot() {
  auto at = state_.snapshots.begin();
  std::advance(at, Random(static_cast<int>(state_.snapshots.size())));
  return at->first;
}

std::string CrashWriter::NextRequestId() {
  return absl::StrCat(name_, "-", ++request_count_);
}

CrashWriter::Operation CrashWriter::Next() {
  if (!state_.catalogs.contains(name_)) return CreateCatalog();
  struct Choice {
    int weight;
    Operation (CrashWriter::*make)();
  };
  // clang-format off
  static constexpr Choice kChoices[] = {
      {30, &CrashWriter::Upsert},
      {8, &CrashWriter::InsertAbsent},
      {5, &CrashWriter::UpsertIfUnchanged},
      {10, &CrashWriter::Update},
      {14, &CrashWriter::Delete},
      {4, &CrashWriter::DeleteMatching},
      {2, &CrashWriter::Drop},
      {2, &CrashWriter::DropCopy},
      {4, &CrashWriter::CreateModel},
      {4, &CrashWriter::DeleteModel},
      {5, &CrashWriter::TakeSnapshot},
      {3, &CrashWriter::DeleteSnapshot},
      {2, &CrashWriter::ImportSnapshot},
      {3, &CrashWriter::Restore},
      {3, &CrashWriter::PointAlias},
      {2, &CrashWriter::DeleteAlias},
  };
  // clang-format on
  int total = 0;
  for (const Choice& choice : kChoices) total += choice.weight;
  int at = Random(total);
  for (const Choice& choice : kChoices) {
    at -= choice.weight;
    if (at < 0) return (this->*choice.make)();
  }
  return Upsert();
}

CrashWriter::Operation CrashWriter::Upsert() {
  Operation operation = {state_, nullptr, true};
  std::vector<v1::Item> items;
  // Small enough to be exact as a float.
  const std::int64_t version = ++write_count_;
  for (const std::string& id : RandomIds()) {
    items.push_back(ItemOf(id, "key", {static_cast<double>(version), 0}));
    operation.after.items(name_)[id] = {version, 0};
  }
  const auto request = UpsertOf(name_, items, NextRequestId());
  operation.send = SendOf<v1::BatchUpsertItemsResponse>(
      &v1::ItemService::Stub::BatchUpsertItems, request);
  return operation;
}

// Refused as a whole if one of the items exists.
CrashWriter::Operation CrashWriter::InsertAbsent() {
  Operation operation = {state_, nullptr, true};
  std::vector<v1::Item> items;
  const std::int64_t version = ++write_count_;
  for (const std::string& id : RandomIds()) {
    if (items.size() == 3) break;
    items.push_back(ItemOf(id, "key", {static_cast<double>(version), 0}));
    operation.after.items(name_)[id] = {version, 0};
    if (state_.items(name_).contains(id)) {
      operation.code = grpc::StatusCode::ALREADY_EXISTS;
    }
  }
  if (operation.code != grpc::StatusCode::OK) {
    operation.after = state_;
    operation.repeatable = false;
  }
  auto request = UpsertOf(name_, items, NextRequestId());
  for (std::size_t i = 0; i < items.size(); ++i) {
    request.add_conditions()->set_absent(true);
  }
  operation.send = SendOf<v1::BatchUpsertItemsResponse>(
      &v1::ItemService::Stub::BatchUpsertItems, request);
  return operation;
}

// The condition is the items' current sequences: nobody else writes to them.
CrashWriter::Operation CrashWriter::UpsertIfUnchanged() {
  const std::vector<std::string> ids = KnownIds();
  if (ids.empty()) return Upsert();
  Operation operation = {state_, nullptr, false};
  std::vector<v1::Item> items;
  const std::int64_t version = ++write_count_;
  v1::BatchGetItemsRequest get;
  get.set_catalog(name_);
  for (const std::string& id : ids) {
    items.push_back(ItemOf(id, "key", {static_cast<double>(version), 0}));
    operation.after.items(name_)[id] = {version, 0};
    get.add_ids(id);
  }
  auto request = UpsertOf(name_, items, NextRequestId());
  operation.send = [get, request](Connection& connection, std::string* token) {
    v1::BatchGetItemsResponse got;
    grpc::Status status =
        connection.Call(&v1::ItemService::Stub::BatchGetItems, get, &got);
    if (!status.ok()) return status;
    auto conditional = request;
    for (const v1::Item& item : got.items()) {
      conditional.add_conditions()->set_sequence(item.sequence());
    }
    v1::BatchUpsertItemsResponse response;
    status = connection.Call(&v1::ItemService::Stub::BatchUpsertItems,
                             conditional, &response);
    *token = response.state_token();
    return status;
  };
  return operation;
}

// The key does not change.
CrashWriter::Operation CrashWriter::Update() {
  const std::vector<std::string> ids = KnownIds();
  if (ids.empty()) return Upsert();
  Operation operation = {state_, nullptr, true};
  v1::BatchUpdateItemsRequest request;
  request.set_catalog(name_);
  request.set_request_id(NextRequestId());
  request.mutable_update_mask()->add_paths(absl::StrCat("attributes.", kNote));
  for (const std::string& id : ids) {
    const int note = 1 + Random(kNotes);
    v1::Item* item = request.add_items();
    item->set_id(id);
    (*item->mutable_attributes())[kNote].set_int64_value(note);
    operation.after.items(name_)[id].note = note;
  }
  operation.send = SendOf<v1::BatchUpdateItemsResponse>(
      &v1::ItemService::Stub::BatchUpdateItems, request);
  return operation;
}

CrashWriter::Operation CrashWriter::Delete() {
  Operation operation = {state_, nullptr, true};
  const std::vector<std::string> ids = RandomIds();
  for (const std::string& id : ids) operation.after.items(name_).erase(id);
  const auto request = DeleteOf(name_, ids, NextRequestId());
  operation.send = SendOf<v1::BatchDeleteItemsResponse>(
      &v1::ItemService::Stub::BatchDeleteItems, request);
  return operation;
}

CrashWriter::Operation CrashWriter::DeleteMatching() {
  Operation operation = {state_, nullptr, true};
  const int note = 1 + Random(kNotes);
  std::erase_if(operation.after.items(name_), [note](const auto& entry) {
    return entry.second.note == note;
  });
  v1::DeleteMatchingItemsRequest request;
  request.set_catalog(name_);
  request.set_request_id(NextRequestId());
  request.set_filter(absl::StrCat(kNote, " = ", note));
  operation.send = SendOf<v1::DeleteMatchingItemsResponse>(
      &v1::ItemService::Stub::DeleteMatchingItems, request);
  return operation;
}

CrashWriter::Operation CrashWriter::CreateCatalog() {
  Operation operation = {state_, nullptr, true};
  operation.after.items(name_).clear();
  operation.send = [this](Connection& connection, std::string*) {
    return connection.CreateCatalog(name_);
  };
  return operation;
}

CrashWriter::Operation CrashWriter::Drop() {
  if (state_.target == name_) return DeleteAlias();
  Operation operation = {state_, nullptr, false};
  operation.after.catalogs.erase(name_);
  operation.after.stale_token = std::exchange(operation.after.token, "");
  operation.send = [this](Connection& connection, std::string*) {
    return connection.DeleteCatalog(name_);
  };
  return operation;
}

CrashWriter::Operation CrashWriter::DropCopy() {
  if (!state_.catalogs.contains(copy())) return Upsert();
  Operation operation = {state_, nullptr, false};
  if (state_.target == copy()) {
    operation.code = grpc::StatusCode::FAILED_PRECONDITION;
  } else {
    operation.after.catalogs.erase(copy());
  }
  operation.send = [this](Connection& connection, std::string*) {
    return connection.DeleteCatalog(copy());
  };
  return operation;
}

CrashWriter::Operation CrashWriter::CreateModel() {
  Operation operation = {state_, nullptr, false};
  operation.after.models.insert(++operation.after.last_model);
  v1::CreateModelRequest request;
  request.mutable_model()->set_name(name_);
  v1::Matrix* weight =
      request.mutable_model()->mutable_bilinear()->mutable_weight();
  weight->set_row_count(1);
  weight->set_column_count(1);
  weight->set_float32_le(std::string("\0\0\x80\x3f", 4));
  operation.send = SendOf<v1::CreateModelResponse>(
      &v1::ModelService::Stub::CreateModel, request);
  return operation;
}

CrashWriter::Operation CrashWriter::DeleteModel() {
  if (state_.models.empty()) return CreateModel();
  Operation operation = {state_, nullptr, false};
  const std::int64_t version = *state_.models.begin();
  operation.after.models.erase(version);
  v1::DeleteModelRequest request;
  request.set_name(name_);
  request.set_version(version);
  operation.send = SendOf<v1::DeleteModelResponse>(
      &v1::ModelService::Stub::DeleteModel, request);
  return operation;
}

CrashWriter::Operation CrashWriter::TakeSnapshot() {
  if (state_.snapshots.size() >= kMaxKeptSnapshots) return DeleteSnapshot();
  Operation operation = {state_, nullptr, false};
  v1::CreateSnapshotRequest request;
  request.set_catalog(name_);
  request.set_name(absl::StrCat("s", ++snapshot_count_));
  operation.after.snapshots[request.name()] = state_.items(name_);
  operation.send = SendOf<v1::CreateSnapshotResponse>(
      &v1::SnapshotService::Stub::CreateSnapshot, request);
  return operation;
}

CrashWriter::Operation CrashWriter::DeleteSnapshot() {
  if (state_.snapshots.empty()) return TakeSnapshot();
  Operation operation = {state_, nullptr, false};
  v1::DeleteSnapshotRequest request;
  request.set_catalog(name_);
  request.set_name(RandomSnapshot());
  operation.after.snapshots.erase(request.name());
  operation.send = SendOf<v1::DeleteSnapshotResponse>(
      &v1::SnapshotService::Stub::DeleteSnapshot, request);
  return operation;
}

// The export of one snapshot becomes another snapshot.
CrashWriter::Operation CrashWriter::ImportSnapshot() {
  if (state_.snapshots.empty() ||
      state_.snapshots.size() >= kMaxKeptSnapshots) {
    return TakeSnapshot();
  }
  Operation operation = {state_, nullptr, false};
  v1::ExportSnapshotRequest request;
  request.set_catalog(name_);
  request.set_name(RandomSnapshot());
  const std::string imported = absl::StrCat("s", ++snapshot_count_);
  operation.after.snapshots[imported] = state_.snapshots.at(request.name());
  operation.send = [this, request, imported](Connection& connection,
                                             std::string*) {
    std::string bytes;
    const grpc::Status status = connection.ExportSnapshot(request, &bytes);
    if (!status.ok()) return status;
    return connection.ImportSnapshot(name_, imported, bytes);
  };
  return operation;
}

CrashWriter::Operation CrashWriter::Restore() {
  if (state_.snapshots.empty()) return TakeSnapshot();
  Operation operation = {state_, nullptr, false};
  v1::RestoreSnapshotRequest request;
  request.set_catalog(name_);
  request.set_name(RandomSnapshot());
  request.set_new_catalog(copy());
  if (state_.catalogs.contains(copy())) {
    operation.code = grpc::StatusCode::ALREADY_EXISTS;
  } else {
    operation.after.items(copy()) = state_.snapshots.at(request.name());
  }
  operation.send = SendOf<v1::RestoreSnapshotResponse>(
      &v1::SnapshotService::Stub::RestoreSnapshot, request);
  return operation;
}

// Points the alias to the other catalog, if it exists.
CrashWriter::Operation CrashWriter::PointAlias() {
  Operation operation = {state_, nullptr, true};
  const bool to_copy =
      state_.target != copy() && state_.catalogs.contains(copy());
  operation.after.target = to_copy ? copy() : name_;
  v1::SetAliasRequest request;
  request.set_alias(alias());
  request.set_catalog(operation.after.target);
  operation.send =
      SendOf<v1::SetAliasResponse>(&v1::AliasService::Stub::SetAlias, request);
  return operation;
}

CrashWriter::Operation CrashWriter::DeleteAlias() {
  if (state_.target.empty()) return PointAlias();
  Operation operation = {state_, nullptr, false};
  operation.after.target.clear();
  v1::DeleteAliasRequest request;
  request.set_alias(alias());
  operation.send = SendOf<v1::DeleteAliasResponse>(
      &v1::AliasService::Stub::DeleteAlias, request);
  return operation;
}

void CrashSharer::WriteUntilKilled(Connection& connection) {
  for (int i = 0; i < kMaxOperations; ++i) {
    // The catalog may already exist.
    grpc::Status status;
    if (i == 0) status = connection.CreateCatalog(catalog_);
    const Write write = Next();
    std::string token;
    if (status.ok()) status = Send(connection, write, &token);
    if (!status.ok()) {
      EXPECT_TRUE(IsOfADeadServer(status))
          << name_ << ": " << status.error_message();
      unanswered_ = write;
      return;
    }
    Apply(write, versions_);
    token_ = token;
    ++acknowledged_count_;
  }
}

void CrashSharer::Check(Connection& connection) {
  if (acknowledged_count_ == 0) {
    ASSERT_TRUE(connection.CreateCatalog(catalog_).ok());
  }
  const Versions found = Read(connection);
  Versions after = versions_;
  if (unanswered_) Apply(*unanswered_, after);
  EXPECT_TRUE(found == versions_ || found == after)
      << name_ << " found " << ::testing::PrintToString(found)
      << "\nacknowledged " << ::testing::PrintToString(versions_)
      << "\nwith the unanswered " << ::testing::PrintToString(after);
  if (!unanswered_) return;
  const grpc::Status status = Send(connection, *unanswered_, &token_);
  EXPECT_TRUE(status.ok()) << status.error_message();
  versions_ = after;
  EXPECT_EQ(Read(connection), versions_);
  unanswered_.reset();
}

CrashSharer::Write CrashSharer::Next() {
  Write write;
  ++write_count_;
  write.request_id = absl::StrCat(name_, "-", write_count_);
  std::set<std::string> ids;
  for (std::uint64_t count = 1 + random_() % 12; count > 0; --count) {
    ids.insert(absl::StrCat(name_, "-", random_() % kIds));
  }
  if (random_() % 4 == 0) {
    write.deletes.assign(ids.begin(), ids.end());
  } else {
    for (const std::string& id : ids) write.upserts[id] = write_count_;
  }
  return write;
}

grpc::Status CrashSharer::Send(Connection& connection, const Write& write,
                               std::string* token) const {
  if (!write.deletes.empty()) {
    return SendOf<v1::BatchDeleteItemsResponse>(
        &v1::ItemService::Stub::BatchDeleteItems,
        DeleteOf(catalog_, write.deletes, write.request_id))(connection, token);
  }
  std::vector<v1::Item> items;
  for (const auto& [id, version] : write.upserts) {
    items.push_back(ItemOf(id, "key", {static_cast<double>(version), 0}));
  }
  return SendOf<v1::BatchUpsertItemsResponse>(
      &v1::ItemService::Stub::BatchUpsertItems,
      UpsertOf(catalog_, items, write.request_id))(connection, token);
}

void CrashSharer::Apply(const Write& write, Versions& versions) {
  for (const auto& [id, version] : write.upserts) versions[id] = version;
  for (const std::string& id : write.deletes) versions.erase(id);
}

CrashSharer::Versions CrashSharer::Read(Connection& connection) const {
  bool exists = false;
  const auto items = ReadItems(connection, catalog_, token_, &exists);
  EXPECT_TRUE(items && exists) << "no " << catalog_;
  Versions found;
  if (!items) return found;
  for (const auto& [id, item] : *items) {
    if (absl::StartsWith(id, absl::StrCat(name_, "-")))
      found[id] = item.version;
  }
  return found;
}

}  // namespace attendant
