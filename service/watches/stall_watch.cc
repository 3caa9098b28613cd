#include "service/watches/stall_watch.h"

#include <grpcpp/server_context.h>

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "service/log/log.h"

namespace attendant {

StallWatch::Wait::Wait(StallWatch& watch,
                       const grpc::CallbackServerContext& context)
    : watch_(watch), context_(context) {
  MutexLock lock(&watch_.mutex_);
  watch_.waits_.AddFirst(*this);
}

void StallWatch::Wait::Begin(std::size_t bytes) {
  constexpr double kNanosecondsPerByte = 1e9 / kMinBytesPerSecond;
  const auto size = static_cast<std::int64_t>(bytes);
  bytes_.store(size);
  const std::int64_t now = watch_.NowNanoseconds();
  begin_ns_.store(now);
  end_ns_.store(now + absl::ToInt64Nanoseconds(watch_.options_.stall_time) +
                static_cast<std::int64_t>(kNanosecondsPerByte *
                                          static_cast<double>(size)));
  if (watch_.waiting_bytes_.fetch_add(size) + size <=
      watch_.options_.reply_memory_bytes) {
    return;
  }
  MutexLock lock(&watch_.mutex_);
  watch_.changed_.NotifyAll();
}

void StallWatch::Wait::BeginRead() {
  const std::int64_t now = watch_.NowNanoseconds();
  begin_ns_.store(now);
  end_ns_.store(now + absl::ToInt64Nanoseconds(watch_.options_.idle_time));
}

void StallWatch::Wait::End() {
  end_ns_.store(kNone);
  begin_ns_.store(kNone);
  watch_.waiting_bytes_.fetch_sub(bytes_.exchange(0));
}

StallWatch::Wait::~Wait() {
  End();
  MutexLock lock(&watch_.mutex_);
  // The cancellation may end the call on the watch's own thread.
  while (watch_.cancelling_ == this &&
         watch_.thread_.get_id() != std::this_thread::get_id()) {
    watch_.changed_.Wait(&watch_.mutex_);
  }
  if (watch_.following_ == this) watch_.following_ = watch_.waits_.After(*this);
  watch_.waits_.Remove(*this);
}

StallWatch::StallWatch(Options options)
    : options_(std::move(options)), thread_([this] { Run(); }) {}

StallWatch::~StallWatch() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void StallWatch::Run() {
  MutexLock lock(&mutex_);
  while (!stopping_) {
    if (CancelStalled()) continue;
    changed_.WaitWithTimeout(
        &mutex_, std::min(options_.stall_time, options_.idle_time) / 4);
  }
}

void StallWatch::TryCancel(const grpc::CallbackServerContext& context) {
  context.TryCancel();
}

bool StallWatch::CancelStalled() {
  const std::int64_t now = NowNanoseconds();
  bool any = false;
  // Calls may end while another is being cancelled; following_ keeps the walk
  // valid.
  for (Wait* wait = waits_.first(); wait != nullptr; wait = following_) {
    following_ = waits_.After(*wait);
    const std::int64_t end = wait->end_ns_.load();
    if (end == Wait::kNone || now < end) continue;
    Cancel(*wait);
    any = true;
  }
  while (waiting_bytes_.load() > options_.reply_memory_bytes) {
    Wait* const longest = LongestWithReply();
    if (longest == nullptr) break;
    Cancel(*longest);
    any = true;
  }
  return any;
}

void StallWatch::Cancel(Wait& wait) {
  wait.End();  // excludes it from further checks
  cancelling_ = &wait;
  mutex_.Unlock();
  stalled_count_.fetch_add(1);
  if (const auto dropped = logged_.Admit(SteadyNow())) {
    try {
      LogEvent(LogLevel::kWarning, "call_stalled",
               {{"peer", wait.context_.peer()},
                {"not_logged_before", LogValue::Json(absl::StrCat(*dropped))}});
    } catch (const std::bad_alloc&) {
      // Cancelling the call frees memory.
    }
  }
  options_.cancel(wait.context_);
  mutex_.Lock();
  cancelling_ = nullptr;
  changed_.NotifyAll();
}

// Looks at all waits for each that is cancelled, rather than sort them: there
// may be no memory for that just when replies take too much.
StallWatch::Wait* StallWatch::LongestWithReply() const {
  Wait* longest = nullptr;
  std::int64_t longest_since = 0;
  for (Wait* wait = waits_.first(); wait != nullptr;
       wait = waits_.After(*wait)) {
    const std::int64_t since = wait->begin_ns_.load();
    if (since == Wait::kNone || wait->bytes_.load() == 0) continue;
    if (longest != nullptr && since >= longest_since) continue;
    longest = wait;
    longest_since = since;
  }
  return longest;
}

}  // namespace attendant
