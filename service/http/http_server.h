// An HTTP/1.1 server for a few small pages.
#ifndef ATTENDANT_SERVICE_HTTP_HTTP_SERVER_H_
#define ATTENDANT_SERVICE_HTTP_HTTP_SERVER_H_

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

struct bufferevent;
struct evconnlistener;
struct event;
struct event_base;
struct evhttp;
struct evhttp_connection;
struct evhttp_request;
struct ssl_ctx_st;  // SSL_CTX

namespace attendant {

struct HttpRequest {
  std::string path;           // without the query string
  std::string authorization;  // the header; empty if absent
  // The client presented a certificate over TLS, and it was verified.
  bool has_certificate = false;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  // "Bearer" if a token is required; empty: no header.
  std::string www_authenticate = "";
};

// Serves all connections on one thread: a slow or silent client costs a
// descriptor and no one's time. Each connection serves one GET or HEAD request
// and lasts at most `patience`; above max_connection_count one is closed, as
// give_way.h says. Thread-safe.
class HttpServer {
 public:
  struct Options {
    std::string listen;  // a valid HOST:PORT; port 0 picks a free port
    // Builds pages. Runs on the server's thread and must not block.
    std::function<HttpResponse(const HttpRequest&)> handler;
    // TLS context; null: no TLS. Must outlive the server.
    ssl_ctx_st* tls = nullptr;
    absl::Duration patience = absl::Seconds(5);
    int max_connection_count = 64;
  };

  // Unavailable if the address can't be bound.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(Options options);

  // Closes all connections.
  ~HttpServer();

  int port() const { return port_; }

 private:
  struct Connection;

  explicit HttpServer(Options options);
  absl::Status Listen();
  bufferevent* Connect();
  void Answer(evhttp_request* request);
  // Pauses accepting. libevent accepts for as long as clients arrive, which
  // would starve the existing connections, and it retries a failed accept at
  // once.
  void PauseAccepting(absl::Duration pause);
  // Ends one of connections_ to make room.
  void MakeRoom();
  // Closes the connection unless it is closed, and removes it.
  void End(Connection& connection);

  const Options options_;
  int port_ = 0;
  event_base* base_ = nullptr;
  evhttp* http_ = nullptr;
  evconnlistener* listener_ = nullptr;  // owned by http_
  event* accept_again_ = nullptr;
  // Accessed only by the thread.
  int accepted_count_ = 0;             // in this iteration of the event loop
  std::list<Connection> connections_;  // oldest first
  std::thread thread_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_HTTP_HTTP_SERVER_H_
