// attendant-load: measures throughput, latency and recall.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "client/api/advice.h"
#include "client/api/client.h"
#include "client/api/error_json.h"
#include "client/api/exit_status.h"
#include "client/files/output.h"
#include "client/flags/connection_flags.h"
#include "client/format/progress.h"
#include "client/format/text.h"
#include "client/load/report/report.h"
#include "client/load/requests/prepare.h"
#include "client/load/run/load_command.h"
#include "client/load/run/run_load.h"
#include "core/base/clock.h"
#include "core/base/status.h"

namespace attendant {
namespace {

int Report(const absl::Status& status, const OutputOptions& output) {
  if (output.json) std::cout << ErrorJson(status);
  std::cerr << "attendant-load: " << absl::StatusCodeToString(status.code())
            << ": " << MessageWithAdvice(status)
            << (ReasonOf(status) == "CATALOG_NOT_FOUND"
                    ? "; `attendant-load prepare --catalog NAME` makes one"
                    : "")
            << "\n";
  return ExitStatusOf(status);
}

std::atomic<bool> interrupted = false;

// Makes a signal end the load, including SIGPIPE and the SIGHUP of a closed
// terminal, and a second SIGINT the process. A second SIGTERM has no effect,
// since `timeout` sends it twice.
void CatchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted.store(true); };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    struct sigaction before = {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;  // a job in the background
    action.sa_flags = signal == SIGINT
                          ? static_cast<int>(SA_RESETHAND) | SA_RESTART
                          : SA_RESTART;
    sigaction(signal, &action, nullptr);
  }
}

int Fail(const std::string& why) {
  std::cerr << "attendant-load: " << why << "\n";
  return kExitRefused;
}

// Returns the exit status of a load whose report was printed. Says why it is
// not 0, unless the report does.
int ExitStatusOfLoad(const LoadReport& report,
                     std::optional<double> min_recall) {
  if (report.result.total.request_count() == 0) {
    return Fail("no request was answered in time");
  }
  if (report.verify && report.verify->failed_count > 0) {
    return Fail(absl::StrCat("a check failed: ",
                             report.verify->first_failure.message()));
  }
  if (report.result.total.failed_count() + report.result.unsent_count > 0) {
    return kExitRefused;
  }
  if (report.writes && !report.writes->status.ok()) {
    return Report(report.writes->status, {});
  }
  if (report.writes && report.writes->refused_count > 0) {
    return Fail(
        absl::StrCat(report.writes->refused_count, " items were refused"));
  }
  if (report.cleanup && !report.cleanup->status.ok()) {
    return Report(report.cleanup->status, {});
  }
  if (min_recall && !report.verify) {
    return Fail("interrupted before an answer was checked for --min-recall");
  }
  if (min_recall && report.verify->mean_recall < *min_recall) {
    return Fail(absl::StrCat("recall ", report.verify->mean_recall,
                             " is below --min-recall ", *min_recall));
  }
  return kExitOk;
}

int LoadMain(LoadOptions options, const OutputOptions& output) {
  if (!options.queries_path.empty()) {
    auto queries = ReadQueries(options.queries_path);
    if (!queries.ok()) {
      Report(queries.status(), output);
      return kExitUsage;
    }
    options.requests.queries = *std::move(queries);
  }
  // Checked now, so that the load is not run in vain.
  if (!output.html_path.empty()) {
    const absl::Status writable = CheckWritableFile(output.html_path);
    if (!writable.ok()) {
      return Report(UsageError(absl::StrCat("--html: ", writable.message())),
                    output);
    }
  }
  CatchInterrupts();
  options.is_stopped = [] { return interrupted.load(); };
  const auto report = RunLoad(std::move(options));
  // The items are deleted, so SIGPIPE may end the process.
  std::signal(SIGPIPE, SIG_DFL);
  if (!report.ok()) {
    return Report(report.status(), output);
  }
  std::cout << (output.json ? JsonReport(*report) : TextReport(*report));
  if (!output.html_path.empty()) {
    const absl::Status written =
        WriteFile(output.html_path, HtmlReport(*report));
    if (!written.ok()) return Report(written, {});
  }
  return ExitStatusOfLoad(*report, output.min_recall);
}

int PrepareMain(const Client::Options& to_client, const LoadCommand& command) {
  const PrepareOptions& prepare = *command.prepare;
  const OutputOptions& output = command.output;
  const auto client = Client::Connect(to_client);
  if (!client.ok()) return Report(client.status(), output);
  Progress progress(stderr, "Importing", prepare.item_count);
  const auto result =
      Prepare(**client, prepare, [&](std::int64_t acknowledged_count) {
        progress.Update(acknowledged_count);
      });
  progress.Clear();
  if (!result.ok()) return Report(result.status(), output);
  const double import_s = absl::ToDoubleSeconds(result->import_time);
  const double items_per_second =
      static_cast<double>(result->item_count) / import_s;
  double index_s = 0;
  if (command.wait_index) {
    const SteadyTime begin = SteadyNow();
    const absl::Status waited =
        WaitForIndex(**client, prepare.catalog, absl::Minutes(10));
    if (!waited.ok()) return Report(waited, output);
    index_s = absl::ToDoubleSeconds(TimeSince(begin));
  }
  if (output.json) {
    nlohmann::ordered_json json = {{"items", result->item_count},
                                   {"seconds", import_s},
                                   {"itemsPerSecond", items_per_second}};
    if (command.wait_index) json["indexSeconds"] = index_s;
    std::cout << json.dump(2) << "\n";
    return kExitOk;
  }
  std::cout << absl::StrFormat(
      "made and imported %s items in %.2f s: %s a second\n",
      FormatCount(result->item_count), import_s,
      FormatCount(static_cast<std::int64_t>(items_per_second)));
  if (command.wait_index) {
    std::cout << absl::StrFormat("index ready %.2f s later\n", index_s);
  }
  return kExitOk;
}

int Main(int argc, char** argv) {
  // Debian's Abseil looks for deadlocks at each lock of gRPC, under one global
  // lock, which is slow.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  SilenceGrpc();
  std::variant<LoadCommand, int> parsed = ParseLoadCommand(argc, argv);
  if (const int* const exit_status = std::get_if<int>(&parsed)) {
    return *exit_status;
  }
  LoadCommand& command = std::get<LoadCommand>(parsed);
  auto client = ClientOptions(command.connection);
  if (!client.ok()) return Report(client.status(), command.output);
  if (const absl::Status checked = CheckSecurity(client->security);
      !checked.ok()) {
    return Report(checked, command.output);
  }
  if (command.prepare) return PrepareMain(*client, command);
  command.load.client = *std::move(client);
  command.load.connection_flags = ShellFlags(command.connection);
  return LoadMain(std::move(command.load), command.output);
}

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) {
  const int exit_status = attendant::Main(argc, argv);
  // ferror tells of earlier writes, which happen when the buffer is full.
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_status;
  std::fputs("attendant-load: standard output can't be written\n", stderr);
  return std::max(exit_status, attendant::kExitRefused);
}
