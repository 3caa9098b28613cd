#include "client/load/run/load_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/api/error_json.h"
#include "client/api/exit_status.h"
#include "client/flags/empty_values.h"
#include "client/flags/help_format.h"
#include "client/load/requests/requests.h"
#include "client/load/send/wire_sender.h"
#include "core/base/status.h"

namespace attendant {
namespace {

constexpr char kDescription[] =
    R"(Measures attention under load: requests a second, latency, recall.

Without --rate, --steps or --ramp the loop is closed: each of --concurrency
callers sends its next request when its last one is answered. That measures the
throughput for a number of callers. With one of these flags the loop is open:
requests are sent when they are due, whether or not earlier ones are answered,
and a latency counts from the time it was due. That is the latency that
independent callers see.

While it runs, it shows rate, latencies and errors. The items that it writes,
load-SEED-NUMBER, are deleted at the end, also on Ctrl-C.
)";

constexpr char kFooter[] =
    R"(Examples:
  attendant-load prepare --catalog bench --items 100000 --dim 128 --wait-index
  attendant-load --catalog bench --concurrency 16 --duration 10 --verify 500
  attendant-load --catalog bench --ramp 500:10000 --duration 60 --html load.html
  attendant-load --catalog bench --rate 2000 --mix attend=90,write=10

Exit status: 0 success; 1 a request, a write or a check failed, or recall is
below --min-recall or was not measured before Ctrl-C; 2 the command line is
wrong, or a file is bad; 3 the server can't be reached.)";

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

void AddLoopOptions(CLI::App& app, LoadOptions& options) {
  app.add_option("--concurrency", options.concurrency,
                 "Callers of a closed loop")
      ->check(CLI::Range(1, 10000));
  const CLI::Validator rates = FiniteIn(0.1, 1e6);
  CLI::Option* rate =
      app.add_option("--rate", options.rate,
                     "An open loop with this many requests a second")
          ->check(rates);
  CLI::Option* steps =
      app.add_option("--steps", options.steps,
                     "An open loop with these rates in turn, each for an equal "
                     "part of --duration: 1000,2000,4000")
          ->check(rates)
          ->delimiter(',')
          ->default_str("")
          ->excludes(rate);
  app.add_option("--ramp", options.ramp,
                 "An open loop whose rate changes steadily: 100:5000")
      ->type_name("FROM:TO")
      ->excludes(rate)
      ->excludes(steps);
  app.add_flag("--fixed", options.fixed_arrivals,
               "Send the requests of an open loop evenly, not at random");
  app.add_option("--duration", options.duration_s, "Seconds to measure")
      ->check(FiniteIn(0.1, 86400));
  app.add_option("--warmup", options.warmup_s,
                 "Seconds of load before that, not measured")
      ->check(FiniteIn(0, 3600));
  app.add_option("--timeout", options.timeout_s,
                 "Seconds that a request may take")
      ->check(FiniteIn(0.001, 3600));
  app.add_option("--connections", options.connections,
                 absl::StrCat("Connections, which requests use in turns; more "
                              "are opened while each has ",
                              WireSender::kMaxCalls, " calls under way"))
      ->check(CLI::Range(1, 1000));
  app.add_option("--threads", options.threads,
                 "Threads that receive answers; each handles some 50,000 a "
                 "second")
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
  app.add_option("--result-count", requests.result_count, "Items in an answer")
      ->check(CLI::Range(1, 10000));
  app.add_option("--mix", mix,
                 "Kinds of requests and their shares, as in "
                 "attend=80,examples=10,filter=5,write=5: queries by vector, "
                 "by one to five stored items, by vector with a filter, and "
                 "upserts of items load-SEED-NUMBER, which are deleted at the "
                 "end")
      ->type_name("KIND=SHARE,...");
  CLI::Option* queries =
      app.add_option(
             "--queries", options.queries_path,
             ".npy, .fvecs, .txt or .csv file of query vectors, or .jsonl file "
             "with "
             "an AttendRequest on each line; default: the keys of random "
             "stored "
             "items with noise")
          ->check(CLI::ExistingFile);
  app.add_option("--noise", requests.noise,
                 "Norm of the noise as a share of the key's norm")
      ->check(FiniteIn(0, 100))
      ->excludes(queries);
  app.add_option("--filter", requests.filters,
                 "A filter for the mix; may be repeated. Default: conditions "
                 "that random stored items fulfil")
      ->type_name("FILTER")
      ->default_str("");
  app.add_option("--write-items", requests.write_item_count,
                 "Items in a write of the mix")
      ->check(CLI::Range(1, 256));
  app.add_option("--writes-per-second", options.writes_per_second,
                 "Items to import meanwhile: alternately items of the catalog, "
                 "which stay replaced, and new ones, which are deleted at the "
                 "end")
      ->check(FiniteIn(0.1, 1e7));
  app.add_option("--seed", requests.seed, "Seed of all random choices")
      ->check(FiniteIn(0, 1.8e19).description("INTEGER"));
}

// Refuses flags that would have no effect.
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
    return std::ranges::any_of(
        mix, [kind](const MixShare& m) { return m.kind == kind; });
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

// `prepare` refuses the flags of a load likewise.
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

void AddOutputOptions(CLI::App& app, LoadCommand& command) {
  OutputOptions& output = command.output;
  app.add_flag("--json", output.json,
               "Report as JSON with ghz's keys, times in nanoseconds; "
               "{\"error\": ...} if there is nothing to report");
  app.add_option("--html", output.html_path,
                 "File for a self-contained report with plots")
      ->type_name("FILE");
  CLI::Option* verify =
      app.add_option("--verify", command.load.verify_count,
                     "Number of answers to check, evenly over the load, by "
                     "asking the query again with an exact scan")
          ->check(CLI::Range(1, 1000000));
  app.add_option("--min-recall", output.min_recall,
                 "Fail if the mean recall of --verify is below this")
      ->check(FiniteIn(0, 1))
      ->needs(verify);
}

CLI::App* AddPrepare(CLI::App& app, PrepareOptions& options, bool& wait_index) {
  CLI::App* prepare = app.add_subcommand(
      "prepare", "Make a catalog of unit vectors to measure on");
  prepare->fallthrough();
  prepare->footer(
      "Also takes --catalog NAME, which is required, --server HOST:PORT, "
      "--seed,\n--json and the flags for TLS and tokens of `attendant-load "
      "--help`.");
  prepare->add_option("--items", options.item_count, "Items")
      ->check(CLI::Range(1, 100000000));
  prepare->add_option("--dim", options.dim, "Components of a key")
      ->check(CLI::Range(1, 8192));
  prepare->add_option("--clusters", options.cluster_count, "Gaussian clusters")
      ->check(CLI::Range(1, 1000000));
  prepare->add_flag("--replace", options.replace,
                    "Delete a catalog of that name first");
  prepare->add_flag("--wait-index", wait_index,
                    "Return when the index is trained");
  return prepare;
}

// Checks what CLI11 can't check flag by flag. Throws CLI::ParseError.
void FinishParsing(const CLI::App& app, bool prepares, const std::string& mix,
                   LoadOptions& options) {
  auto shares = ParseMix(mix);
  if (!shares.ok()) {
    throw CLI::ValidationError(std::string(shares.status().message()));
  }
  options.requests.mix = *std::move(shares);
  if (prepares) {
    CheckFlagsOfPrepare(app);
  } else {
    CheckFlagsAreUsed(app, options);
  }
  const auto profile = ProfileOf(options);
  if (!profile.ok()) {
    throw CLI::ValidationError(std::string(profile.status().message()));
  }
}

}  // namespace

std::variant<LoadCommand, int> ParseLoadCommand(int argc,
                                                const char* const* argv) {
  LoadCommand command;
  PrepareOptions prepare_options;
  std::string mix = kAttendKind;
  CLI::App app{kDescription, "attendant-load"};
  app.set_version_flag("--version", "attendant-load " ATTENDANT_VERSION);
  app.formatter(std::make_shared<HelpFormat>());
  app.set_help_flag("-h,--help", "Print this help");
  app.footer(kFooter);
  app.option_defaults()->always_capture_default();
  AddConnectionFlags(app, command.connection);
  AddRequestOptions(app, command.load, mix);
  AddLoopOptions(app, command.load);
  AddOutputOptions(app, command);
  const CLI::App* prepare =
      AddPrepare(app, prepare_options, command.wait_index);
  RefuseEmptyValues(app);

  try {
    RefuseEmptyAssignments(argc, argv);
    app.parse(argc, argv);
    FinishParsing(app, prepare->parsed(), mix, command.load);
  } catch (const CLI::ParseError& error) {
    // Help and version are no errors.
    if (error.get_exit_code() == 0) return app.exit(error);
    if (AsksForJson(argc, argv)) {
      std::cout << ErrorJson(UsageError(error.what()));
    }
    std::cerr << "attendant-load: " << error.what()
              << "\nTry `attendant-load --help`.\n";
    return kExitUsage;
  }
  if (prepare->parsed()) {
    prepare_options.catalog = command.load.requests.catalog;
    prepare_options.seed = command.load.requests.seed;
    command.prepare = std::move(prepare_options);
  }
  return command;
}

}  // namespace attendant
