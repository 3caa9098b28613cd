// `attendant` as used by people and scripts: output, messages and exit statuses
// common to all commands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/binaries.h"
#include "tests/integration/points_fixture.h"

namespace attendant {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(AttendantCommandTest, WhatTheFlagsDecideIsAMatterOfUsage) {
  RunText({"catalog", "create", "shop", "--key-field", "key:2", "--attribute",
           "price:double", "--attribute", "tags:string_list"});
  const auto set = [&](const std::string& setting) {
    return Run({"items", "update", "shop", "a", "--set", setting});
  };
  const CommandResult price = set("price=abc");
  EXPECT_EQ(price.exit_status, 2);
  EXPECT_EQ(price.err,
            "attendant: --set price: got \"abc\", want a finite number; the "
            "catalog declares price as double\n");
  EXPECT_EQ(set("price=\"2\"").exit_status, 2);
  EXPECT_THAT(set("tags=a").err,
              HasSubstr("want a list of texts, as in [\"a\", \"b\"]"));

  std::string rows;
  for (int i = 0; i < 1025; ++i) rows += "1 2\n";
  const CommandResult many = Run(
      {"contextualize", "--vectors", File("many.txt", rows), "--svg=lines"});
  EXPECT_EQ(many.exit_status, 2);
  EXPECT_THAT(many.err, HasSubstr("--svg: got 1025 tokens, want at most"));

  // attendant-load behaves the same.
  for (const std::vector<std::string>& alone :
       {std::vector<std::string>{"--client-cert", File("cert.pem", "x")},
        {"--ca", files_ / "missing.pem"},
        {"--auth-token-file", files_ / "missing"}}) {
    std::vector<std::string> list = alone;
    list.insert(list.end(), {"catalog", "list"});
    EXPECT_EQ(Run(list).exit_status, 2) << alone[0];
  }
}

TEST_F(AttendantCommandTest, AFlagThatMayBeRepeatedTakesOneWordEachTime) {
  EXPECT_THAT(Run({"attend", "--help"}).out,
              AllOf(HasSubstr("may be repeated"), Not(HasSubstr("TEXT ...")),
                    HasSubstr("--seed INTEGER")));
  const CommandResult two =
      Run({"attend", "points", "--like", "item1", "item2"});
  EXPECT_EQ(two.exit_status, 2);
  EXPECT_THAT(two.err, HasSubstr("item2"));
}

TEST_F(AttendantCommandTest, InOnePipeLinesComeInTheOrderTheyWereSaid) {
  StorePoints();
  const CommandResult listed = RunCommand(
      {"/bin/sh", "-c", "\"$0\" \"$@\" 2>&1 | cat", kAttendant, "--server",
       server_->address(), "items", "list", "points", "--page-size", "2"});
  EXPECT_EQ(listed.out.find("item0"), 0u) << listed.out;
  EXPECT_LT(listed.out.rfind("item"), listed.out.find("There is more"));
}

TEST_F(AttendantCommandTest, TheDoctorFindsTheServerWell) {
  CreatePoints();
  const std::vector<std::string> doctor = {"doctor", "--data-dir", data_.path(),
                                           "--http", server_->http_address()};
  const json examined = RunJson(doctor);
  EXPECT_NE(examined["verdict"], "failure");
  const json& server = examined["examinations"][2];
  EXPECT_EQ(server["title"], "Server " + server_->address());
  for (const json& finding : server["findings"]) {
    EXPECT_EQ(finding["verdict"], "ok") << finding;
  }
  EXPECT_EQ(server["findings"].size(), 5u);
  EXPECT_EQ(server["findings"][3]["subject"], "open files");
  const auto machines_open_files = [](const json& all) {
    for (const json& finding : all["examinations"][0]["findings"]) {
      if (finding["subject"] == "open files")
        return std::string(finding["text"]);
    }
    return std::string("none");
  };
  // The limit shown is the server's, not this shell's.
  EXPECT_EQ(machines_open_files(examined), "none");
  EXPECT_THAT(machines_open_files(RunJson(
                  {"doctor", "--no-server", "--data-dir", data_.path()})),
              HasSubstr(absl::StrCat("of process ", server_->pid())));
  EXPECT_THAT(machines_open_files(RunJson({"doctor", "--no-server"})),
              HasSubstr("this shell"));
  const json& directory = examined["examinations"][1];
  EXPECT_EQ(directory["findings"][2]["text"],
            absl::StrCat("process ", server_->pid()));
  EXPECT_THAT(Run({"doctor", "--data-dir", files_ / "other", "--http",
                   server_->http_address()})
                  .out,
              HasSubstr("nobody, though the server answers"));
  // The doctor does not guess the server's data directory.
  EXPECT_THAT(Run({"doctor", "--http", server_->http_address()}).out,
              HasSubstr("not examined: say which with --data-dir"));
  server_->Kill();
  const CommandResult dead = Run(doctor);
  EXPECT_EQ(dead.exit_status, 1);
  EXPECT_THAT(dead.out, HasSubstr("start one: attendantd"));
}

TEST_F(AttendantCommandTest, ExitStatusTellsUsageFromRefusalFromNoServer) {
  EXPECT_EQ(Run({"catalog", "list"}).exit_status, 0);
  EXPECT_EQ(Run({"--help"}).exit_status, 0);
  const CommandResult refused = Run({"attend", "nowhere", "--vector", "1,0"});
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_THAT(refused.err, HasSubstr("nowhere"));
  EXPECT_EQ(Run({"attend", "points", "--no-such-flag"}).exit_status, 2);
  EXPECT_EQ(Run({"attend", "points"}).exit_status, 2);
  EXPECT_EQ(server_->Stop(), 0);
  const CommandResult unreachable = Run({"catalog", "list"});
  EXPECT_EQ(unreachable.exit_status, 3);
  EXPECT_THAT(unreachable.err,
              AllOf(HasSubstr("no server answers at " + server_->address()),
                    HasSubstr("start one: attendantd")));
}

TEST_F(AttendantCommandTest, FirstFailuresSayWhatToDoNext) {
  EXPECT_THAT(Run({"attend", "nowhere", "--vector", "1,0"}).err,
              HasSubstr("`attendant catalog list` lists the catalogs"));
  // gRPC would print messages of its own.
  const CommandResult http = RunCommand(
      {kAttendant, "--server", server_->http_address(), "catalog", "list"});
  EXPECT_EQ(http.exit_status, 3);
  EXPECT_EQ(
      http.err,
      absl::StrCat("attendant: something listens at ", server_->http_address(),
                   ", but does not answer as a gRPC server without TLS; check "
                   "that --server names the gRPC port, not the HTTP port; for "
                   "a server with TLS give --ca FILE\n"));
  for (const char* address : {"localhost", ":7600", "::1", "[::1]"}) {
    const CommandResult usage =
        RunCommand({kAttendant, "--server", address, "catalog", "list"});
    EXPECT_EQ(usage.exit_status, 2) << address;
    EXPECT_THAT(usage.err, HasSubstr("want HOST:PORT"));
  }
}

TEST_F(AttendantCommandTest, JsonOfWhatFailsIsOneDocumentToo) {
  const CommandResult refused =
      Run({"--json", "attend", "nowhere", "--vector", "1,0"});
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_THAT(refused.err, HasSubstr("no catalog 'nowhere'"));
  const json error = json::parse(refused.out)["error"];
  EXPECT_EQ(error["code"], "NOT_FOUND");
  EXPECT_THAT(error["message"], HasSubstr("no catalog 'nowhere'"));
  EXPECT_EQ(error["reason"], "CATALOG_NOT_FOUND");
  EXPECT_TRUE(error["metadata"].is_object());
  EXPECT_FALSE(error.contains("retryDelay"));
  // Errors that the client finds have a reason too.
  CreatePoints();
  const auto reason_of = [&](std::vector<std::string> command) {
    command.insert(command.begin(), "--json");
    return json::parse(Run(command).out)["error"]["reason"];
  };
  EXPECT_EQ(reason_of({"items", "update", "points", "a", "--set", "no=1"}),
            "INVALID_ARGUMENT");
  EXPECT_EQ(reason_of({"items", "export", "points", File("is_there", "")}),
            "ALREADY_EXISTS");
  EXPECT_EQ(reason_of({"items", "import", "points", "--items",
                       files_ / "missing.jsonl"}),
            "NOT_FOUND");
  EXPECT_EQ(reason_of({"fit", "lsi", files_ / "missing.csv", "--out",
                       files_ / "fit"}),
            "NOT_FOUND");
  const CommandResult usage = Run({"--json", "attend", "points"});
  EXPECT_EQ(usage.exit_status, 2);
  EXPECT_THAT(usage.err, HasSubstr("--vector"));
  EXPECT_EQ(json::parse(usage.out)["error"]["reason"], "USAGE");
  EXPECT_EQ(server_->Stop(), 0);
  const CommandResult unreachable = Run({"--json", "catalog", "list"});
  EXPECT_EQ(unreachable.exit_status, 3);
  EXPECT_EQ(json::parse(unreachable.out)["error"]["code"], "UNAVAILABLE");
}

// The commands are those of the README.
TEST_F(AttendantCommandTest, TheExampleOfTheReadmeRuns) {
  const std::string write_files =
      absl::StrCat(kSourceDir, "/examples/films/write-files");
  EXPECT_EQ(RunCommand({write_files, "--help"}).exit_status, 0);
  ASSERT_EQ(RunCommand({write_files, files_ / "new"}).exit_status, 0);
  ASSERT_EQ(Run({"catalog", "create", "films", "--key-field", "taste:64:cosine",
                 "--temperature", "taste=0.05", "--attribute", "title:string"})
                .exit_status,
            0);
  const CommandResult imported =
      Run({"items", "import", "films", "--ids", files_ / "new/ids.txt",
           "--keys", "taste=" + files_ / "new/keys.npy", "--attributes",
           files_ / "new/titles.jsonl"});
  ASSERT_EQ(imported.exit_status, 0) << imported.err;
  const std::string answer =
      RunText({"attend", "films", "--like", "tt0111161", "--like",
               "tt0068646=0.5", "--show", "title", "-k", "2"});
  // Both films are of the same taste.
  EXPECT_THAT(answer, AllOf(HasSubstr("The Godfather Part II"),
                            HasSubstr("12 Angry Men")));
  const CommandResult fitted = Run({"fit", "temperature", "--catalog", "films",
                                    "--pairs", files_ / "new/clicks.jsonl"});
  EXPECT_EQ(fitted.exit_status, 0) << fitted.err;
}

}  // namespace
}  // namespace attendant
