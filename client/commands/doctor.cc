// attendant doctor
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/commands/command.h"
#include "client/doctor/data_directory.h"
#include "client/doctor/machine.h"
#include "client/doctor/report.h"
#include "client/doctor/server.h"
#include "core/base/status.h"

namespace attendant {
namespace {

struct DoctorFlags {
  std::string data_dir;
  std::string http;
  bool no_server = false;
};

absl::Status Examine(const DoctorFlags& flags, const Context& context) {
  std::vector<Examination> examinations;
  examinations.push_back({"Machine", ExamineMachine()});
  if (flags.data_dir.empty()) {
    examinations.push_back(
        {"Data directory",
         {{.subject = "directory",
           .verdict = Verdict::kSkipped,
           .text = "not examined: say which with --data-dir"}}});
  } else {
    examinations.push_back({absl::StrCat("Data directory ", flags.data_dir),
                            ExamineDataDirectory(flags.data_dir)});
  }
  if (flags.no_server) {
    examinations.push_back({"Server",
                            {{.subject = "server",
                              .verdict = Verdict::kSkipped,
                              .text = "not examined, as --no-server says"}}});
  } else {
    const std::string& address = context.connection.server;
    ATTENDANT_ASSIGN_OR_RETURN(const Client::Options options,
                               ClientOptions(context.connection));
    examinations.push_back(
        {absl::StrCat("Server ", address),
         ExamineServer({.server = address,
                        .http = flags.http.empty() ? DefaultHttpAddress(address)
                                                   : flags.http,
                        .security = options.security,
                        .connect = [&] { return context.Connect(); }})});
  }
  Print(context.json ? DoctorJson(examinations)
                     : DoctorReport(examinations, context.style));
  if (WorstOf(examinations) != Verdict::kFailure) return absl::OkStatus();
  return absl::FailedPreconditionError("something does not work: see above");
}

}  // namespace

void AddDoctorCommand(CLI::App& app, Context& context) {
  auto flags = std::make_shared<DoctorFlags>();
  CLI::App* doctor = app.add_subcommand(
      "doctor",
      "Examine this machine, a data directory and a server, and say what to "
      "do");
  doctor
      ->add_option("--data-dir", flags->data_dir,
                   "The directory that attendantd is given. Default: none is "
                   "examined")
      ->envname("ATTENDANT_DATA_DIR");
  doctor
      ->add_option("--http", flags->http,
                   "The server's HTTP port as HOST:PORT. Default: the port "
                   "of --server plus 1000")
      ->check(CLI::Validator(&CheckAddress, ""));
  doctor->add_flag("--no-server", flags->no_server,
                   "Leave the server out, as before it is first started");
  doctor->footer(
      "Examples:\n"
      "  attendant doctor --data-dir /var/lib/attendant\n"
      "  attendant doctor --no-server --json\n\n"
      "Exit status 1 if something does not work; warnings are none.");
  doctor->final_callback([flags, &context] {
    context.Run([&](const Context& c) { return Examine(*flags, c); });
  });
}

}  // namespace attendant
