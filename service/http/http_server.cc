#include "service/http/http_server.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <event2/thread.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/host_port.h"
#include "core/base/status.h"
#include "service/connections/listen_address.h"
#include "service/connections/peer.h"
#include "service/http/give_way.h"
#include "service/log/log.h"

namespace attendant {
namespace {

constexpr ev_ssize_t kMaxHeaderBytes = 8192;  // including the request line
constexpr ev_ssize_t kMaxBodyBytes = 4096;    // requests have no bodies
constexpr int kHttpBacklog = 1024;
constexpr int kMaxAccepted = 64;  // per iteration of the event loop
constexpr absl::Duration kWaitForRoom = absl::Milliseconds(10);

thread_local HttpServer* of_thread = nullptr;

std::string HeaderOf(evhttp_request* request, const char* name) {
  const char* value =
      evhttp_find_header(evhttp_request_get_input_headers(request), name);
  return value == nullptr ? "" : value;
}

// Resets the connection: data received but not read is discarded, above all the
// beginning of a handshake, which would cost a signature.
void Reset(int socket) {
  sockaddr none = {};
  none.sa_family = AF_UNSPEC;
  (void)connect(socket, &none, sizeof(none));
}

bool HasSpoken(int socket) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
         info.tcpi_bytes_received > 0;
}

}  // namespace

// A connection, from accept until its request is answered, its client is gone,
// or its time is over.
struct HttpServer::Connection {
  HttpServer* server;
  // The object's own reference, which keeps the descriptor valid.
  bufferevent* buffer;
  event* timer = nullptr;
  // Set once the request has arrived.
  evhttp_connection* answered = nullptr;
  std::list<Connection>::iterator place = {};
  // The peer is known once libevent has given the socket to the buffer.
  Guest guest = {.since = SteadyNow()};
};

HttpServer::HttpServer(Options options) : options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(Options options) {
  // Once per process; libevent needs threads so that another one can end the
  // loop.
  static const bool threads = [] {
    event_set_log_callback([](int /*severity*/, const char* text) {
      LogEvent(LogLevel::kDebug, "libevent", {{"message", text}});
    });
    return evthread_use_pthreads() == 0;
  }();
  if (!threads) return absl::InternalError("libevent has no thread support");
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(options)));
  ATTENDANT_RETURN_IF_ERROR(server->Listen());
  server->thread_ = std::thread([base = server->base_, own = server.get()] {
    of_thread = own;
    // Writing to a disconnected client then fails with an error instead of a
    // signal.
    sigset_t gone;
    sigemptyset(&gone);
    sigaddset(&gone, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &gone, nullptr);
    event_base_dispatch(base);
  });
  return server;
}

absl::Status HttpServer::Listen() {
  base_ = event_base_new();
  http_ = base_ == nullptr ? nullptr : evhttp_new(base_);
  if (http_ == nullptr) return absl::InternalError("no event loop for HTTP");
  evhttp_set_allowed_methods(http_, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
  evhttp_set_max_headers_size(http_, kMaxHeaderBytes);
  evhttp_set_max_body_size(http_, kMaxBodyBytes);
  evhttp_set_bevcb(
      http_,
      [](event_base*, void* server) {
        return static_cast<HttpServer*>(server)->Connect();
      },
      this);
  evhttp_set_gencb(
      http_,
      [](evhttp_request* request, void* server) {
        try {
          static_cast<HttpServer*>(server)->Answer(request);
        } catch (const std::exception&) {
          // Exceptions must not pass through libevent, which is C. Nothing was
          // sent yet.
          evhttp_send_error(request, HTTP_INTERNAL, nullptr);
        }
      },
      this);
  evhttp_bound_socket* bound = evhttp_bind_socket_with_handle(
      http_, BareHostOf(options_.listen).c_str(), PortOf(options_.listen));
  if (bound == nullptr) {
    return CannotListen(options_.listen, " for HTTP", errno);
  }
  listener_ = evhttp_bound_socket_get_listener(bound);
  // Called when descriptors or memory are exhausted. The callback's argument
  // belongs to evhttp.
  evconnlistener_set_error_cb(listener_, [](evconnlistener*, void*) {
    of_thread->PauseAccepting(kWaitForRoom);
  });
  accept_again_ = evtimer_new(
      base_,
      [](evutil_socket_t, short, void* data) {
        auto& server = *static_cast<HttpServer*>(data);
        server.accepted_count_ = 0;
        evconnlistener_enable(server.listener_);
      },
      this);
  const evutil_socket_t listening = evhttp_bound_socket_get_fd(bound);
  port_ = BoundPort(listening);
  // libevent's backlog is 128: connections that arrive during handshakes would
  // be lost.
  if (listen(listening, kHttpBacklog) != 0) {
    return CannotListen(options_.listen, " for HTTP", errno);
  }
  return absl::OkStatus();
}

HttpServer::~HttpServer() {
  if (thread_.joinable()) {
    // Break from within the loop: a loop that has not started yet would ignore
    // an earlier break.
    const timeval now = {};
    event_base_once(
        base_, -1, EV_TIMEOUT,
        [](evutil_socket_t, short, void* base) {
          event_base_loopbreak(static_cast<event_base*>(base));
        },
        base_, &now);
    thread_.join();
  }
  while (!connections_.empty()) End(connections_.front());
  if (accept_again_ != nullptr) event_free(accept_again_);
  if (http_ != nullptr) evhttp_free(http_);
  if (base_ != nullptr) event_base_free(base_);
}

void HttpServer::PauseAccepting(absl::Duration pause) {
  evconnlistener_disable(listener_);
  const timeval end = absl::ToTimeval(pause);
  evtimer_add(accept_again_, &end);
}

bufferevent* HttpServer::Connect() {
  if (++accepted_count_ == kMaxAccepted) PauseAccepting(absl::ZeroDuration());
  while (connections_.size() >=
         static_cast<std::size_t>(options_.max_connection_count)) {
    MakeRoom();
  }
  bufferevent* buffer = nullptr;
  if (options_.tls == nullptr) {
    buffer = bufferevent_socket_new(base_, -1, BEV_OPT_CLOSE_ON_FREE);
  } else if (SSL* ssl = SSL_new(options_.tls)) {
    buffer = bufferevent_openssl_socket_new(
        base_, -1, ssl, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
  }
  if (buffer == nullptr) return nullptr;
  bufferevent_incref(buffer);
  Connection& connection =
      connections_.emplace_back(Connection{.server = this, .buffer = buffer});
  connection.place = std::prev(connections_.end());
  connection.timer = evtimer_new(
      base_,
      [](evutil_socket_t, short, void* data) {
        auto& ended = *static_cast<Connection*>(data);
        ended.server->End(ended);
      },
      &connection);
  const timeval patience = absl::ToTimeval(options_.patience);
  evtimer_add(connection.timer, &patience);
  return buffer;
}

void HttpServer::MakeRoom() {
  std::vector<Guest> guests;
  std::vector<Connection*> owners;
  for (Connection& connection : connections_) {
    const int socket = bufferevent_getfd(connection.buffer);
    Guest& guest = connection.guest;
    if (guest.host.empty()) guest.host = PeerOf(socket).host;
    if (!guest.has_spoken) guest.has_spoken = HasSpoken(socket);
    guests.push_back(guest);
    owners.push_back(&connection);
  }
  Connection& ended = *owners[WhoGivesWay(guests, SteadyNow())];
  Reset(bufferevent_getfd(ended.buffer));
  End(ended);
}

void HttpServer::End(Connection& connection) {
  // libevent, which has the other reference, sees the end and closes the
  // socket.
  const evutil_socket_t socket = bufferevent_getfd(connection.buffer);
  if (socket >= 0) shutdown(socket, SHUT_RDWR);
  if (connection.answered != nullptr) {
    evhttp_connection_set_closecb(connection.answered, nullptr, nullptr);
  }
  event_free(connection.timer);
  bufferevent_decref(connection.buffer);
  connections_.erase(connection.place);
}

void HttpServer::Answer(evhttp_request* request) {
  evhttp_connection* answered = evhttp_request_get_connection(request);
  SSL* ssl =
      bufferevent_openssl_get_ssl(evhttp_connection_get_bufferevent(answered));
  // libevent continues without TLS if Connect could not create an SSL object.
  if (options_.tls != nullptr && ssl == nullptr) {
    evhttp_send_error(request, HTTP_SERVUNAVAIL, nullptr);
    return;
  }
  // Close as soon as the request is answered, not when the time is over.
  for (Connection& connection : connections_) {
    if (connection.buffer != evhttp_connection_get_bufferevent(answered)) {
      continue;
    }
    connection.answered = answered;
    evhttp_connection_set_closecb(
        answered,
        [](evhttp_connection*, void* data) {
          auto& ended = *static_cast<Connection*>(data);
          ended.server->End(ended);
        },
        &connection);
  }
  const char* path =
      evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
  // A client with an invalid certificate has already failed the handshake.
  const HttpResponse response = options_.handler(
      {.path = path == nullptr ? "" : path,
       .authorization = HeaderOf(request, "Authorization"),
       .has_certificate =
           ssl != nullptr && SSL_get0_peer_certificate(ssl) != nullptr});
  evkeyvalq* headers = evhttp_request_get_output_headers(request);
  evhttp_add_header(headers, "Content-Type", response.content_type.c_str());
  evhttp_add_header(headers, "Connection", "close");
  if (!response.www_authenticate.empty()) {
    evhttp_add_header(headers, "WWW-Authenticate",
                      response.www_authenticate.c_str());
  }
  evbuffer* body = evhttp_request_get_output_buffer(request);
  if (evhttp_request_get_command(request) == EVHTTP_REQ_HEAD) {
    evhttp_add_header(headers, "Content-Length",
                      absl::StrCat(response.body.size()).c_str());
  } else {
    evbuffer_add(body, response.body.data(), response.body.size());
  }
  evhttp_send_reply(request, response.status, nullptr, nullptr);
}

}  // namespace attendant
