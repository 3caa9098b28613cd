// Keeps gRPC's threads from waking each other when calls come one at a time.
#ifndef ATTENDANT_SERVICE_CONNECTIONS_POLLER_RESERVE_H_
#define ATTENDANT_SERVICE_CONNECTIONS_POLLER_RESERVE_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace attendant {

// Parks gRPC polling threads that are not needed.
//
// gRPC runs callbacks on at least two threads. One polls, and before it handles
// an event it wakes another to poll in its place: for a light query on an idle
// server, that wake-up and two thread switches are a quarter of the processor
// time. While calls come one at a time, the threads are parked in the reserve,
// one after the other, until a single one is left. They are woken as soon as a
// call had to wait for the previous one, and after kMaxRest in any case, for
// calls stuck behind a handler that blocks. Thread-safe.
class PollerReserve {
 public:
  // While no thread rests, one in this many calls of a thread is checked:
  // asking the system whether the thread slept before the call takes 0.3 us.
  // Fewer calls are checked once a thread did not sleep: while calls queue up,
  // no thread is about to rest.
  static constexpr int kWatchedEach = 4;
  static constexpr int kWatchedEachBusy = 64;
  // Number of consecutive checked calls for which the thread slept, i.e. that
  // came one at a time, after which a thread rests, and the maximum time they
  // may span: at low load threads sleep long enough anyway.
  static constexpr int kCallsOneByOne = 64;
  static constexpr absl::Duration kMaxOneByOne = absl::Seconds(1);
  static constexpr absl::Duration kMaxRest = absl::Milliseconds(200);

  // The reserve of the process, to which gRPC's threads belong.
  static std::shared_ptr<PollerReserve> OfProcess();

  explicit PollerReserve(absl::Duration most_rest = kMaxRest);
  // Returns when none of gRPC's threads rests.
  ~PollerReserve();

  // Call these only from the threads that run gRPC's callbacks: BeginWork when
  // a thread starts to handle a call or a message, EndWork after it has done
  // work that may have made it sleep.
  void BeginWork();
  void EndWork();

  // Number of threads that rest now.
  int resting_count() const { return resting_count_.load(); }

 private:
  struct Call;
  // State of one observed thread, accessed only by that thread.
  struct Poller {
    std::int64_t reserve_id = 0;
    int calls_to_watch = 0;        // until the next call that is checked
    bool watches = false;          // from its last call until its next
    std::int64_t sleep_count = 0;  // at its last BeginWork or EndWork
  };
  static Poller& OfThread();

  void Meet(Poller& poller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wake();
  // Makes gRPC call Rest on one of its threads, if more than one is awake.
  void AskForOne();
  // Runs on a gRPC thread, which then calls Rest.
  void Send(std::unique_ptr<Call> call);
  void Rest(std::unique_ptr<Call> call);

  const std::int64_t id_;
  const absl::Duration most_rest_;
  // All its calls fail at once. The first use keeps gRPC's threads alive until
  // the channel is destroyed.
  const std::shared_ptr<grpc::Channel> channel_;
  std::atomic<int> one_by_one_count_ = 0;  // consecutive calls
  std::atomic<int> resting_count_ = 0;
  Mutex mutex_;
  CondVar changed_;
  int poller_count_ ABSL_GUARDED_BY(mutex_) = 0;  // threads seen
  // When kCallsOneByOne was last reached.
  SteadyTime counted_ ABSL_GUARDED_BY(mutex_) = SteadyTime::min();
  std::int64_t wake_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool asked_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONNECTIONS_POLLER_RESERVE_H_
