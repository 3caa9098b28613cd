// Accepts the server's connections, so many at a time and no more.
#ifndef ATTENDANT_SERVICE_CONNECTIONS_LISTENER_H_
#define ATTENDANT_SERVICE_CONNECTIONS_LISTENER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/memory_budget.h"
#include "core/base/mutex.h"
#include "service/connections/host_places.h"
#include "service/connections/peer.h"
#include "service/log/log_limiter.h"
#include "service/watches/call_watch.h"
#include "service/watches/memory_guard.h"
#include "service/watches/read_watch.h"

namespace grpc::experimental {
class ExternalConnectionAcceptor;
}  // namespace grpc::experimental

namespace attendant {

// Accepts on a thread of its own and hands connections to gRPC, whose own
// listener knows no limit, and accepts nothing any more once the process has
// run out of file descriptors (CVE-2023-4785). Each connection takes two of
// them: by the second one is seen when gRPC has closed the first.
//
// gRPC begins to read a connection on the thread that hands it over, and goes
// on for as long as there is more to read, in which time its acceptor takes no
// other. So each is handed over by a thread of its own to an acceptor that is
// idle: fewer clients than kAcceptors that flood their connections keep none
// from being accepted. Those that keep gRPC from reading others are ended
// (ReadWatch) and those that have too many calls, or don't send them
// (CallWatch), and where there are as many as there may be, one of the host
// that has most for one of a host that has fewer (HostPlaces). While it does
// not read all, and connections end one after another, as of clients that give
// up or are dropped and come back at once, new ones are taken in slowly: each
// takes gRPC's time from those that are there.
//
// Order of calls: Bind, Start, Stop; HangUp between, or after. Thread-safe but
// for Start. gRPC's server must be gone before it is.
class Listener {
 public:
  static constexpr int kAcceptors = 16;
  // Without descriptors or memory for a connection it waits its turn so long.
  static constexpr absl::Duration kWaitForRoom = absl::Milliseconds(10);

  struct Options {
    std::string address;  // HOST:PORT; port 0 takes a free one
    int max_connection_count = 0;
    // Connections wait while it is true.
    std::function<bool()> holds = [] { return false; };
    // What the process may hold and holds; see MemoryGuard. Null: not looked
    // at.
    std::function<MemoryBudget::Use()> memory = nullptr;
    // What connections may have of calls; see CallWatch.
    CallWatch::Options call_watch = {};
    // The calls that gRPC has, or more; takes no time. Null: they are not
    // looked at.
    std::function<std::int64_t()> call_count = nullptr;
    // Those that the server was told of, by peers, as gRPC names them.
    std::function<absl::flat_hash_map<std::string, std::int64_t>()>
        known_calls = nullptr;
  };

  // Listens on all addresses of the host. Unavailable if one can't be bound.
  static absl::StatusOr<std::unique_ptr<Listener>> Bind(Options options);

  // Stops.
  ~Listener();

  int port() const { return port_; }
  // Open now.
  int connection_count() const { return connection_count_.load(); }

  // Connections that were ended as memory was full, nothing else was read,
  // others had no place, their calls were too many or did not come.
  std::int64_t dropped_count() const { return dropped_count_.load(); }

  // Connections that were refused: there were as many as there may be; or the
  // system had no descriptor or memory for them. Those that waited for it are
  // counted once for each kWaitForRoom.
  std::int64_t refused_at_limit_count() const { return at_limit_.count.load(); }
  std::int64_t refused_without_resources_count() const {
    return without_resources_.count.load();
  }

  // Connections go to `acceptors`, of a gRPC server that has started.
  void Start(std::vector<
             std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>>
                 acceptors);

  // Ends the connections of `peer`, as gRPC names it. What came from it and was
  // not read yet is not read any more.
  void Drop(absl::string_view peer);

  // Tells all peers that no more will be sent, behind what was, and waits up to
  // `patience` for them to hang up too, which nobody sees after Stop. Whoever
  // waits for a reply learns that its connection has ended: for a gRPC
  // client that is UNAVAILABLE, as for one who comes too late, and it tries
  // elsewhere. gRPC's own shutdown would cancel such a call. Connections that
  // are made meanwhile are not waited for.
  void HangUp(absl::Duration patience);

  // Accepts no more; connections that are open go on, but for those that gRPC
  // has begun to read and can't stop. Before gRPC's server shuts down, which
  // would wait for those that are read without end: what is left a second later
  // is ended.
  void Stop();

 private:
  // Of one cause.
  struct Refusals {
    const char* const reason;
    const char* const what_now;
    std::atomic<std::int64_t> count = 0;
    SteadyTime next_log = SteadyTime::min();  // of Run
  };

  struct Connection {
    Peer peer;
    bool is_hung_up = false;  // by us
    bool is_ended = false;
  };

  explicit Listener(Options options);

  absl::Status Listen();
  void Run();
  void Accept(int listening);
  // True if there is a place for one of `host`, or was made.
  bool HasPlaceFor(const std::string& host);
  void Admit(int connection, Peer peer);
  bool IsPaced();
  // second: its other descriptor.
  void HandOver(int connection, int second);
  void Refused(Refusals& refusals);
  void Forget(int connection);
  // Looks after connections until the object goes.
  void Guard();
  void GuardMemory(MemoryGuard& guard);
  void GuardCalls(CallWatch& watch);
  // Of all connections but those that were ended.
  std::vector<CallWatch::Connection> ReadCalls();
  void EndAll(const std::vector<std::string>& peers, const char* reason);
  void WatchReads() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveUpPlace(int connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(int connection, const char* reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  int port_ = 0;
  int poll_ = -1;  // of listening_, stop_ and connections
  int stop_ = -1;  // an eventfd
  std::vector<int> listening_;
  std::atomic<int> connection_count_ = 0;  // of places_
  std::atomic<std::int64_t> dropped_count_ = 0;
  Refusals at_limit_{
      "limit",
      "have clients use fewer connections, or raise --max-connections"};
  Refusals without_resources_{"resources",
                              "raise the limit on open files (ulimit -n, "
                              "LimitNOFILE), or give the machine more memory"};
  LogLimiter ended_logged_{10};
  Mutex mutex_;
  absl::flat_hash_map<int, Connection> connections_  // by second descriptor
      ABSL_GUARDED_BY(mutex_);
  int hung_up_count_ ABSL_GUARDED_BY(mutex_) = 0;  // of connections_
  // Of connections_, but for those that were ended.
  HostPlaces places_ ABSL_GUARDED_BY(mutex_);
  CondVar changed_;
  ReadWatch read_watch_ ABSL_GUARDED_BY(mutex_);
  int forgotten_count_ ABSL_GUARDED_BY(mutex_) = 0;  // since the last look
  SteadyTime paced_until_ ABSL_GUARDED_BY(mutex_) = SteadyTime::min();
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  // Whoever is connected then never ends by itself.
  SteadyTime abort_at_ ABSL_GUARDED_BY(mutex_) = SteadyTime::max();
  // Second descriptors of connections that are being handed over.
  absl::flat_hash_set<int> handing_over_ ABSL_GUARDED_BY(mutex_);
  std::vector<grpc::experimental::ExternalConnectionAcceptor*> idle_
      ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>>
      acceptors_;
  // Of the guard's thread: when calls are looked at again, if there are more
  // than there may be; and if there are any.
  SteadyTime next_crowd_look_ = SteadyTime::min();
  SteadyTime next_silence_look_ = SteadyTime::min();
  std::thread thread_;
  std::thread guard_thread_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONNECTIONS_LISTENER_H_
