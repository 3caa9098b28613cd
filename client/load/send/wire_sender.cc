#include "client/load/send/wire_sender.h"

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/async_unary_call.h>
#include <grpcpp/support/channel_arguments.h>

#include <deque>
#include <functional>
#include <list>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "client/api/client.h"
#include "client/api/deadline.h"
#include "client/api/grpc_status.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace attendant {
namespace {

// Makes channels to one server. A channel connects on first use.
using ChannelMaker = std::function<std::shared_ptr<grpc::Channel>()>;

std::shared_ptr<grpc::Channel> MakeChannel(
    const std::string& server,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);  // the server has its own limit
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Notices at once when a server listens again.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
  // Not GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, which is how long an attempt may
  // take: a busy server is slow to accept one.
  return grpc::CreateCustomChannel(server, credentials, arguments);
}

}  // namespace

// A completion queue, the thread that takes answers from it, and the
// connections whose calls it completes.
class WireSender::Lane {
 public:
  Lane(absl::Duration deadline, ChannelMaker make_channel)
      : deadline_(deadline),
        make_channel_(std::move(make_channel)),
        thread_([this] { TakeAnswers(); }) {}
  ~Lane() {
    queue_.Shutdown();
    thread_.join();
  }

  // Adds a connection that is used in turns. Call it before the first Send.
  void AddConnection(const std::shared_ptr<grpc::Channel>& channel) {
    MutexLock lock(&mutex_);
    connections_.emplace_back(channel);
    ++in_turns_;
  }

  int connection_count() {
    MutexLock lock(&mutex_);
    return static_cast<int>(connections_.size());
  }

  void Send(std::uint64_t turn, const std::string& method,
            const grpc::ByteBuffer& request, Done done) {
    std::list<Call> calls(1);
    Call& call = calls.front();
    call.done = std::move(done);
    call.place = calls.begin();
    call.context.set_deadline(DeadlineAfter(deadline_));
    {
      MutexLock lock(&mutex_);
      call.connection = &ConnectionFor(turn);
      ++call.connection->call_count;
    }
    call.reader = call.connection->stub.PrepareUnaryCall(&call.context, method,
                                                         request, &queue_);
    {
      MutexLock lock(&mutex_);
      calls_.splice(calls_.end(), calls);
    }
    call.reader->StartCall();
    call.reader->Finish(&call.reply, &call.status, &call);
  }

  void Cancel() {
    MutexLock lock(&mutex_);
    for (Call& call : calls_) call.context.TryCancel();
  }

 private:
  struct Connection {
    explicit Connection(const std::shared_ptr<grpc::Channel>& channel)
        : stub(channel) {}
    grpc::GenericStub stub;
    int call_count = 0;  // under way
  };

  // A call from its start until its answer is received.
  struct Call {
    Connection* connection = nullptr;
    grpc::ClientContext context;
    grpc::ByteBuffer reply;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader;
    WireSender::Done done;
    std::list<Call>::iterator place;  // in calls_
  };

  // Returns the connection whose turn it is, or the next that has room, or a
  // new one.
  Connection& ConnectionFor(std::uint64_t turn)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      Connection& connection =
          connections_[i < in_turns_ ? (turn + i) % in_turns_ : i];
      if (connection.call_count < kMaxCalls) return connection;
    }
    return connections_.emplace_back(make_channel_());
  }

  void TakeAnswers() {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
      const Call& call = *static_cast<Call*>(tag);
      std::list<Call> calls;
      {
        MutexLock lock(&mutex_);
        calls.splice(calls.end(), calls_, call.place);
        --call.connection->call_count;
      }
      call.done(
          call.status.ok() ? absl::OkStatus() : FromGrpcStatus(call.status),
          call.reply);
    }
  }

  const absl::Duration deadline_;
  const ChannelMaker make_channel_;
  grpc::CompletionQueue queue_;
  Mutex mutex_;
  // The first ones are used in turns. A deque, since calls point to its
  // elements.
  std::deque<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  std::size_t in_turns_ ABSL_GUARDED_BY(mutex_) = 0;
  std::list<Call> calls_ ABSL_GUARDED_BY(mutex_);  // under way
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<WireSender>> WireSender::Connect(
    const WireSenderOptions& options) {
  ATTENDANT_ASSIGN_OR_RETURN(const auto credentials,
                             MakeChannelCredentials(options.security));
  const ChannelMaker make_channel = [server = options.server, credentials] {
    return MakeChannel(server, credentials);
  };
  std::vector<std::unique_ptr<Lane>> lanes;
  for (int i = 0; i < options.thread_count; ++i) {
    lanes.push_back(std::make_unique<Lane>(options.deadline, make_channel));
  }
  for (int i = 0; i < options.connection_count; ++i) {
    const auto channel = make_channel();
    if (!channel->WaitForConnected(DeadlineAfter(options.connect_deadline))) {
      return absl::UnavailableError(
          absl::StrCat("no server answers at ", options.server));
    }
    lanes[static_cast<std::size_t>(i) % lanes.size()]->AddConnection(channel);
  }
  return std::unique_ptr<WireSender>(new WireSender(std::move(lanes)));
}

WireSender::WireSender(std::vector<std::unique_ptr<Lane>> lanes)
    : lanes_(std::move(lanes)) {}

WireSender::~WireSender() = default;

int WireSender::connection_count() const {
  int count = 0;
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    count += lane->connection_count();
  }
  return count;
}

void WireSender::Cancel() {
  for (const std::unique_ptr<Lane>& lane : lanes_) lane->Cancel();
}

void WireSender::Send(const std::string& method,
                      const grpc::ByteBuffer& request, Done done) {
  const std::uint64_t turn = turn_.fetch_add(1, std::memory_order_relaxed);
  lanes_[turn % lanes_.size()]->Send(turn / lanes_.size(), method, request,
                                     std::move(done));
}

}  // namespace attendant
