#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/catalog/segments/matching.h"
#include "service/calls/grpc_status.h"
#include "service/calls/page.h"
#include "service/calls/read_after_write.h"
#include "service/convert/filter.h"
#include "service/convert/item.h"
#include "service/convert/tokens.h"
#include "service/convert/update_mask.h"
#include "service/convert/wire.h"
#include "service/handlers/handlers.h"

namespace attendant {
namespace {

constexpr std::int64_t kMaxRequestIdBytes = 128;

absl::Status ValidateRequestId(const std::string& request_id) {
  return CheckCount(static_cast<std::int64_t>(request_id.size()), 0,
                    kMaxRequestIdBytes, "request_id", " bytes");
}

// Returns the catalog for a batch of `count` entries in `field`, or an error of
// the batch.
template <typename Request>
absl::StatusOr<std::shared_ptr<LiveCatalog>> CatalogOfBatch(
    const Backend& backend, const Request& request, int count,
    absl::string_view field) {
  ATTENDANT_ASSIGN_OR_RETURN(
      auto catalog, FindCatalog(backend, request.catalog(), "catalog"));
  ATTENDANT_RETURN_IF_ERROR(CheckCount(count, 1, backend.limits.batch, field));
  ATTENDANT_RETURN_IF_ERROR(ValidateRequestId(request.request_id()));
  return catalog;
}

absl::StatusOr<std::vector<Item>> ItemsFromProto(
    const google::protobuf::RepeatedPtrField<v1::Item>& wire,
    const CatalogSchema& schema) {
  std::vector<Item> items;
  items.reserve(static_cast<std::size_t>(wire.size()));
  for (int i = 0; i < wire.size(); ++i) {
    absl::StatusOr<Item> item = ItemFromProto(wire[i], schema);
    if (!item.ok()) {
      return PrefixField(item.status(), absl::StrCat("items[", i, "]."));
    }
    items.push_back(*std::move(item));
  }
  return items;
}

std::vector<WriteCondition> ConditionsFromProto(
    const google::protobuf::RepeatedPtrField<v1::WriteCondition>& wire) {
  std::vector<WriteCondition> conditions;
  conditions.reserve(static_cast<std::size_t>(wire.size()));
  for (const v1::WriteCondition& condition : wire) {
    WriteCondition& added = conditions.emplace_back();
    added.absent = condition.absent();
    if (condition.has_sequence()) added.sequence = condition.sequence();
  }
  return conditions;
}

template <typename Request>
absl::StatusOr<ReadMask> ItemMask(const Request& request,
                                  const CatalogSchema& schema) {
  if (!request.has_read_mask()) return ReadMask::All(schema);
  return ReadMaskFromProto(request.read_mask(), schema);
}

// Returns what all pages of a listing have in common.
std::string ListingOf(const v1::ListItemsRequest& request,
                      const Snapshot& snapshot, const ReadMask& mask) {
  return absl::StrCat("items ", snapshot.catalog_uid, " ", CanonicalText(mask),
                      " ", request.filter(), " ",
                      request.filter_expression().SerializeAsString());
}

// Fills in items of the store, which may be newer than the snapshot.
class ItemWriter {
 public:
  ItemWriter(const LiveCatalog& catalog, const Snapshot& snapshot,
             ReadMask mask)
      : catalog_(catalog), schema_(snapshot.schema), mask_(std::move(mask)) {}

  void Write(const StoredItem& item, v1::Item* wire) {
    // No item has an attribute before the catalog's newest snapshot has it.
    if (!item.attributes.empty() &&
        item.attributes.back().first >= std::ssize(schema_->attributes)) {
      schema_ = catalog_.snapshot()->schema;
    }
    ItemToProto(item, *schema_, mask_, wire);
  }

 private:
  const LiveCatalog& catalog_;
  std::shared_ptr<const CatalogSchema> schema_;
  const ReadMask mask_;
};

// The state token of a reply that reads items: an item may come from a write
// that is stored but not in a snapshot yet.
template <typename Response>
class ReadState {
 public:
  ReadState(const Snapshot& snapshot, Response& response)
      : uid_(snapshot.catalog_uid),
        sequence_(snapshot.sequence),
        response_(response) {
    SetToken();
  }

  void Saw(const StoredItem& item) {
    if (item.sequence <= sequence_) return;
    sequence_ = item.sequence;
    SetToken();
  }

 private:
  void SetToken() { response_.set_state_token(StateToken(uid_, sequence_)); }

  const std::string& uid_;
  std::int64_t sequence_;
  Response& response_;
};

}  // namespace

absl::Status BatchUpsertItems(Backend& backend,
                              const v1::BatchUpsertItemsRequest& request,
                              const Interrupt& interrupt,
                              v1::BatchUpsertItemsResponse* response) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto catalog,
      CatalogOfBatch(backend, request, request.items_size(), "items"));
  const auto snapshot = catalog->snapshot();
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::vector<Item> items,
      ItemsFromProto(request.items(), *snapshot->schema));
  ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
  ATTENDANT_ASSIGN_OR_RETURN(
      const WriteOutcome outcome,
      catalog->Upsert(items, request.request_id(),
                      ConditionsFromProto(request.conditions()), interrupt));
  response->set_inserted_count(
      static_cast<std::int32_t>(outcome.inserted_count));
  response->set_updated_count(static_cast<std::int32_t>(outcome.updated_count));
  response->set_state_token(
      StateToken(snapshot->catalog_uid, outcome.sequence));
  return absl::OkStatus();
}

absl::Status BatchGetItems(Backend& backend,
                           const v1::BatchGetItemsRequest& request,
                           const Interrupt& interrupt,
                           v1::BatchGetItemsResponse* response) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto catalog, FindCatalogShowing(backend, request.catalog(),
                                             "catalog", request.state_token()));
  ATTENDANT_RETURN_IF_ERROR(
      CheckCount(request.ids_size(), 1, backend.limits.batch, "ids"));
  const auto snapshot = catalog->snapshot();
  ATTENDANT_ASSIGN_OR_RETURN(ReadMask mask,
                             ItemMask(request, *snapshot->schema));
  ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
  const std::vector<std::string> ids(request.ids().begin(),
                                     request.ids().end());
  ItemWriter writer(*catalog, *snapshot, std::move(mask));
  ReadState state(*snapshot, *response);
  auto bytes = static_cast<std::int64_t>(response->ByteSizeLong());
  return catalog->VisitStored(ids, [&](const StoredItem& item) {
    v1::Item* wire = response->add_items();
    writer.Write(item, wire);
    state.Saw(item);
    bytes += static_cast<std::int64_t>(wire->ByteSizeLong());
    if (bytes > backend.max_message_bytes) {
      return ReplyTooLarge(backend.max_message_bytes);
    }
    return interrupt.Check();
  });
}

absl::Status ListItems(Backend& backend, const v1::ListItemsRequest& request,
                       const Interrupt& interrupt,
                       v1::ListItemsResponse* response) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto catalog, FindCatalogShowing(backend, request.catalog(),
                                             "catalog", request.state_token()));
  ATTENDANT_ASSIGN_OR_RETURN(const int page_size,
                             PageSize(request.page_size()));
  const auto snapshot = catalog->snapshot();
  ATTENDANT_ASSIGN_OR_RETURN(ReadMask mask,
                             ItemMask(request, *snapshot->schema));
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::optional<Filter> filter,
      FilterOfRequest(request, *snapshot->schema, backend.limits.filter_depth));
  const std::string listing = ListingOf(request, *snapshot, mask);
  ATTENDANT_ASSIGN_OR_RETURN(std::string after,
                             ParsePageToken(request.page_token(), listing));
  ItemWriter writer(*catalog, *snapshot, std::move(mask));
  ReadState state(*snapshot, *response);
  PageRoom room(page_size, backend.max_message_bytes, *response);
  absl::Status status;
  const auto take = [&](const StoredItem& item) {
    v1::Item* wire = response->add_items();
    writer.Write(item, wire);
    // One more item than fits means that there is a next page.
    if (!room.Takes(*wire)) {
      response->mutable_items()->RemoveLast();
      response->set_next_page_token(PageToken(listing, after));
      return false;
    }
    after = item.id;
    state.Saw(item);
    status = interrupt.Check();
    return status.ok();
  };
  if (!filter.has_value()) {
    response->set_total_count(snapshot->item_count());
    ATTENDANT_RETURN_IF_ERROR(catalog->VisitStoredAfter(after, take));
  } else {
    const auto most = static_cast<std::size_t>(page_size) + 1;
    ATTENDANT_ASSIGN_OR_RETURN(
        const MatchingPage page,
        FindMatchingPage(*snapshot, *filter, after, most, interrupt));
    response->set_total_count(page.total_count);
    ATTENDANT_RETURN_IF_ERROR(
        catalog->VisitExisting(page.ids, [&](const StoredItem& item) {
          if (item.sequence <= snapshot->sequence) return take(item);
          const auto matches =
              Matches(*filter, *snapshot->schema, item, interrupt);
          status = matches.status();
          if (!matches.ok()) return false;
          return !*matches || take(item);
        }));
    // Some may be gone, so that all the others had room.
    if (response->next_page_token().empty() && page.ids.size() == most) {
      response->set_next_page_token(PageToken(listing, page.ids.back()));
    }
  }
  ATTENDANT_RETURN_IF_ERROR(status);
  // No page can get past such an item, so the error names it.
  if (response->items_size() == 1 &&
      static_cast<std::int64_t>(response->ByteSizeLong()) >
          backend.max_message_bytes) {
    return PrefixField(ReplyTooLarge(backend.max_message_bytes),
                       absl::StrCat("item '", after, "': "));
  }
  return absl::OkStatus();
}

absl::Status BatchDeleteItems(Backend& backend,
                              const v1::BatchDeleteItemsRequest& request,
                              const Interrupt& interrupt,
                              v1::BatchDeleteItemsResponse* response) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto catalog,
      CatalogOfBatch(backend, request, request.ids_size(), "ids"));
  ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
  const std::vector<std::string> ids(request.ids().begin(),
                                     request.ids().end());
  ATTENDANT_ASSIGN_OR_RETURN(
      const WriteOutcome outcome,
      catalog->Delete(ids, request.request_id(),
                      ConditionsFromProto(request.conditions()), interrupt));
  response->set_deleted_count(outcome.deleted_count);
  response->set_missing_count(static_cast<std::int32_t>(outcome.missing_count));
  response->set_state_token(
      StateToken(catalog->snapshot()->catalog_uid, outcome.sequence));
  return absl::OkStatus();
}

absl::Status BatchUpdateItems(Backend& backend,
                              const v1::BatchUpdateItemsRequest& request,
                              const Interrupt& interrupt,
                              v1::BatchUpdateItemsResponse* response) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto catalog,
      CatalogOfBatch(backend, request, request.items_size(), "items"));
  const auto snapshot = catalog->snapshot();
  std::optional<UpdateMask> mask;
  if (request.has_update_mask()) {
    ATTENDANT_ASSIGN_OR_RETURN(
        mask, UpdateMaskFromProto(request.update_mask(), *snapshot->schema));
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      std::vector<Item> items,
      ItemsFromProto(request.items(), *snapshot->schema));
  std::vector<ItemPatch> patches;
  patches.reserve(items.size());
  for (Item& item : items) patches.push_back(PatchOf(std::move(item), mask));
  ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
  ATTENDANT_ASSIGN_OR_RETURN(
      const WriteOutcome outcome,
      catalog->Update(patches, request.request_id(),
                      ConditionsFromProto(request.conditions()),
                      backend.limits.attribute_bytes, interrupt));
  response->set_updated_count(static_cast<std::int32_t>(outcome.updated_count));
  response->set_state_token(
      StateToken(snapshot->catalog_uid, outcome.sequence));
  return absl::OkStatus();
}

absl::Status DeleteMatchingItems(Backend& backend,
                                 const v1::DeleteMatchingItemsRequest& request,
                                 const Interrupt& interrupt,
                                 v1::DeleteMatchingItemsResponse* response) {
  ATTENDANT_ASSIGN_OR_RETURN(
      const auto catalog, FindCatalog(backend, request.catalog(), "catalog"));
  ATTENDANT_RETURN_IF_ERROR(ValidateRequestId(request.request_id()));
  const auto snapshot = catalog->snapshot();
  ATTENDANT_ASSIGN_OR_RETURN(
      const std::optional<Filter> filter,
      FilterOfRequest(request, *snapshot->schema, backend.limits.filter_depth));
  if (!filter.has_value()) {
    return InvalidField("filter", "none",
                        "a filter that matches the items to delete");
  }
  ATTENDANT_RETURN_IF_ERROR(interrupt.Check());
  if (request.dry_run()) {
    ATTENDANT_ASSIGN_OR_RETURN(const std::int64_t count,
                               CountMatching(*snapshot, *filter, interrupt));
    response->set_deleted_count(count);
    response->set_state_token(
        StateToken(snapshot->catalog_uid, snapshot->sequence));
    return absl::OkStatus();
  }
  ATTENDANT_ASSIGN_OR_RETURN(
      const WriteOutcome outcome,
      catalog->DeleteMatching(*filter, request.request_id(), interrupt));
  response->set_deleted_count(outcome.deleted_count);
  response->set_state_token(
      StateToken(snapshot->catalog_uid, outcome.sequence));
  return absl::OkStatus();
}

}  // namespace attendant
