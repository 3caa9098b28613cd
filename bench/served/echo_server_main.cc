// echo_server: what a server costs that does nothing with its messages.
#include <google/protobuf/util/json_util.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/synchronization/mutex.h"
#include "bench/served/echo_server.h"
#include "core/base/host_port.h"
#include "service/stop_signal.h"

int main(int argc, char** argv) {
  std::string listen = "127.0.0.1:0";
  std::string reply_path;
  bool null = false;
  CLI::App app{"Answers every Attend with the same reply.", "echo_server"};
  app.add_option("--listen", listen, "HOST:PORT")->capture_default_str();
  app.add_option("--reply", reply_path,
                 "File with the reply as JSON; default: an empty reply")
      ->check(CLI::ExistingFile);
  app.add_flag("--null", null, "Don't parse requests; make the reply once");
  CLI11_PARSE(app, argc, argv);

  attendant::v1::AttendResponse reply;
  if (!reply_path.empty()) {
    std::ifstream file(reply_path);
    const std::string json{std::istreambuf_iterator<char>(file), {}};
    const auto status =
        google::protobuf::util::JsonStringToMessage(json, &reply);
    if (!status.ok()) {
      std::fprintf(stderr, "echo_server: %s: %s\n", reply_path.c_str(),
                   status.ToString().c_str());
      return 1;
    }
  }
  // As attendantd does.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  attendant::CatchStopSignals();
  const auto server = attendant::EchoServer::Start(
      reply, listen,
      null ? attendant::EchoWork::kNothing : attendant::EchoWork::kMessages);
  if (server == nullptr) {
    std::fprintf(stderr, "echo_server: can't listen on %s\n", listen.c_str());
    return 1;
  }
  std::printf("echo_server ready on %s\n",
              attendant::WithPort(listen, server->port()).c_str());
  std::fflush(stdout);
  attendant::AwaitStopSignal(/*on_hangup=*/[] {});
  return 0;
}
