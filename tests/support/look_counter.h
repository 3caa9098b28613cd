// Counts how often an interrupt is checked.
#ifndef ATTENDANT_TESTS_SUPPORT_LOOK_COUNTER_H_
#define ATTENDANT_TESTS_SUPPORT_LOOK_COUNTER_H_

#include "core/base/interrupt.h"

namespace attendant {

class LookCounter final : public Yielder {
 public:
  LookCounter() {
    set_yield_time(SteadyTime::min());
    interrupt_.yielder = this;
  }
  void Yield() override { ++count; }
  // This interrupt never ends anything.
  const Interrupt& interrupt() const { return interrupt_; }

  int count = 0;

 private:
  Interrupt interrupt_;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_LOOK_COUNTER_H_
