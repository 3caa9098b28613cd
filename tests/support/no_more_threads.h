// Simulates a system that can start no more threads.
#ifndef ATTENDANT_TESTS_SUPPORT_NO_MORE_THREADS_H_
#define ATTENDANT_TESTS_SUPPORT_NO_MORE_THREADS_H_

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstddef>

namespace attendant {

// While it lives, no thread of the process can be started: std::thread throws
// std::system_error.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    EXPECT_EQ(pthread_getattr_default_np(&before_), 0);
    pthread_attr_t impossible;
    EXPECT_EQ(pthread_attr_init(&impossible), 0);
    // More than an address space has.
    EXPECT_EQ(pthread_attr_setstacksize(&impossible, std::size_t{1} << 48), 0);
    EXPECT_EQ(pthread_setattr_default_np(&impossible), 0);
    pthread_attr_destroy(&impossible);
  }
  ~NoMoreThreads() {
    EXPECT_EQ(pthread_setattr_default_np(&before_), 0);
    pthread_attr_destroy(&before_);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_NO_MORE_THREADS_H_
