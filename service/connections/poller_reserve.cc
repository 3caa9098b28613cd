#include "service/connections/poller_reserve.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>
#include <sys/resource.h>

#include <new>
#include <utility>

namespace attendant {
namespace {

// Returns how often the calling thread has blocked (voluntary context
// switches).
std::int64_t SleepCount() {
  rusage usage = {};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

std::int64_t NextId() {
  static std::atomic<std::int64_t> last{0};
  return ++last;
}

}  // namespace

struct PollerReserve::Call {
  grpc::ClientContext context;
  grpc::ByteBuffer request{nullptr, 0};
  grpc::ByteBuffer reply;
};

std::shared_ptr<PollerReserve> PollerReserve::OfProcess() {
  static Mutex& mutex = *new Mutex;
  static auto& reserve = *new std::weak_ptr<PollerReserve>;
  MutexLock lock(&mutex);
  std::shared_ptr<PollerReserve> shared = reserve.lock();
  if (shared == nullptr) {
    shared = std::make_shared<PollerReserve>();
    reserve = shared;
  }
  return shared;
}

// All calls fail on a channel without credentials.
PollerReserve::PollerReserve(absl::Duration most_rest)
    : id_(NextId()),
      most_rest_(most_rest),
      channel_(grpc::CreateChannel("", nullptr)) {
  auto call = std::make_unique<Call>();
  {
    MutexLock lock(&mutex_);
    asked_ = true;
  }
  Send(std::move(call));
}

PollerReserve::~PollerReserve() {
  MutexLock lock(&mutex_);
  stopping_ = true;
  changed_.NotifyAll();
  while (asked_ || resting_count_.load() > 0) changed_.Wait(&mutex_);
}

PollerReserve::Poller& PollerReserve::OfThread() {
  thread_local Poller poller;
  return poller;
}

void PollerReserve::Meet(Poller& poller) {
  if (poller.reserve_id == id_) return;
  poller.reserve_id = id_;
  ++poller_count_;
}

void PollerReserve::BeginWork() {
  Poller& poller = OfThread();
  if (poller.reserve_id != id_) {
    MutexLock lock(&mutex_);
    Meet(poller);
  }
  const bool rests = resting_count_.load(std::memory_order_relaxed) > 0;
  const bool watched = poller.watches;
  poller.watches = rests || (!watched && --poller.calls_to_watch <= 0);
  if (!watched && !poller.watches) return;
  const std::int64_t sleep_count = SleepCount();
  const bool slept = poller.sleep_count != sleep_count;
  poller.sleep_count = sleep_count;
  if (!watched) return;
  poller.calls_to_watch = (slept ? kWatchedEach : kWatchedEachBusy) - 1;
  if (!slept) {
    one_by_one_count_.store(0, std::memory_order_relaxed);
    if (rests) Wake();
  } else if (one_by_one_count_.fetch_add(1, std::memory_order_relaxed) + 1 ==
             kCallsOneByOne) {
    AskForOne();
  }
}

void PollerReserve::EndWork() {
  Poller& poller = OfThread();
  if (poller.watches) poller.sleep_count = SleepCount();
}

void PollerReserve::Wake() {
  MutexLock lock(&mutex_);
  ++wake_count_;
  changed_.NotifyAll();
}

void PollerReserve::AskForOne() {
  one_by_one_count_.store(0, std::memory_order_relaxed);
  const SteadyTime now = SteadyNow();
  std::unique_ptr<Call> call;
  try {
    call = std::make_unique<Call>();
  } catch (const std::bad_alloc&) {
    return;  // resting is optional
  }
  {
    MutexLock lock(&mutex_);
    const bool in_time = counted_ != SteadyTime::min() &&
                         absl::FromChrono(now - counted_) <= kMaxOneByOne;
    counted_ = now;
    if (!in_time || asked_ || stopping_ ||
        poller_count_ - resting_count_.load() < 2) {
      return;
    }
    asked_ = true;
  }
  Send(std::move(call));
}

void PollerReserve::Send(std::unique_ptr<Call> call) {
  Call* const sent = call.release();
  grpc::GenericStub(channel_).UnaryCall(
      &sent->context, "/", grpc::StubOptions(), &sent->request, &sent->reply,
      [this, sent](const grpc::Status&) { Rest(std::unique_ptr<Call>(sent)); });
}

void PollerReserve::Rest(std::unique_ptr<Call> call) {
  const SteadyTime end = SteadyAfter(most_rest_);
  MutexLock lock(&mutex_);
  // Release the channel before the reserve can be destroyed: whoever drops the
  // last reference waits for gRPC's threads to end.
  call.reset();
  asked_ = false;
  if (!stopping_) Meet(OfThread());
  if (!stopping_ && poller_count_ - resting_count_.load() > 1) {
    resting_count_.fetch_add(1);
    const std::int64_t before = wake_count_;
    while (wake_count_ == before && !stopping_ && SteadyNow() < end) {
      changed_.WaitWithTimeout(&mutex_, TimeUntil(end));
    }
    resting_count_.fetch_sub(1);
  }
  changed_.NotifyAll();
}

}  // namespace attendant
