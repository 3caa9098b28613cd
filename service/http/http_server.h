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
  std::string path;           // without a query
  std::string authorization;  // the header; empty: none
  // Over TLS the client has shown one, which was verified.
  bool has_certificate = false;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  // "Bearer" where a token is asked for; empty: no header.
  std::string www_authenticate = "";
};

// One thread has all connections: a client that is slow or silent costs a
// descriptor and nobody's time. Each connection is for one request of GET or
// HEAD, and lasts `patience` at most; beyond so many one gives way, as
// give_way.h says. Thread-safe.
class HttpServer {
 public:
  struct Options {
    std::string listen;  // a valid HOST:PORT; port 0 takes a free one
    // Makes pages, on the server's thread: it is not to wait for anything.
    std::function<HttpResponse(const HttpRequest&)> handler;
    // Speaks TLS by it; null: none. Must outlive the server.
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
  // libevent accepts for as long as somebody comes: not so often that nobody
  // who is there has his turn. And tries at once again what failed.
  void PauseAccepting(absl::Duration pause);
  // Ends one of connections_.
  void MakeRoom();
  // Closes it unless it is closed already, and forgets it.
  void End(Connection& connection);

  const Options options_;
  int port_ = 0;
  event_base* base_ = nullptr;
  evhttp* http_ = nullptr;
  evconnlistener* listener_ = nullptr;  // of http_
  event* accept_again_ = nullptr;
  // Of the thread.
  int accepted_count_ = 0;             // in this turn
  std::list<Connection> connections_;  // oldest first
  std::thread thread_;
};

}  // namespace attendant

#endif  // ATTENDANT_SERVICE_HTTP_HTTP_SERVER_H_
