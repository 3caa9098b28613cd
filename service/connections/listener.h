// Accepts connections for the server, up to a limit.
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

// Accepts connections on its own thread and hands them to gRPC, whose own
// listener has no limit and stops accepting for good once the process runs out
// of file descriptors (CVE-2023-4785). Each connection takes two descriptors;
// the second shows when gRPC has closed the first.
//
// gRPC starts to read a connection on the thread that hands it over and
// continues for as long as there is data, during which its acceptor takes no
// other connection. So each connection is handed over by its own thread to an
// idle acceptor: fewer than kAcceptors clients that flood their connections
// cannot keep others from being accepted.
//
// Connections are ended if they keep gRPC from reading others (ReadWatch), if
// they have too many calls or do not send them (CallWatch), and, when all
// places are taken, to give a place from the host with the most connections to
// a host with fewer (HostPlaces). While gRPC does not keep up with reading and
// connections end one after another, as when clients give up or are dropped and
// reconnect at once, new ones are admitted slowly, because each takes gRPC's
// time from the existing ones.
//
// Order of calls: Bind, Start, Stop; HangUp in between or afterwards.
// Thread-safe except for Start. Destroy gRPC's server before the listener.
class Listener {
 public:
  static constexpr int kAcceptors = 16;
  // Interval between attempts to accept a connection while descriptors or
  // memory are short.
  static constexpr absl::Duration kWaitForRoom = absl::Milliseconds(10);

  struct Options {
    std::string address;  // HOST:PORT; port 0 picks a free port
    int max_connection_count = 0;
    // No connections are accepted while this returns true.
    std::function<bool()> holds = [] { return false; };
    // Returns the memory limit and use of the process; see MemoryGuard. Null:
    // memory is not watched.
    std::function<MemoryBudget::Use()> memory = nullptr;
    // Limits on the calls of connections; see CallWatch.
    CallWatch::Options call_watch = {};
    // Returns an upper bound on the number of calls that gRPC has, at no cost.
    // Null: calls are not watched.
    std::function<std::int64_t()> call_count = nullptr;
    // Returns the number of calls that the server was told of, by peer as gRPC
    // names it.
    std::function<absl::flat_hash_map<std::string, std::int64_t>()>
        known_calls = nullptr;
  };

  // Listens on all addresses of the host. Unavailable if one of them can't be
  // bound.
  static absl::StatusOr<std::unique_ptr<Listener>> Bind(Options options);

  // Calls Stop.
  ~Listener();

  int port() const { return port_; }
  // Number of open connections.
  int connection_count() const { return connection_count_.load(); }

  // Connections ended because memory was full, they kept others from being
  // read, others had no place, or they had too many calls or did not send them.
  std::int64_t dropped_count() const { return dropped_count_.load(); }

  // Connections refused because the limit was reached, or because the system
  // had no descriptor or memory for them. One that waits for resources is
  // counted once per kWaitForRoom.
  std::int64_t refused_at_limit_count() const { return at_limit_.count.load(); }
  std::int64_t refused_without_resources_count() const {
    return without_resources_.count.load();
  }

  // Starts to hand connections to `acceptors` of a gRPC server that has
  // started.
  void Start(std::vector<
             std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>>
                 acceptors);

  // Ends the connections of `peer`, as gRPC names it. Data that has arrived
  // from it and not been read is discarded.
  void Drop(absl::string_view peer);

  // Shuts down the sending side of all connections, after the data already
  // queued, and waits up to `patience` for the peers to close theirs, which
  // goes unnoticed after Stop. A client that waits for a reply sees its
  // connection end; gRPC clients report UNAVAILABLE, as for a call that comes
  // too late, and try another server, whereas gRPC's own shutdown would cancel
  // the call. Does not wait for connections made meanwhile.
  void HangUp(absl::Duration patience);

  // Stops accepting. Open connections continue, except those that gRPC has
  // begun to read and cannot stop reading, which are ended a second later. Call
  // before gRPC's server shuts down, which would wait for them forever.
  void Stop();

 private:
  // Refusals for one cause.
  struct Refusals {
    const char* const reason;
    const char* const what_now;
    std::atomic<std::int64_t> count = 0;
    SteadyTime next_log = SteadyTime::min();  // used by Run only
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
  // True if there is a place for a connection from `host`, or one was made.
  bool HasPlaceFor(const std::string& host);
  void Admit(int connection, Peer peer);
  bool IsPaced();
  // second: the connection's second descriptor.
  void HandOver(int connection, int second);
  void Refused(Refusals& refusals);
  void Forget(int connection);
  // Watches the connections until the object is destroyed.
  void Guard();
  void GuardMemory(MemoryGuard& guard);
  void GuardCalls(CallWatch& watch);
  // Returns all connections except those that were ended.
  std::vector<CallWatch::Connection> ReadCalls();
  void EndAll(const std::vector<std::string>& peers, const char* reason);
  void WatchReads() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveUpPlace(int connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(int connection, const char* reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  int port_ = 0;
  int poll_ = -1;  // polls listening_, stop_ and connections
  int stop_ = -1;  // an eventfd
  std::vector<int> listening_;
  std::atomic<int> connection_count_ = 0;  // size of places_
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
  int hung_up_count_ ABSL_GUARDED_BY(mutex_) = 0;  // among connections_
  // connections_ except those that were ended.
  HostPlaces places_ ABSL_GUARDED_BY(mutex_);
  CondVar changed_;
  ReadWatch read_watch_ ABSL_GUARDED_BY(mutex_);
  int forgotten_count_ ABSL_GUARDED_BY(mutex_) = 0;  // since the last check
  SteadyTime paced_until_ ABSL_GUARDED_BY(mutex_) = SteadyTime::min();
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  // After this time remaining connections are aborted, since they never end by
  // themselves.
  SteadyTime abort_at_ ABSL_GUARDED_BY(mutex_) = SteadyTime::max();
  // Second descriptors of connections being handed over.
  absl::flat_hash_set<int> handing_over_ ABSL_GUARDED_BY(mutex_);
  std::vector<grpc::experimental::ExternalConnectionAcceptor*> idle_
      ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>>
      acceptors_;
  // For the guard thread: when to look at calls again, if there are more than
  // allowed; and if there are any.
  SteadyTime next_crowd_look_ = SteadyTime::min();
  SteadyTime next_silence_look_ = SteadyTime::min();
  std::thread thread_;
  std::thread guard_thread_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONNECTIONS_LISTENER_H_
