// attendantd: the attention retrieval server.
#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/host_port.h"
#include "core/base/status.h"
#include "core/catalog/live/catalog_set.h"
#include "core/kernels/kernels.h"
#include "core/storage/files/files.h"
#include "service/attendantd/flags.h"
#include "service/attendantd/stop_signal.h"
#include "service/attendantd/token_command.h"
#include "service/connections/listener.h"
#include "service/http_port.h"
#include "service/log/log.h"
#include "service/security/security.h"
#include "service/server.h"

namespace attendant {
namespace {

constexpr char kListenAdvice[] = "; choose another address with --listen";

int Refuse(const absl::Status& status, absl::string_view advice) {
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

// The kernels decide the last bits of every answer: a level that was asked for
// in vain must not pass unnoticed.
bool HasAskedKernels() {
  const char* asked = std::getenv("ATTENDANT_KERNELS");
  return asked == nullptr || KernelLevelName(ActiveKernelLevel()) == asked;
}

// Returns the exit status.
int Print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) {
    return 0;
  }
  std::fputs("attendantd: standard output can't be written\n", stderr);
  return 1;
}

// All that a start looks at before it opens anything. Returns the exit status.
int CheckConfig(const Flags& flags) {
  const auto security = Security::Open(flags.server.security);
  if (security.ok()) return Print(ToText(flags));
  Refuse(security.status(), "");
  return kUsageExitStatus;
}

// Each catalog keeps some files open; connections want theirs too.
void RaiseOpenFilesLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// What is freed goes back to the system, but for some MiB of each arena. By
// default each of malloc's arenas, eight to a core, may keep twice as much at
// its end as the largest block ever freed, up to 64 MiB, which malloc_trim
// leaves there: a tenth of all that a million items of 128 took.
void LimitFreeMemory() {
  const unsigned cores = std::max(std::thread::hardware_concurrency(), 1u);
  mallopt(M_ARENA_MAX, static_cast<int>(2 * cores));
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 4 << 20);
  mallopt(M_TOP_PAD, 1 << 20);
}

// Whoever names one port with --listen has named both: if both are taken, it is
// that one to hear of.
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
             {{"what", "the certificate and the tokens, where there are any"}});
    return;
  }
  LogEvent(LogLevel::kError, "not_reloaded",
           {{"error", std::string(status.message())},
            {"what_now", "what was read before it is still used"}});
}

// ResourceExhausted if the system allows fewer threads than a server has before
// it does anything: RocksDB and gRPC would end the process where one is
// missing.
absl::Status CheckThreads() {
  constexpr std::size_t kLeast = 48;
  std::latch done(1);
  std::vector<std::jthread> threads;
  const absl::Cleanup release = [&done] { done.count_down(); };
  try {
    while (threads.size() < kLeast) threads.emplace_back([&] { done.wait(); });
  } catch (const std::system_error&) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "threads: got ", threads.size(), ", want ", kLeast,
        " at least: raise the limit of the user (ulimit -u), of the control "
        "group (TasksMax of systemd, pids.max) or of addresses (ulimit -v)"));
  }
  return absl::OkStatus();
}

int Serve(const Flags& flags) {
  // Debian's Abseil, which gRPC's locks are of, looks for cycles at each of
  // them, under one lock of all threads.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  LimitFreeMemory();
  std::fputs(ToText(flags).c_str(), stdout);
  std::fflush(stdout);

  RaiseOpenFilesLimit();
  if (const absl::Status threads = CheckThreads(); !threads.ok()) {
    return Refuse(threads, "");
  }
  // What it stores is nobody else's to read.
  umask(0077);
  // Of both ports.
  const auto security = Security::Open(flags.server.security);
  if (!security.ok()) return Refuse(security.status(), "");
  // Before catalogs are opened, which may take a while.
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
  for (const auto& catalog : (*catalogs)->List("", kMaxCatalogs)) {
    const Recovery& recovery = catalog->recovery();
    const auto number = [](std::int64_t count) {
      return LogValue::Json(absl::StrCat(count));
    };
    LogEvent(LogLevel::kInfo, "catalog_opened",
             {{"catalog", catalog->name()},
              {"item_count", number(catalog->snapshot()->item_count())},
              {"from_segment_files", number(recovery.row_count)},
              {"replayed", number(recovery.replayed_count)}});
    if (!recovery.damage.ok()) {
      const std::vector<LogField> fields = {
          {"catalog", catalog->name()},
          {"error", std::string(recovery.damage.message())},
          {"what_now", "the index is built again from the items"}};
      if (absl::IsDataLoss(recovery.damage)) {
        LogEvent(LogLevel::kWarning, "segment_files_damaged", fields);
      } else {
        LogEvent(LogLevel::kWarning, "segment_files_not_read", fields);
      }
    }
    if (!recovery.keys_in_memory.ok()) {
      LogEvent(LogLevel::kWarning, "keys_in_memory",
               {{"catalog", catalog->name()},
                {"error", std::string(recovery.keys_in_memory.message())},
                {"what_now", "they go to files with the next index build"}});
    }
  }
  if (const absl::Status left = (*catalogs)->left_overs(); !left.ok()) {
    LogEvent(LogLevel::kWarning, "left_overs_not_removed",
             {{"error", std::string(left.message())}});
  }
  for (const auto& [name, status] : (*catalogs)->damages()) {
    const std::vector<LogField> fields = {
        {"catalog", name}, {"error", std::string(status.message())}};
    if (absl::IsDataLoss(status)) {
      LogEvent(LogLevel::kError, "catalog_damaged", fields);
    } else {
      LogEvent(LogLevel::kError, "catalog_not_opened", fields);
    }
  }
  for (const auto& [id, status] : (*catalogs)->models().damages()) {
    LogEvent(LogLevel::kError, "model_damaged",
             {{"model", absl::StrCat(id.first, ":", id.second)},
              {"error", std::string(status.message())}});
  }
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

// What is opened must not get the number of a standard stream that is closed:
// whatever is printed would go into that file. Writes to these fail.
void HoldStandardStreams() {
  int file = 0;
  do {
    file = open("/dev/null", O_RDONLY);
  } while (file >= 0 && file <= STDERR_FILENO);
  if (file >= 0) close(file);
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
  return Serve(flags);
}

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) { return attendant::Main(argc, argv); }
