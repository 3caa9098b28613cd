// A server in this process, over an empty data directory, with stubs.
#ifndef ATTENDANT_TESTS_SERVICE_SERVER_FIXTURE_H_
#define ATTENDANT_TESTS_SERVICE_SERVER_FIXTURE_H_

#include <google/protobuf/text_format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "attendant/v1/attention_service.grpc.pb.h"
#include "attendant/v1/catalog_service.grpc.pb.h"
#include "attendant/v1/item_service.grpc.pb.h"
#include "attendant/v1/model_service.grpc.pb.h"
#include "attendant/v1/sequence_service.grpc.pb.h"
#include "core/base/clock.h"
#include "core/catalog/live/catalog_set.h"
#include "service/metrics/metric_page.h"
#include "service/server.h"
#include "tests/service/internal_errors.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"

namespace attendant {

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

  // True once a gauge of a pool of workers, such as attendant_queue_depth, is
  // so much.
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

  // The verbs: each makes one call.
  grpc::Status Create(const v1::CreateCatalogRequest& request,
                      v1::CreateCatalogResponse* response = nullptr) {
    grpc::ClientContext context;
    v1::CreateCatalogResponse ignored;
    return catalog_stub_->CreateCatalog(
        &context, request, response != nullptr ? response : &ignored);
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

  // A catalog "shop" of two-dimensional keys "k" with attributes price
  // (double) and name (string), and three items:
  //   a: (1, 0), price 1.5, name "Anna"   b: (0, 1), price 2.5   c: (1, 1)
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
  std::unique_ptr<v1::CatalogService::Stub> catalog_stub_;
  std::unique_ptr<v1::ItemService::Stub> item_stub_;
  std::unique_ptr<v1::ModelService::Stub> model_stub_;
  std::unique_ptr<v1::AttentionService::Stub> attention_stub_;
  std::unique_ptr<v1::SequenceService::Stub> sequence_stub_;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SERVICE_SERVER_FIXTURE_H_
