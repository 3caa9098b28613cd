// Keeps gRPC's threads from waking each other where calls come one by one.
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

// At least two threads run gRPC's callbacks. One of them polls, and before it
// handles what came it wakes another to poll in its stead: of the processor's
// time for a light query that is alone, a wake and two switches of threads are
// a quarter. While calls come one by one, one such thread after the other rests
// in the reserve, until one is left. They are woken as soon as a call waited
// for the one before it; and after kMaxRest in any case, for what waits behind
// a handler that blocks. Thread-safe.
class PollerReserve {
 public:
  // Of so many calls of a thread one is watched, while none rests: whether it
  // waited is asked of the system, each time .3 us. Of fewer once one did not:
  // where calls wait, nobody is about to rest.
  static constexpr int kWatchedEach = 4;
  static constexpr int kWatchedEachBusy = 64;
  // Watched calls in a row that waited for none, for a thread to rest; and the
  // longest that they may take: threads sleep long enough where there is little
  // to do.
  static constexpr int kCallsOneByOne = 64;
  static constexpr absl::Duration kMaxOneByOne = absl::Seconds(1);
  static constexpr absl::Duration kMaxRest = absl::Milliseconds(200);

  // The process's, as gRPC's threads are.
  static std::shared_ptr<PollerReserve> OfProcess();

  explicit PollerReserve(absl::Duration most_rest = kMaxRest);
  // Returns when none of gRPC's threads rests.
  ~PollerReserve();

  // Called by the threads that run gRPC's callbacks, and no others, as they
  // begin to handle a call or a message; and when they have done work of theirs
  // that may have made them sleep.
  void BeginWork();
  void EndWork();

  // Threads that rest, now.
  int resting_count() const { return resting_count_.load(); }

 private:
  struct Call;
  // One of the threads that were seen, by itself.
  struct Poller {
    std::int64_t reserve_id = 0;
    int calls_to_watch = 0;        // until the next one that is watched
    bool watches = false;          // from its last call on to its next
    std::int64_t sleep_count = 0;  // when it last began or ended something
  };
  static Poller& OfThread();

  void Meet(Poller& poller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wake();
  // Has gRPC call Rest on one of its threads, if more than one is awake.
  void AskForOne();
  // On a thread of gRPC's, which will call Rest.
  void Send(std::unique_ptr<Call> call);
  void Rest(std::unique_ptr<Call> call);

  const std::int64_t id_;
  const absl::Duration most_rest_;
  // All its calls fail at once. Its first keeps gRPC's threads until it goes.
  const std::shared_ptr<grpc::Channel> channel_;
  std::atomic<int> one_by_one_count_ = 0;  // calls in a row
  std::atomic<int> resting_count_ = 0;
  Mutex mutex_;
  CondVar changed_;
  int poller_count_ ABSL_GUARDED_BY(mutex_) = 0;  // that were seen
  // When there last were kCallsOneByOne.
  SteadyTime counted_ ABSL_GUARDED_BY(mutex_) = SteadyTime::min();
  std::int64_t wake_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool asked_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_CONNECTIONS_POLLER_RESERVE_H_
