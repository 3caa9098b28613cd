// How attendantd starts, refuses to start, and stops.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "client/api/client.h"
#include "core/base/clock.h"
#include "tests/integration/binaries.h"
#include "tests/integration/process.h"
#include "tests/integration/requests.h"
#include "tests/integration/server_process.h"
#include "tests/support/pseudo_terminal.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_authority.h"

namespace attendant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Runs attendantd with arguments that make it end by itself.
CommandResult RunServer(const std::string& data_dir) {
  return RunCommand(
      {kAttendantd, "--data-dir", data_dir, "--listen", "127.0.0.1:0"});
}

// Log collectors read JSON lines, so the output must not contain lines of a
// configuration.
TEST(StartupTest, PrintsItsAddressesAndStopsOnSigterm) {
  const ScratchDirectory data;
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
  EXPECT_EQ(server->output(),
            absl::StrCat("attendantd http on ", server->http_address(),
                         "\nattendantd ready on ", server->address(), "\n"));
  EXPECT_THAT(server->address(), ::testing::StartsWith("127.0.0.1:"));
  EXPECT_EQ(server->Stop(), 0);
  std::istringstream log(server->log());
  std::string line;
  int line_count = 0;
  while (std::getline(log, line)) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
    ++line_count;
  }
  EXPECT_GT(line_count, 0);
}

// Waits until `done` is true; returns false after a minute.
bool Await(absl::FunctionRef<bool()> done) {
  const SteadyTime end = SteadyAfter(absl::Minutes(1));
  while (!done()) {
    if (SteadyNow() >= end) return false;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return true;
}

TEST(StartupTest, PrintsItsConfigurationOnATerminal) {
  const ScratchDirectory data;
  const ScratchDirectory files;
  PseudoTerminal terminal(80);
  if (terminal.stream() == nullptr) GTEST_SKIP() << "no terminals here";
  const int err = OpenForWriting(files / "err");
  Process server = Process::Start(
      {kAttendantd, "--data-dir", data.path(), "--listen", "127.0.0.1:0"},
      fileno(terminal.stream()), err);
  close(err);
  std::string drawn;
  EXPECT_TRUE(Await([&] {
    drawn += terminal.Drawn();
    return absl::StrContains(drawn, "ready on");
  }));
  EXPECT_THAT(drawn, HasSubstr(absl::StrCat("data-dir = \"", data.path())));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(absl::Minutes(1)), 0);
}

// A full pipe used to block each thread that logged, and the shutdown.
TEST(StartupTest, ServesAndStopsThoughNobodyReadsItsLog) {
  const ScratchDirectory data;
  const ScratchDirectory files;
  const std::string out_path = files / "out";
  int err[2];
  ASSERT_EQ(pipe2(err, O_CLOEXEC), 0);
  // Shrinks the pipe to one page.
  ASSERT_GT(fcntl(err[1], F_SETPIPE_SZ, 1), 0);
  const int out = OpenForWriting(out_path);
  Process server =
      Process::Start({kAttendantd, "--data-dir", data.path(), "--listen",
                      "127.0.0.1:0", "--log-level", "debug"},
                     out, err[1]);
  close(out);
  close(err[1]);
  const std::string ready = "attendantd ready on ";
  ASSERT_TRUE(Await([&] {
    const std::string output = ReadWholeFile(out_path);
    const auto at = output.find(ready);
    return at != std::string::npos && output.find('\n', at) != output.npos;
  }));
  const std::string output = ReadWholeFile(out_path);
  const std::string address(absl::StripAsciiWhitespace(
      output.substr(output.find(ready) + ready.size())));
  ASSERT_OK_AND_ASSIGN(
      const auto client,
      Client::Connect({.server = address, .deadline = absl::Seconds(20)}));
  // Each call is logged.
  constexpr int kCalls = 200;
  for (int i = 0; i < kCalls; ++i) {
    ASSERT_OK(client->ListCatalogs(v1::ListCatalogsRequest()).status()) << i;
  }
  const SteadyTime begin = SteadyNow();
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(absl::Minutes(1)), 0);
  // The log gets one second to drain, not the grace period of the calls.
  EXPECT_LT(TimeSince(begin), absl::Seconds(20));
  close(err[0]);
}

TEST(StartupTest, WhatItStoresIsNobodyElsesToRead) {
  const ScratchDirectory scratch;
  const std::string data = scratch / "data";
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data));
  ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
  ASSERT_OK(
      CreateCatalog(*client, "shop", {KeyFieldOf("k", 2, v1::SCORE_KIND_DOT)}));
  constexpr auto kOthers =
      std::filesystem::perms::group_all | std::filesystem::perms::others_all;
  int count = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(data)) {
    EXPECT_EQ(entry.status().permissions() & kOthers,
              std::filesystem::perms::none)
        << entry.path();
    ++count;
  }
  EXPECT_GT(count, 5);
}

TEST(StartupTest, RefusesADataDirectoryThatAnotherProcessHolds) {
  const ScratchDirectory data;
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
  const CommandResult second = RunServer(data.path());
  EXPECT_EQ(second.exit_status, 1);
  EXPECT_THAT(second.err, HasSubstr(data.path()));
  // The first server is not disturbed.
  ASSERT_OK_AND_ASSIGN(const auto client, server->Connect());
  EXPECT_OK(client->ListCatalogs(v1::ListCatalogsRequest()));
}

TEST(StartupTest, RefusesKernelsThatThereAreNot) {
  const ScratchDirectory data;
  for (const std::string asked : {"avx", "AVX2", ""}) {
    const CommandResult result =
        RunCommand({"/usr/bin/env", "ATTENDANT_KERNELS=" + asked, kAttendantd,
                    "--data-dir", data.path(), "--listen", "127.0.0.1:0"});
    EXPECT_EQ(result.exit_status, 2);
    EXPECT_THAT(result.err,
                AllOf(HasSubstr("ATTENDANT_KERNELS: got \"" + asked + "\""),
                      HasSubstr("want scalar, avx2 or avx512")));
  }
}

TEST(StartupTest, ACheckOfTheConfigurationStartsNothing) {
  const ScratchDirectory data;
  const ScratchDirectory files;
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
  const std::string none = files / "none";
  const auto check = [&](const std::string& tokens) {
    return RunCommand({kAttendantd, "--check-config", "--listen",
                       server->address(), "--data-dir", none, "--auth-tokens",
                       tokens});
  };
  const std::string tokens = files / "tokens";
  WriteWholeFile(tokens, "");
  // The check ignores that the port is taken and does not touch the directory.
  const CommandResult good = check(tokens);
  EXPECT_EQ(good.exit_status, 0);
  EXPECT_EQ(good.err, "");
  EXPECT_THAT(good.out,
              AllOf(HasSubstr("\nlisten = \"" + server->address() + "\"\n"),
                    Not(HasSubstr("ready on"))));
  EXPECT_FALSE(std::filesystem::exists(none));
  WriteWholeFile(tokens, "nothing\n");
  const CommandResult bad = check(tokens);
  EXPECT_EQ(bad.exit_status, 2);
  EXPECT_EQ(bad.out, "");
  EXPECT_THAT(bad.err, HasSubstr("tokens: line 1: got 1 words"));
}

TEST(StartupTest, OfTwoTakenPortsTheOneOfListenIsNamed) {
  const ScratchDirectory data;
  const ScratchDirectory more_data;
  const ScratchDirectory other;
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
  ASSERT_OK_AND_ASSIGN(const auto another,
                       ServerProcess::Start(more_data.path()));
  const auto start = [&](const std::string& listen) {
    return RunCommand({kAttendantd, "--data-dir", other.path(), "--listen",
                       listen, "--http-listen", server->address()});
  };
  const CommandResult both = start(another->address());
  EXPECT_EQ(both.exit_status, 1);
  EXPECT_THAT(both.err, AllOf(HasSubstr("another address with --listen"),
                              Not(HasSubstr("HTTP"))));
  const CommandResult one = start("127.0.0.1:0");
  EXPECT_EQ(one.exit_status, 1);
  EXPECT_THAT(one.err, HasSubstr("another address with --http-listen"));
}

TEST(StartupTest, RefusesANewerFormat) {
  const ScratchDirectory data;
  {
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
    EXPECT_EQ(server->Stop(), 0);
  }
  ASSERT_NE(ReadWholeFile(data / "FORMAT"), "");
  WriteWholeFile(data / "FORMAT", "999\n");
  const CommandResult result = RunServer(data.path());
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("999"), HasSubstr("newer")));
}

TEST(StartupTest, ADeadProcessDoesNotHoldItsDataDirectory) {
  const ScratchDirectory data;
  {
    ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
    server->Kill();
  }
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start(data.path()));
  EXPECT_EQ(server->Stop(), 0);
}

// The format that the start waits for never arrives.
TEST(StartupTest, SigtermEndsAStartThatTakesLong) {
  const ScratchDirectory data;
  ASSERT_EQ(mkfifo((data / "FORMAT").c_str(), 0600), 0);
  const CommandResult result = RunCommand(
      {"/usr/bin/timeout", "--foreground", "--preserve-status", "--kill-after",
       "10", "1", kAttendantd, "--data-dir", data.path(), "--listen",
       "127.0.0.1:0", "--http-listen", "127.0.0.1:0"});
  EXPECT_EQ(result.exit_status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("attendantd http on"));
}

TEST(StartupTest, HelpThatCannotBeWrittenIsAFailure) {
  const CommandResult full =
      RunCommand({"/bin/sh", "-c", "exec \"$0\" \"$@\" > /dev/full",
                  kAttendantd, "--help"});
  EXPECT_EQ(full.exit_status, 1);
  EXPECT_THAT(full.err, HasSubstr("standard output can't be written"));
}

// Waits until the log contains `text` at least `count` times.
bool AwaitLog(const ServerProcess& server, absl::string_view text,
              std::size_t count = 1) {
  return Await([&] {
    const std::vector<std::string> parts = absl::StrSplit(server.log(), text);
    return parts.size() > count;
  });
}

TEST(StartupTest, SighupReadsTheCertificateAndTheTokensAgain) {
  const ScratchDirectory data;
  const ScratchDirectory files;
  const TestAuthority authority("ours");
  const std::string certificate = files / "server.pem";
  const std::string tokens = files / "tokens";
  const auto renew = [&] {
    const TestCertificate issued = authority.Issue();
    WriteWholeFile(certificate, issued.certificate + issued.key);
  };
  renew();
  const auto add_token = [&](const std::string& name) {
    EXPECT_EQ(
        RunCommand({kAttendantd, "token", name, "--file", tokens}).exit_status,
        0);
  };
  add_token("first");
  ASSERT_OK_AND_ASSIGN(
      const auto server,
      ServerProcess::Start(data.path(),
                           {"--tls-cert", certificate, "--tls-key", certificate,
                            "--auth-tokens", tokens}));
  // The certificate is valid for an hour.
  EXPECT_TRUE(AwaitLog(*server, "the TLS certificate expires at"));
  server->Signal(SIGHUP);
  EXPECT_TRUE(AwaitLog(*server, "\"event\":\"reloaded\""));
  EXPECT_THAT(server->log(), Not(HasSubstr("tokens_reloaded")));
  renew();
  add_token("second");
  server->Signal(SIGHUP);
  EXPECT_TRUE(AwaitLog(*server, "\"event\":\"reloaded\"", 2));
  EXPECT_THAT(server->log(), AllOf(HasSubstr("\"tls_reloaded\""),
                                   HasSubstr("\"tokens_reloaded\"")));
  WriteWholeFile(tokens, "nothing of it\n");
  server->Signal(SIGHUP);
  EXPECT_TRUE(AwaitLog(*server, "\"event\":\"not_reloaded\""));
  EXPECT_EQ(server->Stop(), 0);
}

// The token file must not take the descriptor of the closed standard output.
TEST(StartupTest, ATokenThatNobodyCanReadIsNotMade) {
  const ScratchDirectory files;
  const std::string tokens = files / "tokens";
  ASSERT_EQ(
      RunCommand({kAttendantd, "token", "one", "--file", tokens}).exit_status,
      0);
  const std::string before = ReadWholeFile(tokens);
  for (const std::string closed : {">&-", "<&- >&-"}) {
    const CommandResult result = RunCommand(
        {"/bin/sh", "-c", absl::StrCat("exec \"$0\" \"$@\" ", closed),
         kAttendantd, "token", "two", "--file", tokens});
    EXPECT_EQ(result.exit_status, 1) << closed;
    EXPECT_THAT(result.err, HasSubstr("standard output can't be written"));
    EXPECT_EQ(ReadWholeFile(tokens), before);
  }
}

TEST(StartupTest, RefusesToListenToOthersWithoutTls) {
  const ScratchDirectory data;
  const CommandResult result = RunCommand(
      {kAttendantd, "--data-dir", data.path(), "--listen", "0.0.0.0:0"});
  EXPECT_EQ(result.exit_status, 2);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("listen: got 0.0.0.0 without TLS"),
                    HasSubstr("tls-cert"), HasSubstr("plaintext-on-network")));
}

TEST(StartupTest, TokensAndCertificatesGoThroughTheCommands) {
  const ScratchDirectory data;
  const ScratchDirectory files;
  const std::string tokens = files / "tokens";
  const auto make_token = [&](const std::vector<std::string>& arguments) {
    std::vector<std::string> argv = {kAttendantd, "token", "--file", tokens};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return RunCommand(argv);
  };
  const CommandResult made = make_token({"web", "--catalog", "films"});
  ASSERT_EQ(made.exit_status, 0) << made.err;
  EXPECT_THAT(made.out, ::testing::StartsWith("web."));
  EXPECT_EQ(
      std::filesystem::status(tokens).permissions(),
      std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  // Rights that were granted to others are kept.
  const auto shared = std::filesystem::perms::owner_read |
                      std::filesystem::perms::owner_write |
                      std::filesystem::perms::group_read;
  std::filesystem::permissions(tokens, shared);
  ASSERT_EQ(make_token({"third"}).exit_status, 0);
  EXPECT_EQ(std::filesystem::status(tokens).permissions(), shared);
  const CommandResult again = make_token({"web"});
  EXPECT_EQ(again.exit_status, 1);
  EXPECT_EQ(again.err,
            "attendantd token: there is a token 'web' already; choose another "
            "name\n");
  // A token that nobody saw does not reserve its name.
  const CommandResult unseen =
      RunCommand({"/bin/sh", "-c", "exec \"$0\" \"$@\" > /dev/full",
                  kAttendantd, "token", "--file", tokens, "b"});
  EXPECT_EQ(unseen.exit_status, 1);
  EXPECT_THAT(unseen.err, HasSubstr("standard output can't be written"));
  EXPECT_EQ(make_token({"b"}).exit_status, 0);
  EXPECT_EQ(make_token({"b", "--role", "root"}).exit_status, 2);
  EXPECT_EQ(make_token({"b", "--catalog", "No"}).exit_status, 2);
  const CommandResult nameless = make_token({});
  EXPECT_EQ(nameless.exit_status, 2);
  EXPECT_EQ(
      nameless.err,
      "attendantd token: name is required; see attendantd token --help\n");
  WriteWholeFile(files / "web.token", made.out);

  const TestAuthority authority("ours");
  const TestCertificate issued = authority.Issue();
  WriteWholeFile(files / "ca.pem", authority.certificate());
  WriteWholeFile(files / "server.pem", issued.certificate + issued.key);
  ASSERT_OK_AND_ASSIGN(
      const auto server,
      ServerProcess::Start(data.path(),
                           {"--tls-cert", files / "server.pem", "--tls-key",
                            files / "server.pem", "--auth-tokens", tokens}));
  const auto run = [&](const std::string& variable,
                       const std::vector<std::string>& arguments) {
    std::vector<std::string> argv = {"/usr/bin/env", variable};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    argv.insert(argv.end(), {"--server", server->address()});
    return RunCommand(argv);
  };
  const std::vector<std::string> list = {kAttendant, "catalog", "list"};
  const auto with = [](std::vector<std::string> argv,
                       const std::vector<std::string>& more) {
    argv.insert(argv.end(), more.begin(), more.end());
    return argv;
  };
  const auto trusting = with(list, {"--ca", files / "ca.pem"});
  const CommandResult plaintext = run("A=", list);
  EXPECT_EQ(plaintext.exit_status, 3);
  EXPECT_THAT(plaintext.err, HasSubstr("for a server with TLS give --ca"));
  const CommandResult nobody = run("A=", trusting);
  EXPECT_EQ(nobody.exit_status, 1);
  EXPECT_THAT(nobody.err, AllOf(HasSubstr("authorization: got nothing"),
                                HasSubstr("--auth-token-file FILE")));
  const CommandResult web =
      run("A=", with(trusting, {"--auth-token-file", files / "web.token"}));
  EXPECT_EQ(web.exit_status, 0) << web.err;
  const std::string token = made.out.substr(0, made.out.find('\n'));
  EXPECT_EQ(run("ATTENDANT_AUTH_TOKEN=" + token, trusting).exit_status, 0);
  const CommandResult load =
      run("ATTENDANT_AUTH_TOKEN=" + token,
          {kAttendantLoad, "--catalog", "films", "--ca", files / "ca.pem"});
  EXPECT_THAT(load.err, HasSubstr("NOT_FOUND"));
  const CommandResult other =
      run("ATTENDANT_AUTH_TOKEN=" + token,
          {kAttendantLoad, "--catalog", "shop", "--ca", files / "ca.pem"});
  EXPECT_THAT(other.err, HasSubstr("PERMISSION_DENIED"));
  const std::string secret = token.substr(token.find('.') + 1);
  EXPECT_EQ(server->log().find(secret), std::string::npos);
  EXPECT_EQ(server->output().find(secret), std::string::npos);
}

TEST(StartupTest, UnknownFlagsAreRefused) {
  const CommandResult result = RunCommand({kAttendantd, "--no-such-flag"});
  EXPECT_NE(result.exit_status, 0);
  EXPECT_THAT(result.err, HasSubstr("no-such-flag"));
}

}  // namespace
}  // namespace attendant
