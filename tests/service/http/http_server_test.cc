// Misbehaving clients of a server that has only a few pages for health checks.
#include "service/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "tests/support/raw_connection.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr absl::Duration kSoon = absl::Seconds(30);

class HttpServerTest : public ::testing::Test {
 protected:
  void Start(absl::Duration patience, int max_connection_count = 64) {
    ASSERT_OK_AND_ASSIGN(
        server_,
        HttpServer::Start(
            {.listen = "127.0.0.1:0",
             .handler = [](const HttpRequest& request) -> HttpResponse {
               if (request.path == "/bad") throw std::bad_alloc();
               return {.body = absl::StrCat("path ", request.path, " of ",
                                            request.authorization)};
             },
             .patience = patience,
             .max_connection_count = max_connection_count}));
  }
  // Returns everything that the server sends before it closes the connection.
  std::string Ask(const std::string& request) {
    RawConnection connection(server_->port());
    EXPECT_TRUE(connection.Send(request));
    std::string answer;
    EXPECT_TRUE(connection.AwaitClose(kSoon, &answer));
    return answer;
  }

  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersAndCloses) {
  Start(kSoon);
  const std::string answer = Ask(
      "GET /page?x=1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer b\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\npath /page of Bearer b"));
}

TEST_F(HttpServerTest, HeadIsGetWithoutTheBody) {
  Start(kSoon);
  const std::string answer = Ask("HEAD /page HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Length: 14\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, APageThatCantBeMadeIsAnErrorAndNotTheEnd) {
  Start(kSoon);
  EXPECT_THAT(Ask("GET /bad HTTP/1.1\r\nHost: a\r\n\r\n"),
              StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(Ask("GET /page HTTP/1.1\r\nHost: a\r\n\r\n"),
              StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpServerTest, RefusesWhatItDoesNotServe) {
  Start(kSoon);
  const std::string long_header(100000, 'x');
  const std::string many(20000, 'y');
  for (const std::string& request :
       {std::string("POST /page HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi"),
        std::string("BREW /page HTTP/1.1\r\n\r\n"),
        std::string("GET /page HTTP/1.1\r\nno colon\r\n\r\n"),
        std::string("GET\r\n\r\n"),
        std::string("GET /page HTTP/1.1\r\nContent-Length: 5000\r\n\r\n"),
        absl::StrCat("GET /page HTTP/1.1\r\nA: ", long_header, "\r\n\r\n"),
        absl::StrCat("GET /", many, " HTTP/1.1\r\n\r\n")}) {
    EXPECT_THAT(Ask(request), Not(HasSubstr(" 200 "))) << request.substr(0, 80);
  }
}

TEST_F(HttpServerTest, ARequestWithoutEndIsLeft) {
  Start(absl::Milliseconds(300));
  RawConnection slow(server_->port());
  ASSERT_TRUE(slow.Send("GET /page HTTP/1.1\r\n"));
  // Sending a byte now and then does not extend the time.
  const SteadyTime begin = SteadyNow();
  std::string answer;
  while (TimeSince(begin) < kSoon) {
    if (!slow.Send("x")) break;
    if (slow.AwaitClose(absl::Milliseconds(20), &answer)) break;
  }
  EXPECT_LT(TimeSince(begin), kSoon);
  EXPECT_EQ(answer, "");
}

// Returns true once `count` of the connections are closed.
bool AwaitClosed(std::vector<RawConnection>& connections, int count) {
  std::vector<bool> closed(connections.size());
  const SteadyTime end = SteadyAfter(kSoon);
  while (std::ranges::count(closed, true) < count) {
    if (SteadyNow() >= end) return false;
    for (std::size_t i = 0; i < connections.size(); ++i) {
      if (closed[i]) continue;
      closed[i] = connections[i].AwaitClose(absl::Milliseconds(1));
    }
  }
  return true;
}

TEST_F(HttpServerTest, ClientsThatSayNothingKeepNobodyFromAnswers) {
  constexpr int kMost = 8;
  Start(absl::Hours(1), kMost);
  std::vector<RawConnection> silent;
  for (int i = 0; i < 3 * kMost; ++i) {
    silent.emplace_back(server_->port());
    ASSERT_TRUE(silent.back().Send("GET"));
    EXPECT_THAT(Ask("GET /a HTTP/1.1\r\n\r\n"), HasSubstr(" 200 OK"));
  }
  EXPECT_TRUE(AwaitClosed(silent, 2 * kMost));
}

TEST_F(HttpServerTest, AFloodFromAnotherAddressEndsNoRequest) {
  constexpr int kMost = 8;
  Start(absl::Hours(1), kMost);
  RawConnection probe(server_->port());
  ASSERT_TRUE(probe.Send("GET /a HTTP/1.1\r\n"));
  std::vector<RawConnection> flood;
  for (int i = 0; i < 5 * kMost; ++i) {
    flood.emplace_back(server_->port(), "127.0.0.2");
    ASSERT_TRUE(flood.back().Send("GET"));
  }
  EXPECT_TRUE(AwaitClosed(flood, 4 * kMost));
  ASSERT_TRUE(probe.Send("\r\n"));
  std::string answer;
  EXPECT_TRUE(probe.AwaitClose(kSoon, &answer));
  EXPECT_THAT(answer, HasSubstr(" 200 OK"));
}

TEST_F(HttpServerTest, StopsAtOnceWhoeverIsConnected) {
  Start(absl::Hours(1));
  RawConnection silent(server_->port());
  RawConnection begun(server_->port());
  ASSERT_TRUE(begun.Send("GET /a HT"));
  EXPECT_THAT(Ask("GET /a HTTP/1.1\r\n\r\n"), HasSubstr(" 200 OK"));
  const SteadyTime begin = SteadyNow();
  server_.reset();
  EXPECT_LT(TimeSince(begin), kSoon);
  EXPECT_TRUE(silent.AwaitClose(kSoon));
  EXPECT_TRUE(begun.AwaitClose(kSoon));
}

TEST_F(HttpServerTest, StopsThoughItHasHardlyBegun) {
  for (int i = 0; i < 1000; ++i) Start(absl::Hours(1));
}

TEST_F(HttpServerTest, ClientsThatAreGoneBeforeTheirAnswerHarmNobody) {
  Start(absl::Milliseconds(300));
  for (int i = 0; i < 100; ++i) {
    RawConnection gone(server_->port());
    ASSERT_TRUE(gone.Send("GET /a HTTP/1.1\r\n\r\n"));
  }
  EXPECT_THAT(Ask("GET /a HTTP/1.1\r\n\r\n"), HasSubstr(" 200 OK"));
}

}  // namespace
}  // namespace attendant
