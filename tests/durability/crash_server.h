// A server that will be killed, and connections that observe its death.
#ifndef ATTENDANT_TESTS_DURABILITY_CRASH_SERVER_H_
#define ATTENDANT_TESTS_DURABILITY_CRASH_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "attendant/v1/alias_service.grpc.pb.h"
#include "attendant/v1/attention_service.grpc.pb.h"
#include "attendant/v1/catalog_service.grpc.pb.h"
#include "attendant/v1/item_service.grpc.pb.h"
#include "attendant/v1/model_service.grpc.pb.h"
#include "attendant/v1/snapshot_service.grpc.pb.h"
#include "tests/integration/server_process.h"

namespace attendant {

// Exit status reported for a process that SIGKILL ended.
inline constexpr int kSigKilled = 128 + 9;

// Starts a server that dies when it reaches the fail point (NAME[:COUNT]).
// Returns null if it died before it was ready.
absl::StatusOr<std::unique_ptr<ServerProcess>> StartToDie(
    const std::string& data_dir, const std::string& fail_point);

// Returns true for fail points in work that no request waits for. A server
// reaches these after writes have settled, or while it starts.
inline bool IsOfBackground(std::string_view fail_point) {
  for (const char* prefix : {"merge.", "seal.", "segments.", "recovery."}) {
    if (absl::StartsWith({fail_point.data(), fail_point.size()}, prefix)) {
      return true;
    }
  }
  return false;
}

// A connection that does not retry, because tests look for calls that get no
// answer. Not thread-safe.
class Connection {
 public:
  explicit Connection(const std::string& address);

  // Makes a unary call of any service, as in
  //   Call(&v1::ItemService::Stub::BatchUpsertItems, request, &response).
  template <typename Stub, typename Request, typename Response>
  grpc::Status Call(grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                 const Request&, Response*),
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    return (StubOf<Stub>().*method)(Limited(context), request, response);
  }
  // Makes a call whose replies are a stream; `response` is the last reply.
  template <typename Stub, typename Request, typename Response>
  grpc::Status Call(std::unique_ptr<grpc::ClientReader<Response>> (
                        Stub::*method)(grpc::ClientContext*, const Request&),
                    const Request& request, Response* last) {
    grpc::ClientContext context;
    const auto reader = (StubOf<Stub>().*method)(Limited(context), request);
    while (reader->Read(last)) {
    }
    return reader->Finish();
  }

  // Creates a catalog with the key field "key" (dot product) and the attribute
  // "note".
  grpc::Status CreateCatalog(
      const std::string& name,
      v1::IndexKind index_kind = v1::INDEX_KIND_UNSPECIFIED, int dimension = 2);
  grpc::Status DeleteCatalog(const std::string& name);
  // Scores every item by the sum of its key's components, of which there are 2
  // by default.
  grpc::Status Attend(const std::string& catalog, const std::string& token,
                      v1::AttendResponse* response,
                      const std::vector<double>& query = {1, 1});
  grpc::Status ExportSnapshot(const v1::ExportSnapshotRequest& request,
                              std::string* bytes);
  grpc::Status ImportSnapshot(const std::string& catalog,
                              const std::string& name,
                              const std::string& bytes);

 private:
  grpc::ClientContext* Limited(grpc::ClientContext& context) const;

  template <typename Stub>
  Stub& StubOf();

  const std::shared_ptr<grpc::Channel> channel_;
  v1::AliasService::Stub aliases_;
  v1::AttentionService::Stub attention_;
  v1::CatalogService::Stub catalogs_;
  v1::ItemService::Stub items_;
  v1::ModelService::Stub models_;
  v1::SnapshotService::Stub snapshots_;
};

template <>
inline v1::AliasService::Stub& Connection::StubOf() {
  return aliases_;
}
template <>
inline v1::AttentionService::Stub& Connection::StubOf() {
  return attention_;
}
template <>
inline v1::CatalogService::Stub& Connection::StubOf() {
  return catalogs_;
}
template <>
inline v1::ItemService::Stub& Connection::StubOf() {
  return items_;
}
template <>
inline v1::ModelService::Stub& Connection::StubOf() {
  return models_;
}
template <>
inline v1::SnapshotService::Stub& Connection::StubOf() {
  return snapshots_;
}

}  // namespace attendant

#endif  // ATTENDANT_TESTS_DURABILITY_CRASH_SERVER_H_
