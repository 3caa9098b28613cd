// attendant doctor
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/commands/administration/commands.h"
#include "client/doctor/data_directory.h"
#include "client/doctor/machine.h"
#include "client/doctor/open_files.h"
#include "client/doctor/report.h"
#include "client/doctor/server.h"
#include "core/base/host_port.h"
#include "core/base/status.h"

namespace attendant {
namespace {

struct DoctorFlags {
  std::string data_dir;
  std::string http;
  bool no_server = false;
};

bool IsOnThisMachine(absl::string_view address) {
  const absl::string_view host = HostOf(address);
  return host == "localhost" || host == "[::1]" ||
         absl::StartsWith(host, "127.");
}

absl::StatusOr<Examination> ServerExamination(const DoctorFlags& flags,
                                              const Context& context) {
  if (flags.no_server) {
    return Examination{"Server",
                       {{.subject = "server",
                         .verdict = Verdict::kSkipped,
                         .text = "not examined, as --no-server says"}}};
  }
  const std::string& address = context.connection.server;
  ATTENDANT_ASSIGN_OR_RETURN(const Client::Options options,
                             ClientOptions(context.connection));
  return Examination{
      absl::StrCat("Server ", address),
      ExamineServer({.server = address,
                     .http = flags.http.empty() ? DefaultHttpAddress(address)
                                                : flags.http,
                     .security = options.security,
                     .connect = [&] { return context.Connect(); }})};
}

Examination DirectoryExamination(const std::string& path, bool server_answers) {
  if (path.empty()) {
    return {"Data directory",
            {{.subject = "directory",
              .verdict = Verdict::kSkipped,
              .text = "not examined: say which with --data-dir"}}};
  }
  return {absl::StrCat("Data directory ", path),
          ExamineDataDirectory(path, server_answers)};
}

// Examines the limit of open files of the process that holds the data
// directory, or else of this one; nothing if the server has reported its own.
std::vector<Finding> OpenFiles(const Examination& server,
                               const std::string& data_dir) {
  for (const Finding& finding : server.findings) {
    if (finding.subject == kOpenFiles) return {};
  }
  if (!data_dir.empty()) {
    const std::int64_t pid = HolderOf(data_dir);
    const auto finding = pid == 0 ? std::nullopt : ExamineOpenFiles(pid);
    if (finding.has_value()) return {*finding};
  }
  return {ExamineOwnOpenFiles()};
}

absl::Status Examine(const DoctorFlags& flags, const Context& context) {
  ATTENDANT_ASSIGN_OR_RETURN(Examination server,
                             ServerExamination(flags, context));
  // The first finding says whether gRPC reached the server.
  const bool server_answers = server.findings[0].verdict == Verdict::kOk &&
                              IsOnThisMachine(context.connection.server);
  std::vector<Examination> examinations;
  examinations.push_back({"Machine", ExamineMachine()});
  for (Finding& finding : OpenFiles(server, flags.data_dir)) {
    examinations[0].findings.push_back(std::move(finding));
  }
  examinations.push_back(DirectoryExamination(flags.data_dir, server_answers));
  examinations.push_back(std::move(server));
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
      "Examine this machine, a data directory and a server, and advise what to "
      "do");
  doctor
      ->add_option(
          "--data-dir", flags->data_dir,
          "The data directory of attendantd. Default: none is examined")
      ->envname("ATTENDANT_DATA_DIR");
  doctor
      ->add_option("--http", flags->http,
                   "The server's HTTP port as HOST:PORT. Default: the port "
                   "of --server plus 1000")
      ->check(&CheckAddress);
  doctor->add_flag(
      "--no-server", flags->no_server,
      "Don't examine a server, for example before its first start");
  doctor->footer(
      "Examples:\n"
      "  attendant doctor --data-dir /var/lib/attendant\n"
      "  attendant doctor --no-server --json\n\n"
      "Exit status 1 if something does not work. Warnings don't count.");
  SetVerb(*doctor, context, flags, &Examine);
}

}  // namespace attendant
