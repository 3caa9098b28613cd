// attendantd: the attention retrieval server.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/host_port.h"
#include "core/base/status.h"
#include "core/catalog/live/catalog_set.h"
#include "core/kernels/kernels.h"
#include "core/storage/files/files.h"
#include "service/attendantd/flags.h"
#include "service/attendantd/opened_log.h"
#include "service/attendantd/process_setup.h"
#include "service/attendantd/stop_signal.h"
#include "service/attendantd/token_command.h"
#include "service/connections/listener.h"
#include "service/http_port.h"
#include "service/log/log.h"
#include "service/security/security.h"
#include "service/server.h"

namespace attendant {
namespace {

// How long the process waits for a stderr that does not accept its log.
constexpr absl::Duration kLogPatience = absl::Seconds(1);

constexpr char kListenAdvice[] = "; choose another address with --listen";

int Refuse(const absl::Status& status, absl::string_view advice) {
  // A stderr that does not accept the log would block this line too.
  if (!FlushLog(kLogPatience)) return 1;
  const std::string line =
      absl::StrCat("attendantd: ", status.message(), advice, "\n");
  std::fputs(line.c_str(), stderr);
  return 1;
}

absl::string_view AdviceForData(const absl::Status& status) {
  if (ReasonOf(status) == kFilesNotAccessible) {
    return "; let this user read and write it, or choose another directory "
           "with --data-dir";
  }
  switch (status.code()) {
    case absl::StatusCode::kFailedPrecondition:
      return "; choose another directory with --data-dir";
    case absl::StatusCode::kDataLoss:
      return "; restore the directory from a backup, or move it away to start "
             "empty (docs/operations.md, Damage)";
    default:
      return "";
  }
}

// True unless ATTENDANT_KERNELS requests a level that is not in use. The
// kernels determine the last bits of every answer, so a request that can't be
// met must not go unnoticed.
bool HasAskedKernels() {
  const char* asked = std::getenv("ATTENDANT_KERNELS");
  return asked == nullptr || KernelLevelName(ActiveKernelLevel()) == asked;
}

// Prints to stdout and returns the exit status.
int Print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) {
    return 0;
  }
  std::fputs("attendantd: standard output can't be written\n", stderr);
  return 1;
}

// Performs all checks of a start that come before anything is opened. Returns
// the exit status.
int CheckConfig(const Flags& flags) {
  const auto security = Security::Open(flags.server.security);
  if (security.ok()) return Print(ToText(flags));
  Refuse(security.status(), "");
  return kUsageExitStatus;
}

// With --http-listen unset, --listen determines both ports: if both are taken,
// the error should name that of --listen.
int RefuseHttpPort(const absl::Status& status, const Flags& flags) {
  if (!absl::IsUnavailable(status)) return Refuse(status, "");
  const auto grpc_port = Listener::Bind({.address = flags.server.listen});
  if (absl::IsUnavailable(grpc_port.status())) {
    return Refuse(grpc_port.status(), kListenAdvice);
  }
  return Refuse(status, "; choose another address with --http-listen");
}

void Reload(Security& security) {
  const absl::Status status = security.Reload();
  if (status.ok()) {
    LogEvent(LogLevel::kInfo, "reloaded",
             {{"what", "the TLS certificate and the tokens, if configured"}});
    return;
  }
  LogEvent(
      LogLevel::kError, "not_reloaded",
      {{"error", std::string(status.message())},
       {"what_now", "the certificate and tokens read before remain in use"}});
}

int Serve(const Flags& flags) {
  // Elsewhere stdout and the JSON log on stderr often end in the same journal.
  if (isatty(STDOUT_FILENO) == 1) Print(ToText(flags));
  if (const absl::Status status = PrepareProcess(WorkerCount(flags.server));
      !status.ok()) {
    return Refuse(status, "");
  }
  LogInBackground();
  // Shared by both ports.
  const auto security = Security::Open(flags.server.security);
  if (!security.ok()) return Refuse(security.status(), "");
  // Started before the catalogs are opened, which may take a while.
  std::unique_ptr<HttpPort> http;
  if (!flags.http_listen.empty()) {
    auto started =
        HttpPort::Start({flags.http_listen, flags.server.security}, *security);
    if (!started.ok()) return RefuseHttpPort(started.status(), flags);
    http = *std::move(started);
    const std::string address = WithPort(flags.http_listen, http->port());
    std::printf("attendantd http on %s\n", address.c_str());
    std::fflush(stdout);
    LogEvent(LogLevel::kInfo, "http_ready", {{"address", address}});
  }
  CatalogSet::Options catalog_options;
  catalog_options.catalog.auto_ivf_min_count = flags.auto_ivf_min_count;
  catalog_options.memory_limit_bytes = flags.memory_limit_bytes;
  catalog_options.most_catalogs = flags.server.limits.catalog_count;
  LogEvent(LogLevel::kInfo, "starting",
           {{"version", ATTENDANT_VERSION},
            {"data_dir", flags.data_dir},
            {"kernels", std::string(KernelLevelName(ActiveKernelLevel()))}});
  auto catalogs = CatalogSet::Open(flags.data_dir, catalog_options);
  if (!catalogs.ok()) {
    return Refuse(catalogs.status(), AdviceForData(catalogs.status()));
  }
  LogOpened(**catalogs);
  const absl::Status files = CheckOpenFiles("the server", 0);
  if (!files.ok()) return Refuse(files, "");

  StopInOrderFromNowOn();
  auto server = Server::Start(flags.server, catalogs->get(), *security);
  if (!server.ok()) {
    return Refuse(server.status(),
                  absl::IsUnavailable(server.status()) ? kListenAdvice : "");
  }
  if (http != nullptr) http->Show(**server);
  const std::string address = WithPort(flags.server.listen, (*server)->port());
  // A program that reads the next line may look for the start in the log.
  FlushLog(kLogPatience);
  std::printf("attendantd ready on %s\n", address.c_str());
  std::fflush(stdout);
  LogEvent(LogLevel::kInfo, "ready", {{"address", address}});

  const int signal = AwaitStopSignal([&] { Reload(**security); });
  LogEvent(LogLevel::kInfo, "stopping",
           {{"signal", LogValue::Json(absl::StrCat(signal))}});
  (*server)->Shutdown(absl::Seconds(flags.grace_seconds));
  http.reset();
  server->reset();
  catalogs->reset();
  LogEvent(LogLevel::kInfo, "stopped", {});
  return 0;
}

int Main(int argc, char** argv) {
  HoldStandardStreams();
  if (argc > 1 && absl::string_view(argv[1]) == "token") {
    return RunTokenCommand(argc, argv);
  }
  CatchStopSignals();
  CaptureLibraryLogs();
  const auto parsed = ParseFlags(argc, argv);
  if (const auto* exit = std::get_if<EarlyExit>(&parsed)) {
    if (exit->exit_status == 0) return Print(exit->text);
    std::fputs(exit->text.c_str(), stderr);
    return exit->exit_status;
  }
  if (!HasAskedKernels()) {
    const std::string line = absl::StrCat(
        "attendantd: ATTENDANT_KERNELS: got \"",
        std::getenv("ATTENDANT_KERNELS"),
        "\", want scalar, avx2 or avx512, and a processor that has it\n");
    std::fputs(line.c_str(), stderr);
    return kUsageExitStatus;
  }
  const Flags& flags = std::get<Flags>(parsed);
  if (flags.check_config) return CheckConfig(flags);
  SetLogLevel(flags.log_level);
  const int exit_status = Serve(flags);
  FlushLog(kLogPatience);
  return exit_status;
}

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) { return attendant::Main(argc, argv); }
