// attendant-load: how many queries a second, how late, and how exact.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "client/api/advice.h"
#include "client/api/client.h"
#include "client/api/error_json.h"
#include "client/files/output.h"
#include "client/flags/connection_flags.h"
#include "client/flags/empty_values.h"
#include "client/flags/help_format.h"
#include "client/format/progress.h"
#include "client/format/text.h"
#include "client/load/report/report.h"
#include "client/load/requests/prepare.h"
#include "client/load/requests/requests.h"
#include "client/load/run/run_load.h"
#include "client/load/send/wire_sender.h"
#include "core/base/clock.h"
#include "core/base/status.h"

namespace attendant {
namespace {

constexpr char kDescription[] =
    R"(Measures attention under load: requests a second, latency, recall.

Without --rate, --steps or --ramp the loop is closed: each of --concurrency
callers sends its next request when its last one is answered. That finds what
a server can do for so many callers. With one of them it is open: requests are
sent when their time has come, whatever became of those before, and a latency
counts from that time. That is what callers wait who take no notice of each
other.

While it runs, it shows rate, latencies and errors. Items that it wrote under
ids of its own, load-SEED-NUMBER, it deletes when it ends, on Ctrl-C too.
)";

constexpr char kFooter[] =
    R"(Examples:
  attendant-load prepare --catalog bench --items 100000 --dim 128 --wait-index
  attendant-load --catalog bench --concurrency 16 --duration 10 --verify 500
  attendant-load --catalog bench --ramp 500:10000 --duration 60 --html load.html
  attendant-load --catalog bench --rate 2000 --mix attend=90,write=10

Exit status: 0 all went well; 1 a request, a write or a check failed, or recall
is below --min-recall or was not looked at before Ctrl-C; 2 the arguments are
wrong, or a file is bad; 3 the server can't be reached.)";

enum ExitStatus { kOk = 0, kFailed = 1, kUsage = 2, kUnreachable = 3 };

// What becomes of a report.
struct OutputOptions {
  bool json = false;
  std::string html_path;
  std::optional<double> min_recall;
};

int Report(const absl::Status& status, const OutputOptions& output) {
  if (output.json) std::cout << ErrorJson(status);
  std::cerr << "attendant-load: " << absl::StatusCodeToString(status.code())
            << ": " << MessageWithAdvice(status) << "\n";
  return ReasonOf(status) == kUsageReason ? kUsage
         : IsUnreachable(status)          ? kUnreachable
                                          : kFailed;
}

// CLI::Range lets NaN pass.
CLI::Validator FiniteIn(double least, double most) {
  const std::string range = absl::StrFormat("%g to %g", least, most);
  return {[=](const std::string& text) -> std::string {
            double number = 0;
            if (absl::SimpleAtod(text, &number) && number >= least &&
                number <= most) {
              return "";
            }
            return absl::StrCat("got \"", text,
                                "\", want a finite number from ", range);
          },
          absl::StrFormat("NUMBER in [%g - %g]", least, most)};
}

std::atomic<bool> interrupted = false;

// A signal ends the load, that of a pipe nobody reads and of a terminal that is
// closed too, and a second SIGINT the process. A second SIGTERM says nothing
// new: `timeout` sends it twice.
void CatchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted.store(true); };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    struct sigaction before = {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;  // as in the background
    action.sa_flags = signal == SIGINT
                          ? static_cast<int>(SA_RESETHAND) | SA_RESTART
                          : SA_RESTART;
    sigaction(signal, &action, nullptr);
  }
}

int LoadMain(LoadOptions options, const OutputOptions& output) {
  if (!options.queries_path.empty()) {
    auto queries = ReadQueries(options.queries_path);
    if (!queries.ok()) {
      Report(queries.status(), output);
      return kUsage;
    }
    options.requests.queries = *std::move(queries);
  }
  // Told before the load, and not after it.
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
  // There is nothing left to delete.
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

  if (report->result.total.request_count() == 0) {
    std::cerr << "attendant-load: no request was answered in time\n";
    return kFailed;
  }
  if (report->verify && report->verify->failed_count > 0) {
    std::cerr << "attendant-load: a check failed: "
              << report->verify->first_failure.message() << "\n";
    return kFailed;
  }
  if (report->result.total.failed_count() + report->result.unsent_count > 0) {
    return kFailed;
  }
  if (report->writes && !report->writes->status.ok()) {
    return Report(report->writes->status, {});
  }
  if (report->writes && report->writes->refused_count > 0) {
    std::cerr << "attendant-load: " << report->writes->refused_count
              << " items were refused\n";
    return kFailed;
  }
  if (report->cleanup && !report->cleanup->status.ok()) {
    return Report(report->cleanup->status, {});
  }
  if (output.min_recall && !report->verify) {
    std::cerr << "attendant-load: interrupted before an answer was checked for "
                 "--min-recall\n";
    return kFailed;
  }
  if (output.min_recall && report->verify->mean_recall < *output.min_recall) {
    std::cerr << "attendant-load: recall " << report->verify->mean_recall
              << " is below --min-recall " << *output.min_recall << "\n";
    return kFailed;
  }
  return kOk;
}

int PrepareMain(const Client::Options& to_client, const PrepareOptions& prepare,
                bool wait_index, const OutputOptions& output) {
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
  if (wait_index) {
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
    if (wait_index) json["indexSeconds"] = index_s;
    std::cout << json.dump(2) << "\n";
    return kOk;
  }
  std::cout << absl::StrFormat(
      "made and imported %s items in %.2f s: %s a second\n",
      FormatCount(result->item_count), import_s,
      FormatCount(static_cast<std::int64_t>(items_per_second)));
  if (wait_index) {
    std::cout << absl::StrFormat("index ready %.2f s later\n", index_s);
  }
  return kOk;
}

void AddLoopOptions(CLI::App& app, LoadOptions& options) {
  app.add_option("--concurrency", options.concurrency,
                 "Callers of a closed loop")
      ->check(CLI::Range(1, 10000));
  const CLI::Validator rates = FiniteIn(0.1, 1e6);
  CLI::Option* rate =
      app.add_option("--rate", options.rate,
                     "An open loop of so many requests a second")
          ->check(rates);
  CLI::Option* steps =
      app.add_option("--steps", options.steps,
                     "An open loop of these rates, one after the other, each "
                     "for its share of --duration: 1000,2000,4000")
          ->check(rates)
          ->delimiter(',')
          ->default_str("")
          ->excludes(rate);
  app.add_option("--ramp", options.ramp,
                 "An open loop whose rate goes from one to another: 100:5000")
      ->type_name("FROM:TO")
      ->excludes(rate)
      ->excludes(steps);
  app.add_flag("--fixed", options.fixed_arrivals,
               "Requests of an open loop at even distances, and not at random");
  app.add_option("--duration", options.duration_s, "Seconds that count")
      ->check(FiniteIn(0.1, 86400));
  app.add_option("--warmup", options.warmup_s, "Seconds before that")
      ->check(FiniteIn(0, 3600));
  app.add_option("--timeout", options.timeout_s,
                 "Seconds a request of the load may take")
      ->check(FiniteIn(0.001, 3600));
  app.add_option("--connections", options.connections,
                 absl::StrCat("Connections that requests take in turns; more "
                              "are opened where each has ",
                              WireSender::kMostCalls, " calls under way"))
      ->check(CLI::Range(1, 1000));
  app.add_option("--threads", options.threads,
                 "Threads that take answers; one takes some 50,000 a second")
      ->check(CLI::Range(1, 256));
}

void AddRequestOptions(CLI::App& app, LoadOptions& options, std::string& mix) {
  RequestOptions& requests = options.requests;
  app.add_option("--catalog", requests.catalog, "The catalog to ask")
      ->type_name("NAME")
      ->required();
  app.add_option("--field", requests.key_field,
                 "The key field; default: the catalog's first")
      ->type_name("FIELD");
  app.add_option("--result-count", requests.result_count, "Items an answer")
      ->check(CLI::Range(1, 10000));
  app.add_option("--mix", mix,
                 "Kinds of requests and their shares, as in "
                 "attend=80,examples=10,filter=5,write=5: queries by vector, "
                 "by one to five stored items, by vector with a filter, and "
                 "upserts of items of our own, load-SEED-NUMBER, which are "
                 "deleted at the end")
      ->type_name("KIND=SHARE,...");
  CLI::Option* queries =
      app.add_option(
             "--queries", options.queries_path,
             ".npy, .fvecs or .txt file of query vectors, or .jsonl file with "
             "an AttendRequest a line; default: the keys of random stored "
             "items with noise")
          ->check(CLI::ExistingFile);
  app.add_option("--noise", requests.noise,
                 "Norm of the noise as a share of the key's")
      ->check(FiniteIn(0, 100))
      ->excludes(queries);
  app.add_option("--filter", requests.filters,
                 "A filter for the mix; may repeat. Default: conditions that "
                 "random stored items fulfil")
      ->type_name("FILTER")
      ->default_str("");
  app.add_option("--write-items", requests.write_item_count,
                 "Items of a write of the mix")
      ->check(CLI::Range(1, 256));
  app.add_option("--writes-per-second", options.writes_per_second,
                 "Items imported meanwhile, in turns items of the catalog, "
                 "which stay replaced, and new ones, which are deleted at the "
                 "end")
      ->check(FiniteIn(0.1, 1e7));
  app.add_option("--seed", requests.seed, "Of what is drawn")
      ->check(FiniteIn(0, 1.8e19).description("INTEGER"));
}

// A flag that would change nothing is a mistake.
void CheckFlagsAreUsed(const CLI::App& app, const LoadOptions& options) {
  for (const char* open : {"--rate", "--steps", "--ramp"}) {
    if (app.count("--concurrency") > 0 && app.count(open) > 0) {
      throw CLI::ExcludesError("--concurrency", open);
    }
  }
  const std::vector<MixShare>& mix = options.requests.mix;
  const auto check = [&app](const std::string& flag, bool is_used,
                            const std::string& want) {
    if (app.count(flag) > 0 && !is_used) throw CLI::RequiresError(flag, want);
  };
  const auto mixes = [&mix](absl::string_view kind) {
    return std::any_of(mix.begin(), mix.end(),
                       [kind](const MixShare& m) { return m.kind == kind; });
  };
  const bool mixes_vectors = mixes(kAttendKind) || mixes(kFilterKind);
  check("--queries", mixes_vectors, "attend or filter in --mix");
  check("--noise", mixes_vectors, "attend or filter in --mix");
  check("--result-count", mixes_vectors || mixes(kExamplesKind),
        "attend, examples or filter in --mix");
  check("--filter", mixes(kFilterKind), "filter in --mix");
  check("--write-items", mixes(kWriteKind), "write in --mix");
  check("--fixed",
        app.count("--rate") + app.count("--steps") + app.count("--ramp") > 0,
        "--rate, --steps or --ramp");
}

// Nor has `prepare` a use for what is of a load.
void CheckFlagsOfPrepare(const CLI::App& app) {
  const std::set<std::string> used = {"--server", "--catalog", "--seed",
                                      "--json"};
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() > 0 && option->get_group() != kSecurityGroup &&
        !used.contains(name)) {
      throw CLI::ExcludesError("prepare", name);
    }
  }
}

int Main(int argc, char** argv) {
  // Debian's Abseil, which gRPC's locks are of, looks for cycles at each of
  // them, under one lock of all threads.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  SilenceGrpc();
  LoadOptions options;
  OutputOptions output;
  ConnectionFlags connection;
  std::string mix = kAttendKind;
  CLI::App app{kDescription, "attendant-load"};
  app.set_version_flag("--version", "attendant-load " ATTENDANT_VERSION);
  app.formatter(std::make_shared<HelpFormat>());
  app.set_help_flag("-h,--help", "Print this help");
  app.footer(kFooter);
  app.option_defaults()->always_capture_default();
  AddConnectionFlags(app, connection);
  AddRequestOptions(app, options, mix);
  AddLoopOptions(app, options);
  app.add_flag("--json", output.json,
               "Report as JSON, with ghz's keys; times in nanoseconds. What "
               "fails before there is one: {\"error\": ...}");
  app.add_option("--html", output.html_path,
                 "File for a report with plots, which needs no network")
      ->type_name("FILE");
  CLI::Option* verify =
      app.add_option("--verify", options.verify_count,
                     "So many answers, evenly over the load, are checked: each "
                     "query is asked again exactly")
          ->check(CLI::Range(1, 1000000));
  app.add_option("--min-recall", output.min_recall,
                 "Fail if the mean recall of --verify is below")
      ->check(FiniteIn(0, 1))
      ->needs(verify);

  PrepareOptions prepare_options;
  bool wait_index = false;
  CLI::App* prepare = app.add_subcommand(
      "prepare", "Make a catalog of unit vectors to measure on");
  prepare->fallthrough();
  prepare->footer(
      "With --catalog NAME, which is required, and --server HOST:PORT, "
      "--seed,\n--json and the flags of TLS and tokens of `attendant-load "
      "--help`.");
  prepare->add_option("--items", prepare_options.item_count, "Items")
      ->check(CLI::Range(1, 100000000));
  prepare->add_option("--dim", prepare_options.dim, "Components of a key")
      ->check(CLI::Range(1, 8192));
  prepare
      ->add_option("--clusters", prepare_options.cluster_count,
                   "Gaussian clusters")
      ->check(CLI::Range(1, 1000000));
  prepare->add_flag("--replace", prepare_options.replace,
                    "Delete a catalog of that name first");
  prepare->add_flag("--wait-index", wait_index,
                    "Return when the index is trained");
  RefuseEmptyValues(app);

  try {
    RefuseEmptyAssignments(argc, argv);
    app.parse(argc, argv);
    auto shares = ParseMix(mix);
    if (!shares.ok()) {
      throw CLI::ValidationError(std::string(shares.status().message()));
    }
    options.requests.mix = *std::move(shares);
    if (prepare->parsed()) {
      CheckFlagsOfPrepare(app);
    } else {
      CheckFlagsAreUsed(app, options);
    }
    const auto profile = ProfileOf(options);
    if (!profile.ok()) {
      throw CLI::ValidationError(std::string(profile.status().message()));
    }
  } catch (const CLI::ParseError& error) {
    // Help and version are no errors.
    if (error.get_exit_code() == 0) return app.exit(error);
    if (AsksForJson(argc, argv)) {
      std::cout << ErrorJson(UsageError(error.what()));
    }
    std::cerr << "attendant-load: " << error.what()
              << "\nTry `attendant-load --help`.\n";
    return kUsage;
  }
  auto to_client = ClientOptions(connection);
  if (!to_client.ok()) return Report(to_client.status(), output);
  if (const absl::Status checked = CheckSecurity(to_client->security);
      !checked.ok()) {
    return Report(checked, output);
  }
  options.client = *std::move(to_client);
  options.connection_flags = ShellFlags(connection);
  if (!prepare->parsed()) return LoadMain(std::move(options), output);
  prepare_options.catalog = options.requests.catalog;
  prepare_options.seed = options.requests.seed;
  return PrepareMain(options.client, prepare_options, wait_index, output);
}

}  // namespace
}  // namespace attendant

int main(int argc, char** argv) {
  const int exit_status = attendant::Main(argc, argv);
  // What did not fit its buffer was written before.
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_status;
  std::fputs("attendant-load: standard output can't be written\n", stderr);
  return std::max<int>(exit_status, attendant::kFailed);
}
