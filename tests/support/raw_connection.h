#ifndef ATTENDANT_TESTS_SUPPORT_RAW_CONNECTION_H_
#define ATTENDANT_TESTS_SUPPORT_RAW_CONNECTION_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace attendant {

// A connection to a port of this machine; where there is none, it is one that
// the other side has closed. Not thread-safe.
class RawConnection {
 public:
  // From an address of this machine, where one is given.
  explicit RawConnection(int port, const char* source = nullptr);
  ~RawConnection();
  RawConnection(RawConnection&& other) noexcept;
  RawConnection(const RawConnection&) = delete;

  // Sends all of it; false if the other side has closed or takes nothing more
  // for `timeout`.
  bool Send(absl::string_view bytes,
            absl::Duration timeout = absl::Seconds(30));

  // What has come, at least a byte; empty at the end, or after `timeout`.
  std::string Receive(absl::Duration timeout = absl::Seconds(30));

  // Reads on until the other side closes; false after `timeout`. What came is
  // added to `received`, if given.
  bool AwaitClose(absl::Duration timeout, std::string* received = nullptr);

 private:
  int socket_ = -1;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_RAW_CONNECTION_H_
