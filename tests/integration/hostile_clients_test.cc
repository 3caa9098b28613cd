// Malicious clients against the real attendantd: others are served throughout,
// and memory stays bounded.
//
//   hostile_clients_test --connections=5000 --resets=100000 --frames=1000000
//       --pings=1000000 --calls=200000 --flooders=32 --measure=1
//
// is the long form. --measure requires the p99 of another caller's queries to
// be at most 1.5 times that without attacks. The last core then belongs to the
// server; on the other cores the attackers get what the caller leaves. These
// cores stand for other machines.
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/config.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/clock.h"
#include "service/watches/memory_guard.h"
#include "tests/durability/flags.h"
#include "tests/integration/http2_client.h"
#include "tests/integration/requests.h"
#include "tests/integration/server_process.h"
#include "tests/support/raw_connection.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/split_mix.h"
#include "tests/support/status_matchers.h"

namespace attendant {
namespace {

using ::testing::_;
using ::testing::HasSubstr;

constexpr std::int64_t kMiB = 1 << 20;
constexpr int kItemCount = 64;
constexpr int kValueBytes = 60 << 10;
constexpr std::int64_t kReplyBytes = std::int64_t{kItemCount} * kValueBytes;
constexpr char kListItems[] = "/attendant.v1.ItemService/ListItems";
constexpr char kAttend[] = "/attendant.v1.AttentionService/Attend";
constexpr char kReflect[] =
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
constexpr absl::Duration kPatience = absl::Minutes(1);
// Time limit for an answer to another caller, which normally takes some ms: a
// longer wait means a denial of service, however busy the machine is.
constexpr absl::Duration kLongestAnswer = absl::Seconds(kSanitized ? 30 : 10);
constexpr absl::Duration kPace = absl::Milliseconds(5);  // of its queries

bool Measures() { return Flag("measure", 0) != 0; }

// Restricts this thread, and threads that it starts later, to the cores in
// [first, last).
void HoldToCores(unsigned first, unsigned last) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (unsigned core = first; core < last; ++core) CPU_SET(core, &cores);
  ASSERT_EQ(sched_setaffinity(0, sizeof(cores), &cores), 0);
}

// Gives this thread, and threads that it starts later, idle priority.
void YieldToOthers() {
  const sched_param none = {};
  ASSERT_EQ(sched_setscheduler(0, SCHED_IDLE, &none), 0);
}

// Repeats a query every kPace on its own connection until Stop, one at a time.
// It does not retry as Client would, so that any harm shows. Queries that a
// slow answer delays are sent immediately after it, and their latencies count
// from when they were due.
class OtherCaller {
 public:
  struct Latencies {
    absl::Duration p99;
    absl::Duration longest;
  };

  OtherCaller(const std::string& server, v1::AttendRequest request)
      : stub_(v1::AttentionService::NewStub(Connect(server))),
        thread_([this, request] {
          SteadyTime due = SteadyNow();
          while (!stopping_.load()) {
            absl::SleepFor(TimeUntil(due));
            Ask(request);
            latencies_.push_back(TimeSince(due));
            count_.fetch_add(1);
            due += absl::ToChronoNanoseconds(kPace);
          }
        }) {}

  void AwaitAnswers(int count) const {
    const SteadyTime end = SteadyAfter(kPatience);
    while (count_.load() < count && SteadyNow() < end) {
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  // Returns OK if there were at least `count` answers, all of them the same and
  // within kLongestAnswer.
  absl::Status Stop(int count, Latencies* latencies) {
    AwaitAnswers(count);
    stopping_.store(true);
    thread_.join();
    if (count_.load() < count) return absl::InternalError("too few answers");
    std::ranges::sort(latencies_);
    latencies->p99 = latencies_[latencies_.size() * 99 / 100];
    latencies->longest = latencies_.back();
    return error_;
  }

 private:
  static std::shared_ptr<grpc::Channel> Connect(const std::string& server) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(),
                                     arguments);
  }

  void Ask(const v1::AttendRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kLongestAnswer));
    v1::AttendResponse response;
    const grpc::Status status = stub_->Attend(&context, request, &response);
    if (!error_.ok()) return;
    if (!status.ok()) {
      error_ = absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                            status.error_message());
      return;
    }
    response.clear_stats();  // times
    const std::string reply = response.SerializeAsString();
    if (first_reply_.empty()) first_reply_ = reply;
    if (response.items().empty() || reply != first_reply_) {
      error_ = absl::InternalError("got another reply than the first");
    }
  }

  const std::unique_ptr<v1::AttentionService::Stub> stub_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> count_ = 0;
  std::vector<absl::Duration> latencies_;
  std::string first_reply_;
  absl::Status error_;
  std::thread thread_;
};

class HostileClientsTest : public ::testing::Test {
 protected:
  // Starts a server with the catalog "shop"; a page of all its items has about
  // 4 MB.
  void Start(const std::vector<std::string>& flags) {
    const unsigned cores = std::thread::hardware_concurrency();
    const bool apart = Measures() && cores > 1;
    if (apart) HoldToCores(cores - 1, cores);
    ASSERT_OK_AND_ASSIGN(server_, ServerProcess::Start(data_.path(), flags));
    if (apart) HoldToCores(0, cores - 1);
    ASSERT_OK_AND_ASSIGN(const auto client, server_->Connect());
    ASSERT_OK(CreateCatalog(*client, "shop",
                            {KeyFieldOf("k", 2, v1::SCORE_KIND_DOT)}));
    for (int i = 0; i < kItemCount; ++i) {
      v1::Item item = ItemOf(absl::StrCat("item-", i), "k", {1.0 * i, 1.0});
      item.set_opaque_value(std::string(kValueBytes, 'v'));
      ASSERT_OK(client->BatchUpsertItems(UpsertOf("shop", {item})).status());
    }
  }

  int port() const {
    int port = 0;
    const std::string& address = server_->address();
    EXPECT_TRUE(
        absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    return port;
  }

  static v1::AttendRequest Query() {
    v1::AttendRequest request;
    request.set_catalog("shop");
    *request.mutable_query()->mutable_vector() = VectorOf({1, 1});
    return request;
  }
  static std::string AllItems(int page_size = 0) {
    v1::ListItemsRequest request;
    request.set_catalog("shop");
    request.set_page_size(page_size);
    return request.SerializeAsString();
  }

  // Runs `harm` while another caller sends queries. Memory may grow by at most
  // `most_growth` bytes, meanwhile and afterwards; not checked under a
  // sanitizer, which keeps freed memory.
  void Suffer(const std::function<void()>& harm, std::int64_t most_growth) {
    OtherCaller::Latencies calm;
    if (Measures()) {
      OtherCaller caller(server_->address(), Query());
      absl::SleepFor(absl::Seconds(5));
      ASSERT_OK(caller.Stop(1, &calm));
    }
    const std::int64_t before = ResidentOf(server_->pid());
    OtherCaller caller(server_->address(), Query());
    caller.AwaitAnswers(1);
    std::atomic<bool> harming = true;
    std::thread harmer([&] {
      if (Measures()) YieldToOthers();
      harm();
      harming.store(false);
    });
    std::int64_t most = before;
    while (harming.load()) {
      most = std::max(most, ResidentOf(server_->pid()));
      absl::SleepFor(absl::Milliseconds(2));
    }
    harmer.join();
    OtherCaller::Latencies harmed;
    EXPECT_OK(caller.Stop(20, &harmed));
    const std::int64_t growth = ResidentOf(server_->pid()) - before;
    most_growth_ = std::max(growth, most - before);
    if (!kSanitized) {
      EXPECT_LT(most_growth_, most_growth);
    }
    if (Measures()) {
      std::printf(
          "p99 %s, longest %s; calm %s, %s; "
          "memory grew by %lld KiB, and at most by %lld KiB\n",
          absl::FormatDuration(harmed.p99).c_str(),
          absl::FormatDuration(harmed.longest).c_str(),
          absl::FormatDuration(calm.p99).c_str(),
          absl::FormatDuration(calm.longest).c_str(),
          static_cast<long long>(growth >> 10),
          static_cast<long long>(most_growth_ >> 10));
      EXPECT_LE(harmed.p99, 1.5 * calm.p99);
    }
    // The server still accepts new connections.
    ASSERT_OK_AND_ASSIGN(const auto client, server_->Connect());
    EXPECT_OK(client->Attend(Query()).status());
  }

  // Sends `count` calls, 10,000 per connection; `frames_of` returns the frames
  // of the call on a stream. The caller keeps the connections until everything
  // is counted, because gRPC stops reading a connection that ends. Uses many
  // connections at once: gRPC ends no call while there is more to read, and
  // could otherwise keep up with a slower client.
  std::vector<RawConnection> SendCalls(
      std::int64_t count,
      const std::function<std::string(std::uint32_t stream)>& frames_of) const {
    std::vector<RawConnection> connections;
    std::int64_t sent = 0;
    while (sent < count) {
      RawConnection& connection = connections.emplace_back(port());
      if (!connection.Send(Hello())) {
        ADD_FAILURE() << "the server is gone";
        break;
      }
      std::string many;
      for (std::uint32_t stream = 1; stream < 20000 && sent < count;
           stream += 2, ++sent) {
        many += frames_of(stream);
        if (many.size() < kMiB / 4) continue;
        if (!connection.Send(many)) break;
        many.clear();
      }
      connection.Send(many);
    }
    return connections;
  }
  // Opens connections with `watch_count` health watches each.
  std::vector<RawConnection> OpenWatches(int connection_count,
                                         std::uint32_t watch_count) const {
    std::vector<RawConnection> connections;
    for (int i = 0; i < connection_count; ++i) {
      RawConnection& connection = connections.emplace_back(port());
      std::string watches = Hello();
      for (std::uint32_t watch = 0; watch < watch_count; ++watch) {
        const std::uint32_t stream = 2 * watch + 1;
        watches += BeginCall(stream, "/grpc.health.v1.Health/Watch") +
                   MessageFrame(stream, kEndStream, "");
      }
      EXPECT_TRUE(connection.Send(watches));
    }
    return connections;
  }
  // Returns the frames of a call that is reset at once.
  static std::string ResetCall(std::uint32_t stream, absl::string_view method,
                               const std::string& message) {
    return BeginCall(stream, method) +
           MessageFrame(stream, kEndStream, message) +
           Frame(FrameType::kRstStream, 0, stream, std::string("\0\0\0\x8", 4));
  }

  // Waits until `count` calls were cancelled because their clients read
  // nothing.
  bool AwaitStalled(std::int64_t count) const {
    return AwaitCount("attendant_calls_stalled_total", count);
  }
  // Waits until a counter, given with its labels, reaches `count`.
  bool AwaitCount(absl::string_view name, std::int64_t count,
                  absl::Duration patience = kPatience) const {
    const SteadyTime end = SteadyAfter(patience);
    while (CountOf(name) < count) {
      if (SteadyNow() > end) return false;
      absl::SleepFor(absl::Milliseconds(50));
    }
    return true;
  }
  // Returns the value of a metric, given with its labels; -1 if it cannot be
  // read.
  std::int64_t CountOf(absl::string_view name) const {
    const std::string line = absl::StrCat("\n", name, " ");
    const auto page =
        httplib::Client("http://" + server_->http_address()).Get("/metrics");
    if (!page) return -1;
    const absl::string_view text = page->body;
    const std::size_t begin = text.find(line);
    if (begin == absl::string_view::npos) return -1;
    const absl::string_view value = text.substr(begin + line.size());
    std::int64_t count = 0;
    return absl::SimpleAtoi(value.substr(0, value.find('\n')), &count) ? count
                                                                       : -1;
  }

  // Sends calls as SendCalls does until a counter is above 0: a server faster
  // than this client may keep up with some floods.
  void FloodUntil(
      absl::string_view name, std::int64_t count,
      const std::function<std::string(std::uint32_t stream)>& frames_of) const {
    std::vector<std::vector<RawConnection>> floods;
    const SteadyTime end = SteadyAfter(kPatience);
    do {
      floods.push_back(SendCalls(count, frames_of));
    } while (!AwaitCount(name, 1, absl::Seconds(5)) && SteadyNow() < end);
    EXPECT_TRUE(AwaitCount(name, 1));
  }

  // Waits for an event in the server's log.
  bool AwaitLog(const std::string& event,
                absl::Duration patience = kPatience) const {
    const SteadyTime end = SteadyAfter(patience);
    while (server_->log().find(event) == std::string::npos) {
      if (SteadyNow() > end) return false;
      absl::SleepFor(absl::Milliseconds(20));
    }
    return true;
  }

  const ScratchDirectory data_;
  std::unique_ptr<ServerProcess> server_;
  // Maximum growth in the last Suffer, in bytes.
  std::int64_t most_growth_ = 0;
};

TEST_F(HostileClientsTest, WhoNeverReadsHoldsLittleAndNotForLong) {
  Start({"--reply-memory", "64MiB", "--stall-seconds", "2"});
  Suffer(
      [&] {
        std::vector<RawConnection> connections;
        // The window does not allow any byte of a reply.
        connections.emplace_back(port()).Send(
            Hello(/*window=*/0) + BeginCall(1, kListItems) +
            MessageFrame(1, kEndStream, AllItems(/*page_size=*/1)));
        EXPECT_TRUE(AwaitStalled(1));  // for its time
        for (int i = 0; i < 4; ++i) {
          RawConnection& connection = connections.emplace_back(port());
          ASSERT_TRUE(connection.Send(Hello(/*window=*/0)));
          for (std::uint32_t stream = 1; stream < 64; stream += 2) {
            connection.Send(BeginCall(stream, kListItems) +
                            MessageFrame(stream, kEndStream, AllItems()));
          }
        }
        // Of 128 replies of 4 MB, at most 64 MiB may wait.
        EXPECT_TRUE(AwaitStalled(1 + 128 - 64 * kMiB / kReplyBytes));
      },
      // 64 MiB wait, some replies are being made, and malloc keeps as much: 150
      // to 210 MiB.
      320 * kMiB);
}

TEST_F(HostileClientsTest, WhoSendsByteByByteIsWaitedFor) {
  Start({});
  Suffer(
      [&] {
        std::vector<RawConnection> connections;
        for (int i = 0; i < 16; ++i) {
          RawConnection& connection = connections.emplace_back(port());
          ASSERT_TRUE(connection.Send(Hello()));
          for (std::uint32_t stream = 1; stream < 100; stream += 2) {
            connection.Send(BeginCall(stream, kAttend));
            // The beginning of a 15 MB message.
            connection.Send(Frame(FrameType::kData, 0, stream,
                                  std::string("\0\0\xf0\0\0", 5)));
          }
        }
        const SteadyTime end = SteadyAfter(absl::Seconds(2));
        while (SteadyNow() < end) {
          for (RawConnection& connection : connections) {
            connection.Send(Frame(FrameType::kData, 0, 1, "x"));
          }
          absl::SleepFor(absl::Milliseconds(100));
        }
      },
      64 * kMiB);
}

// About 260 KB on the wire decompress to 256 MiB of zeros; nothing may
// decompress them.
TEST_F(HostileClientsTest, ABombOfCompressedZerosIsNotUnpacked) {
  Start({});
  constexpr std::int64_t kZeroBytes = (kSanitized ? 64 : 256) * kMiB;
  const std::string zeros(kZeroBytes, '\0');
  const grpc::Slice slice(zeros.data(), zeros.size(),
                          grpc::Slice::STATIC_SLICE);
  const auto channel = grpc::CreateChannel(server_->address(),
                                           grpc::InsecureChannelCredentials());
  const auto send = [&](grpc_compression_algorithm algorithm) {
    grpc::ClientContext context;
    context.set_compression_algorithm(algorithm);
    grpc::CompletionQueue queue;
    grpc::GenericStub stub(channel);
    const auto call = stub.PrepareUnaryCall(
        &context, kAttend, grpc::ByteBuffer(&slice, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer reply;
    grpc::Status status;
    call->Finish(&reply, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status;
  };
  Suffer(
      [&] {
        std::vector<std::thread> bombers;
        for (const auto algorithm :
             {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
          bombers.emplace_back([&, algorithm] {
            for (int i = 0; i < 2; ++i) {
              EXPECT_EQ(send(algorithm).error_code(),
                        grpc::StatusCode::UNIMPLEMENTED);
            }
          });
        }
        for (std::thread& bomber : bombers) bomber.join();
      },
      64 * kMiB);
  EXPECT_LT(most_growth_, kZeroBytes / 2);
}

// The received parts of their messages keep others' requests out.
TEST_F(HostileClientsTest, WhoNeverEndsAMessageIsNotWaitedForForEver) {
  // One second, plus one for the largest message.
  Start({"--stall-seconds", "1", "--max-message-bytes", "65536"});
  constexpr int kConnections = 8;
  Suffer(
      [&] {
        std::vector<RawConnection> connections;
        for (int i = 0; i < kConnections; ++i) {
          RawConnection& connection = connections.emplace_back(port());
          ASSERT_TRUE(connection.Send(Hello()));
          for (std::uint32_t stream = 1; stream < 20; stream += 2) {
            connection.Send(
                BeginCall(stream, kAttend) +
                Frame(FrameType::kData, 0, stream,
                      absl::StrCat(absl::string_view("\0\0\0\xf0\0", 5),
                                   std::string(60, 'x'))));
          }
        }
        const SteadyTime end = SteadyAfter(kPatience);
        while (CountOf("attendant_connections_dropped_total") < kConnections &&
               SteadyNow() < end) {
          for (RawConnection& connection : connections) {
            connection.Send(Frame(FrameType::kData, 0, 1, "x"));
          }
          absl::SleepFor(absl::Milliseconds(100));
        }
        // The other caller's connection is not among them.
        EXPECT_EQ(CountOf("attendant_connections_dropped_total"), kConnections);
        EXPECT_TRUE(AwaitLog("its calls do not arrive"));
      },
      64 * kMiB);
}

TEST_F(HostileClientsTest, IdleConnectionsAreLimitedAndTheRestIsClosed) {
  const auto count = static_cast<int>(Flag("connections", 64));
  Start({"--max-connections", absl::StrCat(count)});
  Suffer(
      [&] {
        std::vector<RawConnection> idle;
        for (int i = 0; i < count; ++i) {
          idle.emplace_back(port()).Send(Hello());
        }
        // Some were refused: at least the place of the calling client was
        // taken.
        EXPECT_TRUE(AwaitLog("connection_refused"));
        // The place of a disconnected client may become free late.
        const SteadyTime full = SteadyAfter(kPatience);
        while (SteadyNow() < full) {
          RawConnection& late = idle.emplace_back(port());
          late.Send(Hello());
          if (late.AwaitClose(absl::Seconds(2))) break;
        }
        // A gRPC client learns of it at once, and pauses before it retries.
        EXPECT_THAT(server_->Connect(),
                    StatusIs(absl::StatusCode::kUnavailable, _));
        idle.clear();
        // Places become free again.
        const SteadyTime end = SteadyAfter(kPatience);
        while (!server_->Connect().ok() && SteadyNow() < end) {
        }
        EXPECT_TRUE(AwaitCount(
            "attendant_connections_refused_total{reason=\"limit\"}", 2));
      },
      (64 + count / 10) * kMiB);
}

TEST_F(HostileClientsTest, OneAddressThatTakesAllPlacesKeepsNoOtherOut) {
  constexpr int kPlaces = 32;
  Start({"--max-connections", absl::StrCat(kPlaces)});
  std::vector<RawConnection> idle;
  while (!AwaitLog("connection_refused", absl::Milliseconds(10))) {
    idle.emplace_back(port()).Send(Hello());
  }
  std::vector<RawConnection> others;
  for (int i = 0; i < kPlaces / 2; ++i) {
    RawConnection& other = others.emplace_back(port(), "127.0.0.2");
    ASSERT_TRUE(other.Send(Hello() +
                           BeginCall(1, "/grpc.health.v1.Health/Check") +
                           MessageFrame(1, kEndStream, "")));
    const std::string serving = MessageFrame(1, 0, "\x8\x1").substr(9);
    std::string received;
    const SteadyTime end = SteadyAfter(kPatience);
    while (!absl::StrContains(received, serving) && SteadyNow() < end) {
      received += other.Receive();
    }
    EXPECT_THAT(received, HasSubstr(serving));
  }
  EXPECT_THAT(server_->log(), HasSubstr("others have no place"));
  // Both addresses now have equally many connections.
  RawConnection late(port(), "127.0.0.2");
  EXPECT_TRUE(late.AwaitClose(kPatience));
}

TEST_F(HostileClientsTest, WithoutDescriptorsConnectionsWaitAndTheLogSaysWhy) {
  Start({});
  rlimit all = {};
  ASSERT_EQ(prlimit(server_->pid(), RLIMIT_NOFILE, nullptr, &all), 0);
  const rlimit none = {.rlim_cur = 0, .rlim_max = all.rlim_max};
  ASSERT_EQ(prlimit(server_->pid(), RLIMIT_NOFILE, &none, nullptr), 0);
  RawConnection connection(port());
  ASSERT_TRUE(connection.Send(Hello()));
  EXPECT_TRUE(AwaitLog("LimitNOFILE"));
  ASSERT_EQ(prlimit(server_->pid(), RLIMIT_NOFILE, &all, nullptr), 0);
  EXPECT_NE(connection.Receive(), "");
  EXPECT_TRUE(AwaitCount(
      "attendant_connections_refused_total{reason=\"resources\"}", 1));
}

TEST_F(HostileClientsTest, PingsWithoutCallsEndTheConnection) {
  Start({});
  const std::int64_t count = Flag("pings", 20000);
  Suffer(
      [&] {
        RawConnection connection(port());
        ASSERT_TRUE(connection.Send(Hello()));
        const std::string ping =
            Frame(FrameType::kPing, 0, 0, std::string(8, 'p'));
        std::string many;
        for (int i = 0; i < 100; ++i) many += ping;
        for (std::int64_t sent = 0; sent < count; sent += 100) {
          if (!connection.Send(many, absl::Seconds(1))) break;
        }
        // The reason ("too_many_pings") is lost if the server has not read
        // everything.
        EXPECT_TRUE(connection.AwaitClose(kPatience));
      },
      // The answers to the pings until the connection ends: 58 measured.
      128 * kMiB);
}

TEST_F(HostileClientsTest, StreamsThatAreResetAtOnceHoldLittle) {
  // Each call would hold 20 KiB if the client were allowed to continue.
  const std::int64_t count = Flag("resets", Short(20000));
  struct Call {
    absl::string_view method;
    std::string message;
  };
  const Call calls[] = {{kAttend, Query().SerializeAsString()},
                        // Needs no token; gRPC answers it.
                        {"/grpc.health.v1.Health/Check", ""},
                        {"/attendant.v1.AttentionService/NoSuchMethod", ""}};
  for (const Call& call : calls) {
    SCOPED_TRACE(call.method);
    server_ = nullptr;  // the directory is the next one's
    Start({"--max-streams", "100"});
    Suffer(
        [&] {
          FloodUntil("attendant_connections_dropped_total", count,
                     [&](std::uint32_t stream) {
                       return ResetCall(stream, call.method, call.message);
                     });
        },
        192 * kMiB);
  }
}

// Health watches that stay open; they need no token.
TEST_F(HostileClientsTest, CallsThatAreOpenHoldUpNobody) {
  Start({"--max-streams", "100"});
  Suffer(
      [&] {
        const auto connections = OpenWatches(10, 100);
        EXPECT_TRUE(AwaitCount("attendant_open_calls", 1000));
        OtherCaller::Latencies ignored;
        OtherCaller caller(server_->address(), Query());
        EXPECT_OK(caller.Stop(20, &ignored));
        EXPECT_EQ(CountOf("attendant_reading_paused_total"), 0);
        EXPECT_EQ(CountOf("attendant_connections_dropped_total"), 0);
      },
      64 * kMiB);
}

TEST_F(HostileClientsTest, CallsThatAreOpenHoldNoMoreThanTheirShare) {
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  GTEST_SKIP() << "a sanitizer's memory is over any limit that can be tested";
#endif
  // An eighth of the limit is 1,228 calls of 20 KiB.
  Start({"--memory-limit", "192MiB", "--max-streams", "100"});
  Suffer(
      [&] {
        const auto connections = OpenWatches(20, 100);
        EXPECT_TRUE(AwaitCount("attendant_connections_dropped_total", 1));
        EXPECT_TRUE(AwaitLog("calls take too much memory"));
        const SteadyTime end = SteadyAfter(kPatience);
        while (CountOf("attendant_open_calls") > 1229 && SteadyNow() < end) {
          absl::SleepFor(absl::Milliseconds(50));
        }
        // Calls within that share stay open.
        EXPECT_LE(CountOf("attendant_open_calls"), 1229);
        EXPECT_GE(CountOf("attendant_open_calls"), 400);
      },
      64 * kMiB);
}

// gRPC applies no limit on calls until the client acknowledges the server's
// settings, which this one never does.
TEST_F(HostileClientsTest, CallsWhoseMessagesNeverComeHoldLittle) {
  // Each call would hold 13 KiB.
  const std::int64_t count = Flag("calls", Short(20000));
  for (const char* const method :
       {kAttend, "/grpc.health.v1.Health/Check", kReflect}) {
    SCOPED_TRACE(method);
    server_ = nullptr;  // the directory is the next one's
    Start({"--max-streams", "100"});
    Suffer(
        [&] {
          FloodUntil(
              "attendant_calls_not_sent_total", count,
              [&](std::uint32_t stream) { return BeginCall(stream, method); });
          EXPECT_TRUE(AwaitLog("got 201, want at most 200"));
        },
        128 * kMiB);
  }
}

// The server is not notified of a reflection call before it is answered, and
// these never are.
TEST_F(HostileClientsTest, CallsOfReflectionThatAreResetHoldLittle) {
  const std::int64_t count = Flag("resets", Short(20000));
  Start({"--max-streams", "100"});
  Suffer(
      [&] {
        FloodUntil("attendant_calls_not_sent_total", count,
                   [](std::uint32_t stream) {
                     // ServerReflectionRequest{list_services: ""}
                     return ResetCall(stream, kReflect, {"\x3A\x00", 2});
                   });
      },
      128 * kMiB);
}

// gRPC's reflection waits for messages on its own threads.
TEST_F(HostileClientsTest, SilentStreamsOfReflectionTakeFewThreads) {
  Start({});
  constexpr int kStreams = 200;
  const std::int64_t before = ThreadCountOf(server_->pid());
  std::vector<RawConnection> connections;
  std::int64_t most = 0;
  Suffer(
      [&] {
        for (int i = 0; i < 4; ++i) {
          RawConnection& connection = connections.emplace_back(port());
          std::string calls = Hello();
          for (std::uint32_t stream = 1; stream < 2 * kStreams / 4;
               stream += 2) {
            calls += BeginCall(stream, kReflect);
          }
          ASSERT_TRUE(connection.Send(calls));
        }
        const SteadyTime end = SteadyAfter(absl::Seconds(2));
        while (SteadyNow() < end) {
          most = std::max(most, ThreadCountOf(server_->pid()));
          absl::SleepFor(absl::Milliseconds(10));
        }
      },
      64 * kMiB);
  EXPECT_LT(most, before + 32);
}

TEST_F(HostileClientsTest, HeadersWithoutEndEndTheConnection) {
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  GTEST_SKIP() << "a sanitizer's memory is over any limit that can be tested";
#endif
  constexpr std::int64_t kLimit = 192 * kMiB;
  // The server checks four times a second whether memory is over its limit, and
  // then whether it has grown by kGrowth since. 230 for both on two cores.
  constexpr std::int64_t kBetweenLooks = 512 * kMiB;
  Start({"--memory-limit", absl::StrCat(kLimit)});
  Suffer(
      [&] {
        RawConnection connection(port());
        const std::string begin = BeginCall(1, kAttend);
        // Lacks the flag that ends the headers.
        ASSERT_TRUE(connection.Send(
            Hello() + Frame(FrameType::kHeaders, 0, 1, begin.substr(9))));
        std::string header = std::string("\0\1x\144", 4);
        header.append(100, 'v');
        std::string headers;
        while (headers.size() + header.size() < 16384) headers += header;
        const std::string frame =
            Frame(FrameType::kContinuation, 0, 1, headers);
        std::int64_t sent = 0;
        while (sent < 4096 * kMiB && connection.Send(frame)) {
          sent += static_cast<std::int64_t>(frame.size());
        }
        EXPECT_LT(sent, 4096 * kMiB);
        EXPECT_TRUE(AwaitCount("attendant_connections_dropped_total", 1));
      },
      kLimit + MemoryGuard::kGrowth + kBetweenLooks);
}

// A call that gRPC never finishes reading blocks one of its threads, a
// connection that is handed over, and the shutdown.
TEST_F(HostileClientsTest, WhoNeverEndsKeepsNobodyFromComingOrEnding) {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  GTEST_SKIP() << "with a sanitizer a call costs more than two cores bear";
#endif
  std::string headers = std::string("\0\1x\144", 4);
  headers.append(100, 'v');
  std::string many_headers;
  while (many_headers.size() < 16000) many_headers += headers;
  std::string many_calls;
  for (std::uint32_t stream = 3; many_calls.size() < 16000; stream += 2) {
    many_calls += BeginCall(stream, kAttend);
  }
  std::string many_settings;  // acknowledged
  while (many_settings.size() < 16000) {
    many_settings += Frame(FrameType::kSettings, 1, 0, "");
  }
  struct Flood {
    const char* name;
    std::string begin;
    std::string frames;  // again and again
  };
  const Flood floods[] = {{"headers", Frame(FrameType::kHeaders, 0, 1, ""),
                           Frame(FrameType::kContinuation, 0, 1, many_headers)},
                          {"calls", "", many_calls},
                          {"settings", "", many_settings}};
  for (const Flood& flood : floods) {
    SCOPED_TRACE(flood.name);
    server_ = nullptr;  // the directory is the next one's
    Start({"--grace-seconds", "1", "--memory-limit", "2GiB"});
    std::atomic<bool> stopping = false;
    std::atomic<std::int64_t> sent = 0;
    absl::Duration longest;
    std::vector<std::thread> flooders;
    for (int i = 0; i < Flag("flooders", 8); ++i) {
      flooders.emplace_back([&, port = port()] {
        while (!stopping.load()) {
          RawConnection connection(port);
          if (!connection.Send(Hello() + flood.begin)) continue;
          while (!stopping.load() &&
                 connection.Send(flood.frames, absl::Milliseconds(100))) {
            sent.fetch_add(1);
          }
        }
      });
    }
    const absl::Cleanup stop = [&] {
      stopping.store(true);
      for (std::thread& flooder : flooders) flooder.join();
    };
    for (int i = 0; i < 8; ++i) {
      const SteadyTime begin = SteadyNow();
      ASSERT_OK_AND_ASSIGN(const auto client, server_->Connect());
      EXPECT_OK(client->Attend(Query()).status());
      longest = std::max(longest, TimeSince(begin));
    }
    EXPECT_GT(sent.load(), 0);
    std::printf("%s: at most %s to connect and ask\n", flood.name,
                absl::FormatDuration(longest).c_str());
    // Far above measured times: nobody is left waiting.
    EXPECT_LT(longest, kSanitized ? kPatience : absl::Seconds(10));
    server_->Signal(SIGTERM);
    EXPECT_EQ(server_->Wait(absl::Seconds(20)), 0);
  }
}

TEST_F(HostileClientsTest, RandomFramesHarmNobody) {
  Start({});
  const std::int64_t count = Flag("frames", Short(20000));
  const auto seed = static_cast<std::uint64_t>(Flag("seed", 1));
  SCOPED_TRACE(absl::StrCat("--seed=", seed));
  SplitMix random(seed);
  const std::string query = Query().SerializeAsString();
  const auto random_frame = [&] {
    const auto type = static_cast<FrameType>(random.Next() % 11);
    const auto flags = static_cast<std::uint8_t>(random.Next());
    const auto stream = static_cast<std::uint32_t>(
        random.Next() % 8 == 0 ? random.Next() : random.Next() % 16);
    std::string payload;
    switch (random.Next() % 4) {
      case 0:  // a call, as it should be or cut
        payload = BeginCall(stream, kAttend).substr(9);
        payload.resize(random.Next() % (payload.size() + 1));
        break;
      case 1:
        payload = MessageFrame(stream, 0, query).substr(9);
        break;
      default:
        for (std::uint64_t i = random.Next() % 40; i > 0; --i) {
          payload.push_back(static_cast<char>(random.Next()));
        }
    }
    std::string frame = Frame(type, flags, stream, payload);
    // Sometimes the length is wrong.
    if (random.Next() % 16 == 0) {
      frame[random.Next() % 3] = static_cast<char>(random.Next());
    }
    return frame;
  };
  Suffer(
      [&] {
        std::int64_t sent = 0;
        while (sent < count) {
          RawConnection connection(port());
          if (random.Next() % 16 != 0 && !connection.Send(Hello())) continue;
          // Few, since the server reads none that follow a fatal one, and the
          // connection takes them all the same for a while.
          for (int i = 0; i < 8 && connection.Send(random_frame()); ++i) ++sent;
        }
      },
      96 * kMiB);
}

}  // namespace
}  // namespace attendant
