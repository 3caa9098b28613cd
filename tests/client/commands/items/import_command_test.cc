// Tests of `attendant items import` against a small server in this process.
#include <gmock/gmock.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "attendant/v1/catalog_service.grpc.pb.h"
#include "attendant/v1/item_service.grpc.pb.h"
#include "client/attendant/command_line.h"
#include "client/commands/shared/command.h"
#include "tests/client/temporary_file.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::internal::CaptureStdout;
using ::testing::internal::GetCapturedStdout;

// Answers GetCatalog once and fails later calls.
class OnceToldCatalogs : public v1::CatalogService::Service {
 public:
  grpc::Status GetCatalog(grpc::ServerContext*, const v1::GetCatalogRequest*,
                          v1::GetCatalogResponse* response) override {
    if (told_.exchange(true)) return {grpc::StatusCode::INTERNAL, "no more"};
    v1::KeyField* field =
        response->mutable_catalog()->mutable_schema()->add_key_fields();
    field->set_name("key");
    field->set_dimension(2);
    return grpc::Status::OK;
  }

 private:
  std::atomic<bool> told_ = false;
};

class TakingItems : public v1::ItemService::Service {
 public:
  grpc::Status ImportItems(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::ImportItemsResponse, v1::ImportItemsRequest>*
          stream) override {
    v1::ImportItemsRequest request;
    v1::ImportItemsResponse response;
    while (stream->Read(&request)) {
      const std::int64_t count = response.stored_count() + request.items_size();
      response.set_acknowledged_count(count);
      response.set_stored_count(count);
      stream->Write(response);
    }
    return grpc::Status::OK;
  }
};

// The count of replaced items is read after all items are stored.
TEST(ImportCommandTest, AServerThatGoesAfterTheLastItemFailsNoImport) {
  OnceToldCatalogs catalogs;
  TakingItems items;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&catalogs);
  builder.RegisterService(&items);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const TemporaryFile lines("items.jsonl",
                            "{\"id\": \"a\", \"keys\": {\"key\": [1, 2]}}\n");
  std::vector<std::string> words = {
      "attendant", "--server",  absl::StrCat("127.0.0.1:", port),
      "items",     "import",    "points",
      "--items",   lines.path()};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  CaptureStdout();
  EXPECT_EQ(RunCommandLine(static_cast<int>(words.size()), argv.data()),
            kExitOk);
  // The rate of a short import would be meaningless.
  EXPECT_THAT(GetCapturedStdout(), AllOf(HasSubstr("Stored 1 item in points"),
                                         Not(HasSubstr("per second"))));
  server->Shutdown();
}

}  // namespace
}  // namespace attendant
