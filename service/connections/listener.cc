#include "service/connections/listener.h"

#include <fcntl.h>
#include <grpcpp/server_builder.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/host_port.h"
#include "core/base/status.h"
#include "service/connections/grpc_sockets.h"
#include "service/connections/listen_address.h"
#include "service/connections/peer.h"
#include "service/log/log.h"

namespace attendant {
namespace {

constexpr int kBacklog = 1024;
constexpr int kBatch = 64;
constexpr absl::Duration kLogInterval = absl::Seconds(10);
constexpr absl::Duration kWaitForHandOver = absl::Milliseconds(500);
constexpr absl::Duration kWaitForEnd = absl::Seconds(1);
constexpr absl::Duration kGuardInterval = absl::Milliseconds(250);
constexpr absl::Duration kCrowdInterval = absl::Seconds(1);
// Pacing against clients that reconnect at once: if at least this many
// connections end between two looks, new ones are admitted at intervals of
// kPace for kPacedFor.
constexpr int kManyForgotten = 5;
constexpr absl::Duration kPacedFor = absl::Seconds(2);
constexpr absl::Duration kPace = absl::Milliseconds(20);

void SetPort(int port, sockaddr& address) {
  auto& place = address.sa_family == AF_INET6
                    ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                    : reinterpret_cast<sockaddr_in&>(address).sin_port;
  place = htons(static_cast<std::uint16_t>(port));
}

// Returns a listening socket, or -1 with errno set. A second server on the port
// must fail rather than receive a share of the calls: no SO_REUSEPORT.
int ListenAt(const addrinfo& info) {
  const int fd = socket(
      info.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
  const int on = 1;
  if (fd >= 0 &&
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
      bind(fd, info.ai_addr, info.ai_addrlen) == 0 &&
      listen(fd, kBacklog) == 0) {
    return fd;
  }
  const int error = errno;
  if (fd >= 0) close(fd);
  errno = error;
  return -1;
}

// Returns the bytes received over a connection; 0 if the system does not report
// them.
std::int64_t ReceivedBytes(int connection) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (getsockopt(connection, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
    return 0;
  }
  return static_cast<std::int64_t>(info.tcpi_bytes_received);
}

// Discards unread data; shutdown() would leave it in the queue to be read.
void Abort(int connection) {
  const sockaddr nowhere = {.sa_family = AF_UNSPEC, .sa_data = {}};
  connect(connection, &nowhere, sizeof(nowhere));
}

// True if the client has closed the connection or its sending side, which an
// HTTP/2 client does not do.
bool HasHungUp(int connection) {
  pollfd state = {.fd = connection, .events = POLLRDHUP, .revents = 0};
  return poll(&state, 1, 0) > 0;
}

bool Watch(int poll, int descriptor, std::uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.fd = descriptor;
  return epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

}  // namespace

Listener::Listener(Options options) : options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<Listener>> Listener::Bind(Options options) {
  std::unique_ptr<Listener> listener(new Listener(std::move(options)));
  ATTENDANT_RETURN_IF_ERROR(listener->Listen());
  return listener;
}

absl::Status Listener::Listen() {
  const std::string host = BareHostOf(options_.address);
  const std::string port = absl::StrCat(PortOf(options_.address));
  addrinfo hints = {};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) {
    return CannotListen(options_.address, "", 0);
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(
      found, &freeaddrinfo);
  poll_ = epoll_create1(EPOLL_CLOEXEC);
  stop_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    // All addresses of the host use the port that the first one was given.
    if (port_ != 0) SetPort(port_, *info->ai_addr);
    const int socket = ListenAt(*info);
    // A name may have addresses of a family that the machine lacks.
    if (socket < 0 && (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT)) {
      continue;
    }
    if (socket < 0) return CannotListen(options_.address, "", errno);
    listening_.push_back(socket);
    port_ = BoundPort(socket);
    if (!Watch(poll_, socket, EPOLLIN)) {
      return CannotListen(options_.address, "", errno);
    }
  }
  if (listening_.empty()) {
    return CannotListen(options_.address, "", EADDRNOTAVAIL);
  }
  if (!Watch(poll_, stop_, EPOLLIN)) {
    return CannotListen(options_.address, "", errno);
  }
  return absl::OkStatus();
}

Listener::~Listener() {
  Stop();
  // Closes the sockets if Start was never called.
  for (const int socket : listening_) close(socket);
  {
    MutexLock lock(&mutex_);
    ended_ = true;
    changed_.NotifyAll();
    while (!handing_over_.empty()) changed_.Wait(&mutex_);
  }
  if (guard_thread_.joinable()) guard_thread_.join();
  {
    MutexLock lock(&mutex_);
    for (const auto& [connection, about] : connections_) close(connection);
  }
  if (poll_ >= 0) close(poll_);
  if (stop_ >= 0) close(stop_);
}

void Listener::Start(
    std::vector<std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>>
        acceptors) {
  acceptors_ = std::move(acceptors);
  {
    MutexLock lock(&mutex_);
    for (const auto& acceptor : acceptors_) idle_.push_back(acceptor.get());
  }
  thread_ = std::thread([this] { Run(); });
  guard_thread_ = std::thread([this] { Guard(); });
}

void Listener::Drop(absl::string_view peer) {
  MutexLock lock(&mutex_);
  for (const auto& [connection, about] : connections_) {
    if (about.peer.name == peer) Abort(connection);
  }
}

void Listener::HangUp(absl::Duration patience) {
  const SteadyTime give_up = SteadyAfter(patience);
  MutexLock lock(&mutex_);
  for (auto& [connection, about] : connections_) {
    shutdown(connection, SHUT_WR);
    about.is_hung_up = true;
  }
  hung_up_count_ = static_cast<int>(connections_.size());
  while (hung_up_count_ > 0 && SteadyNow() < give_up) {
    changed_.WaitWithTimeout(&mutex_, TimeUntil(give_up));
  }
}

void Listener::Stop() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_, 1);
  thread_.join();
  {
    MutexLock lock(&mutex_);
    abort_at_ = SteadyAfter(kWaitForEnd);
    // gRPC's shutdown would wait for connections that are being flooded.
    const SteadyTime end = SteadyAfter(kWaitForHandOver);
    while (!handing_over_.empty() && SteadyNow() < end) {
      changed_.WaitWithTimeout(&mutex_, kWaitForHandOver);
    }
    for (const int connection : handing_over_) Abort(connection);
    while (!handing_over_.empty()) changed_.Wait(&mutex_);
  }
  for (const int socket : listening_) close(socket);
  listening_.clear();
}

void Listener::Run() {
  std::array<epoll_event, 64> events;
  while (true) {
    const int count = epoll_wait(poll_, events.data(), events.size(), -1);
    for (int i = 0; i < count; ++i) {
      const int descriptor = events[i].data.fd;
      if (descriptor == stop_) return;
      if (absl::c_linear_search(listening_, descriptor)) {
        Accept(descriptor);
      } else {
        Forget(descriptor);
      }
    }
  }
}

void Listener::Accept(int listening) {
  if (options_.holds()) {
    absl::SleepFor(kWaitForRoom);
    return;
  }
  // A few at a time, since other events may free places in between.
  for (int i = 0; i < kBatch; ++i) {
    const int connection =
        accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
          errno == ENOMEM) {
        Refused(without_resources_);
        absl::SleepFor(kWaitForRoom);
      }
      return;
    }
    if (HasHungUp(connection)) {
      close(connection);
      continue;
    }
    Peer peer = PeerOf(connection);
    if (!HasPlaceFor(peer.host)) {
      // Close without sending anything: a client that received an HTTP/2
      // server's first frames would consider the connection established and
      // retry without a pause.
      close(connection);
      Refused(at_limit_);
      continue;
    }
    Admit(connection, std::move(peer));
    if (IsPaced()) {
      absl::SleepFor(kPace);
      return;
    }
  }
}

bool Listener::IsPaced() {
  MutexLock lock(&mutex_);
  return SteadyNow() < paced_until_;
}

bool Listener::HasPlaceFor(const std::string& host) {
  if (connection_count() < options_.max_connection_count) return true;
  MutexLock lock(&mutex_);
  std::optional<int> least;
  std::int64_t least_bytes = 0;
  for (const int connection : places_.CandidatesFor(host)) {
    const std::int64_t bytes = ReceivedBytes(connection);
    if (least && bytes >= least_bytes) continue;
    least = connection;
    least_bytes = bytes;
  }
  if (!least) return false;
  End(*least, "others have no place, and its address has the most connections");
  return true;
}

void Listener::Admit(int connection, Peer peer) {
  const int on = 1;
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const int second = fcntl(connection, F_DUPFD_CLOEXEC, 0);
  // Reports only a hang-up, which gRPC causes before it closes its descriptor.
  if (second < 0 || !Watch(poll_, second, 0)) {
    if (second >= 0) close(second);
    close(connection);
    Refused(without_resources_);
    return;
  }
  {
    MutexLock lock(&mutex_);
    places_.Add(peer.host, second);
    connection_count_.store(static_cast<int>(places_.connection_count()));
    connections_[second] = {std::move(peer)};
    handing_over_.insert(second);
  }
  try {
    std::thread([this, connection, second] {
      HandOver(connection, second);
    }).detach();
  } catch (const std::system_error&) {
    HandOver(connection, second);
  }
}

void Listener::HandOver(int connection, int second) {
  grpc::experimental::ExternalConnectionAcceptor* acceptor = nullptr;
  {
    MutexLock lock(&mutex_);
    while (idle_.empty()) changed_.Wait(&mutex_);
    acceptor = idle_.back();
    idle_.pop_back();
  }
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters
      accepted;
  accepted.fd = connection;
  acceptor->HandleNewConnection(&accepted);
  MutexLock lock(&mutex_);
  idle_.push_back(acceptor);
  handing_over_.erase(second);
  // The connection ended during the hand-over; its descriptor was kept open
  // until now so that its number could not be reused.
  if (!connections_.contains(second)) close(second);
  changed_.NotifyAll();
}

void Listener::Refused(Refusals& refusals) {
  refusals.count.fetch_add(1);
  if (SteadyNow() < refusals.next_log) return;
  refusals.next_log = SteadyAfter(kLogInterval);
  LogEvent(LogLevel::kWarning, "connection_refused",
           {{"reason", refusals.reason},
            {"connections", LogValue::Json(absl::StrCat(connection_count()))},
            {"max_connections",
             LogValue::Json(absl::StrCat(options_.max_connection_count))},
            {"what_now", refusals.what_now}});
}

void Listener::Guard() {
  MemoryGuard memory_guard;
  CallWatch call_watch(options_.call_watch);
  while (true) {
    const SteadyTime next = SteadyAfter(kGuardInterval);
    bool stopped = false;
    {
      MutexLock lock(&mutex_);
      while (!ended_ && SteadyNow() < next) {
        changed_.WaitWithTimeout(&mutex_, TimeUntil(next));
      }
      if (ended_) return;
      WatchReads();
      stopped = abort_at_ != SteadyTime::max();
      if (SteadyNow() >= abort_at_) {
        for (const auto& [connection, about] : connections_) Abort(connection);
      }
    }
    // The callbacks may use objects that are gone once the server has stopped.
    if (stopped) continue;
    if (options_.memory) GuardMemory(memory_guard);
    if (options_.call_count) GuardCalls(call_watch);
  }
}

void Listener::GuardMemory(MemoryGuard& guard) {
  const MemoryBudget::Use memory = options_.memory();
  std::vector<MemoryGuard::Received> received;
  MutexLock lock(&mutex_);
  if (memory.limit_bytes > 0 && memory.resident_bytes > memory.limit_bytes) {
    for (const auto& [connection, about] : connections_) {
      received.push_back({connection, ReceivedBytes(connection)});
    }
  }
  const std::optional<int> sender = guard.Look(
      memory.resident_bytes, memory.limit_bytes, received, SteadyNow());
  if (sender) End(*sender, "memory is over its limit, and it sent the most");
}

void Listener::GuardCalls(CallWatch& watch) {
  const SteadyTime now = SteadyNow();
  const std::int64_t count = options_.call_count();
  const std::int64_t most =
      watch.MostCalls(options_.memory ? options_.memory().limit_bytes : 0);
  const bool may_be_crowded = count > most && now >= next_crowd_look_;
  const bool may_be_silent = count > 0 && now >= next_silence_look_;
  if (!may_be_crowded && !may_be_silent) return;
  const std::vector<CallWatch::Connection> connections = ReadCalls();
  const std::vector<std::string> crowding =
      CallWatch::Crowding(connections, most);
  EndAll(crowding, "calls take too much memory, and it has the most");
  // Some of the counted calls may have ended.
  if (crowding.empty()) next_crowd_look_ = SteadyAfter(kCrowdInterval);
  EndAll(watch.Silent(connections, now), "its calls do not arrive");
  next_silence_look_ = SteadyAfter(options_.call_watch.stall_time / 4);
}

std::vector<CallWatch::Connection> Listener::ReadCalls() {
  // Read the sockets first: calls announced to the server in between then do
  // not count as waiting.
  const std::vector<GrpcSocket> sockets = ReadGrpcSockets(port_);
  const absl::flat_hash_map<std::string, std::int64_t> known =
      options_.known_calls();
  absl::flat_hash_map<absl::string_view, const GrpcSocket*> by_peer;
  for (const GrpcSocket& socket : sockets) by_peer[socket.peer] = &socket;
  std::vector<CallWatch::Connection> connections;
  MutexLock lock(&mutex_);
  for (const auto& [connection, about] : connections_) {
    const auto socket = by_peer.find(about.peer.name);
    if (about.is_ended || socket == by_peer.end()) continue;
    const auto known_count = known.find(about.peer.name);
    connections.push_back(
        {.peer = about.peer.name,
         .host = about.peer.host,
         .open_count = socket->second->open_call_count,
         .known_count = known_count == known.end() ? 0 : known_count->second,
         .message_count = socket->second->message_count,
         .received_bytes = ReceivedBytes(connection)});
  }
  return connections;
}

void Listener::EndAll(const std::vector<std::string>& peers,
                      const char* reason) {
  if (peers.empty()) return;
  const absl::flat_hash_set<absl::string_view> names(peers.begin(),
                                                     peers.end());
  MutexLock lock(&mutex_);
  for (const auto& [connection, about] : connections_) {
    if (!about.is_ended && names.contains(about.peer.name)) {
      End(connection, reason);
    }
  }
}

void Listener::WatchReads() {
  std::vector<ReadWatch::Connection> connections;
  for (const auto& [connection, about] : connections_) {
    int bytes = 0;
    if (ioctl(connection, SIOCINQ, &bytes) != 0) continue;
    if (bytes == 0 && !read_watch_.Knows(connection)) continue;
    int unsent = 0;
    ioctl(connection, SIOCOUTQ, &unsent);
    connections.push_back(
        {connection, ReceivedBytes(connection), bytes, unsent});
  }
  for (const int connection : read_watch_.Look(connections)) {
    End(connection, "it keeps other connections from being read");
  }
  if (read_watch_.is_behind() && forgotten_count_ >= kManyForgotten) {
    paced_until_ = SteadyAfter(kPacedFor);
  }
  forgotten_count_ = 0;
}

void Listener::GiveUpPlace(int connection) {
  places_.Remove(connections_.at(connection).peer.host, connection);
  connection_count_.store(static_cast<int>(places_.connection_count()));
}

void Listener::End(int connection, const char* reason) {
  if (const auto dropped = ended_logged_.Admit(SteadyNow())) {
    LogEvent(LogLevel::kWarning, "connection_dropped",
             {{"reason", reason},
              {"peer", connections_.at(connection).peer.name},
              {"not_logged_before", LogValue::Json(absl::StrCat(*dropped))}});
  }
  dropped_count_.fetch_add(1);
  connections_.at(connection).is_ended = true;
  GiveUpPlace(connection);
  Abort(connection);
}

void Listener::Forget(int connection) {
  // Must be removed explicitly: closing one descriptor does not remove it from
  // the epoll set while gRPC has the other.
  epoll_ctl(poll_, EPOLL_CTL_DEL, connection, nullptr);
  MutexLock lock(&mutex_);
  GiveUpPlace(connection);
  if (connections_.at(connection).is_hung_up && --hung_up_count_ == 0) {
    changed_.NotifyAll();
  }
  connections_.erase(connection);
  ++forgotten_count_;
  read_watch_.Forget(connection);
  if (!handing_over_.contains(connection)) close(connection);
}

}  // namespace attendant
