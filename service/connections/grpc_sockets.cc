#include "service/connections/grpc_sockets.h"

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace attendant {
namespace {

using Json = nlohmann::json;

// Parses a JSON object; empty if there is no information. Takes ownership of
// the text.
Json Parse(char* text) {
  const std::unique_ptr<char, decltype(&gpr_free)> owned(text, &gpr_free);
  if (text == nullptr) return Json::object();
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? std::move(json) : Json::object();
}

// JSON encodes 64-bit numbers as strings and omits 0.
std::int64_t NumberOf(const Json& object, const char* name) {
  std::int64_t number = 0;
  const std::string text = object.value(name, "");
  return absl::SimpleAtoi(text, &number) ? number : 0;
}

Json ObjectOf(const Json& object, const char* name) {
  return object.value(name, Json::object());
}

std::string PeerIn(const Json& reference) {
  // Format: "chttp2 ipv4:127.0.0.1:40000"
  const std::string name = reference.value("name", "");
  return name.substr(name.find(' ') + 1);
}

// Reads the sockets of one server, page by page.
void ReadServer(std::int64_t server, int port,
                std::vector<GrpcSocket>& sockets) {
  std::int64_t start = 0;
  while (true) {
    const Json page = Parse(grpc_channelz_get_server_sockets(
        static_cast<intptr_t>(server), static_cast<intptr_t>(start), 0));
    const auto references = page.find("socketRef");
    if (references == page.end()) return;
    for (const Json& reference : *references) {
      const std::int64_t id = NumberOf(reference, "socketId");
      start = id + 1;
      const Json socket = ObjectOf(
          Parse(grpc_channelz_get_socket(static_cast<intptr_t>(id))), "socket");
      const Json local = ObjectOf(ObjectOf(socket, "local"), "tcpip_address");
      if (local.value("port", 0) != port) continue;
      const Json data = ObjectOf(socket, "data");
      sockets.push_back({PeerIn(reference),
                         NumberOf(data, "streamsStarted") -
                             NumberOf(data, "streamsSucceeded") -
                             NumberOf(data, "streamsFailed"),
                         NumberOf(data, "messagesReceived")});
    }
    if (page.value("end", false)) return;
  }
}

}  // namespace

std::vector<GrpcSocket> ReadGrpcSockets(int port) {
  std::vector<GrpcSocket> sockets;
  std::int64_t start = 0;
  while (true) {
    const Json page =
        Parse(grpc_channelz_get_servers(static_cast<intptr_t>(start)));
    const auto servers = page.find("server");
    if (servers == page.end()) return sockets;
    for (const Json& server : *servers) {
      const std::int64_t id = NumberOf(ObjectOf(server, "ref"), "serverId");
      start = id + 1;
      ReadServer(id, port, sockets);
    }
    if (page.value("end", false)) return sockets;
  }
}

}  // namespace attendant
