// A server in this process, over an empty data directory, with stubs.
#ifndef ATTENDANT_TESTS_SERVICE_SERVER_FIXTURE_H_
#define ATTENDANT_TESTS_SERVICE_SERVER_FIXTURE_H_

#include <google/protobuf/text_format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "attendant/v1/alias_service.grpc.pb.h"
#include "attendant/v1/attention_service.grpc.pb.h"
#include "attendant/v1/catalog_service.grpc.pb.h"
#include "attendant/v1/item_service.grpc.pb.h"
#include "attendant/v1/model_service.grpc.pb.h"
#include "attendant/v1/sequence_service.grpc.pb.h"
#include "core/base/clock.h"
#include "core/catalog/live/catalog_set.h"
#include "service/convert/model.h"
#include "service/metrics/metric_page.h"
#include "service/server.h"
#include "tests/service/internal_errors.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {

inline void SetVector(std::span<const float> floats, v1::Vector* wire) {
  wire->mutable_floats()->mutable_values()->Add(floats.begin(), floats.end());
}

// The server listens on a free loopback port from SetUp on.
class ServerFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    CatalogSet::Options catalog_options;
    catalog_options.most_catalogs = options_.limits.catalog_count;
    ASSERT_OK_AND_ASSIGN(catalogs_,
                         CatalogSet::Open(directory_.path(), catalog_options));
    options_.listen = "127.0.0.1:0";
    ASSERT_OK_AND_ASSIGN(server_, Server::Start(options_, catalogs_.get()));
    channel_ = NewChannel();
    alias_stub_ = v1::AliasService::NewStub(channel_);
    catalog_stub_ = v1::CatalogService::NewStub(channel_);
    item_stub_ = v1::ItemService::NewStub(channel_);
    model_stub_ = v1::ModelService::NewStub(channel_);
    attention_stub_ = v1::AttentionService::NewStub(channel_);
    sequence_stub_ = v1::SequenceService::NewStub(channel_);
  }

  void TearDown() override {
    if (server_ != nullptr) {
      server_->Shutdown(absl::ZeroDuration());
      MetricPage page;
      server_->WriteMetrics(page);
      internal_errors_.Check(page);
    }
    server_.reset();
    catalogs_.reset();
  }

  std::shared_ptr<grpc::Channel> NewChannel() const {
    return grpc::CreateChannel(absl::StrCat("127.0.0.1:", server_->port()),
                               grpc::InsecureChannelCredentials());
  }

  // Waits until a gauge of a worker pool, such as attendant_queue_depth, equals
  // `value`; returns false if it does not within a minute.
  bool AwaitGauge(absl::string_view name, absl::string_view pool,
                  int value) const {
    const std::string line =
        absl::StrCat("\n", name, "{pool=\"", pool, "\"} ", value, "\n");
    const SteadyTime end = SteadyAfter(absl::Minutes(1));
    while (SteadyNow() < end) {
      MetricPage page;
      server_->WriteMetrics(page);
      if (absl::StrContains(page.Text(), line)) return true;
      std::this_thread::yield();
    }
    return false;
  }

  // Each of these methods makes one call.
  grpc::Status Create(const v1::CreateCatalogRequest& request,
                      v1::CreateCatalogResponse* response = nullptr) {
    grpc::ClientContext context;
    v1::CreateCatalogResponse ignored;
    return catalog_stub_->CreateCatalog(
        &context, request, response != nullptr ? response : &ignored);
  }
  grpc::Status UpdateCatalog(const v1::UpdateCatalogRequest& request,
                             v1::UpdateCatalogResponse* response = nullptr) {
    grpc::ClientContext context;
    v1::UpdateCatalogResponse ignored;
    return catalog_stub_->UpdateCatalog(
        &context, request, response != nullptr ? response : &ignored);
  }
  grpc::Status DeleteCatalog(const std::string& name) {
    grpc::ClientContext context;
    v1::DeleteCatalogRequest request;
    request.set_name(name);
    v1::DeleteCatalogResponse response;
    return catalog_stub_->DeleteCatalog(&context, request, &response);
  }
  grpc::Status SetAlias(const std::string& alias, const std::string& catalog,
                        const char* expected = nullptr,
                        v1::SetAliasResponse* response = nullptr) {
    grpc::ClientContext context;
    v1::SetAliasRequest request;
    request.set_alias(alias);
    request.set_catalog(catalog);
    if (expected != nullptr) request.set_expected_catalog(expected);
    v1::SetAliasResponse ignored;
    return alias_stub_->SetAlias(&context, request,
                                 response != nullptr ? response : &ignored);
  }
  grpc::Status DeleteModel(const std::string& name, std::int64_t version) {
    grpc::ClientContext context;
    v1::DeleteModelRequest request;
    request.set_name(name);
    request.set_version(version);
    v1::DeleteModelResponse response;
    return model_stub_->DeleteModel(&context, request, &response);
  }
  grpc::Status Upsert(const v1::BatchUpsertItemsRequest& request,
                      v1::BatchUpsertItemsResponse* response = nullptr) {
    grpc::ClientContext context;
    v1::BatchUpsertItemsResponse ignored;
    return item_stub_->BatchUpsertItems(
        &context, request, response != nullptr ? response : &ignored);
  }
  grpc::Status List(const v1::ListItemsRequest& request,
                    v1::ListItemsResponse* response = nullptr) {
    grpc::ClientContext context;
    v1::ListItemsResponse ignored;
    return item_stub_->ListItems(&context, request,
                                 response != nullptr ? response : &ignored);
  }
  grpc::Status Attend(const v1::AttendRequest& request,
                      v1::AttendResponse* response = nullptr) {
    grpc::ClientContext context;
    v1::AttendResponse ignored;
    return attention_stub_->Attend(&context, request,
                                   response != nullptr ? response : &ignored);
  }

  // As above, for tests that expect success.
  v1::Catalog Describe(const std::string& name) {
    grpc::ClientContext context;
    v1::GetCatalogRequest request;
    request.set_name(name);
    v1::GetCatalogResponse response;
    EXPECT_TRUE(catalog_stub_->GetCatalog(&context, request, &response).ok());
    return response.catalog();
  }
  // Returns the version.
  std::int64_t CreateModel(const std::string& name,
                           const AttentionModel& model) {
    grpc::ClientContext context;
    v1::CreateModelRequest request;
    ModelVersion version;
    version.name.name = name;
    version.model = model;
    ModelToProto(version, request.mutable_model());
    v1::CreateModelResponse response;
    const grpc::Status status =
        model_stub_->CreateModel(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.model().version();
  }
  v1::AttendResponse Answer(const v1::AttendRequest& request) {
    v1::AttendResponse response;
    const grpc::Status status = Attend(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  static v1::AttendRequest Query(const std::string& catalog,
                                 const std::vector<float>& vector = {1, 0}) {
    v1::AttendRequest request;
    request.set_catalog(catalog);
    SetVector(vector, request.mutable_query()->mutable_vector());
    return request;
  }

  // Creates a catalog with the shop's schema and no items.
  grpc::Status CreateEmpty(const std::string& name) {
    v1::CreateCatalogRequest request;
    request.set_name(name);
    v1::KeyField& field = *request.mutable_schema()->add_key_fields();
    field.set_name("k");
    field.set_dimension(2);
    return Create(request);
  }

  // Creates the catalog "shop", with two-dimensional keys "k", the attributes
  // price (double) and name (string), and three items:
  //   a: (1, 0), price 1.5, name "Anna"
  //   b: (0, 1), price 2.5
  //   c: (1, 1)
  void CreateShop() {
    v1::CreateCatalogRequest request;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        R"pb(
          name: "shop"
          schema {
            key_fields { name: "k" dimension: 2 }
            attributes { name: "price" type: ATTRIBUTE_TYPE_DOUBLE }
            attributes { name: "name" type: ATTRIBUTE_TYPE_STRING }
          }
        )pb",
        &request));
    ASSERT_TRUE(Create(request).ok());
    v1::BatchUpsertItemsRequest items;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        R"pb(
          catalog: "shop"
          items {
            id: "a"
            keys {
              key: "k"
              value { floats { values: [ 1, 0 ] } }
            }
            attributes {
              key: "price"
              value { double_value: 1.5 }
            }
            attributes {
              key: "name"
              value { string_value: "Anna" }
            }
          }
          items {
            id: "b"
            keys {
              key: "k"
              value { floats { values: [ 0, 1 ] } }
            }
            attributes {
              key: "price"
              value { double_value: 2.5 }
            }
          }
          items {
            id: "c"
            keys {
              key: "k"
              value { floats { values: [ 1, 1 ] } }
            }
          }
        )pb",
        &items));
    ASSERT_TRUE(Upsert(items).ok());
  }

  Server::Options options_;
  InternalErrors internal_errors_;
  ScratchDirectory directory_;
  std::unique_ptr<CatalogSet> catalogs_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::AliasService::Stub> alias_stub_;
  std::unique_ptr<v1::CatalogService::Stub> catalog_stub_;
  std::unique_ptr<v1::ItemService::Stub> item_stub_;
  std::unique_ptr<v1::ModelService::Stub> model_stub_;
  std::unique_ptr<v1::AttentionService::Stub> attention_stub_;
  std::unique_ptr<v1::SequenceService::Stub> sequence_stub_;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SERVICE_SERVER_FIXTURE_H_
