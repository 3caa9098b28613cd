// Sends the body of any RPC over loopback to a server with one small catalog.
// The call is refused with a status that blames the caller, or answered by a
// message without NaN. The input is the method's name, a newline, and the body.
//
// Changes made by an input are undone before the next.
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include "absl/strings/match.h"
#include "core/catalog/live/catalog_set.h"
#include "service/server.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/rpc_answers.h"
#include "tests/fuzz/rpc_requests.h"
#include "tests/fuzz/scratch.h"

namespace attendant {
namespace {

using google::protobuf::MethodDescriptor;

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

  RpcAnswer Call(const MethodDescriptor& method, const std::string& bytes) {
    return CallRpc(channel_, method, bytes);
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
      const RpcAnswer answer = Call(*FindRpc(request.method),
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

}  // namespace

void CheckInput(absl::string_view input) {
  static World world;
  const std::size_t end = input.find('\n');
  if (end == absl::string_view::npos) return;
  const MethodDescriptor* method = FindRpc(input.substr(0, end));
  if (method == nullptr) return;
  const RpcAnswer answer =
      world.Call(*method, std::string(input.substr(end + 1)));
  // A stream may fail after some successful replies.
  if (!IsRead(method->name()) &&
      (answer.status.ok() || !answer.replies.empty())) {
    world.Rebuild();
  }
  CheckAnswer(*method, answer);
  if (answer.status.ok()) Accept();
}

}  // namespace attendant
