#include "service/handlers/import_call.h"

#include <google/protobuf/arena.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "service/calls/authorize.h"
#include "service/calls/call.h"
#include "service/calls/flow.h"
#include "service/calls/grpc_status.h"
#include "service/calls/request_limits.h"
#include "service/convert/item.h"
#include "service/convert/tokens.h"
#include "service/convert/wire.h"

namespace attendant {
namespace {

// Size of a failure with only an index and a code, and of the rest of a reply.
constexpr std::int64_t kMinFailureBytes = 32;
constexpr std::int64_t kReplyBytes = 512;

// Every failure must be reported in a reply that fits into a message, since the
// other items are already stored. Failures beyond the available room are
// reported without id and message.
class Failures {
 public:
  Failures(std::int64_t max_bytes, std::int64_t item_count,
           v1::ImportItemsResponse* response)
      : bytes_left_(max_bytes - kReplyBytes - kMinFailureBytes * item_count),
        response_(response) {}

  void Add(std::int64_t item_index, const v1::Item& item,
           const absl::Status& status) {
    v1::ImportFailure* failure = response_->add_failures();
    failure->set_item_index(item_index);
    failure->set_id(item.id());
    *failure->mutable_status() = ToRpcStatus(status);
    const auto bytes = static_cast<std::int64_t>(failure->ByteSizeLong());
    if (bytes <= bytes_left_) {
      bytes_left_ -= bytes;
      return;
    }
    failure->clear_id();
    failure->clear_status();
    failure->mutable_status()->set_code(static_cast<int>(status.code()));
  }

 private:
  std::int64_t bytes_left_;
  v1::ImportItemsResponse* const response_;
};

}  // namespace

ImportCall* ImportCall::Start(Backend& backend, WorkerPool& pool,
                              grpc::CallbackServerContext& context) {
  auto* call = new ImportCall(backend, pool, context);
  if (backend.draining.load()) {
    call->Finish(Draining());
  } else {
    call->StartRead(&call->request_bytes_);
  }
  return call;
}

ImportCall::ImportCall(Backend& backend, WorkerPool& pool,
                       grpc::CallbackServerContext& context)
    : RecordedCall(backend, FindMethod("ImportItems"), context),
      Work(interrupt_),
      pool_(pool) {}

void ImportCall::OnReadDone(bool ok) {
  EndRead(ok);
  backend_.poller_reserve->BeginWork();
  bool continues = false;
  const absl::Status status = RunHandler([&]() -> absl::Status {
    if (context_.IsCancelled()) return Gone();
    if (!ok) {
      // The client has closed its side.
      if (catalog_ != nullptr) return absl::OkStatus();
      return InvalidField("catalog", "a stream without a message",
                          "a first message that names the catalog");
    }
    // The last acknowledgement tells the client where to resume on another
    // server.
    if (backend_.draining.load()) return Draining();
    if (catalog_ == nullptr) {
      set_flow(FlowOfCatalog(FindGrant(backend_, context_).get(), context_,
                             request_bytes_, backend_.catalogs));
    }
    continues = true;
    return absl::OkStatus();
  });
  if (continues) {
    pool_.Add(this);
  } else {
    Finish(status);
  }
}

void ImportCall::OnWriteDone(bool ok) {
  wait_.End();
  if (!ok) {
    Finish(Gone());
    return;
  }
  StartRead(&request_bytes_);
}

void ImportCall::Run() {
  const absl::Status status = RunHandler([this] { return Handle(); });
  if (status.ok()) {
    set_begun();
    StartWrite(&response_bytes_);
  } else {
    CountCutShort(status, *this);
    Finish(status);
  }
}

void ImportCall::OnCancel() {
  RecordedCall::OnCancel();
  pool_.Cancel(this);
}

absl::Status ImportCall::Handle() {
  ATTENDANT_RETURN_IF_ERROR(interrupt_.Check());
  google::protobuf::Arena arena(MessageArenaOptions());
  auto* request =
      google::protobuf::Arena::CreateMessage<v1::ImportItemsRequest>(&arena);
  ATTENDANT_RETURN_IF_ERROR(ParseMessage(request_bytes_, request));
  request_bytes_.Clear();
  ATTENDANT_RETURN_IF_ERROR(FindTarget(*request));
  auto* response =
      google::protobuf::Arena::CreateMessage<v1::ImportItemsResponse>(&arena);
  ATTENDANT_RETURN_IF_ERROR(ImportMessage(*request, response));
  response_bytes_.Clear();
  return SerialiseMessage(*response, backend_.max_message_bytes,
                          &response_bytes_);
}

absl::Status ImportCall::FindTarget(const v1::ImportItemsRequest& request) {
  if (catalog_ == nullptr) {
    ATTENDANT_RETURN_IF_ERROR(
        Authorize(backend_, context_, record_.method(), request));
    ATTENDANT_ASSIGN_OR_RETURN(
        catalog_, FindCatalog(backend_, request.catalog(), "catalog"));
    catalog_name_ = request.catalog();
    return absl::OkStatus();
  }
  ATTENDANT_RETURN_IF_ERROR(
      AuthorizeStill(backend_, context_, record_.method(), catalog_name_));
  if (request.catalog().empty()) return absl::OkStatus();
  return InvalidField("catalog", absl::StrCat("\"", request.catalog(), "\""),
                      "nothing after the first message of a stream");
}

absl::Status ImportCall::ImportMessage(const v1::ImportItemsRequest& request,
                                       v1::ImportItemsResponse* response) {
  if (request.items_size() > kMaxImportBatchSize) {
    return OverLimit(
        "items", absl::StrCat(request.items_size()),
        absl::StrCat("at most ", kMaxImportBatchSize, " in one message"));
  }
  const auto snapshot = catalog_->snapshot();
  const auto count = static_cast<std::size_t>(request.items_size());
  std::vector<absl::Status> statuses(count);  // one per item of the message
  std::vector<Item> items;
  std::vector<std::size_t> positions;  // index in the message of each item
  items.reserve(count);
  positions.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const v1::Item& wire = request.items(static_cast<int>(i));
    const absl::Status within = CheckItem(backend_.limits, wire);
    absl::StatusOr<Item> item =
        within.ok() ? ItemFromProto(wire, *snapshot->schema) : within;
    if (item.ok()) {
      items.push_back(*std::move(item));
      positions.push_back(i);
    } else {
      statuses[i] = std::move(item).status();
    }
  }
  ATTENDANT_ASSIGN_OR_RETURN(ImportOutcome outcome,
                             catalog_->Import(items, request.if_absent()));
  for (std::size_t i = 0; i < items.size(); ++i) {
    statuses[positions[i]] = std::move(outcome.statuses[i]);
  }
  Failures failures(backend_.max_message_bytes, request.items_size(), response);
  for (std::size_t i = 0; i < count; ++i) {
    if (statuses[i].ok()) {
      ++stored_count_;
    } else {
      failures.Add(acknowledged_count_ + static_cast<std::int64_t>(i),
                   request.items(static_cast<int>(i)), statuses[i]);
    }
  }
  acknowledged_count_ += request.items_size();
  response->set_acknowledged_count(acknowledged_count_);
  response->set_stored_count(stored_count_);
  response->set_state_token(
      StateToken(snapshot->catalog_uid, outcome.sequence));
  return absl::OkStatus();
}

}  // namespace attendant
