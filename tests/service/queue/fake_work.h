// Work that no worker runs, and a simulated clock: an hour of overload takes no
// real time and is deterministic.
#ifndef ATTENDANT_TESTS_SERVICE_QUEUE_FAKE_WORK_H_
#define ATTENDANT_TESTS_SERVICE_QUEUE_FAKE_WORK_H_

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/interrupt.h"
#include "service/queue/work.h"

namespace attendant {

inline constexpr std::int64_t kMs = 1'000'000;  // in nanoseconds

inline SteadyTime At(double ms) {
  return SteadyTime() + absl::ToChronoNanoseconds(absl::Milliseconds(ms));
}

class FakeWork final : public Work {
 public:
  explicit FakeWork(FlowKey flow = {}, std::string group = "")
      : Work(own_interrupt_), group_(std::move(group)) {
    set_flow(flow);
  }
  void Run() override { ADD_FAILURE() << "no worker is here"; }
  void Refuse(const absl::Status& status) override { refusal_ = status; }
  absl::string_view group() const override { return group_; }

  // Marks the work as able to pause, as a long request is.
  void set_may_pause() { own_interrupt_.yielder = this; }
  void set_deadline(SteadyTime deadline) { own_interrupt_.deadline = deadline; }
  void set_cancelled(const std::atomic<bool>* flag) {
    own_interrupt_.cancelled = flag;
  }
  using Work::set_begun;
  const absl::Status& refusal() const { return refusal_; }

 private:
  Interrupt own_interrupt_;
  const std::string group_;
  absl::Status refusal_;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SERVICE_QUEUE_FAKE_WORK_H_
