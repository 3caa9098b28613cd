#include "service/connections/hang_up.h"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "core/base/clock.h"
#include "service/connections/listen_address.h"

namespace attendant {
namespace {

constexpr absl::Duration kLookAgain = absl::Milliseconds(2);

struct Connection {
  int fd = -1;
  ino_t inode = 0;  // one socket's, whatever its fd names later
};

bool IsConnectedTo(int fd, int port) {
  sockaddr_storage address;
  socklen_t size = sizeof(address);
  if (BoundPort(fd) != port) return false;
  return getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
}

std::vector<Connection> ConnectionsTo(int port) {
  std::vector<Connection> connections;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc/self/fd"),
                                                      &closedir);
  if (directory == nullptr) return connections;
  while (const dirent* entry = readdir(directory.get())) {
    Connection connection;
    struct stat about;
    if (absl::SimpleAtoi(entry->d_name, &connection.fd) &&
        IsConnectedTo(connection.fd, port) &&
        fstat(connection.fd, &about) == 0) {
      connection.inode = about.st_ino;
      connections.push_back(connection);
    }
  }
  return connections;
}

}  // namespace

void HangUp(int port, absl::Duration patience) {
  const std::vector<Connection> connections = ConnectionsTo(port);
  for (const Connection& connection : connections) {
    shutdown(connection.fd, SHUT_WR);
  }
  const auto is_open = [port](const Connection& connection) {
    struct stat about;
    return IsConnectedTo(connection.fd, port) &&
           fstat(connection.fd, &about) == 0 &&
           about.st_ino == connection.inode;
  };
  const SteadyTime give_up = SteadyAfter(patience);
  while (std::any_of(connections.begin(), connections.end(), is_open) &&
         SteadyNow() < give_up) {
    absl::SleepFor(kLookAgain);
  }
}

}  // namespace attendant
