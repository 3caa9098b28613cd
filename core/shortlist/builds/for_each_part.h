// Splits work among threads. Internal.
#ifndef ATTENDANT_CORE_SHORTLIST_BUILDS_FOR_EACH_PART_H_
#define ATTENDANT_CORE_SHORTLIST_BUILDS_FOR_EACH_PART_H_

#include <cstdint>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace attendant {

// Calls work(begin, end) for thread_count >= 1 equal parts of [0, count). The
// caller runs the last part; every other part runs in a thread of its own, or
// in the caller's if the system has no more threads. Returns when all parts are
// done. If parts throw, rethrows the exception of the first of them.
template <typename Work>
void ForEachPart(std::int64_t count, std::int64_t thread_count, Work work) {
  std::vector<std::exception_ptr> failures(
      static_cast<std::size_t>(thread_count));
  const auto run = [&](std::int64_t part) {
    try {
      work(count * part / thread_count, count * (part + 1) / thread_count);
    } catch (...) {
      failures[static_cast<std::size_t>(part)] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<std::size_t>(thread_count - 1));
    for (std::int64_t part = 0; part + 1 < thread_count; ++part) {
      try {
        threads.emplace_back(run, part);
      } catch (const std::system_error&) {
        run(part);
      }
    }
    run(thread_count - 1);
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure != nullptr) std::rethrow_exception(failure);
  }
}

}  // namespace attendant

#endif  // ATTENDANT_CORE_SHORTLIST_BUILDS_FOR_EACH_PART_H_
