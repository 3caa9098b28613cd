// Sends the body of any RPC over loopback to a server with one small catalog.
// The call is refused with a status that blames the caller, or answered by a
// message without NaN. The input is the method's name, a newline, and the body.
//
// Changes made by an input are undone before the next.
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <cmath>

#include "absl/strings/match.h"
#include "attendant/v1/attention_service.pb.h"
#include "core/catalog/live/catalog_set.h"
#include "service/server.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/rpc_requests.h"
#include "tests/fuzz/scratch.h"
#include "tests/service/raw_call.h"

namespace attendant {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;

struct Answer {
  grpc::Status status;
  std::vector<std::string> replies;
};

class World {
 public:
  World() {
    auto catalogs = CatalogSet::Open(Scratch() / "data", {});
    Require(catalogs.ok(), "a data directory");
    catalogs_ = *std::move(catalogs);
    auto server = Server::Start({.listen = "127.0.0.1:0", .worker_count = 1},
                                catalogs_.get());
    Require(server.ok(), "a server");
    server_ = *std::move(server);
    channel_ = grpc::CreateChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                   grpc::InsecureChannelCredentials());
    Build();
  }

  Answer Call(const MethodDescriptor& method, const std::string& bytes) {
    RawCall call(channel_, absl::StrCat("/", method.service()->full_name(), "/",
                                        method.name()));
    call.Write(bytes);
    call.WritesDone();
    Answer answer;
    while (auto reply = call.Read()) {
      answer.replies.push_back(*std::move(reply));
    }
    answer.status = call.Finish();
    return answer;
  }

  // Restores the initial state, except for numbers that are never reused.
  void Rebuild() {
    for (const Alias& alias : catalogs_->ListAliases("", kMaxAliases)) {
      Require(catalogs_->DeleteAlias(alias.name).ok(), "aliases go");
    }
    for (const auto& catalog : catalogs_->List("", kMaxCatalogs)) {
      Require(catalogs_->Delete(catalog->record().name).ok(), "catalogs go");
    }
    for (const auto& model : catalogs_->models().List({}, 1000)) {
      Require(catalogs_->DeleteModel(model->name).ok(), "models go");
    }
    const auto snapshots = catalogs_->snapshots().List("");
    Require(snapshots.ok() && snapshots->damages.empty(), "snapshots");
    for (const SnapshotManifest& snapshot : snapshots->manifests) {
      Require(
          catalogs_->snapshots().Remove({snapshot.catalog, snapshot.name}).ok(),
          "snapshots go");
    }
    Build();
  }

 private:
  void Build() {
    for (const RpcRequest& request : kRpcWorld) {
      const Answer answer = Call(*FindRpc(request.method),
                                 RpcBytes(request.method, request.text));
      Require(answer.status.ok(), answer.status.error_message());
    }
  }

  std::unique_ptr<CatalogSet> catalogs_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

bool IsRead(absl::string_view method) {
  for (const absl::string_view prefix :
       {"Get", "List", "Verify", "Export", "Attend", "BatchAttend", "BatchGet",
        "Contextualize", "Rank"}) {
    if (absl::StartsWith(method, prefix)) return true;
  }
  return false;
}

void RequireNumbers(const Message& message) {
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count =
        field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const bool many = field->is_repeated();
      switch (field->cpp_type()) {
        case FieldDescriptor::CPPTYPE_MESSAGE:
          RequireNumbers(many
                             ? reflection->GetRepeatedMessage(message, field, i)
                             : reflection->GetMessage(message, field));
          break;
        case FieldDescriptor::CPPTYPE_FLOAT:
          Require(
              !std::isnan(many ? reflection->GetRepeatedFloat(message, field, i)
                               : reflection->GetFloat(message, field)),
              field->full_name() + " is a number");
          break;
        case FieldDescriptor::CPPTYPE_DOUBLE:
          Require(!std::isnan(
                      many ? reflection->GetRepeatedDouble(message, field, i)
                           : reflection->GetDouble(message, field)),
                  field->full_name() + " is a number");
          break;
        default:
          break;
      }
    }
  }
}

void CheckWeights(const v1::AttendResponse& response) {
  if (response.activation_kind() != v1::ACTIVATION_KIND_SOFTMAX) return;
  double sum = 0;
  for (const v1::AttendedItem& item : response.items()) {
    Require(item.weight() >= 0 && item.weight() <= 1 + 1e-5,
            "weights are in [0, 1]");
    sum += item.weight();
  }
  // Each draw has its own weight.
  if (response.has_slate()) return;
  Require(sum <= 1 + 1e-4, "weights sum to at most 1");
}

// Statuses that a request can cause by itself.
bool IsRefusal(const MethodDescriptor& method, grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::ALREADY_EXISTS:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::OUT_OF_RANGE:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::ABORTED:
      return true;
    case grpc::StatusCode::DATA_LOSS:
      return method.name() == "ImportSnapshot";
    default:
      return false;
  }
}

}  // namespace

void CheckInput(absl::string_view input) {
  static World world;
  const std::size_t end = input.find('\n');
  if (end == absl::string_view::npos) return;
  const MethodDescriptor* method = FindRpc(input.substr(0, end));
  if (method == nullptr) return;
  const Answer answer = world.Call(*method, std::string(input.substr(end + 1)));
  // A stream may fail after some successful replies.
  if (!IsRead(method->name()) &&
      (answer.status.ok() || !answer.replies.empty())) {
    world.Rebuild();
  }
  for (const std::string& bytes : answer.replies) {
    const auto reply = NewMessage(method->output_type());
    Require(reply->ParseFromString(bytes), "replies are messages");
    RequireNumbers(*reply);
    if (const auto* response =
            dynamic_cast<const v1::AttendResponse*>(reply.get())) {
      CheckWeights(*response);
    }
  }
  if (answer.status.ok()) {
    Accept();
    return;
  }
  Require(IsRefusal(*method, answer.status.error_code()) &&
              !answer.status.error_message().empty(),
          absl::StrCat(method->name(), ": ", answer.status.error_code(), " ",
                       answer.status.error_message()));
}

}  // namespace attendant
