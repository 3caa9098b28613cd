#include "tests/durability/crash_server.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/integration/requests.h"

namespace attendant {
namespace {

// Generous, for a slow machine under load.
constexpr std::chrono::seconds kDeadline(60);
constexpr int kMaxItems = 10000;
constexpr std::size_t kChunkBytes = 20000;

}  // namespace

absl::StatusOr<std::unique_ptr<ServerProcess>> StartToDie(
    const std::string& data_dir, const std::string& fail_point) {
  auto server = ServerProcess::Start(
      data_dir, {},
      {absl::StrCat("ATTENDANT_FAIL_POINT=", fail_point, "=kill")});
  if (!server.ok() && absl::StrContains(server.status().message(),
                                        absl::StrCat("status ", kSigKilled))) {
    return nullptr;
  }
  return server;
}

Connection::Connection(const std::string& address)
    : channel_(
          grpc::CreateChannel(address, grpc::InsecureChannelCredentials())),
      aliases_(channel_),
      attention_(channel_),
      catalogs_(channel_),
      items_(channel_),
      models_(channel_),
      snapshots_(channel_) {}

grpc::ClientContext* Connection::Limited(grpc::ClientContext& context) const {
  context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  return &context;
}

grpc::Status Connection::CreateCatalog(const std::string& name,
                                       v1::IndexKind index_kind,
                                       int dimension) {
  v1::CreateCatalogRequest request;
  request.set_name(name);
  v1::KeyField* field = request.mutable_schema()->add_key_fields();
  *field = KeyFieldOf("key", dimension, v1::SCORE_KIND_DOT);
  field->set_index_kind(index_kind);
  v1::AttributeField* note = request.mutable_schema()->add_attributes();
  note->set_name("note");
  note->set_type(v1::ATTRIBUTE_TYPE_INT64);
  v1::CreateCatalogResponse response;
  return Call(&v1::CatalogService::Stub::CreateCatalog, request, &response);
}

grpc::Status Connection::DeleteCatalog(const std::string& name) {
  v1::DeleteCatalogRequest request;
  request.set_name(name);
  v1::DeleteCatalogResponse response;
  return Call(&v1::CatalogService::Stub::DeleteCatalog, request, &response);
}

grpc::Status Connection::Attend(const std::string& catalog,
                                const std::string& token,
                                v1::AttendResponse* response,
                                const std::vector<double>& query) {
  v1::AttendRequest request;
  request.set_catalog(catalog);
  request.set_state_token(token);
  *request.mutable_query()->mutable_vector() = VectorOf(query);
  request.set_result_count(kMaxItems);
  request.set_shortlist_count(kMaxItems);
  request.set_scan_mode(v1::SCAN_MODE_EXACT);
  return Call(&v1::AttentionService::Stub::Attend, request, response);
}

grpc::Status Connection::ExportSnapshot(
    const v1::ExportSnapshotRequest& request, std::string* bytes) {
  grpc::ClientContext context;
  const auto reader = snapshots_.ExportSnapshot(Limited(context), request);
  v1::ExportSnapshotResponse response;
  while (reader->Read(&response)) bytes->append(response.chunk());
  return reader->Finish();
}

grpc::Status Connection::ImportSnapshot(const std::string& catalog,
                                        const std::string& name,
                                        const std::string& bytes) {
  grpc::ClientContext context;
  v1::ImportSnapshotResponse response;
  const auto writer = snapshots_.ImportSnapshot(Limited(context), &response);
  v1::ImportSnapshotRequest request;
  request.set_catalog(catalog);
  request.set_name(name);
  for (std::size_t at = 0; at < bytes.size(); at += kChunkBytes) {
    request.set_chunk(bytes.substr(at, kChunkBytes));
    if (!writer->Write(request)) break;
    request.Clear();
  }
  writer->WritesDone();
  return writer->Finish();
}

}  // namespace attendant
