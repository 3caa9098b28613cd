// The requests of a loop, and hooks to watch and stop it.
#ifndef ATTENDANT_CLIENT_LOAD_SEND_TRAFFIC_H_
#define ATTENDANT_CLIENT_LOAD_SEND_TRAFFIC_H_

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/load/send/recorder.h"
#include "core/base/mutex.h"

namespace attendant {

struct Traffic {
  // Sends request number `index` (counted over all callers, from 0) and calls
  // `done` once, from another thread or later, never from within. Thread-safe.
  using Done = std::function<void(const absl::Status&)>;
  std::function<void(std::int64_t index, Done done)> send;

  // The kinds of requests, at least one, and each request's position there.
  std::vector<std::string> kinds = {"requests"};
  std::function<int(std::int64_t index)> kind_of = [](std::int64_t) {
    return 0;
  };

  // Called every 250 ms on a thread of its own, if not null. `elapsed` counts
  // from the start of the warm-up.
  std::function<void(const LoadView& view, absl::Duration elapsed)> watch =
      nullptr;

  // Returns true to end the load: nothing more is sent. Thread-safe.
  std::function<bool()> is_stopped = [] { return false; };
  // Cancels the requests under way, for a stopped load whose answers don't
  // come. May be called again. Thread-safe.
  std::function<void()> cancel = [] {};
};

// Ends the recorder's moments, calls `watch`, and cancels requests that are not
// answered a second after a stop. Runs on a thread of its own while the object
// lives.
class Monitor {
 public:
  // `total` is the planned length of the load. `recorder` and `traffic` must
  // outlive the object.
  Monitor(Recorder& recorder, const Traffic& traffic, absl::Duration total);
  ~Monitor();

 private:
  void Run(absl::Duration period);

  Recorder& recorder_;
  const Traffic& traffic_;
  Mutex mutex_;
  CondVar stopped_changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace attendant

#endif  // ATTENDANT_CLIENT_LOAD_SEND_TRAFFIC_H_
