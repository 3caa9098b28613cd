#include "service/watches/stall_watch.h"

#include <grpcpp/server_context.h>

#include <algorithm>
#include <utility>
#include <vector>

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
  const std::int64_t longest_to_go = LongestToGo();
  bool any = false;
  // Calls may end while another is being cancelled; following_ keeps the walk
  // valid.
  for (Wait* wait = waits_.first(); wait != nullptr; wait = following_) {
    following_ = waits_.After(*wait);
    const std::int64_t since = wait->begin_ns_.load();
    const std::int64_t end = wait->end_ns_.load();
    if (since == Wait::kNone || end == Wait::kNone) continue;
    const bool in_time = now < end;
    const bool has_room = since > longest_to_go || wait->bytes_.load() == 0 ||
                          waiting_bytes_.load() <= options_.reply_memory_bytes;
    if (in_time && has_room) continue;
    Cancel(*wait);
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
    LogEvent(LogLevel::kWarning, "call_stalled",
             {{"peer", wait.context_.peer()},
              {"not_logged_before", LogValue::Json(absl::StrCat(*dropped))}});
  }
  options_.cancel(wait.context_);
  mutex_.Lock();
  cancelling_ = nullptr;
  changed_.NotifyAll();
}

std::int64_t StallWatch::LongestToGo() const {
  std::int64_t excess = waiting_bytes_.load() - options_.reply_memory_bytes;
  if (excess <= 0) return Wait::kNone;
  std::vector<std::pair<std::int64_t, std::int64_t>>
      replies;  // begin time, bytes
  for (const Wait* wait = waits_.first(); wait != nullptr;
       wait = waits_.After(*wait)) {
    const std::int64_t since = wait->begin_ns_.load();
    const std::int64_t bytes = wait->bytes_.load();
    if (since != Wait::kNone && bytes > 0) replies.emplace_back(since, bytes);
  }
  std::sort(replies.begin(), replies.end());
  std::int64_t longest = Wait::kNone;
  for (const auto& [since, bytes] : replies) {
    if (excess <= 0) break;
    longest = since;
    excess -= bytes;
  }
  return longest;
}

}  // namespace attendant
