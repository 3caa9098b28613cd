// The pages of the HTTP port, requested as Prometheus and Kubernetes do.
#include "service/http_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "attendant/v1/snapshot_service.grpc.pb.h"
#include "core/kernels/kernels.h"
#include "service/calls/methods.h"
#include "tests/service/server_fixture.h"

namespace attendant {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class HttpPortTest : public ServerFixture {
 protected:
  void SetUp() override {
    ServerFixture::SetUp();
    ASSERT_OK_AND_ASSIGN(port_, HttpPort::Start({"127.0.0.1:0"}));
  }
  void TearDown() override {
    port_.reset();
    ServerFixture::TearDown();
  }

  httplib::Result Get(const std::string& path) const {
    return httplib::Client("127.0.0.1", port_->port()).Get(path);
  }
  std::string Scrape() const {
    const httplib::Result page = Get("/metrics");
    EXPECT_TRUE(page);
    return page ? page->body : "";
  }

  std::unique_ptr<HttpPort> port_;
};

TEST_F(HttpPortTest, IsAliveBeforeThereIsAServer) {
  const httplib::Result live = Get("/livez");
  ASSERT_TRUE(live);
  EXPECT_EQ(live->status, 200);
  EXPECT_EQ(live->body, "ok\n");
  const httplib::Result ready = Get("/readyz");
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->status, 503);
  EXPECT_EQ(ready->get_header_value("Content-Type"), "application/json");
  const auto json = nlohmann::json::parse(ready->body);
  EXPECT_EQ(json["status"], "not ready");
  EXPECT_THAT(json["reasons"][0].get<std::string>(), HasSubstr("starting"));
  EXPECT_THAT(Scrape(), HasSubstr("attendant_build_info{version=\""));
}

TEST_F(HttpPortTest, IsReadyWhileTheServerTakesRequests) {
  port_->Show(*server_);
  const httplib::Result ready = Get("/readyz");
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->status, 200);
  const auto json = nlohmann::json::parse(ready->body);
  EXPECT_EQ(json["status"], "ready");
  EXPECT_THAT(json["reasons"], IsEmpty());
  EXPECT_THAT(json["warnings"], IsEmpty());
}

TEST_F(HttpPortTest, IsNotReadyButAliveOnceTheServerDrains) {
  port_->Show(*server_);
  server_->Shutdown(absl::ZeroDuration());
  const httplib::Result ready = Get("/readyz");
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->status, 503);
  EXPECT_THAT(ready->body, HasSubstr("draining"));
  EXPECT_EQ(Get("/livez")->status, 200);
}

TEST_F(HttpPortTest, CountsCallsAndDescribesCatalogs) {
  port_->Show(*server_);
  CreateShop();
  v1::AttendRequest request = Query("shop");
  ASSERT_TRUE(Attend(request).ok());
  request.set_catalog("another");
  EXPECT_EQ(Attend(request).error_code(), grpc::StatusCode::NOT_FOUND);
  const std::string page = Scrape();
  const std::string attend =
      "{grpc_type=\"unary\",grpc_service=\"attendant.v1.AttentionService\","
      "grpc_method=\"Attend\"";
  for (const std::string& line :
       {absl::StrCat("grpc_server_started_total", attend, "} 2\n"),
        absl::StrCat("grpc_server_msg_received_total", attend, "} 2\n"),
        absl::StrCat("grpc_server_msg_sent_total", attend, "} 1\n"),
        absl::StrCat("grpc_server_handled_total", attend,
                     ",grpc_code=\"OK\"} 1\n"),
        absl::StrCat("grpc_server_handled_total", attend,
                     ",grpc_code=\"NotFound\"} 1\n"),
        absl::StrCat("grpc_server_handling_seconds_count", attend,
                     ",grpc_code=\"OK\"} 1\n"),
        std::string("attendant_batch_queries_count 1\n"),
        std::string("attendant_rows_scored_total 3\n"),
        std::string("attendant_answers_total{mass=\"exact\"} 1\n"),
        std::string("attendant_shortlist_mass_count 1\n"),
        std::string("attendant_queue_depth{pool=\"attend\"} 0\n"),
        std::string("attendant_catalogs 1\n"),
        std::string("attendant_catalog_items{catalog=\"shop\"} 3\n"),
        std::string("attendant_catalog_segments{catalog=\"shop\"} 1\n"),
        std::string("attendant_catalog_tombstone_ratio{catalog=\"shop\"} 0\n"),
        std::string("attendant_catalog_sequence{catalog=\"shop\"} 1\n")}) {
    EXPECT_TRUE(absl::StrContains(page, "\n" + line)) << line;
  }
}

TEST_F(HttpPortTest, CountsEachMessageOfAStream) {
  port_->Show(*server_);
  CreateShop();
  grpc::ClientContext import_context;
  const auto import = item_stub_->ImportItems(&import_context);
  v1::ImportItemsRequest items;
  items.set_catalog("shop");
  for (int i = 0; i < 3; ++i) {
    v1::ImportItemsResponse acknowledged;
    ASSERT_TRUE(import->Write(items));
    ASSERT_TRUE(import->Read(&acknowledged));
    items.clear_catalog();
  }
  import->WritesDone();
  ASSERT_TRUE(import->Finish().ok());

  const auto snapshots = v1::SnapshotService::NewStub(channel_);
  v1::CreateSnapshotRequest creation;
  creation.set_catalog("shop");
  creation.set_name("night");
  grpc::ClientContext create_context;
  const auto created = snapshots->CreateSnapshot(&create_context, creation);
  int created_count = 0;
  for (v1::CreateSnapshotResponse response; created->Read(&response);) {
    ++created_count;
  }
  ASSERT_TRUE(created->Finish().ok());

  v1::ExportSnapshotRequest exportation;
  exportation.set_catalog("shop");
  exportation.set_name("night");
  grpc::ClientContext out_context;
  grpc::ClientContext in_context;
  const auto out = snapshots->ExportSnapshot(&out_context, exportation);
  v1::ImportSnapshotResponse imported;
  const auto in = snapshots->ImportSnapshot(&in_context, &imported);
  v1::ImportSnapshotRequest part;
  part.set_name("copy");
  int part_count = 0;
  for (v1::ExportSnapshotResponse response; out->Read(&response);) {
    part.set_chunk(response.chunk());
    ASSERT_TRUE(in->Write(part));
    part.clear_name();
    ++part_count;
  }
  ASSERT_TRUE(out->Finish().ok());
  in->WritesDone();
  const grpc::Status taken = in->Finish();
  ASSERT_TRUE(taken.ok()) << taken.error_message();

  const std::string page = Scrape();
  const auto expect = [&](const std::string& service, const std::string& method,
                          int received, int sent) {
    for (const auto& [name, count] :
         {std::pair("received", received), {"sent", sent}}) {
      const std::regex line(
          absl::StrCat("\ngrpc_server_msg_", name, "_total\\{[^}]*", service,
                       "\",grpc_method=\"", method, "\"\\} ", count, "\n"));
      EXPECT_TRUE(std::regex_search(page, line)) << method << " " << name;
    }
  };
  expect("ItemService", "ImportItems", 3, 3);
  expect("SnapshotService", "CreateSnapshot", 1, created_count);
  expect("SnapshotService", "ExportSnapshot", 1, part_count);
  expect("SnapshotService", "ImportSnapshot", part_count, 1);
}

TEST_F(HttpPortTest, AnExplainedAnswerBringsItsPlan) {
  CreateShop();
  v1::AttendRequest request = Query("shop");
  v1::AttendResponse response;
  ASSERT_TRUE(Attend(request, &response).ok());
  EXPECT_FALSE(response.has_plan());
  request.set_explain(true);
  ASSERT_TRUE(Attend(request, &response).ok());
  ASSERT_TRUE(response.has_plan());
  const v1::QueryPlan& plan = response.plan();
  EXPECT_EQ(plan.request_id().size(), 16u);
  EXPECT_EQ(plan.candidate_count(), 3);
  EXPECT_EQ(plan.segment_count(), 1);
  EXPECT_EQ(plan.kernel_level(), KernelLevelName(ActiveKernelLevel()));
  ASSERT_EQ(plan.scans_size(), 1);
  EXPECT_EQ(plan.scans(0).index_kind(), v1::INDEX_KIND_FLAT);
  EXPECT_EQ(plan.scans(0).scored_count(), 3);
  EXPECT_EQ(plan.scans(0).not_enough_reason(), "");
  for (const auto* time : {&plan.queue_duration(), &plan.read_duration(),
                           &plan.plan_duration(), &plan.scan_duration(),
                           &plan.answer_duration(), &plan.reply_duration()}) {
    EXPECT_GT(time->seconds() + time->nanos(), 0);
  }
  v1::BatchAttendRequest batch;
  batch.set_catalog("shop");
  *batch.add_requests() = request;
  v1::BatchAttendResponse answers;
  grpc::ClientContext context;
  ASSERT_TRUE(attention_stub_->BatchAttend(&context, batch, &answers).ok());
  EXPECT_EQ(answers.results(0).response().plan().candidate_count(), 3);
}

TEST_F(HttpPortTest, EveryRpcIsCounted) {
  port_->Show(*server_);
  const std::string page = Scrape();
  EXPECT_GE(AllMethods().size(), 32u);
  for (const Method& method : AllMethods()) {
    const std::string line =
        absl::StrCat("\ngrpc_server_started_total{grpc_type=\"", method.type,
                     "\",grpc_service=\"", method.service, "\",grpc_method=\"",
                     method.name, "\"} 0\n");
    EXPECT_TRUE(absl::StrContains(page, line)) << line;
  }
}

std::string ReadDocument(const std::string& path) {
  std::ifstream file(absl::StrCat(ATTENDANT_SOURCE_DIR, "/", path));
  EXPECT_TRUE(file.is_open()) << path;
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

// Returns the distinct matches of the only group of `pattern`.
std::set<std::string> AllMatches(const std::string& text,
                                 const std::string& pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end;
       ++at) {
    found.insert((*at)[1]);
  }
  return found;
}

TEST_F(HttpPortTest, OperationsDocumentsEveryMetricAndNoOther) {
  port_->Show(*server_);
  CreateShop();
  EXPECT_EQ(AllMatches(ReadDocument("docs/operations.md"),
                       "\n\\| `([a-z0-9_]+)` \\| (?:counter|gauge|histogram) "),
            AllMatches(Scrape(), "# TYPE ([a-z0-9_]+) "));
}

// Returns every expression of the dashboard.
std::vector<std::string> Expressions(const nlohmann::json& json) {
  std::vector<std::string> found;
  if (json.is_object()) {
    for (const char* key : {"expr", "definition"}) {
      if (json.contains(key)) found.push_back(json[key]);
    }
  }
  if (json.is_structured()) {
    for (const auto& part : json) {
      for (std::string& expression : Expressions(part)) {
        found.push_back(std::move(expression));
      }
    }
  }
  return found;
}

// The dashboard's lists of catalogs already show their number.
const std::set<std::string> kNotOnTheDashboard = {"attendant_catalogs"};

// Expects that a scrape has every metric and label of these expressions.
// Returns the names of the metrics.
std::set<std::string> ExpectInScrape(
    const std::string& page, const std::vector<std::string>& expressions) {
  std::set<std::string> known = AllMatches(page, "# TYPE ([a-z0-9_]+) ");
  for (const std::string& histogram :
       AllMatches(page, "# TYPE ([a-z0-9_]+) histogram")) {
    for (const char* series : {"_bucket", "_sum", "_count"}) {
      known.insert(histogram + series);
    }
  }
  std::set<std::string> labels = AllMatches(page, "[{,]([a-z_]+)=\"");
  labels.insert({"instance", "job", "le"});  // Prometheus adds the first two
  std::set<std::string> named;
  for (const std::string& expression : expressions) {
    for (const std::string& name : AllMatches(
             expression, "\\b((?:attendant|grpc_server|process)_[a-z0-9_]+)")) {
      EXPECT_TRUE(known.contains(name)) << name << " in " << expression;
      named.insert(name);
    }
    for (const std::string& label :
         AllMatches(expression, "\\b([a-z_]+) *(?:=~|!=|=)")) {
      EXPECT_TRUE(labels.contains(label)) << label << " in " << expression;
    }
    for (const std::string& list :
         AllMatches(expression, "\\bby \\(([^)]*)\\)")) {
      for (const std::string& label : AllMatches(list, "([a-z_]+)")) {
        EXPECT_TRUE(labels.contains(label)) << label << " in " << expression;
      }
    }
  }
  return named;
}

TEST_F(HttpPortTest, AlertRulesNameWhatAScrapeHas) {
  port_->Show(*server_);
  CreateShop();
  const std::set<std::string> expressions = AllMatches(
      ReadDocument("deploy/prometheus/rules.yml"), "\n +expr: ([^\n]+)");
  EXPECT_GE(expressions.size(), 10u);
  ExpectInScrape(Scrape(), {expressions.begin(), expressions.end()});
}

TEST_F(HttpPortTest, TheDashboardNamesWhatAScrapeHasAndNothingElse) {
  port_->Show(*server_);
  CreateShop();
  const std::string page = Scrape();
  const auto dashboard = nlohmann::json::parse(
      ReadDocument("deploy/grafana/attendant.json"), nullptr, false);
  ASSERT_FALSE(dashboard.is_discarded());
  const std::vector<std::string> expressions = Expressions(dashboard);
  EXPECT_GE(expressions.size(), 50u);
  const std::set<std::string> named = ExpectInScrape(page, expressions);
  const auto is_shown = [&](const std::string& family) {
    return named.contains(family) || named.contains(family + "_bucket") ||
           named.contains(family + "_count");
  };
  for (const std::string& family :
       AllMatches(page, "# TYPE (attendant_[a-z0-9_]+) ")) {
    EXPECT_NE(is_shown(family), kNotOnTheDashboard.contains(family)) << family;
  }
}

TEST_F(HttpPortTest, OtherPathsAreNotFound) {
  const httplib::Result other = Get("/etc/passwd");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->status, 404);
}

TEST_F(HttpPortTest, APortThatIsTakenIsAnError) {
  const std::string taken = absl::StrCat("127.0.0.1:", port_->port());
  EXPECT_THAT(HttpPort::Start({taken}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(taken)));
  EXPECT_THAT(
      HttpPort::Start({"nowhere"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("HOST:PORT")));
}

}  // namespace
}  // namespace attendant
