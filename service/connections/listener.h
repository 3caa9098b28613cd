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
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/clock.h"
#include "core/base/memory_budget.h"
#include "core/base/mutex.h"
#include "service/connections/memory_guard.h"
#include "service/connections/read_watch.h"

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
// (ReadWatch). While it does not read all, and connections end one after
// another, as of clients that give up or are dropped and come back at once, new
// ones are taken in slowly: each takes gRPC's time from those that are there.
//
// Order of calls: Bind, Start, Stop. Thread-safe but for Start. gRPC's server
// must be gone before it is.
class Listener {
 public:
  static constexpr int kAcceptors = 16;

  struct Options {
    std::string address;  // HOST:PORT; port 0 takes a free one
    int max_connection_count = 0;
    // Connections wait while it is true.
    std::function<bool()> holds = [] { return false; };
    // What the process may hold and holds; see MemoryGuard. Null: not looked
    // at.
    std::function<MemoryBudget::Use()> memory = nullptr;
  };

  // Listens on all addresses of the host. Unavailable if one can't be bound.
  static absl::StatusOr<std::unique_ptr<Listener>> Bind(Options options);

  // Stops.
  ~Listener();

  int port() const { return port_; }
  // Open now.
  int connection_count() const { return connection_count_.load(); }

  // Connections that were ended as memory was full, or nothing else was read.
  std::int64_t dropped_count() const { return dropped_count_.load(); }

  // Connections go to `acceptors`, of a gRPC server that has started.
  void Start(std::vector<
             std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>>
                 acceptors);

  // Ends the connections of `peer`, as gRPC names it. What came from it and was
  // not read yet is not read any more.
  void Drop(absl::string_view peer);

  // Accepts no more; connections that are open go on, but for those that gRPC
  // has begun to read and can't stop. Before gRPC's server shuts down, which
  // would wait for those that are read without end: what is left a second later
  // is ended.
  void Stop();

 private:
  explicit Listener(Options options);

  absl::Status Listen();
  void Run();
  void Accept(int listening);
  void Admit(int connection);
  bool IsPaced();
  // second: its other descriptor.
  void HandOver(int connection, int second);
  void Refuse(int connection);
  void Forget(int connection);
  // Looks after connections until the object goes.
  void Guard();
  void GuardMemory(MemoryGuard& guard);
  void WatchReads() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(int connection, const char* reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  int port_ = 0;
  int poll_ = -1;  // of listening_, stop_ and connections
  int stop_ = -1;  // an eventfd
  std::vector<int> listening_;
  std::atomic<int> connection_count_ = 0;  // of connections_
  std::atomic<std::int64_t> dropped_count_ = 0;
  Mutex mutex_;
  absl::flat_hash_set<int> connections_  // second descriptors
      ABSL_GUARDED_BY(mutex_);
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
  SteadyTime next_log_ = SteadyTime::min();  // of Run
  std::vector<std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>>
      acceptors_;
  std::thread thread_;
  std::thread guard_thread_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONNECTIONS_LISTENER_H_
