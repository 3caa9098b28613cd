#ifndef ATTENDANT_TESTS_SUPPORT_RAW_CONNECTION_H_
#define ATTENDANT_TESTS_SUPPORT_RAW_CONNECTION_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace attendant {

// A connection to a port of this machine. If connecting fails, it behaves like
// a connection that the peer has closed. Not thread-safe.
class RawConnection {
 public:
  // Connects from `source`, an address of this machine, if given.
  explicit RawConnection(int port, const char* source = nullptr);
  ~RawConnection();
  RawConnection(RawConnection&& other) noexcept;
  RawConnection(const RawConnection&) = delete;

  // Sends all of `bytes`; false if the peer has closed the connection or takes
  // nothing more for `timeout`.
  bool Send(absl::string_view bytes,
            absl::Duration timeout = absl::Seconds(30));

  // Returns what has arrived, at least one byte; empty at the end, or after
  // `timeout`.
  std::string Receive(absl::Duration timeout = absl::Seconds(30));

  // Reads until the peer closes; false after `timeout`. Appends what arrived to
  // `received`, if given.
  bool AwaitClose(absl::Duration timeout, std::string* received = nullptr);

 private:
  int socket_ = -1;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_RAW_CONNECTION_H_
