// A loopback port that takes connections and says nothing.
#ifndef ATTENDANT_TESTS_SUPPORT_SILENT_LISTENER_H_
#define ATTENDANT_TESTS_SUPPORT_SILENT_LISTENER_H_

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/file_descriptor.h"

namespace attendant {

// The kernel accepts connections, as for a process that is stopped or busy.
class SilentListener {
 public:
  SilentListener() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_.get(), any, size), 0);
    EXPECT_EQ(listen(socket_.get(), 16), 0);
    EXPECT_EQ(getsockname(socket_.get(), any, &size), 0);
    port_ = ntohs(address.sin_port);
  }

  int port() const { return port_; }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  // Waits for a connection and returns its descriptor, non-blocking, which is
  // the caller's; below 0 after an error.
  int Accept() const {
    return accept4(socket_.get(), nullptr, nullptr,
                   SOCK_NONBLOCK | SOCK_CLOEXEC);
  }

 private:
  const FileDescriptor socket_;
  int port_ = 0;
};

}  // namespace attendant

#endif  // ATTENDANT_TESTS_SUPPORT_SILENT_LISTENER_H_
